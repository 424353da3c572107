"""The section-order lab: drag sections, see the cost at once, and learn which order is cheapest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from codesmith_lab.errors import LabError
from codesmith_lab.labs import section_order_views as views
from codesmith_lab.labs.section_order_compare import ComparedOrders
from codesmith_lab.labs.section_order_inputs import grain, percent, positive, whole
from codesmith_lab.labs.section_order_source import (
    EXPORTS,
    PLAN_MODELS,
    BoardSource,
    Source,
    blocks_for,
)
from codesmith_lab.labs.workbench import Workbench
from codesmith_lab.prompt.ordering.breakpoints import BreakpointPlan
from codesmith_lab.prompt.ordering.history_search import HistoryOrder
from codesmith_lab.sessions.order.board import BoardState, OrderBoard, Weighed
from codesmith_lab.sessions.order.export import (
    ExportedOrder,
    order_from_text,
    read_order,
    to_json,
    to_text,
    to_toml,
)
from codesmith_lab.sessions.order.replay import InputBill
from codesmith_lab.sessions.order.report import ReportRow, order_report
from codesmith_lab.sessions.order.rewrites import Rewrite
from codesmith_lab.sessions.records import Session
from codesmith_lab.widgets.section_order import SectionOrderWidget

__all__ = ["SectionOrderLab"]

Handler = Callable[["SectionOrderLab", dict[str, Any]], None]


def _shown(handler: Handler) -> Handler:
    """Errors of a callback go under the widget instead of into the void."""

    @wraps(handler)
    def safe(self: SectionOrderLab, change: dict[str, Any]) -> None:
        try:
            handler(self, change)
            self.error = ""
        except LabError as error:
            self.error = str(error)
        except Exception as error:  # a widget callback has no other place to show it
            self.error = f"The order board failed: {type(error).__name__}: {error}"

    return safe


class SectionOrderLab(SectionOrderWidget):
    """The sections of a prompt as a board that can be reordered, with the cost of every order.

    Parameters
    ----------
    source: a session; a workbench, whose session and edits are taken over; or, without a history
        to replay, a `PromptBundle` or a sequence of `SectionStats`.
    model: whose tokenizer, rules and prices to use; None takes the session's (or workbench's) own,
        and deepseek-v4-flash for sections by hand.
    rules: id of a cache rule in place of the model's own.
    requests_a_day: for the cost of a month of 30 days, at least 1.
    window_tokens: the model's window; sections that do not fit are refused. None does not check.
    also: further sessions of the same prompt; their counts are added to the change rates.

    `board` holds the state; after changing it from code, call `refresh()`. `apply_to(bench)`
    hands the order to a workbench, `session` is the session as the board would have sent it.

    Raises LabError for a source without sections and for anything `OrderBoard` refuses.
    """

    def __init__(
        self,
        source: Source,
        model: str | None = None,
        rules: str | None = None,
        requests_a_day: int = 1000,
        window_tokens: int | None = None,
        also: Sequence[Session] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._source = BoardSource(source, model, rules, also)
        self.board = OrderBoard(self._source.lay, window_tokens)
        self._requests_a_day = positive(requests_a_day)
        self._selected = self.board.original.order[0]
        self._compared = ComparedOrders(self.board)
        self._plan: BreakpointPlan | None = None
        self._plan_bill: InputBill | None = None
        self._plan_model = ""
        self._sections_shown: tuple[object, ...] = ()
        self.export = {"kind": "", "text": "", "kinds": _choices(EXPORTS)}
        self.refresh()
        self.observe(self._on_request, "request")

    # -- what code reads and does ----------------------------------------------------------

    @property
    def order(self) -> tuple[str, ...]:
        """The movable sections in the board's order."""
        return self.board.state.order

    @property
    def requests_a_day(self) -> int:
        """How many requests a day the month's cost assumes."""
        return self._requests_a_day

    @requests_a_day.setter
    def requests_a_day(self, value: int) -> None:
        self._requests_a_day = positive(value)
        self.refresh()

    def weigh(self, names: Sequence[str] | None = None) -> Weighed:
        """What an order of the movable sections costs; by default the one on the board."""
        state = self.board.state if names is None else self.board.with_order(names)
        return self._compared.weigh(state)

    def move(self, name: str, to: int) -> None:
        """Move a section to a place (0-based); refused where a lock or constraint forbids it."""
        self.board.move(name, to)
        self._selected = name
        self.refresh()
        place = self.order.index(name) + 1
        self._say(f"{name} is now {place} of {len(self.order)}.")

    def use_best(self, of: str = "closed") -> None:
        """Take the best order: of the "closed" form, or found on the "session"."""
        if of == "closed":
            names = self._compared.closed_best()
        elif of == "session":
            names = self.find_best().names
        else:
            raise LabError(f"a best order is of 'closed' or 'session', not {of!r}")
        movable = set(self.order)
        self.board.set_order([name for name in names if name in movable])
        self.refresh()
        self._say(f"Took the best order of the {'closed form' if of == 'closed' else 'session'}.")

    def find_best(self) -> HistoryOrder:
        """The best order on the session, with its gap to brute force where that is feasible."""
        found = self._compared.search()
        self.refresh()
        return found

    def plan_breakpoints(self, model: str) -> BreakpointPlan:
        """Order and breakpoints for a model with explicit caching; see `best_breakpoints`."""
        self._plan, bill = self._source.plan(self.board, model)
        self._plan_bill, self._plan_model = bill, model
        self.refresh()
        return self._plan

    def bill_exactly(self) -> InputBill:
        """The session's input with this order through the cache engine, every text counted whole.

        Raises LabError without a session.
        """
        return self._source.bill_exactly(self.board.state)

    @property
    def session(self) -> Session:
        """The session as it would have been sent with the board's order and rewrites."""
        return self._source.changed_session(self.board.state)

    def apply_to(self, bench: Workbench | None = None) -> None:
        """Hand the order to a workbench (by default the one the board was opened from).

        It is one edit there, of every turn, made on what the workbench then shows, and can be
        undone. Raises LabError when there is no workbench, or it lacks a section to rewrite.
        """
        bench = bench or self._source.bench
        if bench is None:
            raise LabError(
                "the board was not opened from a workbench, so there is none to hand the order to; "
                "name one: apply_to(bench)"
            )
        blocks = blocks_for(bench, self.board.state)
        bench.put_blocks("section_order", "the order from the board", blocks)

    def exported(self) -> ExportedOrder:
        """The order with its sections' texts, for `to_json` and the rest."""
        state = self.board.state
        sections = self._source.sections(state.rewrites)
        stats = self.board.sections()
        chosen = tuple(sections[name] for name in state.order if name in sections)
        return ExportedOrder(chosen, state.before, dict(state.locked), stats)

    def export_text(self, kind: str) -> str:
        """The board as "text", "json", "toml" or "markdown"."""
        writers = {"text": to_text, "json": to_json, "toml": to_toml}
        if kind == "markdown":
            return self.report()
        if kind not in writers:
            raise LabError(f"an export is one of {', '.join(EXPORTS)}, not {kind!r}")
        return writers[kind](self.exported())

    def report(self) -> str:
        """A Markdown report: the orders side by side, and the saving billed exactly."""
        today = self.board.original
        rows = [
            ReportRow(name, weighed, self._source.try_bill(state))
            for name, state, weighed in (
                ("today", today, self._compared.weigh(today)),
                ("this order", self.board.state, self._compared.weigh(self.board.state)),
            )
        ]
        return order_report(
            self._source.title, self._source.model, self.board, rows, self._requests_a_day
        )

    def read(self, text: str) -> None:
        """Take an order from a rendered prompt, or from an exported JSON or TOML.

        Sections the text does not name stay behind those it does, in their order. Raises LabError
        for a text that cannot be read, or an order that breaks locks or constraints.
        """
        names = order_from_text(text) if "<!-- prompt-section:" in text[:400] else None
        wanted = read_order(text).names if names is None else names
        known = [name for name in wanted if name in self.order]
        if not known:
            raise LabError(
                f"the text names the sections {list(wanted)!r}, and the board has none of them; "
                "read an order of this prompt"
            )
        self.board.set_order([*known, *(name for name in self.order if name not in known)])
        self.refresh()
        self._say("Took the order that was read.")

    # -- what the view sends ---------------------------------------------------------------

    @_shown
    def _on_request(self, change: dict[str, Any]) -> None:
        request = change["new"]
        try:
            self._do(**{k: v for k, v in request.items() if k != "seq"})
        finally:
            self.ack = int(request["seq"])

    def _do(self, action: str, name: str = "", value: str = "", to: int = 0) -> None:
        board = self.board
        if action == "drag":
            self._show_place(name, to)
            return
        if action == "move":
            try:
                self.move(name, to)
            except LabError:
                self.refresh()
                raise
            return
        changes: dict[str, Callable[[], object]] = {
            "select": lambda: None,
            "rest": lambda: None,
            "lock": lambda: board.lock(name),
            "release": lambda: board.lock(name, False),
            "before": lambda: board.constrain(name, value),
            "free": lambda: board.constrain(name, value, on=False),
            "rate": lambda: board.set_rate(name, percent(value)),
            "measured": lambda: board.set_rate(name, None),
            "split": lambda: board.rewrite(Rewrite("split", name)),
            "turn": lambda: board.rewrite(Rewrite("turn", name)),
            "clock": lambda: board.rewrite(Rewrite("clock", name, grain(value))),
            "undo": board.undo,
            "redo": board.redo,
            "reset": board.reset,
            "find": self.find_best,
            "use": lambda: self._use(value),
            "keep": lambda: board.keep(value),
            "use_variant": lambda: board.use(value),
            "drop_variant": lambda: board.drop(value),
            "a_day": lambda: setattr(self, "requests_a_day", whole(value)),
            "plan": lambda: self.plan_breakpoints(value),
            "export": lambda: self._export(value),
            "read": lambda: self.read(value),
            "hand_over": self.apply_to,
        }
        changes[action]()
        if name and name in self.order:
            self._selected = name
        self.refresh()
        if action in _SAID:
            # Not format(): names come from logs.
            said = _SAID[action].replace("{value}", value) if value else _SAID[action]
            self._say(said.replace("{name}", name))

    def _use(self, key: str) -> None:
        if key == "today":
            movable = [n for n in self.board.original.order if n in self.order]
            self.board.set_order([*movable, *(n for n in self.order if n not in movable)])
        else:
            self.use_best(key)

    def _export(self, kind: str) -> None:
        self.export = {"kind": kind, "text": self.export_text(kind), "kinds": _choices(EXPORTS)}

    def _show_place(self, name: str, to: int) -> None:
        """What a place would cost, without going there."""
        state = self.board.moved(name, to)
        now, today = self._compared.weigh(state), self._compared.weigh(self.board.original)
        with self.hold_sync():
            self._show_order(state, now, today, name)
            place = state.order.index(name) + 1
            cost = views.sentence(now, today)
            self.announce = f"{name} at {place} of {len(state.order)}: {cost}."

    # -- what the widget shows -------------------------------------------------------------

    def refresh(self) -> None:
        """Show the board as it is; call it after changing `board` from code."""
        board, state = self.board, self.board.state
        if self._selected not in state.order:
            self._selected = state.order[0]
        now, today = self._compared.weigh(state), self._compared.weigh(board.original)
        laid = board.laid
        clocks = self._source.clocks(state.rewrites)
        with self.hold_sync():
            if self._sections_shown != state.rules:
                # Moving a block changes none of this.
                self.sections = views.sections_view(laid, board.sections())
                self._sections_shown = state.rules
            self._show_order(state, now, today)
            self.detail = views.detail_view(board, self._selected, clocks, self._source.has_turns)
            self.plan = views.plan_view(PLAN_MODELS, self._plan_model, self._plan, self._plan_bill)

    def _show_order(
        self, state: BoardState, now: Weighed, today: Weighed, moving: str = ""
    ) -> None:
        board, source = self.board, self._source
        self.head = {
            "title": source.title,
            "subtitle": source.subtitle,
            "figures": views.figures_view(now, today, self._requests_a_day),
            "a_day_text": str(self._requests_a_day),
            "can_undo": board.can_undo,
            "can_redo": board.can_redo,
            "changed": board.state != board.original,
            "rewrites": [str(rewrite) for rewrite in state.rewrites],
            "notes": source.notes,
            "has_session": board.laid.history is not None,
            "has_bench": source.bench is not None,
        }
        self.shown = views.board_view(board.laid, state, now, today, moving)
        self.table = self._compared.table(state, self._requests_a_day)

    def _say(self, what: str) -> None:
        """Announce what happened with what the board now costs."""
        now, today = (
            self._compared.weigh(self.board.state),
            self._compared.weigh(self.board.original),
        )
        cost = views.sentence(now, today)
        self.announce = f"{what} {cost[0].upper()}{cost[1:]}.".strip()


_SAID = {
    "lock": "{name} is locked to its place.",
    "release": "{name} is free to move.",
    "before": "{name} must stand before {value}.",
    "free": "{name} need no longer stand before {value}.",
    "rate": "{name} now changes in {value} % of the requests.",
    "measured": "{name} has its own rate again.",
    "split": "{name} is split at its changing lines.",
    "turn": "{name} travels with the turn's message.",
    "clock": "The clock in {name} is coarser now.",
    "undo": "Undone.",
    "redo": "Done again.",
    "reset": "Back to today's prompt.",
    "find": "Searched the orders of the session.",
    "keep": "Kept as {value}.",
    "use_variant": "Took the variant {value}.",
    "drop_variant": "Dropped the variant {value}.",
    "hand_over": "The workbench has this order.",
}


def _choices(names: dict[str, str]) -> list[dict[str, str]]:
    return [{"value": value, "label": label} for value, label in names.items()]
