"""The controller on imported sessions: what it sees, what its interventions do, what they cost."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

import codesmith_lab as lab
from codesmith_lab.billing.usage import Usage
from codesmith_lab.capacity import CapacityConfig, observe_all
from codesmith_lab.errors import LabError
from codesmith_lab.samples.agent_log import agent_log_lines
from codesmith_lab.sessions.analysis import make_runner
from codesmith_lab.sessions.capacity.observations import (
    DEFAULT_WINDOW_TOKENS,
    SessionObserver,
    messages_of,
    observe_session,
)
from codesmith_lab.sessions.capacity.replay import (
    ControlledSession,
    compact_at,
    replay_controller,
)
from codesmith_lab.sessions.capacity.rewrites import InterventionRules
from codesmith_lab.sessions.turns import TurnRunner

FREE = InterventionRules(summary_call="none")
KEEN = CapacityConfig(enabled=True, low_risk_max=0.05, medium_risk_max=0.3)


def runner_of(
    lines: Any, model: str | None = None, rules: str | None = None, session: Any = None
) -> TurnRunner:
    runner = make_runner(session or lab.load_bytes(b"\n".join(lines)), model, rules)
    return runner


@pytest.fixture(scope="module")
def long_runner() -> TurnRunner:
    """Sixty turns with an intact cache."""
    return runner_of(agent_log_lines(60, blocks_per_turn=4))


@pytest.fixture(scope="module")
def clock_runner() -> TurnRunner:
    runner = make_runner(lab.samples.clock_story())
    return runner


def chat(*messages: dict[str, Any]) -> bytes:
    return json.dumps({"model": "deepseek-v4-pro", "messages": messages}).encode()


def call(*idents: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": "I look at src/a.py, again.",
        "tool_calls": [
            {"id": i, "type": "function", "function": {"name": "f", "arguments": '{"p": "x/y"}'}}
            for i in idents
        ],
    }


def result(ident: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ident, "content": "lines of a/b.txt"}


ASK = {"role": "user", "content": "Look at (src/a.py), README.md and README.md; then go."}
MORE = {"role": "user", "content": "Now what"}
DONE = {"role": "assistant", "content": "Done."}


def test_counts_by_hand() -> None:
    runner = runner_of(
        [
            chat(ASK),
            chat(ASK, call("1", "2"), result("1"), result("2")),
            chat(ASK, call("1", "2"), result("1"), result("2"), DONE, MORE),
        ]
    )
    table = observe_session(runner)
    seen = [
        (
            int(table.turn_index[row]),
            table.phase(row),
            int(table.actions[row]),
            int(table.tools[row]),
            int(table.references[row]),
        )
        for row in range(len(table))
    ]
    # References of the first: src/a.py and README.md ("go." keeps no slash and loses its stop,
    # but it held one). Then the two call ids; the assistant's text adds no other path.
    assert seen == [
        (0, "pre_turn", 1, 0, 3),
        (0, "post_tool", 3, 4, 6),
        (1, "pre_turn", 4, 4, 6),
        (2, "pre_turn", 1, 4, 7),
    ]
    assert table.models == ("deepseek-v4-pro",)
    tokens = [turn.prompt.total_tokens for turn in runner.run()]
    assert table.context_used_ratio.tolist() == [
        tokens[0] / 1_000_000,
        tokens[1] / 1_000_000,
        tokens[1] / 1_000_000,
        tokens[2] / 1_000_000,
    ]
    assert list(observe_session(runner.session).rows()) == list(table.rows())
    by_person = observe_session(runner, turns="person", context_window_tokens=1000)
    assert by_person.turn_index.tolist() == [0, 0, 0, 1]
    assert by_person.context_used_ratio[0] == tokens[0] / 1000


def test_anthropic_sessions_count_the_same() -> None:
    use = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
    told = {"type": "tool_result", "tool_use_id": "1", "content": "x/y"}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "see a/b"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "ok"}, use]},
        {"role": "user", "content": [told]},
    ]
    bodies = [
        json.dumps(
            {"model": "claude-x", "max_tokens": 9, "system": "s", "messages": messages[:n]}
        ).encode()
        for n in (1, 3)
    ]
    runner = runner_of(bodies, "claude-x", "deepseek-v4")
    table = observe_session(runner)
    assert table.tools.tolist() == [0, 2, 2]
    assert table.references.tolist() == [1, 2, 2]
    assert table.actions.tolist() == [1, 2, 3]
    assert SessionObserver(runner).context_window_tokens == DEFAULT_WINDOW_TOKENS
    assert not SessionObserver(runner).window_known


def test_counters_alone_are_no_observation(long_runner: TurnRunner) -> None:
    """A log may hold no bodies: then the reported tokens are taken, and the gap is told."""
    session = long_runner.session
    usage = Usage(input_tokens=77_000, output_tokens=5, cache_read_tokens=0)
    bare = replace(session.requests[5], blocks=(), body=b"", content="none", usage=usage)
    some = replace(session, requests=(*session.requests[:5], bare, *session.requests[6:]))
    observer = SessionObserver(runner_of([], session=some))
    assert "1 requests are known by their counters only" in observer.notes()[1]
    table = observe_session(some)
    row = table.turn_index.tolist().index(5)
    assert table.context_used_ratio[row] == 77_000 / observer.context_window_tokens
    none = replace(
        session,
        requests=tuple(replace(r, blocks=(), body=b"", content="none") for r in session.requests),
    )
    with pytest.raises(LabError, match="holds no messages, so tool calls and references cannot"):
        observe_session(none)


def test_only_the_newest_messages_count(long_runner: TurnRunner) -> None:
    table = observe_session(long_runner)
    newest = messages_of(long_runner.session.requests[-1].blocks)[-3 * 8 :]
    assert table.tools[-1] == sum(
        message[0].calls + (message[0].role == "tool") for message in newest
    )
    assert observe_session(long_runner, window=20).tools[-1] > table.tools[-1]
    for bad in ({"turns": "day"}, {"context_window_tokens": -1}, {"context_window_tokens": 1.5}):
        with pytest.raises(LabError):
            SessionObserver(long_runner, **bad)  # type: ignore[arg-type]


def as_log(runner: TurnRunner, controlled: ControlledSession) -> bytes:
    """The rewritten session as an agent would really have sent it."""
    lines = []
    for turn, request in zip(controlled.turns, runner.session.requests, strict=True):
        body = json.loads(request.body)
        system = [m for m in body["messages"] if m["role"] == "system"]
        messages = [
            json.loads(message[0].raw)
            if message[0].raw
            else {"role": message[0].role, "content": message[0].text}
            for message in messages_of(turn.prompt.blocks)
        ]
        lines.append(
            {
                "time": None if request.time is None else request.time.isoformat(),
                "request": body | {"messages": system + messages},
            }
        )
    answers = [json.loads(line)["response"] for line in agent_log_lines(60, blocks_per_turn=4)]
    return b"\n".join(
        json.dumps(line | {"response": answer}).encode()
        for line, answer in zip(lines, answers, strict=True)
    )


@pytest.mark.parametrize(
    "action",
    ["targeted_context_refresh", "verify_and_replan", "verify_with_tool_replay"],
)
def test_a_rewritten_session_costs_what_its_log_costs(long_runner: TurnRunner, action: Any) -> None:
    """The oracle: write the changed requests out, read them as any log, and bill that."""
    controlled = compact_at(long_runner, 25, action, FREE)
    again = lab.analyze(lab.load_bytes(as_log(long_runner, controlled)))
    assert [t.prompt.total_tokens for t in again.turns] == [
        t.prompt.total_tokens for t in controlled.turns
    ]
    assert [t.match.hit_tokens for t in again.turns] == [
        t.match.hit_tokens for t in controlled.turns
    ]
    assert again.totals.cost_usd == controlled.cost_usd
    assert controlled.off_usd == lab.analyze(long_runner.session).totals.cost_usd
    assert controlled.superseded == ()
    first = controlled.interventions[0]
    assert first.net_usd == controlled.cost_usd - controlled.off_usd
    assert first.before_tokens == long_runner.run()[25].prompt.total_tokens
    assert first.after_tokens == controlled.turns[25].prompt.total_tokens
    if action == "verify_with_tool_replay":
        assert first.after_tokens > first.before_tokens
        assert first.pays_back_after is None
        assert first.repaid_tokens < 100
        # Nothing is rewritten before the end: the cache keeps its whole prefix.
        assert controlled.turns[25].match.hit_tokens == long_runner.run()[25].match.hit_tokens
    else:
        assert first.after_tokens < first.before_tokens
        assert first.saved_tokens > 100_000


def test_the_formula_and_the_replay_agree(long_runner: TurnRunner) -> None:
    """Rounding to the cache's whole units moves the answer by one turn at most."""
    compared = 0
    for request in (10, 20, 30, 40, 50):
        for summary in ("none", "cached", "fresh"):
            rules = InterventionRules(0, 0.05, summary)
            cost = compact_at(long_runner, request, rules=rules).interventions[0]
            assert cost.formula is not None
            expected = cost.formula.requests
            assert expected is not None
            if expected <= 60 - request - 1:
                assert cost.pays_back_after is not None
                assert abs(cost.pays_back_after - expected) <= 1
                assert f"pays back after {cost.pays_back_after} turns." in cost.sentence()
                compared += 1
            elif expected > 60 - request + 1:
                assert cost.pays_back_after is None
                assert cost.sentence().endswith("never pays back in this session.")
    assert compared >= 6


def test_what_the_writer_of_the_summary_costs(long_runner: TurnRunner) -> None:
    """Fresh: the replaced tokens at $0.14 a million, cached: at $0.0028, and its own at $0.28."""
    costs = {
        kind: compact_at(long_runner, 30, rules=InterventionRules(summary_call=kind))
        for kind in ("none", "cached", "fresh")
    }
    usd = {kind: controlled.interventions[0].summary_usd for kind, controlled in costs.items()}
    rates = costs["none"].turns[30].rates
    assert rates is not None
    read = (usd["fresh"] - usd["cached"]) / (rates.input - rates.cache_read) * 1_000_000
    before = costs["none"].interventions[0].before_tokens
    assert read == int(read)
    assert 0.7 < float(read) / before < 1
    written = (usd["cached"] - read * rates.cache_read / 1_000_000) / rates.output * 1_000_000
    assert written == int(written)
    assert 0.08 < float(written / read) < 0.16
    assert usd["none"] == 0
    for kind, controlled in costs.items():
        assert controlled.cost_usd == costs["none"].cost_usd + usd[kind]
        assert controlled.interventions[0].net_usd == controlled.cost_usd - controlled.off_usd


def test_off_changes_nothing(clock_runner: TurnRunner) -> None:
    controlled = replay_controller(clock_runner, CapacityConfig())
    assert controlled.interventions == ()
    assert controlled.cost_usd == controlled.off_usd
    assert {step.decision.reason for step in controlled.steps} == {"capacity_controller_disabled"}


def test_the_loop_is_closed(clock_runner: TurnRunner) -> None:
    """An intervention changes what is observed after it, and nothing before."""
    table = observe_session(clock_runner)
    controlled = replay_controller(clock_runner, KEEN, FREE)
    assert len(controlled.steps) == len(table)
    done = [i for i, step in enumerate(controlled.steps) if step.done != "no_intervention"]
    assert len(done) == len(controlled.interventions) >= 2
    first = done[0]
    seen = [step.observation for step in controlled.steps]
    assert seen[: first + 1] == list(table.rows())[: first + 1]
    later = seen[first + 2]
    assert later.context_used_ratio < table.context_used_ratio[first + 2]
    p_fail = observe_all(KEEN, table).p_fail
    assert controlled.steps[first].snapshot is not None
    assert controlled.steps[first].snapshot.p_fail == pytest.approx(float(p_fail[first]))
    assert [i.action for i in controlled.interventions] == [controlled.steps[i].done for i in done]


def test_the_sessions_own_compaction_ends_an_interventions_effect(
    clock_runner: TurnRunner,
) -> None:
    controlled = compact_at(clock_runner, 20, rules=FREE)
    assert controlled.superseded == (30,)
    off = clock_runner.run()
    assert [t.prompt.total_tokens for t in controlled.turns[30:]] == [
        t.prompt.total_tokens for t in off[30:]
    ]
    both = replay_controller(clock_runner, KEEN, FREE)
    assert any(cost.request > 30 for cost in both.interventions)
    for cost in both.interventions:
        shorter = cost.action != "verify_with_tool_replay"
        assert (cost.saved_tokens > 0) == shorter
        assert (cost.after_tokens < cost.before_tokens) == shorter
    total = sum((cost.net_usd for cost in both.interventions), Decimal(0))
    assert both.off_usd + total == both.cost_usd


def test_a_refresh_never_parts_a_call_from_its_result_nor_takes_the_turns_own(
    long_runner: TurnRunner,
) -> None:
    for request in range(8, 24, 3):
        for keep in range(6):
            rules = InterventionRules(keep, 0.1, "none")
            turn = compact_at(long_runner, request, rules=rules).turns[request]
            messages = messages_of(turn.prompt.blocks)
            assert messages[0][0].name == "summary"
            assert messages[1][0].role != "tool"
            own = [b for b in long_runner.session.requests[request].blocks if b.zone == "scratch"]
            assert list(turn.prompt.blocks[-len(own) :]) == own


def test_without_prices_there_are_tokens_and_no_money() -> None:
    lines = [line.replace(b"deepseek-v4-flash", b"who-knows") for line in agent_log_lines(12)]
    runner = runner_of(lines, "who-knows", "deepseek-v4")
    controlled = compact_at(runner, 8)
    assert controlled.cost_usd is None
    assert controlled.off_usd is None
    cost = controlled.interventions[0]
    assert (cost.net_usd, cost.summary_usd, cost.pays_back_after) == (None, None, None)
    assert (
        cost.sentence()
        == f"Without prices, compacting at turn 9 saves {cost.saved_tokens:,} tokens."
    )
    assert cost.saved_tokens > 0


def test_what_cannot_be_done_is_refused(long_runner: TurnRunner) -> None:
    with pytest.raises(LabError, match="turn 1 has no history that would become shorter"):
        compact_at(long_runner, 0)
    for request in (-1, 60, 1.5, True):
        with pytest.raises(LabError, match="pass a whole number from 0 to 59"):
            compact_at(long_runner, request)  # type: ignore[arg-type]
    with pytest.raises(LabError, match="no_intervention rewrites no history"):
        compact_at(long_runner, 30, "no_intervention")
    for values in (
        {"keep_messages": -1},
        {"compression_ratio": 1.5},
        {"compression_ratio": float("nan")},
        {"summary_call": "often"},
    ):
        with pytest.raises(LabError, match=next(iter(values))):
            InterventionRules(**values)  # type: ignore[arg-type]


def test_a_futile_decision_is_told_and_not_marked() -> None:
    """Wanted on every turn, but the history is one short message: nothing to make shorter."""
    runner = runner_of([chat(ASK), chat(ASK, DONE, MORE)])
    config = CapacityConfig(
        enabled=True, low_risk_max=0.0, medium_risk_max=1.0, min_turns_before_guardrail=0
    )
    controlled = replay_controller(runner, config, FREE)
    assert controlled.interventions == ()
    assert all(step.futile for step in controlled.steps)
    assert "nothing would have become shorter" in controlled.steps[0].why()
    assert [step.decision.action for step in controlled.steps] == [
        "targeted_context_refresh",
        "targeted_context_refresh",
    ]
