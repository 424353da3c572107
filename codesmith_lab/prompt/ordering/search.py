"""Good orders under constraints for more sections than an exact search can hold."""

from __future__ import annotations

from collections.abc import Sequence

from codesmith_lab.prompt.ordering.constraints import ResolvedConstraints
from codesmith_lab.prompt.ordering.stats import SectionStats

__all__ = ["improve", "list_schedule"]


def list_schedule(
    sections: Sequence[SectionStats], resolved: ResolvedConstraints
) -> tuple[int, ...]:
    """Place the most valuable section next, together with what must stand before it.

    A section and its missing ancestors are weighed as one: their kept tokens over the chance that
    one of them changes. Where every section has at most one direct predecessor and nothing is
    locked this is optimal (chains merge by the ratio of their best beginnings); elsewhere
    `improve` goes on from it.
    """
    order: list[int] = []
    placed = 0
    pinned = {at: i for i, at in enumerate(resolved.place) if at is not None}
    locked = bool(pinned)
    while len(order) < len(sections):
        at = len(order)
        groups = [[pinned[at]]] if at in pinned else _groups(sections, resolved, placed)
        for group in groups:
            start = [*order, *group]
            if not locked or resolved.complete(start) is not None:
                order = start
                break
        else:
            # No whole group fits between the locks: take one section that leaves an order.
            rest = resolved.complete(order)
            if rest is None:
                raise AssertionError("feasible constraints lost their order")
            order.append(rest[at])
        placed = sum(1 << i for i in order)
    return tuple(order)


def _groups(
    sections: Sequence[SectionStats], resolved: ResolvedConstraints, placed: int
) -> list[list[int]]:
    """Each section that is left with its missing ancestors in order, the best ratio first."""
    weighed = []
    for i in range(len(sections)):
        if placed >> i & 1 or resolved.place[i] is not None:
            continue
        missing = resolved.ancestors[i] & ~placed
        group = [j for j in range(len(sections)) if missing >> j & 1] + [i]
        group.sort(key=lambda j: (resolved.ancestors[j].bit_count(), -sections[j].ratio))
        weighed.append((-_ratio(sections, group), len(group), i, group))
    return [group for *_, group in sorted(weighed)]


def _ratio(sections: Sequence[SectionStats], group: Sequence[int]) -> float:
    kept, reach = 0.0, 1.0
    for i in group:
        kept += reach * sections[i].value_tokens
        reach *= 1 - sections[i].change_probability
    return kept / (1 - reach) if reach < 1 else float("inf")


def improve(
    sections: Sequence[SectionStats], resolved: ResolvedConstraints, start: Sequence[int]
) -> tuple[int, ...]:
    """Move one section at a time to where it gains most, until no such move gains anything."""
    order = list(start)
    moved = True
    while moved:
        moved = False
        for i in list(order):
            if resolved.place[i] is not None:
                continue
            at = order.index(i)
            to = _best_place(sections, resolved, order, at)
            if to != at:
                order.insert(to, order.pop(at))
                moved = True
    return tuple(order)


def _best_place(
    sections: Sequence[SectionStats],
    resolved: ResolvedConstraints,
    order: Sequence[int],
    at: int,
) -> int:
    """Where the section at `at` keeps most; moving past a locked section would unlock it."""
    i = order[at]
    mine, p_mine = sections[i].value_tokens, sections[i].change_probability
    reach = [1.0]
    for j in order:
        reach.append(reach[-1] * (1 - sections[j].change_probability))
    best, best_gain = at, 1e-9
    for step in (-1, 1):
        gain, to, before = 0.0, at, reach[at]
        # One swap of neighbours after the other: i then stands behind `before` alone.
        while 0 <= to + step < len(order):
            j = order[to + step]
            first, second = (j, i) if step < 0 else (i, j)
            if resolved.place[j] is not None or resolved.ancestors[second] >> first & 1:
                break
            other, p_other = sections[j].value_tokens, sections[j].change_probability
            if step < 0:
                before = reach[to - 1]
            gain -= step * before * (mine * p_other - other * p_mine)
            before *= 1 - p_other
            to += step
            if gain > best_gain:
                best, best_gain = to, gain
    return best
