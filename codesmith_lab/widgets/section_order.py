"""The section-order board as a widget: what Python shows, what a person does, nothing computed.

Python writes ready texts and integers into the traits; the view draws them and writes one `request`
after the other. Each carries a rising number, and `ack` answers with the number of the last one
whose results are in all traits.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any, TypedDict, cast

import anywidget
import traitlets

__all__ = ["ACTIONS", "OrderRequest", "SectionOrderWidget"]

ACTIONS: dict[str, tuple[str, ...]] = {
    "select": ("name",),
    "drag": ("name", "to"),
    "rest": (),
    "move": ("name", "to"),
    "lock": ("name",),
    "release": ("name",),
    "before": ("name", "value"),
    "free": ("name", "value"),
    "rate": ("name", "value"),
    "measured": ("name",),
    "split": ("name",),
    "turn": ("name",),
    "clock": ("name", "value"),
    "undo": (),
    "redo": (),
    "reset": (),
    "find": (),
    "use": ("value",),
    "keep": ("value",),
    "use_variant": ("value",),
    "drop_variant": ("value",),
    "a_day": ("value",),
    "plan": ("value",),
    "export": ("value",),
    "read": ("value",),
    "hand_over": (),
}
"""What the view can ask for, with the fields that come with it.

"drag" shows what a place would cost without going there, "rest" ends that. "before" demands that
`name` stands before `value`, "free" drops that. "use" takes an order by the key of its row.
"""


class OrderRequest(TypedDict, total=False):
    """One command: `seq` rises; `name` is a section, `to` a place from 0, `value` a text."""

    seq: int
    action: str
    name: str
    value: str
    to: int


_HEAD: dict[str, Any] = {
    "title": "",
    "subtitle": "",
    "figures": [],
    "a_day_text": "",
    "can_undo": False,
    "can_redo": False,
    "changed": False,
    "rewrites": [],
    "notes": [],
    "has_session": False,
    "has_bench": False,
}
_SECTIONS: dict[str, Any] = {
    "name": [],
    "tokens": [],
    "tokens_text": [],
    "rate": [],
    "rate_text": [],
    "badge": [],
    "fixed": [],
    "label": [],
}
_BOARD: dict[str, Any] = {
    "order": [],
    "locked": [],
    "marks": [],
    "boundary": None,
    "survival": [],
    "today": {"tokens": [], "survival": []},
    "moving": "",
}
_DETAIL: dict[str, Any] = {
    "name": "",
    "facts": [],
    "rate_text": "",
    "by_hand": False,
    "locked": False,
    "can_split": False,
    "can_turn": False,
    "grains": [],
    "before": [],
    "choices": [],
}
_TABLE: dict[str, Any] = {"columns": [], "rows": [], "can_find": False}
_PLAN: dict[str, Any] = {"models": [], "model": "", "title": "", "lines": []}
_EXPORT: dict[str, Any] = {"kind": "", "text": "", "kinds": []}


class SectionOrderWidget(anywidget.AnyWidget):
    """Draws one board; the shapes of the traits are the defaults above, filled.

    Raises
    ------
    traitlets.TraitError: a `request` that cannot be meant.
    """

    _esm = pathlib.Path(__file__).parent / "section_order.js"
    _css = pathlib.Path(__file__).parent / "section_order.css"

    head = traitlets.Dict(default_value=_HEAD).tag(sync=True)
    sections = traitlets.Dict(default_value=_SECTIONS).tag(sync=True)
    shown = traitlets.Dict(default_value=_BOARD).tag(sync=True)
    detail = traitlets.Dict(default_value=_DETAIL).tag(sync=True)
    table = traitlets.Dict(default_value=_TABLE).tag(sync=True)
    plan = traitlets.Dict(default_value=_PLAN).tag(sync=True)
    export = traitlets.Dict(default_value=_EXPORT).tag(sync=True)
    request = traitlets.Any(default_value={"seq": 0, "action": ""}).tag(sync=True)
    announce = traitlets.Unicode("").tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)
    ack = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("request")
    def _valid_request(self, proposal: Mapping[str, Any]) -> OrderRequest:
        value = proposal["value"]
        if not isinstance(value, Mapping) or value.get("action") not in ACTIONS:
            raise traitlets.TraitError(
                f"request is {_short(value)}, but it is a dict with an action out of "
                f"{', '.join(ACTIONS)}; pass one of these"
            )
        needed = {"seq", "action", *ACTIONS[value["action"]]}
        if set(value) != needed:
            raise traitlets.TraitError(
                f"request {value['action']!r} has the fields {sorted(value)}, but it takes "
                f"{sorted(needed)}; pass these"
            )
        for field, kind in (("seq", int), ("to", int), ("name", str), ("value", str)):
            found = value.get(field)
            wrong = not isinstance(found, kind) or isinstance(found, bool)
            if field in needed and (wrong or (kind is int and cast(int, found) < 0)):
                what = "a whole number from 0" if kind is int else "text"
                raise traitlets.TraitError(
                    f"request.{field} is {_short(found)}, but it is {what}; pass that"
                )
        return cast(OrderRequest, dict(value))

    def text(self) -> str:
        """The comparison in plain text, for places where widgets do not run."""
        head, table = self.head, self.table
        lines = [f"{head['title']} · {head['subtitle']}"]
        lines += [f"{figure['value']} {figure['label']}" for figure in head["figures"]]
        names = self.sections["name"]
        lines += ["", "order: " + ", ".join(names[i] for i in self.shown["order"]), ""]
        rows = [["", *table["columns"]], *([r["name"], *r["cells"]] for r in table["rows"])]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for first, *rest in rows:
            cells = [c.rjust(w) for c, w in zip(rest, widths[1:], strict=True)]
            lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
        lines += ["", *head["notes"]]
        return "\n".join(_printable(line) for line in lines).strip("\n")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.head['title']!r}, {self.head['subtitle']}>"

    def _repr_mimebundle_(
        self, **kwargs: Any
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:  # the protocol of IPython's display
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, "text/plain": self.text()}, metadata


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)
