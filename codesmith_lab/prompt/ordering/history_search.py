"""Good orders for a real history, where changes may come together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from codesmith_lab.prompt.ordering.constraints import OrderConstraints, ResolvedConstraints
from codesmith_lab.prompt.ordering.cost import ANY_LENGTH, CacheUnits
from codesmith_lab.prompt.ordering.history import ContentHistory

__all__ = ["BRUTE_FORCE_SECTIONS", "HistoryOrder", "search_history"]

BRUTE_FORCE_SECTIONS = 7
"""Up to so many changing sections every order is replayed: 5,040 of them."""

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HistoryOrder:
    """The best order found for a history.

    start_hit_tokens, hit_tokens: mean hit tokens a request of the order the search began with,
        and of the one it found.
    brute_hit_tokens: the same of the best of all orders of the changing sections, or None where
        those are too many.
    replays: how many orders were replayed.
    finished: False when the search met `most_replays` before it met an optimum.
    """

    names: tuple[str, ...]
    order: Order
    start_hit_tokens: float
    hit_tokens: float
    brute_hit_tokens: float | None
    replays: int
    finished: bool

    @property
    def gap_tokens(self) -> float | None:
        """Hit tokens a request that brute force has on the search; None without brute force."""
        if self.brute_hit_tokens is None:
            return None
        return max(0.0, self.brute_hit_tokens - self.hit_tokens)


def search_history(
    history: ContentHistory,
    start: Sequence[int],
    constraints: OrderConstraints | None = None,
    units: CacheUnits = ANY_LENGTH,
    stored_units: bool = False,
    most_replays: int = 3000,
    brute_force: bool = True,
) -> HistoryOrder:
    """Move one section at a time to where the replay keeps most, until no move gains anything.

    start: an order that keeps the constraints, usually the closed form's best. Only sections
    that ever change are moved: to move one past sections that never change, and others past it,
    is all that matters. most_replays bounds the work.
    """
    resolved = _with_fixed(history, constraints).resolve(history.names)
    weigh = _Weighing(history, units, stored_units)
    order = tuple(start)
    begun = best = weigh(order)
    varies = (history.versions != history.versions[:1]).any(axis=0)
    moving = [i for i in range(len(order)) if varies[i]]
    finished = False
    while not finished and weigh.replays < most_replays:
        finished = True
        for i in moving:
            found, value = _best_move(weigh, resolved, order, i, best, most_replays)
            if value > best + 1e-9:
                order, best, finished = found, value, False
    brute = None
    if brute_force and len(moving) <= BRUTE_FORCE_SECTIONS:
        values = [weigh(other) for other in _every_order(resolved, order, moving)]
        brute = max([best, *values])
    names = tuple(history.names[i] for i in order)
    return HistoryOrder(names, order, begun, best, brute, weigh.replays, finished)


class _Weighing:
    """Mean hit tokens of an order; counts how often it was asked."""

    def __init__(self, history: ContentHistory, units: CacheUnits, stored_units: bool) -> None:
        self.replays = 0
        self._history, self._units, self._stored = history, units, stored_units

    def __call__(self, order: Order) -> float:
        self.replays += 1
        return self._history.replay(order, self._units, self._stored).mean_hit_tokens


def _with_fixed(history: ContentHistory, constraints: OrderConstraints | None) -> OrderConstraints:
    constraints = constraints or OrderConstraints()
    first = {name: at for at, name in enumerate(history.names[: history.fixed_first])}
    return OrderConstraints(constraints.before, {**constraints.pinned, **first})


def _best_move(
    weigh: _Weighing,
    resolved: ResolvedConstraints,
    order: Order,
    i: int,
    best: float,
    most_replays: int,
) -> tuple[Order, float]:
    rest = [j for j in order if j != i]
    found = order
    for to in range(len(order)):
        other = (*rest[:to], i, *rest[to:])
        if other == order or not resolved.allows(other):
            continue
        if weigh.replays >= most_replays:
            break
        value = weigh(other)
        if value > best + 1e-9:
            found, best = other, value
    return found, best


def _every_order(
    resolved: ResolvedConstraints, order: Order, moving: Sequence[int]
) -> Iterator[Order]:
    """Every order of the changing sections behind the others, as far as constraints let it.

    To put a section that never changes further to the front loses nothing: what it passes is
    kept as often as before, and it itself at least as often.
    """
    still = tuple(i for i in order if i not in set(moving))
    for ending in permutations(moving):
        other = still + ending
        if resolved.allows(other):
            yield other
