"""Rates measured from sessions, and orders replayed on them, against the cache engine."""

from __future__ import annotations

import json
import random
from functools import cache

import pytest

import codesmith_lab as lab
from codesmith_lab.errors import LabError
from codesmith_lab.prompt.ordering.constraints import OrderConstraints
from codesmith_lab.prompt.ordering.stats import SectionStats
from codesmith_lab.samples.section_sessions import (
    SECTION_SESSIONS,
    section_session,
    section_session_lines,
)
from codesmith_lab.sessions.analysis import make_runner
from codesmith_lab.sessions.order.compare import Comparison, compare_orders
from codesmith_lab.sessions.order.history import (
    HISTORY,
    TOOLS,
    cache_units,
    measure_sections,
    pool_sections,
    section_history,
)
from codesmith_lab.sessions.order.replay import (
    order_blocks,
    replay_exactly,
)
from codesmith_lab.sessions.order.source import SectionSource
from codesmith_lab.sessions.turns import TurnRunner

MODELS = ("deepseek-v3.2", "deepseek-v4-flash", "gpt-4o")


def log(*systems: str, model: str = "deepseek-v3.2") -> lab.Session:
    lines = [
        {
            "model": model,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": f"step {i}"},
            ],
        }
        for i, system in enumerate(systems)
    ]
    return lab.load_bytes("\n".join(map(json.dumps, lines)).encode(), "made.jsonl")


def runner_of(session: lab.Session, model: str | None = None) -> TurnRunner:
    runner = make_runner(session, model)
    return runner


def system(**sections: str) -> str:
    return lab.PromptBundle.from_sections(
        lab.PromptSection(name, name, body) for name, body in sections.items()
    ).render_text()


@cache
def compared(law: str) -> Comparison:
    return compare_orders(runner_of(section_session(law)))


def test_changes_are_counted_between_requests_in_a_row() -> None:
    """a: changes twice in three pairs. b: never. c: comes, which is a change. Worked by hand."""
    session = log(
        system(a="one", b="same"),
        system(a="two", b="same"),
        system(a="two", b="same", c="new"),
        system(a="one", b="same", c="new"),
    )
    history = section_history(runner_of(session))
    found = {s.name: (s.changes, s.trials) for s in measure_sections(history)}
    assert found == {"a": (2, 3), "b": (0, 3), "c": (1, 3), HISTORY: (3, 3)}
    assert all(s.source == "measured" for s in measure_sections(history))
    # The header of section a is what its versions share, so it is not lost.
    a = measure_sections(history)[0]
    assert 0 < a.head_tokens < a.size_tokens


def test_interleaved_caches_are_counted_apart() -> None:
    """Two models take turns: each is compared with its own request before."""
    one, two = system(a="one"), system(a="two")
    session = log(one, two, one, two)
    lines = [json.loads(r.body) | {"model": MODELS[r.index % 2]} for r in session.requests]
    mixed = lab.load_bytes("\n".join(map(json.dumps, lines)).encode())
    stats = measure_sections(section_history(runner_of(mixed)))
    assert (stats[0].changes, stats[0].trials) == (0, 2)
    assert measure_sections(section_history(runner_of(session)))[0].changes == 3


def test_tools_stand_first_where_the_provider_reads_them_first() -> None:
    story = lab.samples.clock_story()
    deepseek = section_history(runner_of(story, "deepseek-v4-flash"))
    openai = section_history(runner_of(story, "gpt-4o"))
    assert TOOLS not in deepseek.names
    assert (openai.names[0], openai.fixed_first) == (TOOLS, 1)


@pytest.mark.parametrize("model", MODELS)
def test_the_replay_is_the_engine_s_on_the_clock_story(model: str) -> None:
    """Tools, outputs, a compaction and growing history: token for token in five orders."""
    laid = SectionSource(lab.samples.clock_story(), model).laid()
    runner, history = laid.runner, laid.history
    assert runner is not None
    assert history is not None
    source = random.Random(model)
    movable = list(history.names[history.fixed_first :])
    for _ in range(5):
        names = [*history.names[: history.fixed_first], *movable]
        fast = history.replay(
            history.positions(names), cache_units(runner), runner.rule.match == "stored_units"
        )
        turns = runner.run(order_blocks(runner, names), exact=True)
        assert fast.total_tokens.tolist() == [t.prompt.total_tokens for t in turns]
        assert fast.matched_tokens.tolist() == [t.match.live_tokens for t in turns]
        assert fast.hit_tokens.tolist() == [t.match.hit_tokens for t in turns]
        assert laid.replayed_usd(fast) == replay_exactly(runner, names).usd
        source.shuffle(movable)


@pytest.mark.parametrize("law", SECTION_SESSIONS)
@pytest.mark.parametrize("model", MODELS)
def test_the_replay_is_the_engine_s_on_made_sessions(law: str, model: str) -> None:
    """Moved sections may meet in another token: by one a section at most."""
    runner = runner_of(section_session(law, turns=60), model)
    history = section_history(runner)
    names = list(history.names)
    random.Random(law + model).shuffle(names)
    stored = runner.rule.match == "stored_units"
    fast = history.replay(history.positions(names), cache_units(runner), stored)
    turns = runner.run(order_blocks(runner, names), exact=True)
    for mine, turn in zip(fast.matched_tokens.tolist(), turns, strict=True):
        assert abs(mine - turn.match.live_tokens) <= len(names)
    hits = sum(t.match.hit_tokens for t in turns)
    assert abs(int(fast.hit_tokens.sum()) - hits) <= 0.02 * hits


@pytest.mark.parametrize("model", ["deepseek-v3.2", "deepseek-v4-flash"])
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_closed_form_and_replay_agree_on_independent_changes(model: str, seed: int) -> None:
    """Both ways of weighing, for every order, within the error that is stated."""
    compared = compare_orders(runner_of(section_session("independent", seed=seed), model))
    for row in compared.rows:
        assert row.agrees, row
    assert compared.rows[1].replayed_hit_tokens > 1.3 * compared.rows[0].replayed_hit_tokens


def test_where_changes_come_together_independence_misleads() -> None:
    """The closed form puts the to-do list in front of the open file; the replay knows better."""
    today, closed, history = compared("together").rows
    assert closed.names.index("todo_list") < closed.names.index("open_files")
    assert history.names.index("open_files") < history.names.index("todo_list")
    assert history.names.index("current_file") < history.names.index("todo_list")
    # By its own measure the closed form's order is the better one. It is not.
    assert closed.expected_hit_tokens > history.expected_hit_tokens
    assert closed.replayed_hit_tokens < history.replayed_hit_tokens
    assert not history.agrees
    assert compared("together").found.gap_tokens == 0
    assert today.replayed_hit_tokens < closed.replayed_hit_tokens


def test_a_constraint_holds_in_both_searches() -> None:
    runner = runner_of(section_session("independent", turns=60))
    constraints = OrderConstraints((("open_files", "memory"),), {"constitution": 0, "clock": 2})
    for row in compare_orders(runner, constraints).rows[1:]:
        assert row.names[0] == "constitution"
        assert row.names[2] == "clock"
        assert row.names.index("open_files") < row.names.index("memory")


def test_counts_of_several_sessions_are_pooled() -> None:
    parts = [
        measure_sections(section_history(runner_of(section_session("independent", 80, seed))))
        for seed in (1, 2, 3)
    ]
    pooled = {s.name: s for s in pool_sections(parts)}
    assert [*pooled] == [s.name for s in parts[0]]
    for name, section in pooled.items():
        each = [s for part in parts for s in part if s.name == name]
        assert section.changes == sum(s.changes or 0 for s in each)
        assert section.trials == 3 * 79
        widths = [s.high - s.low for s in each if 0 < s.change_probability < 1]
        if widths:
            assert section.high - section.low < min(widths)
    with pytest.raises(LabError, match="only counts can be pooled"):
        pool_sections([[SectionStats("a", 5, 0.5)]])


def test_expected_dollars_are_prices_times_tokens() -> None:
    laid = SectionSource(section_session("independent", 5)).laid()
    assert laid.rates is not None
    assert laid.expected_usd(250.0, 1000.0) == (
        (250 * laid.rates.cache_read + 750 * laid.rates.input) / 1_000_000
    )


def test_sessions_without_sections_or_pairs_are_refused() -> None:
    line = b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}'
    with pytest.raises(LabError, match="no section to order"):
        section_history(runner_of(lab.load_bytes(line)))
    with pytest.raises(LabError, match="no two requests of one cache"):
        measure_sections(section_history(runner_of(log(system(a="one")))))


def test_made_sessions_are_the_same_bytes_and_refuse_nonsense() -> None:
    for law in SECTION_SESSIONS:
        assert [*section_session_lines(law, 4)] == [*section_session_lines(law, 4)]
        assert [*section_session_lines(law, 4)] != [*section_session_lines(law, 4, seed=5)]
    with pytest.raises(LabError, match="choose one of independent"):
        section_session_lines("tides")
    with pytest.raises(LabError, match="1 or more"):
        section_session_lines("bursts", 0)
