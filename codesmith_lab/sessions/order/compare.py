"""Today's order, the closed form's best and the history's best, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codesmith_lab.prompt.ordering.best import BestOrder, best_order
from codesmith_lab.prompt.ordering.constraints import OrderConstraints
from codesmith_lab.prompt.ordering.cost import OrderCost, order_cost
from codesmith_lab.prompt.ordering.history import ContentHistory
from codesmith_lab.prompt.ordering.history_search import HistoryOrder, search_history
from codesmith_lab.prompt.ordering.stats import SectionStats
from codesmith_lab.sessions.order.history import (
    HISTORY,
    cache_units,
    measure_sections,
    section_history,
)
from codesmith_lab.sessions.turns import TurnRunner

__all__ = ["Comparison", "OrderRow", "closed_best", "compare_orders", "expected_cost"]


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One order, weighed both ways (tokens are means a request).

    error_tokens: by how much the two may differ when the changes are independent (99 %, see
        `OrderCost.error_tokens`). A greater difference says that they are not.
    """

    label: str
    names: tuple[str, ...]
    expected_hit_tokens: float
    replayed_hit_tokens: float
    error_tokens: float

    @property
    def agrees(self) -> bool:
        """Closed form and replay differ by no more than the stated error."""
        return abs(self.expected_hit_tokens - self.replayed_hit_tokens) <= self.error_tokens


@dataclass(frozen=True, slots=True)
class Comparison:
    """The three orders of one session, and how the last two were found."""

    rows: tuple[OrderRow, ...]
    best: BestOrder
    found: HistoryOrder


def expected_cost(
    runner: TurnRunner, sections: Sequence[SectionStats], names: Sequence[str]
) -> OrderCost:
    """The closed form of an order of a session's sections, with the history behind it."""
    by_name = {section.name: section for section in sections}
    tail = [by_name[HISTORY]] if HISTORY in by_name and HISTORY not in names else []
    order = [by_name[name] for name in names] + tail
    return order_cost(order, cache_units(runner), runner.rule.match == "stored_units")


def closed_best(
    runner: TurnRunner,
    history: ContentHistory,
    sections: Sequence[SectionStats],
    constraints: OrderConstraints | None = None,
) -> BestOrder:
    """The best order in closed form, with what never moves locked to its end.

    Where a provider serves stored units only, the order is the best one for a cache that serves
    every whole unit.
    """
    constraints = constraints or OrderConstraints()
    n = len(sections)
    pinned = {k: v - 1 if v < 0 else v for k, v in constraints.pinned.items()}
    pinned |= {name: at for at, name in enumerate(history.names[: history.fixed_first])}
    if sections[-1].name == HISTORY:
        pinned[HISTORY] = n - 1
    return best_order(sections, OrderConstraints(constraints.before, pinned), cache_units(runner))


def compare_orders(
    runner: TurnRunner,
    constraints: OrderConstraints | None = None,
    history: ContentHistory | None = None,
) -> Comparison:
    """Measure a session's sections, find the best order both ways, and weigh all three orders."""
    history = section_history(runner) if history is None else history
    sections = measure_sections(history)
    best = closed_best(runner, history, sections, constraints)
    closed = tuple(name for name in best.names if name != HISTORY)
    units, stored = cache_units(runner), runner.rule.match == "stored_units"
    found = search_history(history, history.positions(closed), constraints, units, stored)
    rows = []
    for label, names in (
        ("today", history.names),
        ("closed form", closed),
        ("history", found.names),
    ):
        cost = expected_cost(runner, sections, names)
        replay = history.replay(history.positions(names), units, stored)
        rows.append(
            OrderRow(
                label,
                tuple(names),
                cost.hit_tokens,
                replay.mean_hit_tokens,
                cost.error_tokens(max(1, history.requests - 1)),
            )
        )
    return Comparison(tuple(rows), best, found)
