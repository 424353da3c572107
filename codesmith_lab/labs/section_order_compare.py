"""The orders that stand side by side, each weighed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codesmith_lab.labs import section_order_views as views
from codesmith_lab.prompt.ordering.history_search import HistoryOrder
from codesmith_lab.sessions.order.board import BoardState, OrderBoard, Weighed

__all__ = ["ComparedOrders"]

_AT_ONCE_SECTIONS, _AT_ONCE_REQUESTS, _AT_ONCE_REPLAYS = 24, 300, 300
_MOST_REMEMBERED = 2000


class ComparedOrders:
    """Today's order, the board's, both best ones and the kept variants; results are remembered.

    A best order depends on locks, constraints, rates and rewrites, not on the board's own order.
    """

    def __init__(self, board: OrderBoard) -> None:
        self._board = board
        self._weighed: dict[tuple[object, ...], Weighed] = {}
        self._closed: dict[tuple[object, ...], tuple[str, ...]] = {}
        self._found: dict[tuple[object, ...], HistoryOrder] = {}

    def weigh(self, state: BoardState) -> Weighed:
        """What a state costs."""
        known = self._weighed.get(state.key)
        if known is None:
            if len(self._weighed) > _MOST_REMEMBERED:
                self._weighed.clear()
            known = self._weighed[state.key] = self._board.weigh(state)
        return known

    def closed_best(self) -> tuple[str, ...]:
        """All sections in the closed form's best order."""
        rules = self._board.state.rules
        if rules not in self._closed:
            self._closed[rules] = self._board.closed_best().names
        return self._closed[rules]

    def search(self) -> HistoryOrder:
        """Search the session's best order thoroughly."""
        rules = self._board.state.rules
        self._found[rules] = self._board.session_best()
        return self._found[rules]

    def session_best(self) -> HistoryOrder | None:
        """The best order on the session where it is known, or small enough to be found at once."""
        rules, history = self._board.state.rules, self._board.laid.history
        if rules not in self._found and history is not None:
            small = len(history.names) <= _AT_ONCE_SECTIONS
            # Elsewhere the search answers for another cache; it waits to be asked for.
            small = small and self._board.laid.plain
            if small and history.requests <= _AT_ONCE_REQUESTS:
                self._found[rules] = self._board.session_best(_AT_ONCE_REPLAYS, brute_force=False)
        return self._found.get(rules)

    def table(self, state: BoardState, a_day: int) -> dict[str, Any]:
        """One row an order; `state` is the one on the board, or the place a block is held over."""
        board = self._board
        today, now = self.weigh(board.original), self.weigh(state)
        closed = self.weigh(self._with(self.closed_best()))
        rows = [
            views.row_view("today", "today", today, today, a_day, not state.rewrites),
            views.row_view("now", "this order", now, today, a_day, False),
            views.row_view("closed", "best, closed form", closed, today, a_day, True),
        ]
        found = self.session_best()
        if found is not None:
            weighed, note = self.weigh(self._with(found.names)), _gap_note(found)
            rows.append(
                views.row_view("session", "best on this session", weighed, today, a_day, True, note)
            )
        for name, variant in board.variants.items():
            weighed = self.weigh(variant)
            rows.append(views.row_view(f"variant:{name}", name, weighed, today, a_day, True))
        return {
            "columns": list(views.COLUMNS),
            "rows": rows,
            "can_find": board.laid.history is not None,
        }

    def _with(self, names: Sequence[str]) -> BoardState:
        movable = set(self._board.state.order)
        return self._board.with_order([name for name in names if name in movable])


def _gap_note(found: HistoryOrder) -> str:
    if found.gap_tokens is None:
        return f"local search, {found.replays:,} orders replayed"
    if found.gap_tokens == 0:
        return f"no order is better: all were replayed ({found.replays:,})"
    return f"brute force keeps {found.gap_tokens:,.0f} tokens a request more"
