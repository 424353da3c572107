"""A session with edits on top: what the turns would have been, and the way back.

`WhatIf` keeps the recorded session played once and replays only what an edit reaches. It knows no
screen; the workbench shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.analysis import breaks_of, make_runner, report_of
from codesmith_lab.sessions.edits import (
    Edit,
    TextEdit,
    apply_edits,
    edited_settings,
    first_edited_turn,
)
from codesmith_lab.sessions.findings.diagnosis import Break
from codesmith_lab.sessions.findings.drift import DriftStep, DriftWatcher
from codesmith_lab.sessions.records import Request, Session
from codesmith_lab.sessions.remedies.remedy import Remedy, sent_as
from codesmith_lab.sessions.reports.report import Report
from codesmith_lab.sessions.turns import Checkpoint, Turn, TurnRunner

__all__ = ["Played", "WhatIf"]

_MEMO_LIMIT = 20_000


class Breaks(Sequence["Break | None"]):
    """The break of every turn, each worked out when somebody looks at it.

    edited: the blocks of requests that edits changed, by index.
    known: breaks of the first turns, which are the same there.
    """

    def __init__(
        self,
        runner: TurnRunner,
        turns: Sequence[Turn],
        edited: Mapping[int, Sequence[Block]],
        known: Breaks | None = None,
        same: int = 0,
    ) -> None:
        self._runner = runner
        self._turns = turns
        self._edited = edited
        self._known = known
        self._same = same
        self._found: dict[int, Break | None] = {}

    def __len__(self) -> int:
        return len(self._turns)

    @overload
    def __getitem__(self, index: int) -> Break | None: ...
    @overload
    def __getitem__(self, index: slice) -> list[Break | None]: ...
    def __getitem__(self, index: int | slice) -> Break | list[Break | None] | None:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        if self._known is not None and at < self._same:
            return self._known[at]
        if at not in self._found:
            self._found[at] = breaks_of(self._runner, self._turns[at : at + 1], self._edited)[0]
        return self._found[at]


@dataclass(frozen=True, slots=True)
class Played:
    """Every turn of one run, with its break and its step of drift, index by index.

    edited: the requests that were never sent like this.
    """

    turns: list[Turn]
    breaks: Breaks
    steps: list[DriftStep]
    edited: Collection[int] = ()


class WhatIf:
    """A session under one model's rules, as recorded and as edited.

    Parameters
    ----------
    session: from `load` or a recording.
    model: whose tokenizer, rules and prices to use; None follows the session.
    rules: id of a cache rule in place of the model's own.

    `recorded` and `current` are the two runs; without edits they are the same object.

    Raises UnknownModelError when nobody has rules for the model, LabError for an empty session.
    """

    def __init__(
        self, session: Session, model: str | None = None, rules: str | None = None
    ) -> None:
        self.session = session
        self.rules = rules
        self._edits: list[Edit] = []
        self._undone: list[Edit] = []
        self._memo: dict[object, Block] = {}
        self._watcher = DriftWatcher()
        self.open(model)

    runner: TurnRunner
    recorded: Played
    current: Played

    def open(self, model: str | None) -> None:
        """Lay the session out for a model; edits stay."""
        runner = make_runner(self.session, model, self.rules)
        self.runner, self.asked = runner, model
        self._memo.clear()
        self._checkpoint: Checkpoint | None = None
        turns = runner.run()
        self.recorded = Played(turns, Breaks(runner, turns, {}), self._drift(turns))
        self.replay(exact=True)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits in force, oldest first."""
        return tuple(self._edits)

    @property
    def can_redo(self) -> bool:
        """Whether an edit was taken back and nothing was done since."""
        return bool(self._undone)

    def type_text(self, edit: TextEdit) -> None:
        """One text edit a burst of typing: strokes in the same place replace each other.

        `edit.old` is what the section says now. Counts are quick (joint by joint) until `settle`.
        """
        last = self._edits[-1] if self._edits else None
        if isinstance(last, TextEdit) and (last.turn, last.name, last.scope) == (
            edit.turn,
            edit.name,
            edit.scope,
        ):
            self._edits.pop()
            edit = replace(last, new=edit.new)
        if edit.old != edit.new:
            self._edits.append(edit)
        self._undone.clear()
        self.replay()

    def push(self, edit: Edit) -> None:
        """Put one more edit in force."""
        self._edits.append(edit)
        self._undone.clear()
        self.replay(exact=True)

    def undo(self) -> bool:
        """Take the last edit back; False when there is none."""
        if not self._edits:
            return False
        self._undone.append(self._edits.pop())
        self.replay(exact=True)
        return True

    def redo(self) -> bool:
        """Do the last undone edit again; False when there is none."""
        if not self._undone:
            return False
        self._edits.append(self._undone.pop())
        self.replay(exact=True)
        return True

    def reset(self) -> None:
        """Drop every edit: the session as it was recorded, exactly."""
        self._edits.clear()
        self._undone.clear()
        self.replay(exact=True)

    def settle(self) -> bool:
        """Count every joined text whole instead of by its joints; True when a count changed."""
        before = [turn.prompt.total_tokens for turn in self.current.turns]
        self.replay(exact=True)
        return before != [turn.prompt.total_tokens for turn in self.current.turns]

    def replay(self, exact: bool = False) -> None:
        """Run every turn from the first edited one on."""
        if len(self._memo) > _MEMO_LIMIT:
            self._memo.clear()
        blocks = apply_edits(self.session, self._edits, self._memo)
        settings = edited_settings(self._edits)
        if not blocks and not settings:
            self.current = self.recorded
            return
        first = first_edited_turn(self._edits, len(self.session.requests))
        if self._checkpoint is None or self._checkpoint.at != first:
            self._checkpoint = self.runner.checkpoint(first, self.recorded.turns)
        turns = self.runner.run(blocks, self._checkpoint, exact, settings)
        # Turns before the first edited one are as they were, and so is what is known of them.
        breaks = Breaks(self.runner, turns, blocks, self.recorded.breaks, first)
        steps = self.recorded.steps[:first] + self._drift(turns, first)
        self.current = Played(turns, breaks, steps, {*blocks, *settings})

    def apply(self, remedy: Remedy) -> None:
        """Put a remedy in force that `report` offered for what is in force now."""
        self.push(remedy.edit)

    def _requests_now(self) -> list[Request]:
        blocks = apply_edits(self.session, self._edits, self._memo)
        settings = edited_settings(self._edits)
        return [
            sent_as(request, blocks.get(request.index), settings.get(request.index))
            for request in self.session.requests
        ]

    def report(self) -> Report:
        """The analysis of what is in force."""
        requests = self._requests_now() if self._edits else None
        return report_of(self.runner, self.current.turns, self.current.breaks, requests)

    def _drift(self, turns: Sequence[Turn], first: int = 0) -> list[DriftStep]:
        """Steps from turn `first` on; each re-pins, so the turn before is all one has to know."""
        before = 1 if first else 0
        return self._watcher.steps([t.prompt.pinned_blocks for t in turns[first - before :]])[
            before:
        ]
