"""The cheapest order, with what is proved about it.

Without constraints, sorting by `SectionStats.ratio` is optimal (exchange argument, see
docs/section_order.md). With constraints or unit rounding, dynamic programming over subsets is exact
for up to `EXACT_SECTIONS` sections; beyond that a search with a bound on what it may miss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.ordering.constraints import OrderConstraints, ResolvedConstraints
from codesmith_lab.prompt.ordering.cost import ANY_LENGTH, CacheUnits, OrderCost, order_cost
from codesmith_lab.prompt.ordering.search import improve, list_schedule
from codesmith_lab.prompt.ordering.stats import SectionStats, check_sections
from codesmith_lab.prompt.ordering.subsets import best_by_subsets

__all__ = ["EXACT_SECTIONS", "BestOrder", "best_order", "ratio_order"]

EXACT_SECTIONS = 20
"""Up to so many sections the search over subsets is exact; its work doubles with each section."""

Method = Literal["sort", "subsets", "search"]


@dataclass(frozen=True, slots=True)
class BestOrder:
    """The cheapest order found.

    method: "sort" (proved optimal), "subsets" (exact, all orders weighed) or "search".
    most_hit_tokens: no order that keeps the constraints has more expected hit tokens than this.
    """

    names: tuple[str, ...]
    order: tuple[int, ...]
    cost: OrderCost
    method: Method
    most_hit_tokens: float

    @property
    def gap_tokens(self) -> float:
        """By how many expected hit tokens a request this order may miss the best; 0 is proved."""
        return max(0.0, self.most_hit_tokens - self.cost.hit_tokens)


def ratio_order(sections: Sequence[SectionStats]) -> tuple[int, ...]:
    """Positions sorted by `ratio`, greatest first; equal ones keep their order."""
    return tuple(sorted(range(len(sections)), key=lambda i: -sections[i].ratio))


def best_order(
    sections: Sequence[SectionStats],
    constraints: OrderConstraints | None = None,
    units: CacheUnits = ANY_LENGTH,
    window_tokens: int | None = None,
    exact_sections: int = EXACT_SECTIONS,
) -> BestOrder:
    """The order with the most expected hit tokens a request.

    Parameters
    ----------
    sections: in today's order, which decides between equals.
    constraints: see `OrderConstraints`.
    units: the provider's rounding. It is part of what is optimised up to `exact_sections`
        sections; beyond, the order is the best without rounding, which is at most one step of
        hit tokens away.
    window_tokens: the model's window; None does not check it.
    exact_sections: where the exact search ends, at most 20.

    Raises LabError for sections or constraints that cannot be (see `check_sections`, `resolve`).
    """
    check_sections(sections, window_tokens)
    if not 0 <= exact_sections <= EXACT_SECTIONS:
        raise LabError(
            f"an exact search over {exact_sections} sections is out of reach; "
            f"use 0 to {EXACT_SECTIONS}"
        )
    resolved = (constraints or OrderConstraints()).resolve([s.name for s in sections])
    if resolved.free and units.floor(1) == 1 and units.step_tokens == 1:
        order = ratio_order(sections)
        return _result(sections, order, units, "sort", None)
    if len(sections) <= exact_sections:
        order = best_by_subsets(sections, resolved, units)
        return _result(sections, order, units, "subsets", None)
    if resolved.free:
        order = ratio_order(sections)
    else:
        order = improve(sections, resolved, list_schedule(sections, resolved))
    return _result(sections, order, units, "search", _most_kept(sections, resolved))


def _result(
    sections: Sequence[SectionStats],
    order: Sequence[int],
    units: CacheUnits,
    method: Method,
    most: float | None,
) -> BestOrder:
    cost = order_cost([sections[i] for i in order], units)
    names = tuple(sections[i].name for i in order)
    bound = cost.hit_tokens if most is None else most
    return BestOrder(names, tuple(order), cost, method, bound)


def _most_kept(sections: Sequence[SectionStats], resolved: ResolvedConstraints) -> float:
    """Kept tokens of the best order when only the locks at both ends hold: an upper bound.

    Whoever drops constraints and rounding can only gain.
    """
    n = len(sections)
    at_place = {at: i for i, at in enumerate(resolved.place) if at is not None}
    front: list[int] = []
    while len(front) < n and len(front) in at_place:
        front.append(at_place[len(front)])
    back: list[int] = []
    while len(front) + len(back) < n and n - 1 - len(back) in at_place:
        back.append(at_place[n - 1 - len(back)])
    fixed = {*front, *back}
    middle = [i for i in ratio_order(sections) if i not in fixed]
    order = [*front, *middle, *reversed(back)]
    return order_cost([sections[i] for i in order]).hit_tokens
