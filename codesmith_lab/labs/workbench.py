"""The workbench: a session on screen, with what-if edits and their bill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

from codesmith_lab.errors import LabError
from codesmith_lab.labs import screen, views
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.edits import (
    SCOPES,
    STABILITIES,
    Edit,
    MoveEdit,
    RewriteEdit,
    Scope,
    StabilityEdit,
    TextEdit,
    split_separator,
)
from codesmith_lab.sessions.records import Session
from codesmith_lab.sessions.remedies.remedy import Remedy
from codesmith_lab.sessions.reports.report import Report, bill_frame
from codesmith_lab.sessions.turns import Turn
from codesmith_lab.sessions.what_if import WhatIf
from codesmith_lab.widgets.workbench import WorkbenchWidget

if TYPE_CHECKING:
    import pandas as pd

    from codesmith_lab.labs.section_order import SectionOrderLab

__all__ = ["Workbench"]

_SETTLE_S = 0.4
_ADVISE_S = 0.8
Handler = Callable[["Workbench", dict[str, Any]], None]


def _shown(handler: Handler) -> Handler:
    """Errors of a callback go under the widget instead of into the void."""

    @wraps(handler)
    def safe(self: Workbench, change: dict[str, Any]) -> None:
        try:
            handler(self, change)
            self.error = ""
        except LabError as error:
            self.error = str(error)
        except Exception as error:  # a widget callback has no other place to show it
            self.error = f"The workbench failed: {type(error).__name__}: {error}"

    return safe


class Workbench(WorkbenchWidget):
    """A session as zones, causes and dollars; edit a section and see the bill follow.

    Parameters
    ----------
    session: from `load` or `samples.clock_story()`.
    model: whose tokenizer, rules and prices to use; None takes the session's own.
    rules: id of a cache rule in place of the model's own.

    `bench.turn` (0-based), `bench.selected` (row of the turn) and `bench.model` may be set from
    code; `bench.bill`, `bench.report` and `bench.unedited_bill` read the current state.

    Raises UnknownModelError when nobody has rules for the model, LabError for an empty session.
    """

    def __init__(
        self, session: Session, model: str | None = None, rules: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.session = session
        self._what_if = WhatIf(session, model, rules)
        self._settling: asyncio.TimerHandle | None = None
        self._advising: asyncio.TimerHandle | None = None
        self._report: Report | None = None
        self._seq = 0
        self._heard = 0
        self._loads = 0
        self.scope = "from_here"
        # The turn is checked against the timeline, so that comes first.
        self.timeline = screen.timeline_trait(self._what_if)
        self.turn = screen.worst_turn(self._turns)
        self.blocks = screen.blocks_trait(self._what_if, self.turn)
        self._select_break()
        self._changed()
        self.observe(self._on_turn, "turn")
        self.observe(self._on_selected, "selected")
        self.observe(self._on_edit, "edit")
        self.observe(self._on_request, "request")

    # -- what code reads -------------------------------------------------------------------

    @property
    def model(self) -> str:
        """The model whose rules and prices are applied; set it to compare."""
        return self._what_if.runner.model.name

    @model.setter
    def model(self, name: str) -> None:
        self._what_if.open(name)
        # Another provider may read the prompt in another order: rows are other blocks now.
        self.blocks = screen.blocks_trait(self._what_if, self.turn)
        if self._selected_name is None or not self._reselect(self._selected_name):
            self._select_break()
        self._loads += 1
        self._changed()

    @property
    def bill(self) -> pd.DataFrame:
        """One row a request, edits included."""
        return bill_frame(self._what_if.runner, self._turns)

    @property
    def unedited_bill(self) -> pd.DataFrame:
        """One row a request of the session as it was recorded."""
        return bill_frame(self._what_if.runner, self._what_if.recorded.turns)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits in force, oldest first."""
        return self._what_if.edits

    @property
    def report(self) -> Report:
        """The analysis of what is shown: of the edited session while there are edits."""
        if self._report is None:
            self._report = self._what_if.report()
            self._show_advice()
        return self._report

    def edit_section(self, name: str, text: str) -> None:
        """Replace a section's text as typing would, on the current turn and with `scope`.

        Raises LabError when the turn has no such section.
        """
        self._put_text(self._section(name), text)
        self._loads += 1
        self._changed()

    def undo(self) -> None:
        """Take the last edit back; without one nothing happens."""
        if self._what_if.undo():
            self._after_history()

    def redo(self) -> None:
        """Do the last undone edit again; without one nothing happens."""
        if self._what_if.redo():
            self._after_history()

    def reset(self) -> None:
        """Drop every edit: the session as it was recorded, exactly."""
        self._what_if.reset()
        self._after_history()

    def move_section(self, name: str, step: int) -> None:
        """Let a section change places with its neighbour: -1 up, +1 down."""
        if step not in (-1, 1):
            raise LabError(f"a section moves by -1 (up) or +1 (down), not {step!r}")
        self._section(name)
        self._what_if.push(MoveEdit(self.turn, name, self._reach, step))
        self._reselect(name)
        self._changed()

    def put_blocks(self, ident: str, title: str, blocks: Mapping[int, tuple[Block, ...]]) -> None:
        """Let requests (by turn) be sent as these blocks: one edit, which can be undone."""
        self._what_if.push(RewriteEdit(ident, title, blocks))
        self._after_history()

    def section_order(self) -> SectionOrderLab:
        """A board of this session's sections, edits included, to find their cheapest order on."""
        from codesmith_lab.labs.section_order import SectionOrderLab

        return SectionOrderLab(self)

    def set_stability(self, name: str, stability: str) -> None:
        """Declare a section static, workspace, session or dynamic."""
        if stability not in STABILITIES:
            raise LabError(f"a stability is one of {', '.join(STABILITIES)}, not {stability!r}")
        self._section(name)
        self._what_if.push(StabilityEdit(self.turn, name, self._reach, stability))
        self._changed()

    @property
    def remedies(self) -> list[Remedy]:
        """What would be cheaper than what is shown, each proved by a replay; best first."""
        return list(self.report.remedies_list)

    def apply(self, remedy_id: str) -> None:
        """Put an offered remedy in force, by its `id`; a second time takes it back.

        Raises LabError when it is not offered now, or lies under later edits.
        """
        if remedy_id in [edit.id for edit in self._applied]:
            last = self.edits[-1]
            if not isinstance(last, RewriteEdit) or last.id != remedy_id:
                raise LabError("other edits were made on top of it; undo these first")
            self.undo()
            return
        for remedy in self.remedies:
            if remedy.id == remedy_id:
                self._what_if.apply(remedy)
                self._after_history()
                return
        raise LabError(f"{remedy_id!r} is no remedy that is offered now; see bench.remedies")

    # -- what the widget sends -------------------------------------------------------------

    @_shown
    def _on_turn(self, change: dict[str, Any]) -> None:
        name = self._selected_name
        # A row is checked against the blocks of its turn, so these come first.
        self.blocks = screen.blocks_trait(self._what_if, self.turn)
        if name is None or not self._reselect(name):
            self._select_break()
        self._loads += 1
        self._show()

    @_shown
    def _on_selected(self, change: dict[str, Any]) -> None:
        self._remember_selected()
        self._loads += 1
        self._show_editor()

    @_shown
    def _on_edit(self, change: dict[str, Any]) -> None:
        self._answer()

    @_shown
    def _on_request(self, change: dict[str, Any]) -> None:
        self._answer()

    def _answer(self) -> None:
        """Do what the view asked for, in the order in which a person meant it.

        Text and a command may come in one message, and then both traits are set before either is
        seen here.
        """
        asked = [(int(self.edit["seq"]), self._type), (int(self.request["seq"]), self._command)]
        for seq, do in sorted(asked, key=lambda one: one[0]):
            if seq > self._heard:
                self._heard = seq
                # One message: the answer and its number.
                with self.hold_sync():
                    try:
                        do()
                    finally:
                        self.ack = seq

    def _type(self) -> None:
        seq, key, text = int(self.edit["seq"]), str(self.edit["key"]), str(self.edit["text"])
        if key != self._key() or self._selected_name is None:
            return
        self._seq = seq
        self._put_text(self._turns[self.turn].prompt.blocks[self.selected], text)
        self._changed()
        self._settle_later()

    def _command(self) -> None:
        self._do(str(self.request["action"]), str(self.request.get("value", "")))

    def _do(self, action: str, value: str) -> None:
        name = self._selected_name
        if action in ("undo", "redo", "reset"):
            getattr(self, action)()
        elif action == "model":
            self.model = value
        elif action == "scope":
            if value not in SCOPES:
                raise LabError(f"a scope is one of {', '.join(SCOPES)}, not {value!r}")
            self.scope = value
        elif action == "apply":
            self.apply(value)
        elif action == "order_board":
            self._toggle_board()
        elif action in ("move_up", "move_down") and name is not None:
            self.move_section(name, -1 if action == "move_up" else 1)
        elif action == "stability" and name is not None:
            self.set_stability(name, value)
            self._loads += 1
            self._show_editor()

    def _toggle_board(self) -> None:
        """Show the order board below, of what is shown now; the next time put it away."""
        if self.board is None:
            self.board = self.section_order()
            self.announce = "The order board is open below the workbench."
            return
        board, self.board = self.board, None
        board.close()
        self.announce = "The order board is closed."

    # -- state -----------------------------------------------------------------------------

    @property
    def _turns(self) -> list[Turn]:
        return self._what_if.current.turns

    def _put_text(self, block: Block, text: str) -> None:
        old = split_separator(block.text)[0]
        self._what_if.type_text(TextEdit(self.turn, block.name, self._reach, old, text))

    def _after_history(self) -> None:
        name = self._selected_name
        # Rows may be fewer now, or other blocks.
        self.blocks = screen.blocks_trait(self._what_if, self.turn)
        if name is None:
            self.selected = min(self.selected, len(self._turns[self.turn].prompt.blocks) - 1)
        elif not self._reselect(name):
            self._select_break()
        self._loads += 1
        self._changed()

    @property
    def _applied(self) -> list[RewriteEdit]:
        return [edit for edit in self.edits if isinstance(edit, RewriteEdit)]

    def _changed(self) -> None:
        self._advise_later()
        self._show()

    def _advise_later(self) -> None:
        """Remedies cost a replay each, so they wait for a pause; what is shown meanwhile stays."""
        self._report = None
        if self._advising is not None:
            self._advising.cancel()
            self._advising = None
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._advising = loop.call_later(_ADVISE_S, self._advise)

    def _advise(self) -> None:
        self._advising = None
        try:
            self._report = self._what_if.report()
            self._show_advice()
        except Exception as error:  # a timer has no other place to show it
            self.error = f"The remedies failed: {type(error).__name__}: {error}"

    def _settle_later(self) -> None:
        """When typing stops, count every joined text whole instead of by its joints."""
        if self._settling is not None:
            self._settling.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._settle()
            return
        self._settling = loop.call_later(_SETTLE_S, self._settle)

    def _settle(self) -> None:
        self._settling = None
        if self._what_if.settle():
            self._show()

    @property
    def _reach(self) -> Scope:
        return cast(Scope, self.scope)

    def _section(self, name: str) -> Block:
        blocks: tuple[Block, ...] = self._turns[self.turn].prompt.blocks
        for block in blocks:
            if block.kind == "section" and block.name == name:
                return block
        raise LabError(f"turn {self.turn + 1} has no section named {name!r}")

    def _select_break(self) -> None:
        broken = self._what_if.current.breaks[self.turn]
        blocks = self._turns[self.turn].prompt.blocks
        self.selected = min(broken.piece, len(blocks) - 1) if broken is not None else 0
        self._remember_selected()

    def _reselect(self, name: str) -> bool:
        for i, block in enumerate(self._turns[self.turn].prompt.blocks):
            if block.kind == "section" and block.name == name:
                self.selected = i
                self._remember_selected()
                return True
        return False

    def _remember_selected(self) -> None:
        blocks = self._turns[self.turn].prompt.blocks
        block = blocks[self.selected] if 0 <= self.selected < len(blocks) else None
        self._selected_name = block.name if block is not None and block.kind == "section" else None

    def _key(self) -> str:
        return f"{self._loads}:{self.turn}:{self._selected_name or self.selected}"

    # -- what the widget shows -------------------------------------------------------------

    def _show(self) -> None:
        state, at = self._what_if, self.turn
        with self.hold_sync():
            self.head = screen.head_trait(state, at)
            self.timeline = screen.timeline_trait(state)
            self.blocks = screen.blocks_trait(state, at)
            self.side = screen.side_trait(state, at)
            self._show_editor()
            self._show_advice()
            title, cost = self.side["diagnosis"]["title"], self.side["lines"][-1]["cost_text"]
            self.announce = f"Turn {at + 1}: {title}. {cost}."

    def _show_editor(self) -> None:
        self.editor = views.editor_view(
            self._turns, self.turn, self.selected, self._seq, self._key()
        )

    def _show_advice(self) -> None:
        self.advice = screen.advice_trait(self._what_if, self._report, self.advice)
