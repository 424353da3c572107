"""The workbench as a widget: what Python shows, what a person chooses, and nothing computed.

Python writes ready texts and integers into the traits; the view draws them and writes back what a
person chose. Two-way traits are `turn` and `selected`; `edit` and `request` come from the view.
Both carry a number from one rising series, and `ack` answers with the number of the last one whose
results are in all traits. When both arrive in one message, the lower number was meant first.
`board` is another widget that is shown below, or None.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, cast, get_args

import anywidget
import ipywidgets
import traitlets

__all__ = ["Action", "Edit", "Request", "WorkbenchWidget"]

Action = Literal[
    "move_up",
    "move_down",
    "stability",
    "undo",
    "redo",
    "reset",
    "model",
    "scope",
    "apply",
    "order_board",
]
_ACTIONS: tuple[str, ...] = get_args(Action)
_WITH_VALUE = ("stability", "model", "scope", "apply")
_HERE = pathlib.Path(__file__).parent


class Edit(TypedDict):
    """One state of the editor's text: `seq` rises, `key` names the text that was loaded."""

    seq: int
    key: str
    text: str


class Request(TypedDict, total=False):
    """A one-off command; `value` comes with "stability", "model", "scope" and "apply" only."""

    seq: int
    action: Action
    value: str


_HEAD: dict[str, Any] = {
    "name": "",
    "turns_text": "",
    "model": "",
    "models": [],
    "rules_text": "",
    "drift_label": "",
    "figures": [],
    "notes": [],
    "scope_options": [],
    "edited": False,
}
_TIMELINE: dict[str, Any] = {"causes": [], "tokens": [], "totals": [], "labels": [], "marks": []}
_BLOCKS: dict[str, Any] = {
    "turn": 0,
    "zones": [],
    "name": [],
    "badge": [],
    "tokens": [],
    "tokens_text": [],
    "spans": [],
    "editable": [],
    "boundary": None,
    "break": None,
}
_EDITOR: dict[str, Any] = {
    "block": -1,
    "key": "",
    "name": "",
    "text": "",
    "editable": False,
    "readonly_reason": "",
    "marks": [],
    "seq": 0,
    "stability": "",
    "stabilities": [],
    "position_text": "",
    "can_up": False,
    "can_down": False,
    "note": "",
}
_SIDE: dict[str, Any] = {
    "diagnosis": {"title": "", "body": "", "tone": "", "also": []},
    "lines": [],
    "multiple": None,
    "audit": [],
    "compare": None,
    "reported": None,
}


class WorkbenchWidget(anywidget.AnyWidget):
    """Draws one session; the shapes of the traits are the defaults above, filled.

    Raises
    ------
    traitlets.TraitError: a `turn`, `selected`, `edit` or `request` that cannot be meant.
    """

    _esm = _HERE / "workbench.js"
    _css = _HERE / "workbench.css"

    head = traitlets.Dict(default_value=_HEAD).tag(sync=True)
    timeline = traitlets.Dict(default_value=_TIMELINE).tag(sync=True)
    turn = traitlets.Any(default_value=0).tag(sync=True)
    blocks = traitlets.Dict(default_value=_BLOCKS).tag(sync=True)
    selected = traitlets.Any(default_value=-1).tag(sync=True)
    editor = traitlets.Dict(default_value=_EDITOR).tag(sync=True)
    edit = traitlets.Any(default_value={"seq": 0, "key": "", "text": ""}).tag(sync=True)
    request = traitlets.Any(default_value={"seq": 0, "action": ""}).tag(sync=True)
    scope = traitlets.Unicode("").tag(sync=True)
    side = traitlets.Dict(default_value=_SIDE).tag(sync=True)
    advice = traitlets.Dict(default_value={"rows": [], "note": "", "findings": []}).tag(sync=True)
    board = traitlets.Instance(ipywidgets.Widget, allow_none=True).tag(
        sync=True, **ipywidgets.widget_serialization
    )
    announce = traitlets.Unicode("").tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)
    ack = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("turn")
    def _valid_turn(self, proposal: Mapping[str, Any]) -> int:
        turns = len(self.timeline["totals"])
        value = proposal["value"]
        # Before the first timeline is shown nobody here knows how many turns there are.
        if not _is_int(value) or value < 0 or (turns and value >= turns):
            known = f"this session has {turns}" if turns else "no session is shown yet"
            most = f"from 0 to {turns - 1}" if turns else "from 0"
            raise traitlets.TraitError(
                f"turn is {_short(value)}, but turns count from 0 and {known}; "
                f"choose a whole number {most}"
            )
        return int(value)

    @traitlets.validate("selected")
    def _valid_selected(self, proposal: Mapping[str, Any]) -> int:
        blocks = len(self.blocks["tokens"])
        value = proposal["value"]
        # After a change of turn the blocks of the new one are shown a moment later.
        known = blocks > 0 and self.blocks["turn"] == self.turn
        if not _is_int(value) or value < -1 or (known and value >= blocks):
            count = f"this turn has {blocks}" if known else "-1 means none"
            most = f"from -1 (none) to {blocks - 1}" if known else "from -1"
            raise traitlets.TraitError(
                f"selected is {_short(value)}, but blocks count from 0 and {count}; "
                f"choose a whole number {most}"
            )
        return int(value)

    @traitlets.validate("edit")
    def _valid_edit(self, proposal: Mapping[str, Any]) -> Edit:
        value = _fields("edit", proposal["value"], {"seq", "key", "text"}, frozenset())
        _check_seq("edit", value["seq"])
        for name in ("key", "text"):
            if not isinstance(value[name], str):
                raise traitlets.TraitError(
                    f"edit.{name} is {_short(value[name])}, but it is text; pass a str"
                )
        return cast(Edit, value)

    @traitlets.validate("request")
    def _valid_request(self, proposal: Mapping[str, Any]) -> Request:
        value = _fields("request", proposal["value"], {"seq", "action"}, {"value"})
        _check_seq("request", value["seq"])
        action = value["action"]
        if action not in _ACTIONS:
            raise traitlets.TraitError(
                f"request.action is {_short(action)}, but it is one of {', '.join(_ACTIONS)}; "
                "choose one of these"
            )
        if (action in _WITH_VALUE) != isinstance(value.get("value"), str):
            rule = "a str as value" if action in _WITH_VALUE else "no value"
            raise traitlets.TraitError(
                f"request {action!r} has the value {_short(value.get('value'))}, "
                f"but it takes {rule}; pass {rule}"
            )
        return cast(Request, value)

    def text(self) -> str:
        """The screen in plain text, for places where widgets do not run."""
        return _plain_text(self.head, self.side, self.advice)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.head['name']!r}, {self.head['turns_text']}>"

    def _repr_mimebundle_(
        self, **kwargs: Any
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:  # the protocol of IPython's display
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, "text/plain": self.text()}, metadata


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: object) -> str:
    """A value in a message: long ones are cut, so that a megabyte of text is not echoed."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _fields(
    name: str, value: object, needed: set[str], optional: set[str] | frozenset[str]
) -> dict[str, Any]:
    keys = set(value) if isinstance(value, Mapping) else None
    if keys is None or not needed <= keys <= needed | optional:
        fields = ", ".join(sorted(needed)) + "".join(f" and maybe {key}" for key in optional)
        raise traitlets.TraitError(
            f"{name} is {_short(value)}, but it has the fields {fields}; pass a dict of these"
        )
    return dict(cast("Mapping[str, Any]", value))


def _check_seq(name: str, value: object) -> None:
    if not _is_int(value) or cast(int, value) < 0:
        raise traitlets.TraitError(
            f"{name}.seq is {_short(value)}, but it is a number that rises from 1; "
            "pass a whole number above the last one"
        )


def _plain_text(head: Mapping[str, Any], side: Mapping[str, Any], advice: Mapping[str, Any]) -> str:
    """Head and side as lines; control characters are spelled out, since a terminal obeys them."""
    first = [head["name"], head["turns_text"], head["model"], head["rules_text"]]
    lines = [" · ".join(part for part in [*first, head["drift_label"]] if part)]
    lines += [f"{figure['value']} {figure['label']}" for figure in head["figures"]]
    diagnosis = side["diagnosis"]
    lines += ["", diagnosis["title"], diagnosis["body"], *diagnosis["also"]]
    rows = [(line["name"], line["tokens_text"], line["cost_text"]) for line in side["lines"]]
    lines += ["", *_columns(rows)]
    if side["multiple"]:
        multiple = side["multiple"]
        lines += ["", f"{multiple['value']} {multiple['text']}", multiple["more"]]
    if side["compare"]:
        compare = side["compare"]
        cells = [(row["name"], row["value"]) for row in compare["rows"]]
        lines += ["", compare["title"], *_columns(cells)]
    if side["reported"]:
        reported = side["reported"]
        lines += ["", reported["title"], *_columns([reported["heads"], *reported["rows"]])]
        lines += [reported["note"]] if reported["note"] else []
    if advice["findings"]:
        lines += ["", "Findings"]
        lines += [f"{row['turn_text']}: {row['text']}" for row in advice["findings"]]
    if advice["rows"]:
        remedies = [(row["text"], row["saves_text"]) for row in advice["rows"]]
        lines += ["", "Try instead", *_columns(remedies)]
    lines += ["", *(f"{entry['turn_text']}: {entry['text']}" for entry in side["audit"])]
    lines += ["", *head["notes"]]
    tidy = [_printable(line) for line in lines]
    kept = [line for k, line in enumerate(tidy) if line or (k and tidy[k - 1])]
    return "\n".join(kept).strip("\n")


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows with the first column to the left and the others to the right."""
    if not rows:
        return []
    widths = [max(len(_printable(row[k])) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for first, *rest in rows:
        cells = [_printable(first).ljust(widths[0])]
        cells += [
            _printable(cell).rjust(width) for cell, width in zip(rest, widths[1:], strict=True)
        ]
        lines.append("  ".join(cells))
    return lines


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)
