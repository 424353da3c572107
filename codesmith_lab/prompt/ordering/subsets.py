"""The best order by dynamic programming over subsets: exact, rounding and constraints included.

What stands behind a set of sections does not change what that set keeps, so the best order of a set
ends with some section behind the best order of the rest: 2^n sets instead of n! orders.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from codesmith_lab.prompt.ordering.constraints import ResolvedConstraints
from codesmith_lab.prompt.ordering.cost import CacheUnits
from codesmith_lab.prompt.ordering.stats import SectionStats

__all__ = ["best_by_subsets", "subset_products", "subset_sums"]

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

# Of two orders with equal hits the one that keeps more before rounding wins, then today's.
_TIE = 1e-8
_NOISE = 1e-9


def subset_sums(values: Sequence[int]) -> Longs:
    """The sum over each subset, indexed by its bit mask."""
    sums = np.zeros(1, np.int64)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


def subset_products(values: Sequence[float]) -> Floats:
    """The product over each subset, indexed by its bit mask."""
    products = np.ones(1)
    for value in values:
        products = np.concatenate([products, products * value])
    return products


def _floor(units: CacheUnits, tokens: Longs) -> Longs:
    whole = tokens // units.step_tokens * units.step_tokens
    return np.where(tokens < units.minimum_tokens, 0, whole)


def best_by_subsets(
    sections: Sequence[SectionStats], resolved: ResolvedConstraints, units: CacheUnits
) -> tuple[int, ...]:
    """The order with the most expected hit tokens; time and memory grow with 2^sections."""
    n = len(sections)
    reach = subset_products([1 - s.change_probability for s in sections])
    start = subset_sums([s.size_tokens for s in sections])
    masks = np.arange(1 << n, dtype=np.int64)
    count = np.zeros(1, np.int64)
    for _ in range(n):
        count = np.concatenate([count, count + 1])
    by_count = np.argsort(count, kind="stable")
    edges = np.searchsorted(count[by_count], np.arange(n + 2))
    best = np.full(1 << n, -np.inf)
    best[0] = 0.0
    last = np.full(1 << n, -1, np.int8)
    for at in range(n):
        layer = masks[by_count[edges[at + 1] : edges[at + 2]]]
        for i, section in reversed(list(enumerate(sections))):
            if resolved.place[i] not in (None, at):
                continue
            ends = layer[layer >> i & 1 == 1]
            rest = ends ^ (1 << i)
            need = resolved.ancestors[i]
            if need:
                keeps = rest & need == need
                ends, rest = ends[keeps], rest[keeps]
            p = section.change_probability
            served = _floor(units, start[rest] + section.head_tokens)
            gain = reach[rest] * (p * served + _TIE * section.value_tokens)
            found = best[rest] + gain
            better = found > best[ends] + _NOISE
            best[ends[better]] = found[better]
            last[ends[better]] = i
    order: list[int] = []
    here = (1 << n) - 1
    while here:
        order.append(int(last[here]))
        here ^= 1 << order[-1]
    return tuple(reversed(order))
