"""Change rates, and bad input in clear words."""

from __future__ import annotations

import random
from typing import Any

import pytest

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.ordering.best import best_order
from codesmith_lab.prompt.ordering.constraints import OrderConstraints
from codesmith_lab.prompt.ordering.cost import CacheUnits, order_cost
from codesmith_lab.prompt.ordering.stats import (
    STABILITY_CHANGE_PROBABILITY,
    SectionStats,
    by_stability,
    check_sections,
    measured,
    wilson_interval,
)
from codesmith_lab.prompt.sections import STABILITIES

ABC = ("a", "b", "c")


@pytest.mark.parametrize(
    ("changes", "trials", "low", "high"),
    [
        # Worked by hand: z = 1.96, z^2 = 3.8415.
        (0, 10, 0.0, 0.27753),
        (10, 10, 0.72247, 1.0),
        (5, 10, 0.23659, 0.76341),
        (1, 39, 0.00454, 0.13181),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilson_intervals(changes: int, trials: int, low: float, high: float) -> None:
    assert wilson_interval(changes, trials) == pytest.approx((low, high), abs=2e-5)


def test_wilson_interval_contains_the_share() -> None:
    for trials in range(1, 60):
        for changes in range(trials + 1):
            low, high = wilson_interval(changes, trials)
            assert 0 <= low <= changes / trials <= high <= 1


def test_a_measured_section_knows_its_count() -> None:
    section = measured("clock", 120, 33, 39, head_tokens=40, stability="dynamic")
    assert section.change_probability == 33 / 39
    assert (section.source, section.changes, section.trials) == ("measured", 33, 39)
    assert section.low < section.change_probability < section.high
    hand = section.by_hand(0.5)
    assert (hand.source, hand.changes, hand.low, hand.high) == ("by hand", None, 0.5, 0.5)
    assert hand.head_tokens == 40


def test_every_stability_has_a_default_and_they_rise() -> None:
    rates = [by_stability("a", 1, stability).change_probability for stability in STABILITIES]
    assert tuple(STABILITY_CHANGE_PROBABILITY) == STABILITIES
    assert rates == sorted(rates)
    assert by_stability("a", 1, "static").source == "by stability"


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_probability_at_the_edge_is_ordinary(p: float) -> None:
    sections = [SectionStats("x", 50, p), SectionStats("y", 70, 0.5), SectionStats("z", 9, p)]
    best = best_order(sections)
    assert best.names == (("x", "z", "y") if p == 0 else ("y", "x", "z"))
    cost = order_cost(sections)
    assert cost.hit_tokens == (50 + 0.5 * 79 if p == 0 else 0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SectionStats("", 5, 0.1), "has the name ''"),
        (lambda: SectionStats("a", 0, 0.1), "'a' is empty"),
        (lambda: SectionStats("a", 5, 1.5), "1.5, and a probability lies between 0 and 1"),
        (lambda: SectionStats("a", 5, float("nan")), "nan"),
        (lambda: SectionStats("a", 5, 0.1, head_tokens=6), "from 0 to that"),
        (lambda: measured("a", 5, 0, 0), "seen in one request only"),
        (lambda: wilson_interval(3, 2), "3 changes in 2 pairs"),
        (lambda: by_stability("a", 5, "solid"), "use one of static, workspace"),
        (lambda: check_sections([]), "0 sections"),
        (lambda: check_sections([SectionStats("a", 5, 0.1)] * 2), "two sections are named 'a'"),
        (
            lambda: check_sections([SectionStats("a", 5, 0.1), SectionStats("b", 9, 0.1)], 13),
            "14 tokens, and the window holds 13; shorten 'b'",
        ),
        (lambda: CacheUnits(0, 0), "step of at least 1"),
        (lambda: order_cost([SectionStats("a", 5, 0.1)]).error_tokens(0), "at least 1"),
    ],
)
def test_bad_sections_get_one_clear_sentence(make: Any, words: str) -> None:
    with pytest.raises(LabError) as caught:
        make()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "pinned", "words"),
    [
        ([("a", "x")], {}, "names 'x', and no section has that name"),
        ([], {"x": 0}, "names 'x'"),
        ([], {"a": 3}, "pinned to place 3"),
        ([], {"a": 0, "b": 0}, "'a' and 'b' are both pinned to place 1"),
        ([], {"a": -1, "b": 2}, "'a' and 'b' are both pinned to place 3"),
        ([("a", "a")], {}, "'a' before 'a'"),
        ([("a", "b"), ("b", "a")], {}, "form a circle"),
        ([("a", "b"), ("b", "c"), ("c", "a")], {}, "'a' before 'b' before 'c' before 'a'"),
        ([("a", "b")], {"b": 0}, "'b' is locked to place 1"),
        ([("a", "b")], {"a": -1}, "'a' is locked to place 3"),
        ([("a", "b")], {"a": 1, "b": 0}, "locked"),
        ([("a", "b"), ("b", "c")], {"b": 2}, "'b' is locked to place 3"),
        ([("a", "b"), ("a", "c")], {"a": 1}, "'a' is locked to place 2"),
        # The lock of c pushes b, and b pushes a, behind a's own lock.
        ([("c", "b"), ("b", "a")], {"c": 1, "a": 2}, "'a' is locked to place 3, and the"),
    ],
)
def test_contradictions_are_named(
    before: list[tuple[str, str]], pinned: dict[str, int], words: str
) -> None:
    with pytest.raises(LabError) as caught:
        OrderConstraints(tuple(before), pinned).resolve(ABC)
    assert words in str(caught.value)


def test_locks_that_fit_one_by_one_but_not_together() -> None:
    names = ("a", "b", "c", "d", "e")
    # a, b and c must stand before d in place 4, but e holds one of those three places.
    fence = OrderConstraints((("a", "d"), ("b", "d"), ("c", "d")), {"d": 3, "e": 0})
    with pytest.raises(LabError, match="contradict each other"):
        fence.resolve(names)


def test_feasible_constraints_are_never_refused(aid: Any) -> None:
    source = random.Random(3)
    for _ in range(500):
        count = source.randint(1, 12)
        names = [f"s{i}" for i in range(count)]
        constraints = aid.random_constraints(source, count)
        resolved = constraints.resolve(names)
        order = resolved.complete(())
        assert order is not None
        assert aid.keeps(order, names, constraints)
        assert resolved.allows(order)


def test_allows_agrees_with_the_definition(aid: Any) -> None:
    source = random.Random(4)
    for _ in range(300):
        count = source.randint(2, 5)
        constraints = aid.random_constraints(source, count)
        names = [s.name for s in aid.random_sections(source, count)]
        order = list(range(count))
        source.shuffle(order)
        resolved = constraints.resolve(names)
        assert resolved.allows(order) == aid.keeps(order, names, constraints)
