"""The capacity lab as a widget: what Python shows, what a person chooses, and nothing computed.

Python writes ready texts and numbers into the traits; the view draws them. Two-way traits are
`selected`, `asked` and `loads`; `request` carries one-off commands. `asked` holds every setting
each time, so that the newest one says all even when earlier ones were never heard. `asked`, `loads`
and `request` carry a number from one rising series; `ack` answers with the highest that is shown.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

import anywidget
import traitlets

__all__ = ["CapacityWidget"]

Action = Literal["reset", "source", "model", "compare"]
_ACTIONS: tuple[str, ...] = get_args(Action)
_HERE = pathlib.Path(__file__).parent
_MOST_LOADS = 2000

_HEAD: dict[str, Any] = {
    "title": "",
    "sources": [],
    "source": "",
    "models": [],
    "model": "",
    "figures": [],
    "compare": False,
    "changed": [],
    "toml": "",
    "notes": [],
    "drawing": False,
}
_CHART: dict[str, Any] = {
    "turn": [],
    "post": [],
    "pressure": [],
    "capacity": [],
    "p_fail": [],
    "low": 0.5,
    "medium": 0.62,
    "marks": [],
    "other": None,
}
_DETAIL: dict[str, Any] = {
    "row": 0,
    "title": "",
    "place": "",
    "why": "",
    "band": "low",
    "p_text": "",
    "p_other_text": "",
    "h_rows": [],
    "h_text": "",
    "c_text": "",
    "slack_text": "",
    "z_rows": [],
    "z_text": "",
    "moved": "",
}
_COSTS: dict[str, Any] = {"state": "formula", "rows": [], "items": [], "sentence": "", "notes": []}


class CapacityWidget(anywidget.AnyWidget):
    """Draws one trajectory and its controls; the traits have the shapes of the defaults above.

    Raises
    ------
    traitlets.TraitError: a `selected`, `asked`, `loads` or `request` that cannot be meant.
    """

    _esm = _HERE / "capacity.js"
    _css = _HERE / "capacity.css"

    head = traitlets.Dict(default_value=_HEAD).tag(sync=True)
    groups = traitlets.Any(default_value=[]).tag(sync=True)
    values = traitlets.Dict(default_value={}).tag(sync=True)
    chart = traitlets.Dict(default_value=_CHART).tag(sync=True)
    detail = traitlets.Dict(default_value=_DETAIL).tag(sync=True)
    costs = traitlets.Dict(default_value=_COSTS).tag(sync=True)
    selected = traitlets.Any(default_value=0).tag(sync=True)
    asked = traitlets.Any(default_value={"seq": 0, "values": {}}).tag(sync=True)
    loads = traitlets.Any(default_value={"seq": 0, "values": []}).tag(sync=True)
    request = traitlets.Any(default_value={"seq": 0, "action": "reset", "value": ""}).tag(sync=True)
    announce = traitlets.Unicode("").tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)
    ack = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("selected")
    def _valid_selected(self, proposal: Mapping[str, Any]) -> int:
        rows, value = len(self.chart["turn"]), proposal["value"]
        if not _is_int(value) or value < 0 or (rows and value >= rows):
            raise traitlets.TraitError(
                f"selected is {_short(value)}, but observations count from 0 and there are {rows}; "
                f"choose a whole number from 0 to {max(0, rows - 1)}"
            )
        return int(value)

    @traitlets.validate("asked")
    def _valid_asked(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        value = _fields("asked", proposal["value"], {"seq", "values"})
        if not isinstance(value["values"], Mapping):
            raise traitlets.TraitError(
                f"asked.values is {_short(value['values'])}, but it maps settings to values; "
                "pass a dict"
            )
        return value

    @traitlets.validate("loads")
    def _valid_loads(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        value = _fields("loads", proposal["value"], {"seq", "values"})
        loads = value["values"]
        if not isinstance(loads, list | tuple) or len(loads) > _MOST_LOADS:
            raise traitlets.TraitError(
                f"loads.values is {_short(loads)}, but it is a list of at most {_MOST_LOADS} "
                "numbers from 0 to 1; pass one"
            )
        for load in loads:
            if isinstance(load, bool) or not isinstance(load, int | float) or not 0 <= load <= 1:
                raise traitlets.TraitError(
                    f"a load is {_short(load)}, but it is a number from 0 to 1; pass such numbers"
                )
        return {"seq": value["seq"], "values": [float(load) for load in loads]}

    @traitlets.validate("request")
    def _valid_request(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
        value = _fields("request", proposal["value"], {"seq", "action", "value"})
        if value["action"] not in _ACTIONS:
            raise traitlets.TraitError(
                f"request.action is {_short(value['action'])}, but it is one of "
                f"{', '.join(_ACTIONS)}; choose one of these"
            )
        if not isinstance(value["value"], str):
            raise traitlets.TraitError(
                f"request.value is {_short(value['value'])}, but it is text; pass a str"
            )
        return value

    def text(self) -> str:
        """The screen in plain text, for places where widgets do not run."""
        head, detail, costs = self.head, self.detail, self.costs
        lines = [f"{head['title']} · {head['source']} · {head['model']}"]
        lines += [f"{figure['value']} {figure['label']}" for figure in head["figures"]]
        lines += ["", f"{detail['title']} ({detail['place']}): p_fail {detail['p_text']}"]
        lines += [detail["why"], detail["moved"], ""]
        lines += [
            f"{row['name']}: {row['cost_text']} {row['change_text']}" for row in costs["rows"]
        ]
        lines += [costs["sentence"], *head["notes"]]
        return "\n".join("".join(c if c.isprintable() else "?" for c in line) for line in lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.head['source']!r}>"

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
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _fields(name: str, value: object, needed: set[str]) -> dict[str, Any]:
    if not isinstance(value, Mapping) or set(value) != needed:
        raise traitlets.TraitError(
            f"{name} is {_short(value)}, but it has the fields {', '.join(sorted(needed))}; "
            "pass a dict of these"
        )
    if not _is_int(value["seq"]) or value["seq"] < 0:
        raise traitlets.TraitError(
            f"{name}.seq is {_short(value['seq'])}, but it is a number that rises from 1; "
            "pass a whole number above the last one"
        )
    return dict(cast("Mapping[str, Any]", value))
