"""Turns that are shifted past the cache equal those that go through it, for every rule."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesmith_lab.cache.rule_files import known_rules
from codesmith_lab.prompt.blocks import SwappedBlocks
from codesmith_lab.sessions.analysis import make_runner
from codesmith_lab.sessions.edits import MoveEdit, TextEdit, apply_edits
from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.records import Session
from codesmith_lab.sessions.turns import Turn, TurnRunner

RULES = [rule.id for rule in known_rules() if rule.match != "none"]
# What the cache made of a turn.
FACTS = (
    *("index", "parent", "match", "causes", "lines", "output_tokens", "rates", "cost_usd"),
    *("output_usd", "cause_costs_usd", "repaid_usd", "setting_change", "storage_usd"),
)
words = st.integers(1, 700)


def text(n: int, word: str = " word") -> str:
    return "T" + word * n


@st.composite
def sessions(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """Bodies in Anthropic's form: a system prompt of three blocks and a history that grows."""
    markers = draw(st.sampled_from(["none", "last", "system and last", "automatic"]))
    life = draw(st.sampled_from(["5m", "1h"]))
    drift = draw(st.integers(0, 5))
    sizes = [draw(words) for _ in range(3)]
    messages: list[dict[str, Any]] = []
    bodies, clock = [], 0
    for turn in range(draw(st.integers(2, 9))):
        messages.append({"role": "user", "content": text(draw(words), f" u{turn}")})
        shown = list(messages)
        change = draw(st.integers(0, 11))
        if change == 0 and len(messages) > 2:
            shown = messages = [*messages[:1], *messages[-1:]]
        elif change == 1:
            shown[0] = {"role": "user", "content": text(draw(words), " other")}
        system = [{"type": "text", "text": text(n, f" s{i}")} for i, n in enumerate(sizes)]
        if drift == 1:
            system[1]["text"] += f" clock {turn}"
        body: dict[str, Any] = {"system": system, "messages": [dict(m) for m in shown]}
        mark = {"cache_control": {"type": "ephemeral", "ttl": life}}
        if markers == "automatic":
            body |= mark
        if markers == "system and last":
            system[-1] |= mark
        if markers.endswith("last"):
            last = body["messages"][-1]
            last["content"] = [{"type": "text", "text": last["content"], **mark}]
        if draw(st.integers(0, 9)) == 0:
            body["tool_choice"] = {"type": "any"}
        answer = text(draw(st.integers(1, 300)), " a")
        entry: dict[str, Any] = {"request": body}
        if draw(st.integers(0, 3)):
            entry["response"] = {"content": [{"type": "text", "text": answer}]}
        clock += draw(st.sampled_from([10, 10, 200, 400]))
        entry["time"] = clock
        bodies.append(entry)
        messages = [*messages, {"role": "assistant", "content": answer}]
    return markers, bodies


def loaded(bodies: list[dict[str, Any]]) -> Session:
    lines = []
    for entry in bodies:
        entry["request"]["model"] = "claude-sonnet-4-6"
        lines.append(json.dumps({**entry, "time": entry["time"] + 1_790_000_000}))
    return load_bytes("\n".join(lines).encode())


def differences(runner: TurnRunner, edits: list[Any], exact: bool) -> tuple[list[str], int]:
    """Facts that differ between both ways, and how many turns were shifted."""
    session = runner.session
    first = min(0 if e.scope == "all_turns" else e.turn for e in edits)
    blocks = apply_edits(session, edits, {})
    start = runner.checkpoint(first)
    calls = []
    ask = runner._ask

    def counted(at: int, *rest: Any) -> Any:
        calls.append(at)
        return ask(at, *rest)

    runner._ask = counted  # type: ignore[method-assign]
    fast = runner.run(blocks, start, exact)
    asked = len(set(calls))
    runner._ask = ask  # type: ignore[method-assign]
    kept, runner._recorded = runner._recorded, []
    slow = runner.run({i: tuple(b) for i, b in blocks.items()}, start, exact)
    runner._recorded = kept
    found = [
        f"turn {a.index}: {name} {getattr(a, name)} and {getattr(b, name)}"
        for a, b in zip(fast, slow, strict=True)
        for name in FACTS
        if getattr(a, name) != getattr(b, name)
    ]
    found += [f"turn {a.index}: prompt" for a, b in zip(fast, slow, strict=True) if unlike(a, b)]
    return found, len(fast) - first - asked


def unlike(a: Turn, b: Turn) -> bool:
    return (
        a.prompt.blocks != b.prompt.blocks
        or a.prompt.pieces.tolist() != b.prompt.pieces.tolist()
        or a.prompt.ends.tolist() != b.prompt.ends.tolist()
        or a.prompt.total_tokens != b.prompt.total_tokens
    )


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=25, deadline=None)
@given(
    log=sessions(),
    turn=st.integers(0, 8),
    scope=st.sampled_from(["from_here", "this_turn", "all_turns"]),
    section=st.integers(0, 2),
    move=st.booleans(),
    exact=st.booleans(),
)
def test_shifted_turns_equal_played_ones(
    rule: str,
    log: tuple[str, list[dict[str, Any]]],
    turn: int,
    scope: Any,
    section: int,
    move: bool,
    exact: bool,
) -> None:
    session = loaded(log[1])
    runner = make_runner(session, rules=rule)
    runner.run()
    turn = min(turn, len(session.requests) - 1)
    sections = [b for b in session.requests[turn].blocks if b.kind == "section"]
    block = sections[section]
    edits: list[Any] = [TextEdit(turn, block.name, scope, block.text, block.text + " edited now")]
    if move:
        edits.append(MoveEdit(turn, block.name, scope, 1))
    found, _ = differences(runner, edits, exact)
    assert found == []


@pytest.mark.parametrize("rule", ["anthropic", "deepseek-v4", "openai-128", "openai-breakpoints"])
def test_a_growing_session_is_shifted_but_for_its_first_turn(rule: str) -> None:
    messages: list[dict[str, Any]] = []
    bodies = []
    mark = {"cache_control": {"type": "ephemeral"}}
    for turn in range(12):
        messages.append({"role": "user", "content": text(300, f" u{turn}")})
        last = {
            "role": "user",
            "content": [{"type": "text", "text": text(300, f" u{turn}"), **mark}],
        }
        system = [{"type": "text", "text": text(900)}, {"type": "text", "text": text(400, " two")}]
        answer = text(200, " a")
        bodies.append(
            {
                "time": 10 * turn,
                "request": {"system": system, "messages": [*messages[:-1], last]},
                "response": {"content": [{"type": "text", "text": answer}]},
            }
        )
        messages.append({"role": "assistant", "content": answer})
    runner = make_runner(loaded(bodies), rules=rule)
    runner.run()
    block = next(b for b in runner.session.requests[0].blocks if b.kind == "section")
    edit = TextEdit(3, block.name, "from_here", block.text, block.text + " more")
    found, shifted = differences(runner, [edit], exact=False)
    assert (found, shifted) == ([], 12 - 3 - 1)
    assert runner.run(apply_edits(runner.session, [edit], {}))[-1].match.hit_tokens > 1024


def made(*turns: tuple[str, list[str], str | None]) -> Session:
    """Turns of (second system block, messages, answer), ten seconds apart."""
    roles = ("user", "assistant")
    bodies = []
    for at, (second, messages, answer) in enumerate(turns):
        system = [{"type": "text", "text": t} for t in (text(900), second)]
        sent = [{"role": roles[i % 2], "content": m} for i, m in enumerate(messages)]
        entry: dict[str, Any] = {"time": 10 * at, "request": {"system": system, "messages": sent}}
        if answer is not None:
            entry["response"] = {"content": [{"type": "text", "text": answer}]}
        bodies.append(entry)
    return loaded(bodies)


def edited(session: Session, rule: str, turn: int, scope: Any, new: str) -> list[Turn]:
    """The turns after the second system block of a turn became `new`; both ways agree."""
    runner = make_runner(session, rules=rule)
    runner.run()
    block = [b for b in session.requests[turn].blocks if b.kind == "section"][1]
    edit = TextEdit(turn, block.name, scope, block.text, new)
    assert differences(runner, [edit], exact=False)[0] == []
    return runner.run(apply_edits(session, [edit], {}), runner.checkpoint(turn))


def test_an_edit_may_come_closer_to_a_later_version_of_the_same_section() -> None:
    """Turn 4's section shares more with what was put into turn 2 than with turn 3's."""
    old, later = text(700), text(200) + " zig" * 500
    turns = [(old, ["q"], None)] * 4 + [(later, ["q"], None)]
    found = edited(made(*turns), "deepseek-v3", 2, "this_turn", text(200) + " zig" * 400)
    assert found[4].parent == 2
    assert found[4].match.matched_tokens > found[4].prompt.tokens_before(1) + 600


def test_an_answer_that_came_back_changed_ends_in_no_stored_unit() -> None:
    """The common part ends inside the stored answer: the unit at the prompt's end hits."""
    first = text(300)
    back = [first, text(200, " a") + " changed", "next"]
    turns = [(text(400), [first], text(290, " a"))] * 2 + [(text(400), back, None)]
    found = edited(made(*turns), "deepseek-v4", 0, "all_turns", text(401))
    assert found[2].match.hit_tokens == found[1].prompt.total_tokens // 128 * 128
    assert found[2].match.matched_tokens // 128 * 128 > found[2].match.hit_tokens


def test_an_edit_may_bring_back_what_an_earlier_turn_had() -> None:
    """Turn 3 follows turn 2's section only as recorded, and all of turn 0 once edited."""
    a, b = text(500), text(500, " other")
    opening = text(600, " u")
    turns = [(a, [opening], None)] * 2 + [(b, ["x"], None), (b, [opening], None)]
    found = edited(made(*turns), "openai-128", 2, "from_here", a)
    assert found[3].match.matched_tokens == found[3].prompt.total_tokens


def test_swapped_blocks_are_a_sequence_of_blocks() -> None:
    blocks = loaded([{"time": 1, "request": {"system": "a", "messages": []}}]).requests[0].blocks
    other = blocks[0].__class__("pinned", "section", "system", "x", "y", b"")
    swapped = SwappedBlocks.over(SwappedBlocks.over(blocks, 0, other), 0, other)
    assert (swapped.base, len(swapped), swapped[0], swapped[-1]) == (blocks, 1, other, other)
    assert (tuple(swapped), swapped[0:1], swapped == (other,)) == ((other,), (other,), True)
    with pytest.raises(IndexError):
        swapped[1]
