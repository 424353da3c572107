"""The capacity lab: the controller on a trajectory, every setting at hand, and its bill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.config_toml import config_to_toml
from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.capacity.simulation import Step, simulate
from codesmith_lab.errors import LabError
from codesmith_lab.labs import capacity_views as views
from codesmith_lab.labs.capacity_costs import Bills
from codesmith_lab.labs.capacity_settings import apply_values, groups_view, values_of
from codesmith_lab.labs.capacity_state import DRAWN, REFERENCE, CapacityState
from codesmith_lab.sessions.capacity.observations import Numbering
from codesmith_lab.sessions.capacity.rewrites import InterventionRules
from codesmith_lab.sessions.records import Session
from codesmith_lab.widgets.capacity import CapacityWidget

__all__ = ["CapacityLab"]

_SETTLE_S = 0.4
_PIECE_S = 0.01
Handler = Callable[["CapacityLab", dict[str, Any]], None]


def _shown(handler: Handler) -> Handler:
    """Errors of a callback go under the widget instead of into the void."""

    @wraps(handler)
    def safe(self: CapacityLab, change: dict[str, Any]) -> None:
        try:
            handler(self, change)
            self.error = ""
        except LabError as error:
            self.error = str(error)
        except Exception as error:  # a widget callback has no other place to show it
            self.error = f"The capacity lab failed: {type(error).__name__}: {error}"

    return safe


class CapacityLab(CapacityWidget):
    """The capacity controller on a trajectory: move a setting, see p_fail, decisions and the bill.

    Parameters
    ----------
    source: a shape ("calm", "slow burn", "burst", "thrash", "recovery"), "drawn by hand", a session
        from `load`, or an `ObservationTable`, whose sessions can be chosen one by one.
    config: the settings to start with; None is the reference's, switched on.
    model: whose prior, rules and prices to use; None takes the session's own, else V4 Pro.
    turns: how a session's turns are numbered, see `observe_session`.
    rules: what a compaction does to a session.

    `lab.config`, `lab.rules`, `lab.source`, `lab.model` and `lab.selected` may be set; `lab.steps`,
    `lab.table`, `lab.bills` and `lab.toml` read the current state.

    Raises LabError for an unknown source or model, or an empty session.
    """

    def __init__(
        self,
        source: str | Session | ObservationTable = "slow burn",
        config: CapacityConfig | None = None,
        model: str | None = None,
        turns: Numbering = "request",
        rules: InterventionRules | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        given = None if isinstance(source, str) else source
        self._state = CapacityState(given, config or REFERENCE, rules or InterventionRules(), turns)
        self._compare = False
        self._settling: asyncio.TimerHandle | None = None
        self._work: Iterator[dict[str, Any]] = iter(())
        self.groups = groups_view(REFERENCE, InterventionRules())
        self._open(source if isinstance(source, str) else self._state.names[0], model)
        self.observe(self._on_selected, "selected")
        self.observe(self._on_asked, "asked")
        self.observe(self._on_loads, "loads")
        self.observe(self._on_request, "request")

    # -- what code reads and sets ----------------------------------------------------------

    @property
    def config(self) -> CapacityConfig:
        """The settings in force; set them as a whole, or one by one with `set`."""
        return self._state.config

    @config.setter
    def config(self, config: CapacityConfig) -> None:
        self._apply(config, self.rules)

    @property
    def rules(self) -> InterventionRules:
        """What a compaction does."""
        return self._state.rules

    @rules.setter
    def rules(self, rules: InterventionRules) -> None:
        self._apply(self.config, rules)

    def set(self, **values: Any) -> None:
        """Change settings by name, as the sliders do; `prior.KEY` and `rule.NAME` as `**{...}`.

        Raises LabError for an unknown name or a value out of its range.
        """
        self._apply(*apply_values(self.config, self.rules, values))

    def reset(self, *names: str) -> None:
        """Back to the reference's settings; without names all of them."""
        defaults = values_of(REFERENCE, InterventionRules())
        for name in names:
            if name not in defaults:
                raise LabError(f"{name!r} is no setting; choose one of {', '.join(defaults)}")
        chosen = {name: defaults[name] for name in names} if names else defaults
        self._apply(*apply_values(self.config, self.rules, chosen))

    @property
    def source(self) -> str:
        """The name of what is shown; set it to show another."""
        return self._state.source

    @source.setter
    def source(self, name: str) -> None:
        self._open(name)

    @property
    def model(self) -> str:
        """The model whose prior, rules and prices are used; set it to compare."""
        return self._state.model

    @model.setter
    def model(self, name: str) -> None:
        self._open(self.source, name)

    @property
    def compare(self) -> bool:
        """Whether the reference's curves are shown as well."""
        return self._compare

    @compare.setter
    def compare(self, shown: bool) -> None:
        self._compare = bool(shown)
        self._show()

    @property
    def table(self) -> ObservationTable:
        """The observations shown."""
        return self._state.table

    @property
    def steps(self) -> list[Step]:
        """Every observation and what came of it, by the scalar form."""
        return simulate(self.config, self.table)

    @property
    def bills(self) -> Bills:
        """The session with the controller on as the reference has it ("reference") and on with
        these settings ("tuned"); what it costs off is in each. Empty without a session."""
        return self._state.bills()

    @property
    def toml(self) -> str:
        """The settings as a `[capacity]` table. LabError for what such a table cannot hold."""
        return config_to_toml(self.config)

    def draw(self, loads: Sequence[float]) -> None:
        """Draw a trajectory: one load a turn, from 0 (idle) to 1. Shows it."""
        self._state.draw(loads)
        self._open(DRAWN, keep_row=self.source == DRAWN)

    def settle(self) -> None:
        """Work the bill on screen out now; by itself it waits until the fingers rest."""
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
        self._work = self._state.bill_views(self.selected, self.costs)
        while self._go_on():
            pass

    # -- what the widget sends -------------------------------------------------------------

    @_shown
    def _on_selected(self, change: dict[str, Any]) -> None:
        self._show_detail()
        self._settle_later()

    @_shown
    def _on_asked(self, change: dict[str, Any]) -> None:
        asked = change["new"]
        try:
            self._apply(*apply_values(self.config, self.rules, dict(asked["values"])))
        finally:
            self.ack = max(self.ack, int(asked["seq"]))

    @_shown
    def _on_loads(self, change: dict[str, Any]) -> None:
        loads = change["new"]
        if loads["seq"] <= self.ack:
            return  # our own, told to the view
        try:
            if loads["values"]:
                self.draw(loads["values"])
        finally:
            self.ack = max(self.ack, int(loads["seq"]))

    @_shown
    def _on_request(self, change: dict[str, Any]) -> None:
        action, value = str(change["new"]["action"]), str(change["new"]["value"])
        try:
            if action == "reset":
                self.reset(*filter(None, [value]))
            elif action == "source":
                self.source = value
            elif action == "model":
                self.model = value
            else:
                self.compare = value == "on"
        finally:
            self.ack = max(self.ack, int(change["new"]["seq"]))

    # -- state -----------------------------------------------------------------------------

    def _open(self, name: str, model: str | None = None, keep_row: bool = False) -> None:
        self._state.open(name, model)
        row = min(self.selected, len(self.table) - 1)
        # The row is checked against the chart, so that comes first.
        with self.hold_trait_notifications():
            self.chart = self._chart()
            self.selected = row if keep_row else self._state.striking_row()
        self._show()
        self._settle_later()

    def _apply(self, config: CapacityConfig, rules: InterventionRules) -> None:
        if self._state.apply(config, rules):
            self._show()
            detail = self.detail
            self.announce = f"p_fail {detail['p_text']}, {detail['band']}. {detail['why']}"
            self._settle_later()

    def _settle_later(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.settle()
            return
        if self._state.runner is not None:
            self.costs = {**self.costs, "state": "working"}
        self._work = self._state.bill_views(self.selected, self.costs)
        self._settling = loop.call_later(_SETTLE_S, self._settle, loop)

    def _settle(self, loop: asyncio.AbstractEventLoop) -> None:
        """One piece of the bill, and the next a moment later: sliders go first."""
        more = self._go_on()
        self._settling = loop.call_later(_PIECE_S, self._settle, loop) if more else None

    def _go_on(self) -> bool:
        """The next piece of the bill; whether there was one."""
        try:
            view = next(self._work, None)
        except LabError as error:
            self.error = str(error)
            return False
        except Exception as error:  # a timer has no other place to show it
            self.error = f"The capacity lab failed: {type(error).__name__}: {error}"
            return False
        if view is not None:
            self.costs = view
        return view is not None

    # -- what the widget shows -------------------------------------------------------------

    def _chart(self) -> dict[str, Any]:
        state = self._state
        other = (REFERENCE, state.reference_seen) if self._compare else None
        return views.chart_view(state.table, state.config, state.seen, state.decided, other)

    def _show_detail(self) -> None:
        state = self._state
        other = REFERENCE if self._compare else None
        self.detail = views.detail_view(
            state.config, state.table, self.selected, state.decided, other
        )

    def _show(self) -> None:
        state = self._state
        values = values_of(state.config, state.rules)
        defaults = values_of(REFERENCE, InterventionRules())
        with self.hold_sync():
            self.values = values
            self.chart = self._chart()
            self._show_detail()
            if state.source == DRAWN and self.loads["values"] != state.loads:
                self.loads = {"seq": self.ack, "values": list(state.loads)}
            self.head = {
                "title": "Capacity controller",
                "sources": [{"value": n, "label": n} for n in state.names],
                "source": state.source,
                "models": [{"value": n, "label": n} for n in state.models],
                "model": state.model,
                "figures": views.figures_view(state.seen, state.decided),
                "compare": self._compare,
                "changed": [name for name in values if values[name] != defaults[name]],
                "toml": self._toml_text(),
                "notes": state.notes(),
                "drawing": state.source == DRAWN,
            }

    def _toml_text(self) -> str:
        try:
            return self.toml
        except LabError as error:
            return f"# {error}"
