"""Open a log by dropping it into the notebook: the picker, and the workbench below it."""

from __future__ import annotations

import ipywidgets as widgets

from codesmith_lab.cache.rule_files import known_rules
from codesmith_lab.errors import LabError, UnknownModelError
from codesmith_lab.labs.workbench import Workbench
from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.records import Session
from codesmith_lab.widgets.log_picker import LogPickerWidget
from codesmith_lab.wording import counted

__all__ = ["LogPicker"]

_OWN = "the model's own"


class LogPicker(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A place to drop or choose a log; its workbench opens below.

    `picker.session` and `picker.bench` hold what was opened last, or None. A log of a model that
    has no rules here asks which rules to apply: then tokens are estimated and nothing is priced.

    model: whose tokenizer, rules and prices to use; None takes each session's own.
    """

    def __init__(self, model: str | None = None) -> None:
        self.session: Session | None = None
        self.bench: Workbench | None = None
        self._model = model
        self.picker = LogPickerWidget(self._taken)
        self._rules = widgets.Dropdown(
            options=[(_OWN, None), *((f"{r.id}: {r.title}", r.id) for r in known_rules())],
            description="Rules",
            layout=widgets.Layout(width="auto", display="none"),
        )
        self._rules.observe(self._chosen, "value")
        super().__init__([self.picker, self._rules])

    def _taken(self, name: str, data: bytes) -> None:
        self.bench = None
        try:
            self.session = load_bytes(data, name)
        except LabError as error:
            self.session = None
            self._say(str(error))
            return
        with self._rules.hold_trait_notifications():
            self._rules.value = None
        self._open()

    def _chosen(self, change: object) -> None:
        if self.session is not None:
            self._open()

    def _open(self) -> None:
        assert self.session is not None
        self.bench = None
        ask = self._rules.value is not None
        try:
            self.bench = Workbench(self.session, self._model, self._rules.value)
            self._say("", self._status())
        except UnknownModelError as error:
            ask = True
            self._say(f"{error}; or choose rules below: tokens are estimated, without a price")
        except LabError as error:
            self._say(str(error))
        self._rules.layout.display = "" if ask else "none"
        self.children = [self.picker, self._rules, *([self.bench] if self.bench else [])]

    def _status(self) -> str:
        assert self.session is not None
        skipped = self.session.skipped
        requests = counted(len(self.session.requests), "request")
        text = f"{self.session.name}: {requests}, {self.session.format}"
        if skipped:
            text += f"; {len(skipped):,} skipped, the first at line {skipped[0].line}: "
            text += skipped[0].reason
        return text

    def _say(self, error: str, status: str = "") -> None:
        self.picker.error, self.picker.status = error, status
        if error:
            self.children = [self.picker, self._rules]
