"""The best order against brute force: every order of thousands of small instances."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.ordering.best import best_order, ratio_order
from codesmith_lab.prompt.ordering.constraints import OrderConstraints
from codesmith_lab.prompt.ordering.cost import ANY_LENGTH, CacheUnits, order_cost
from codesmith_lab.prompt.ordering.stats import SectionStats

INSTANCES = 5000
DEEPSEEK, OPENAI = CacheUnits(128, 128), CacheUnits(1024, 128)


@cache
def every_order(count: int) -> np.ndarray:
    return np.array(list(permutations(range(count))), np.int64).reshape(-1, count)


def hits_of_all(sections: Sequence[SectionStats], units: CacheUnits) -> np.ndarray:
    """Expected hit tokens of each order in `every_order`, straight from the definition."""
    orders = every_order(len(sections))
    size = np.array([float(s.size_tokens) for s in sections])[orders]
    head = np.array([float(s.head_tokens) for s in sections])[orders]
    p = np.array([s.change_probability for s in sections])[orders]
    reach = np.cumprod(1 - p, axis=1)
    before = np.concatenate([np.ones((len(orders), 1)), reach[:, :-1]], axis=1)
    if units is ANY_LENGTH:
        return np.asarray((size * reach + head * p * before).sum(axis=1))
    start = np.cumsum(size, axis=1) - size

    def served(tokens: np.ndarray) -> np.ndarray:
        whole = tokens // units.step_tokens * units.step_tokens
        return np.where(tokens < units.minimum_tokens, 0, whole)

    broken = (before * p * served(start + head)).sum(axis=1)
    return np.asarray(broken + reach[:, -1] * served(size.sum(axis=1)))


def allowed(sections: Sequence[SectionStats], constraints: OrderConstraints) -> np.ndarray:
    orders, names = every_order(len(sections)), [s.name for s in sections]
    at = np.argsort(orders, axis=1)
    ok = np.ones(len(orders), bool)
    for a, b in constraints.before:
        ok &= at[:, names.index(a)] < at[:, names.index(b)]
    for name, place in constraints.pinned.items():
        ok &= at[:, names.index(name)] == place
    return ok


def test_sorting_by_the_ratio_agrees_with_brute_force(aid: Any) -> None:
    """The promise of the proof, on 5,000 instances of up to 8 sections."""
    source = random.Random(5)
    for _ in range(INSTANCES):
        sections = aid.random_sections(source, source.randint(1, 8))
        found = best_order(sections)
        assert found.method == "sort"
        assert found.gap_tokens == 0
        assert found.cost.hit_tokens == pytest.approx(hits_of_all(sections, ANY_LENGTH).max())


def test_without_heads_the_ratio_is_size_times_odds() -> None:
    section = SectionStats("a", 300, 0.2)
    assert section.ratio == pytest.approx(300 * 0.8 / 0.2)
    assert SectionStats("a", 300, 0.0).ratio == float("inf")
    assert SectionStats("a", 300, 1.0).ratio == 0.0


@pytest.mark.parametrize("units", [ANY_LENGTH, DEEPSEEK, OPENAI])
def test_the_search_over_subsets_agrees_with_brute_force(aid: Any, units: CacheUnits) -> None:
    """With constraints, locks and whole units, all of them part of what is optimised."""
    source = random.Random(units.step_tokens + units.minimum_tokens)
    for _ in range(600):
        count = source.randint(1, 7)
        sections = aid.random_sections(source, count)
        constraints = aid.random_constraints(source, count)
        found = best_order(sections, constraints, units)
        hits = hits_of_all(sections, units)[allowed(sections, constraints)]
        assert aid.keeps(found.order, [s.name for s in sections], constraints)
        assert found.cost.hit_tokens == pytest.approx(hits.max())


def test_beyond_the_exact_search_the_bound_holds(aid: Any) -> None:
    source = random.Random(8)
    for _ in range(300):
        count = source.randint(3, 9)
        sections, units = aid.random_sections(source, count), source.choice([ANY_LENGTH, DEEPSEEK])
        constraints = aid.random_constraints(source, count)
        exact = best_order(sections, constraints, units)
        found = best_order(sections, constraints, units, exact_sections=0)
        assert aid.keeps(found.order, [s.name for s in sections], constraints)
        best = exact.cost.hit_tokens
        assert found.cost.hit_tokens <= best + 1e-6 <= found.most_hit_tokens + 2e-6
        assert found.gap_tokens >= best - found.cost.hit_tokens - 1e-6


def test_chains_are_merged_optimally_by_the_search(aid: Any) -> None:
    """Where every section has one predecessor at most, the search's first order is exact."""
    source = random.Random(13)
    for _ in range(200):
        sections = aid.random_sections(source, 9)
        chains = OrderConstraints(tuple(pairwise(f"s{i}" for i in range(0, 9, 2))))
        exact = best_order(sections, chains)
        found = best_order(sections, chains, exact_sections=0)
        assert found.cost.hit_tokens == pytest.approx(exact.cost.hit_tokens)


def test_two_hundred_constrained_sections_are_ordered_with_a_bound(aid: Any) -> None:
    source = random.Random(21)
    sections = aid.random_sections(source, 200)
    constraints = OrderConstraints(
        tuple((f"s{i}", f"s{i + 7}") for i in range(0, 190, 3)), {"s5": 0, "s9": 40, "s199": -1}
    )
    found = best_order(sections, constraints, DEEPSEEK)
    today = order_cost(sections, DEEPSEEK)
    assert found.method == "search"
    assert aid.keeps(found.order, [s.name for s in sections], constraints)
    assert found.cost.hit_tokens > today.hit_tokens
    assert found.cost.hit_tokens <= found.most_hit_tokens


def test_rounding_moves_the_best_order_by_less_than_one_unit(aid: Any) -> None:
    """What docs/section_order.md promises of the plain sort under whole units."""
    source = random.Random(34)
    for _ in range(200):
        sections = aid.random_sections(source, source.randint(1, 7))
        sort = order_cost([sections[i] for i in ratio_order(sections)], DEEPSEEK)
        best = best_order(sections, units=DEEPSEEK)
        assert best.cost.hit_tokens - sort.hit_tokens < DEEPSEEK.step_tokens


def test_today_s_order_decides_between_equals() -> None:
    sections = [SectionStats(f"s{i}", 100, 0.0) for i in range(5)]
    assert best_order(sections).names == ("s0", "s1", "s2", "s3", "s4")


def test_the_exact_search_ends_where_it_says() -> None:
    with pytest.raises(LabError, match="use 0 to 20"):
        best_order([SectionStats("a", 1, 0.5)], exact_sections=21)


@pytest.mark.parametrize("units", [ANY_LENGTH, CacheUnits(0, 7), CacheUnits(500, 128)])
def test_the_closed_form_equals_the_sum_over_all_changes(aid: Any, units: CacheUnits) -> None:
    source = random.Random(55)
    for _ in range(200):
        sections = aid.random_sections(source, source.randint(1, 7))
        cost = order_cost(sections, units)
        assert cost.hit_tokens == pytest.approx(aid.slow_hit_tokens(sections, units))


def test_the_parts_of_a_cost_add_up(aid: Any) -> None:
    source = random.Random(89)
    for _ in range(500):
        sections = aid.random_sections(source, source.randint(1, 12))
        cost = order_cost(sections, DEEPSEEK)
        parts = (cost.hit_tokens, cost.new_tokens, cost.repaid_tokens, cost.rounding_tokens)
        assert sum(parts) == pytest.approx(cost.total_tokens)
        assert min(parts) >= 0


def test_a_cost_worked_by_hand() -> None:
    """100 tokens that change half the time before 300 that never do, and the other way round."""
    clock, rules = SectionStats("clock", 100, 0.5), SectionStats("rules", 300, 0.0)
    before = order_cost([clock, rules])
    assert (before.hit_tokens, before.repaid_tokens, before.new_tokens) == (200, 150, 50)
    assert before.survival == (0.5, 0.5)
    assert before.deviation_tokens == 200  # 0 or 400, each half the time
    after = order_cost([rules, clock], CacheUnits(128, 128))
    # A change leaves 300 tokens, two units of 128; else 400 tokens, three units.
    assert after.hit_tokens == 0.5 * 256 + 0.5 * 384
    assert after.repaid_tokens == 0
    assert after.rounding_tokens == pytest.approx(350 - 320)


def test_the_stated_error_covers_a_simulation(aid: Any) -> None:
    """The mean hit of 400 simulated requests lies within the stated error, 50 times out of 50."""
    source = random.Random(144)
    for _ in range(50):
        sections = aid.random_sections(source, 6)
        cost = order_cost(sections, DEEPSEEK)
        mean = sum(_simulated(source, sections) for _ in range(400)) / 400
        assert abs(mean - cost.hit_tokens) <= cost.error_tokens(400)


def _simulated(source: random.Random, order: Sequence[SectionStats]) -> int:
    prefix = 0
    for section in order:
        if source.random() < section.change_probability:
            return DEEPSEEK.floor(prefix + section.head_tokens)
        prefix += section.size_tokens
    return DEEPSEEK.floor(prefix)
