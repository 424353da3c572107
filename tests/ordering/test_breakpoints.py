"""Breakpoints against brute force: every order, every choice of places and lives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations, combinations_with_replacement, pairwise, permutations
from typing import Any

import pytest

import codesmith_lab as lab
from codesmith_lab.errors import LabError
from codesmith_lab.prompt.ordering.breakpoints import (
    Breakpoint,
    CacheLife,
    ExplicitPrices,
    best_breakpoints,
    plan_usd,
)
from codesmith_lab.prompt.ordering.constraints import OrderConstraints
from codesmith_lab.prompt.ordering.stats import SectionStats
from codesmith_lab.sessions.analysis import make_runner
from codesmith_lab.sessions.order.breakpoints import model_prices, pauses_s, replay_plan
from codesmith_lab.sessions.order.history import measure_sections, section_history
from codesmith_lab.sessions.order.source import SectionSource

HOUR, MINUTES = CacheLife("1h", Decimal(6), 0.98), CacheLife("5m", Decimal("3.75"), 0.8)
SONNET = ExplicitPrices(Decimal(3), Decimal("0.3"), (HOUR, MINUTES))
NO_MINIMUM_TWO = ExplicitPrices(Decimal(3), Decimal("0.3"), (HOUR, MINUTES), 0, 2)


def slow_usd(
    order: Sequence[SectionStats],
    breakpoints: Sequence[Breakpoint],
    prices: ExplicitPrices,
    new_tokens: int = 0,
) -> float:
    """Each combination of changed sections and living entries, billed as a provider would."""
    lives = {life.name: life for life in prices.lives}
    ends = [sum(s.size_tokens for s in order[: mark.place + 1]) for mark in breakpoints]
    marks = [(m, e) for m, e in zip(breakpoints, ends, strict=True) if e >= prices.minimum_tokens]
    total, usd = sum(s.size_tokens for s in order), 0.0
    # A longer life is alive whenever a shorter one is: the pause is one number for all.
    alive = sorted({life.alive for life in prices.lives} | {0.0, 1.0})
    for low, high in pairwise(alive):
        for changed in range(1 << len(order)):
            chance = high - low
            for i, section in enumerate(order):
                p = section.change_probability
                chance *= p if changed >> i & 1 else 1 - p
            read = 0
            cost = 0.0
            for mark, end in marks:
                same = not changed & ((1 << (mark.place + 1)) - 1)
                living = lives[mark.life].alive >= high
                price = prices.cache_read if same and living else lives[mark.life].write
                cost += (end - read) * float(price)
                read = end
            cost += (total - read) * float(prices.input)
            last = marks[-1][0] if marks else None
            grown = lives[last.life].write if last and read == total else prices.input
            usd += chance * (cost + new_tokens * float(grown))
    return usd / 1e6


def every_plan(
    sections: Sequence[SectionStats], constraints: OrderConstraints, prices: ExplicitPrices
) -> Any:
    resolved = constraints.resolve([s.name for s in sections])
    n = len(sections)
    for order in permutations(range(n)):
        if not resolved.allows(order):
            continue
        for count in range(prices.most_breakpoints + 1):
            for places in combinations(range(n), count):
                for lives in combinations_with_replacement(prices.lives, count):
                    yield (
                        [sections[i] for i in order],
                        [
                            Breakpoint(sections[order[place]].name, place, life.name)
                            for place, life in zip(places, lives, strict=True)
                        ],
                    )


def random_prices(source: random.Random) -> ExplicitPrices:
    alive = sorted([source.random() ** 0.3, source.random() ** 0.3], reverse=True)
    lives = (CacheLife("1h", Decimal(6), alive[0]), CacheLife("5m", Decimal("3.75"), alive[1]))
    minimum = source.choice([0, 0, 1024])
    return ExplicitPrices(
        Decimal(3), Decimal("0.3"), lives[source.randint(0, 1) :], minimum, source.randint(1, 4)
    )


def test_the_exact_plan_agrees_with_brute_force(aid: Any) -> None:
    source = random.Random(5)
    for _ in range(60):
        count = source.randint(1, 4)
        sections = aid.random_sections(source, count)
        prices, new = random_prices(source), source.choice([0, 300])
        pairs = aid.random_constraints(source, count).before
        constraints = OrderConstraints(pairs)
        plan = best_breakpoints(sections, prices, constraints, new)
        best = min(
            plan_usd(order, marks, prices, new)
            for order, marks in every_plan(sections, constraints, prices)
        )
        assert plan.method == "subsets"
        assert plan.gap_usd == 0
        assert float(plan.usd) == pytest.approx(float(best))


def test_locks_at_the_ends_are_part_of_the_exact_search(aid: Any) -> None:
    source = random.Random(6)
    for _ in range(25):
        sections = aid.random_sections(source, 4)
        constraints = OrderConstraints((), {"s2": 0, "s1": -1})
        plan = best_breakpoints(sections, NO_MINIMUM_TWO, constraints)
        best = min(
            plan_usd(order, marks, NO_MINIMUM_TWO)
            for order, marks in every_plan(sections, constraints, NO_MINIMUM_TWO)
        )
        assert (plan.method, plan.names[0], plan.names[-1]) == ("subsets", "s2", "s1")
        assert float(plan.usd) == pytest.approx(float(best))


def test_the_cost_equals_the_sum_over_all_changes_and_lives(aid: Any) -> None:
    source = random.Random(7)
    for _ in range(150):
        sections = aid.random_sections(source, source.randint(1, 5))
        prices, new = random_prices(source), source.choice([0, 250])
        count = source.randint(0, min(prices.most_breakpoints, len(sections)))
        places = sorted(source.sample(range(len(sections)), count))
        names = sorted(source.choice(range(len(prices.lives))) for _ in places)
        marks = [
            Breakpoint(sections[place].name, place, prices.lives[k].name)
            for place, k in zip(places, names, strict=True)
        ]
        exact = plan_usd(sections, marks, prices, new)
        assert float(exact) == pytest.approx(slow_usd(sections, marks, prices, new))


def test_a_plan_worked_by_hand() -> None:
    """2,000 tokens that never change, then 1,000 that change in half of the requests.

    One breakpoint behind the first: written in 20 of 100 requests at 3.75, read in 80 at 0.30,
    so 0.99 a token; the rest is plain. A second one would read 1,000 tokens in 40 of 100 requests
    and write them in 60: 2.37 a token, cheaper than 3 plain.
    """
    rules, files = SectionStats("rules", 2000, 0.0), SectionStats("files", 1000, 0.5)
    only = ExplicitPrices(Decimal(3), Decimal("0.3"), (MINUTES,))
    plan = best_breakpoints([files, rules], only)
    assert plan.names == ("rules", "files")
    assert [(m.after, m.life) for m in plan.breakpoints] == [("rules", "5m"), ("files", "5m")]
    assert plan.usd == (2000 * Decimal("0.99") + 1000 * Decimal("2.37")) / 1_000_000
    one = best_breakpoints(
        [files, rules], ExplicitPrices(Decimal(3), Decimal("0.3"), (MINUTES,), 0, 1)
    )
    assert [m.after for m in one.breakpoints] == ["rules"]
    assert one.usd == (2000 * Decimal("0.99") + 1000 * 3) / 1_000_000


def test_what_always_changes_gets_no_breakpoint() -> None:
    plan = best_breakpoints([SectionStats("clock", 4000, 1.0)], SONNET)
    assert plan.breakpoints == ()
    assert plan.usd == Decimal(4000 * 3) / 1_000_000


def test_below_the_minimum_nothing_is_cached() -> None:
    prices = ExplicitPrices(Decimal(3), Decimal("0.3"), (MINUTES,), 1024)
    assert best_breakpoints([SectionStats("a", 1023, 0.0)], prices).breakpoints == ()
    assert best_breakpoints([SectionStats("a", 1024, 0.0)], prices).breakpoints != ()


def test_many_sections_get_a_plan_with_a_bound(aid: Any) -> None:
    source = random.Random(9)
    sections = aid.random_sections(source, 40)
    constraints = OrderConstraints((("s3", "s1"),), {"s7": 12})
    plan = best_breakpoints(sections, SONNET, constraints)
    assert plan.method == "orders"
    assert plan.names[12] == "s7"
    assert plan.names.index("s3") < plan.names.index("s1")
    assert (
        0 < plan.least_usd <= plan.usd < sum(s.size_tokens for s in sections) * 3 / Decimal(10**6)
    )


def test_the_plan_for_one_order_never_beats_the_exact_one(aid: Any) -> None:
    source = random.Random(10)
    for _ in range(40):
        sections = aid.random_sections(source, 6)
        exact = best_breakpoints(sections, SONNET)
        # A lock in the middle that asks for the place the section has anyway.
        locked = best_breakpoints(sections, SONNET, OrderConstraints((), {exact.names[2]: 2}))
        assert locked.method == "orders"
        assert locked.least_usd <= exact.usd + Decimal("1e-12") <= locked.usd + Decimal("2e-12")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CacheLife("5m", Decimal(1), 1.2), "between 0 and 1"),
        (lambda: ExplicitPrices(Decimal(3), Decimal(1), ()), "0 lives"),
        (lambda: ExplicitPrices(Decimal(3), Decimal(1), (MINUTES, HOUR)), "the longest first"),
        (lambda: ExplicitPrices(Decimal(3), Decimal(1), (HOUR,), 0, 9), "9 breakpoints"),
        (lambda: _usd([("a", 0, "1h")] * 5), "5 breakpoints"),
        (lambda: _usd([("b", 1, "1h"), ("a", 0, "1h")]), "places rise"),
        (lambda: _usd([("a", 3, "1h")]), "places rise"),
        (lambda: _usd([("a", 0, "5m"), ("b", 1, "1h")]), "longer lives first"),
        (lambda: _usd([("a", 0, "2h")]), "no life is named '2h'"),
    ],
)
def test_bad_plans_get_one_clear_sentence(make: Any, words: str) -> None:
    with pytest.raises(LabError) as caught:
        make()
    assert words in str(caught.value)


def _usd(marks: list[tuple[str, int, str]]) -> Decimal:
    sections = [SectionStats("a", 5, 0.1), SectionStats("b", 5, 0.1)]
    return plan_usd(sections, [Breakpoint(*mark) for mark in marks], SONNET)


def test_prices_and_lives_come_from_the_table_and_the_pauses() -> None:
    prices = model_prices("claude-sonnet-4-5", [10.0, 400.0, None, 4000.0])
    assert (prices.input, prices.cache_read) == (Decimal(3), Decimal("0.3"))
    lives = [(life.name, life.write, life.alive) for life in prices.lives]
    assert lives == [("1h", Decimal(6), 0.75), ("5m", Decimal("3.75"), 0.5)]


def test_pauses_are_those_inside_a_cache() -> None:
    runner = make_runner(lab.samples.section_session("independent", 4))
    assert pauses_s(runner) == [40.0, 40.0, 40.0]


def test_a_session_s_plan_puts_the_clock_behind_the_last_breakpoint() -> None:
    runner = make_runner(lab.samples.section_session("independent", 80))
    sections = measure_sections(section_history(runner))[:-1]
    plan = best_breakpoints(sections, model_prices("claude-sonnet-4-5", pauses_s(runner)))
    assert plan.method == "subsets"
    assert plan.names[-1] == "clock"
    assert plan.breakpoints[-1].place < len(plan.names) - 1
    assert set(plan.names[:2]) == {"constitution", "skills"}
    today = plan_usd(sections, [], ExplicitPrices(Decimal(3), Decimal("0.3"), (MINUTES,)))
    assert plan.usd < today / 2


@pytest.mark.parametrize("law", ["independent", "puzzle"])
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-5"])
def test_the_plan_s_cost_is_what_the_cache_engine_bills(law: str, model: str) -> None:
    """Order, breakpoints and lives on every request of a session, within the sampling error."""
    source = SectionSource(lab.samples.section_session(law), model)
    laid = source.laid()
    last = OrderConstraints((), {laid.sections[-1].name: -1})
    prices = model_prices(model, pauses_s(source.runner), laid.units.minimum_tokens)
    plan = best_breakpoints(laid.sections, prices, last, round(laid.new_tokens))
    bill = replay_plan(source.runner, plan)
    assert bill.usd_per_request is not None
    assert float(bill.usd_per_request) == pytest.approx(float(plan.usd), rel=0.05)
    # Without markers nothing is cached, and one breakpoint fewer costs more.
    plain = replay_plan(source.runner, replace(plan, breakpoints=()))
    fewer = replay_plan(source.runner, replace(plan, breakpoints=plan.breakpoints[1:]))
    assert (plain.hit_tokens, plain.usd) != (bill.hit_tokens, bill.usd)
    assert plain.hit_tokens == 0
    assert plain.usd is not None
    assert fewer.usd is not None
    assert bill.usd is not None
    assert bill.usd < fewer.usd < plain.usd
