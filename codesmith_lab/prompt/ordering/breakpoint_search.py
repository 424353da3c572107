"""The searches behind `best_breakpoints`: over pairs of sets, or over places in one order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from codesmith_lab.prompt.ordering.constraints import ResolvedConstraints
from codesmith_lab.prompt.ordering.stats import SectionStats
from codesmith_lab.prompt.ordering.subsets import subset_products, subset_sums

if TYPE_CHECKING:
    from codesmith_lab.prompt.ordering.breakpoints import ExplicitPrices

__all__ = ["exact_plan", "plan_for_order"]

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Marks = list[tuple[int, int]]


def exact_plan(
    sections: Sequence[SectionStats],
    prices: ExplicitPrices,
    resolved: ResolvedConstraints,
    new_tokens: int,
) -> tuple[tuple[int, ...], Marks]:
    """The cheapest order and its breakpoints as (place, life).

    Only the set before a breakpoint matters, not its order, so a plan is a chain of sets. The
    best chain that ends in T with b breakpoints extends the best one that ends in some S inside T
    with b - 1. A set can stand in front when it holds all that must come before its members.
    """
    n, most, lives = len(sections), prices.most_breakpoints, prices.lives
    tokens = subset_sums([s.size_tokens for s in sections])
    token_cost = _token_costs(subset_products([1 - s.change_probability for s in sections]), prices)
    valid = _front_sets(resolved)
    full = (1 << n) - 1
    # cost[b, life, T]; `reach` is the best over lives that may stand before that one.
    cost = np.full((most + 1, len(lives), 1 << n), np.inf)
    reach = np.full((most + 1, len(lives), 1 << n), np.inf)
    reach[0, :, 0] = 0.0
    before = np.zeros((most + 1, len(lives), 1 << n), np.int64)
    for whole in np.flatnonzero(valid).tolist():
        if whole == 0 or tokens[whole] < prices.minimum_tokens:
            continue
        inside = _inside(whole)[:-1]
        inside = inside[valid[inside]]
        step = (tokens[whole] - tokens[inside]) * token_cost[:, whole, None]
        found = reach[:-1, :, inside] + step
        chosen = found.argmin(axis=2)
        cost[1:, :, whole] = np.take_along_axis(found, chosen[:, :, None], axis=2)[:, :, 0]
        before[1:, :, whole] = inside[chosen]
        reach[1:, :, whole] = np.minimum.accumulate(cost[1:, :, whole], axis=1)
    total = cost + (tokens[full] - tokens) * float(prices.input)
    grown = np.full((len(lives), 1 << n), float(prices.input))
    grown[:, full] = [float(life.write) for life in lives]
    total += new_tokens * grown
    plain = (tokens[full] + new_tokens) * float(prices.input)
    if not total.min() < plain:
        return _order(resolved, [full]), []
    b, life, here = (int(x) for x in np.unravel_index(int(total.argmin()), total.shape))
    chain = []
    while b:
        chain.append((here, life))
        here, b = int(before[b, life, here]), b - 1
        if b:
            life = int(cost[b, : life + 1, here].argmin())
    chain.reverse()
    order = _order(resolved, [*(mask for mask, _ in chain), full])
    return order, [(mask.bit_count() - 1, life) for mask, life in chain]


def _token_costs(kept: Floats, prices: ExplicitPrices) -> Floats:
    """float[lives, sets]: expected price of a token between the breakpoint before T and T."""
    rows = []
    for life in prices.lives:
        write, read = float(life.write), float(prices.cache_read)
        # Of two lives that cost the same the one with the cheaper write wins.
        rows.append(write - life.alive * kept * (write - read) + 1e-9 * write)
    return np.array(rows)


def _front_sets(resolved: ResolvedConstraints) -> npt.NDArray[np.bool_]:
    """bool[sets]: the set can be the first sections of an order (locks stand at the ends)."""
    n = resolved.count
    masks = np.arange(1 << n)
    valid = np.ones(1 << n, bool)
    size = subset_sums([1] * n)
    for i, need in enumerate(resolved.ancestors):
        has = masks >> i & 1 == 1
        valid &= ~has | (masks & need == need)
        at = resolved.place[i]
        if at is not None:
            valid &= has == (size > at)
    return valid


def _inside(whole: int) -> Longs:
    """Every subset of a set, the set itself last."""
    masks = np.zeros(1, np.int64)
    rest = whole
    while rest:
        low = rest & -rest
        masks = np.concatenate([masks, masks | low])
        rest ^= low
    return masks


def _order(resolved: ResolvedConstraints, chain: Sequence[int]) -> tuple[int, ...]:
    """An order in which each set of the chain stands in front, today's order inside."""
    pinned = {at: i for i, at in enumerate(resolved.place) if at is not None}
    order: list[int] = []
    placed = 0
    for mask in chain:
        while placed != mask:
            at = len(order)
            free = [
                i
                for i in range(resolved.count)
                if (mask & ~placed) >> i & 1
                and not resolved.ancestors[i] & ~placed
                and resolved.place[i] is None
            ]
            chosen = pinned[at] if at in pinned else free[0]
            order.append(chosen)
            placed |= 1 << chosen
    return tuple(order)


def plan_for_order(
    sections: Sequence[SectionStats],
    order: Sequence[int],
    prices: ExplicitPrices,
    new_tokens: int,
) -> tuple[float, Marks]:
    """Expected cost (USD times 1M) and breakpoints of one order, every choice of places weighed."""
    ordered = [sections[i] for i in order]
    ends = np.cumsum([s.size_tokens for s in ordered])
    kept = np.array([*accumulate((1 - s.change_probability for s in ordered), mul)])
    token_cost = _token_costs(kept, prices)
    total = int(ends[-1])
    plain = float(prices.input)
    starts = np.concatenate([[0], ends])
    # best[b][life][k]: cheapest first k sections with a breakpoint behind them.
    best: dict[tuple[int, int], tuple[float, Marks]] = {(0, 0): (0.0, [])}
    answer: tuple[float, Marks] = ((total + new_tokens) * plain, [])
    for _ in range(prices.most_breakpoints):
        further: dict[tuple[int, int], tuple[float, Marks]] = {}
        for (k, life), (cost, marks) in best.items():
            for end in range(k + 1, len(order) + 1):
                if starts[end] < prices.minimum_tokens:
                    continue
                for later in range(life, len(prices.lives)):
                    segment = int(starts[end] - starts[k])
                    value = cost + segment * float(token_cost[later, end - 1])
                    if value < further.get((end, later), (np.inf, []))[0]:
                        further[(end, later)] = (value, [*marks, (end - 1, later)])
        for (end, life), (cost, marks) in further.items():
            grown = float(prices.lives[life].write) if end == len(order) else plain
            value = cost + (total - int(starts[end])) * plain + new_tokens * grown
            if value < answer[0]:
                answer = (value, marks)
        best = further
    return answer
