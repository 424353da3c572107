"""What the capacity lab knows: a source, its observations, the settings, and what comes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from codesmith_lab.billing.models import known_models
from codesmith_lab.capacity.arrays import SnapshotArrays, observe_all
from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.controller import ACTIONS, Action, CapacityDecision
from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.capacity.shapes import SHAPES, drawn, synthetic
from codesmith_lab.capacity.simulation import decide_all
from codesmith_lab.errors import LabError
from codesmith_lab.labs.capacity_costs import Bills, bill_views, formula_view, price_bills
from codesmith_lab.sessions.capacity.observations import (
    DEFAULT_WINDOW_TOKENS,
    Numbering,
    SessionObserver,
    observe_session,
    runner_of,
)
from codesmith_lab.sessions.capacity.rewrites import InterventionRules
from codesmith_lab.sessions.records import Session
from codesmith_lab.sessions.turns import TurnRunner

__all__ = ["DRAWN", "REFERENCE", "CapacityState"]

DRAWN = "drawn by hand"
REFERENCE = CapacityConfig(enabled=True)
"""The reference's settings, switched on: what the lab compares with and resets to."""

_TURNS = 60
_MOST_TABLES = 50
_SYNTHETIC_MODELS = (
    *("deepseek-v4-pro", "deepseek-v4-flash", "deepseek-chat", "deepseek-reasoner", "gpt-5"),
)


class CapacityState:
    """A source under settings. `see` is quick, `bills` may take a second.

    source: name of what is shown. table: its observations. seen, decided: what comes of them.
    reference_seen: the same under the reference's settings. runner: of a session, else None.
    model: whose prior, rules and prices are used. loads: of the trajectory drawn by hand.
    """

    source: str
    model: str
    table: ObservationTable
    seen: SnapshotArrays
    decided: list[tuple[CapacityDecision, Action]]
    reference_seen: SnapshotArrays
    runner: TurnRunner | None

    def __init__(
        self,
        source: Session | ObservationTable | None,
        config: CapacityConfig,
        rules: InterventionRules,
        turns: Numbering,
    ) -> None:
        self.config, self.rules, self.turns = config, rules, turns
        self.loads = [0.08 + 0.6 * i / 39 for i in range(40)]
        self._session = source if isinstance(source, Session) else None
        self._tables = _single(source) if isinstance(source, ObservationTable) else {}
        self._asked: str | None = None
        self._window = 0
        self._bills: Bills = {}

    @property
    def names(self) -> list[str]:
        """Every source there is to choose; what was given comes first."""
        own = [] if self._session is None else [self._session.name]
        return [*own, *self._tables, *SHAPES, DRAWN]

    @property
    def models(self) -> list[str]:
        """Models to choose from, the present one first."""
        others = known_models() if self.runner is not None else _SYNTHETIC_MODELS
        return list(dict.fromkeys((self.model, *others)))

    def open(self, name: str, model: str | None = None) -> None:
        """Take a source, and a model where one is given; nothing changes when either is unknown."""
        if name not in self.names:
            raise LabError(f"source is {name!r}; choose one of {', '.join(self.names)}")
        asked = model or self._asked
        runner: TurnRunner | None = None
        if self._session is not None and name == self._session.name:
            runner = runner_of(self._session, asked)
            shown = runner.model.name
            table = observe_session(runner, self.config.profile_window, self.turns)
        elif name in self._tables:
            table = self._tables[name]
            shown = asked or table.models[table.model[0]]
        else:
            shown = asked or _SYNTHETIC_MODELS[0]
            table = drawn(self.loads, shown) if name == DRAWN else synthetic(name, _TURNS, shown)
        self.source, self.model, self.runner, self.table = name, shown, runner, table
        self._asked, self._bills = asked, {}
        self._look_afresh()

    def apply(self, config: CapacityConfig, rules: InterventionRules) -> bool:
        """Take other settings; whether any is different."""
        if (config, rules) == (self.config, self.rules):
            return False
        if rules != self.rules:
            self._bills = {}
        else:
            # A new dictionary: a bill that is still being worked out keeps the old one.
            self._bills = {k: bill for k, bill in self._bills.items() if k != "tuned"}
        self.config, self.rules = config, rules
        if self.runner is not None and max(8, config.profile_window) != max(8, self._window):
            # The messages that are counted reach back further with a longer window.
            self.table = observe_session(self.runner, config.profile_window, self.turns)
            self._look_afresh()
        else:
            self.see()
        return True

    def _look_afresh(self) -> None:
        self._window = self.config.profile_window
        self.reference_seen = observe_all(REFERENCE, self.table)
        self.see()

    def see(self) -> None:
        """Work out what the controller sees and decides."""
        self.seen = observe_all(self.config, self.table)
        self.decided = decide_all(self.config, self.table, self.seen)

    def bills(self) -> Bills:
        """The session under the reference's settings and under these; empty without a session."""
        if self.runner is None:
            return {}
        for _ in self._pricing(self.runner):
            pass
        return dict(self._bills)

    def bill_views(self, row: int, shown: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What the bill on screen becomes, piece by piece."""
        if self.runner is None:
            turn = int(self.table.turn_index[row])
            yield formula_view(self.model, self.history_tokens(row), turn + 1, self.rules)
            return
        pricing, request = self._pricing(self.runner), self.request_of(row)
        yield from bill_views(self.runner, self._bills, pricing, request, self.rules, shown)

    def _pricing(self, runner: TurnRunner) -> Iterator[str]:
        return price_bills(runner, self.config, REFERENCE, self.rules, self.turns, self._bills)

    def striking_row(self) -> int:
        """Where a person wants to look first: the first intervention, else the highest risk."""
        done = (row for row, (_, action) in enumerate(self.decided) if action != ACTIONS[0])
        return next(done, int(np.nan_to_num(self.seen.p_fail, nan=1.0).argmax()))

    def request_of(self, row: int) -> int:
        """The request of a session that a row was observed at."""
        if self.runner is None:
            raise LabError("the source is no session, so its rows belong to no request")
        return list(SessionObserver(self.runner, 8, self.turns).points())[row].request

    def history_tokens(self, row: int) -> float:
        """Tokens of a synthetic trajectory at a row, in the context window that is assumed."""
        ratio = float(np.nan_to_num(self.table.context_used_ratio[row], posinf=2.0))
        return min(2.0, max(0.0, ratio)) * DEFAULT_WINDOW_TOKENS

    def notes(self) -> list[str]:
        """What to know, in sentences."""
        notes = [f"{doubt[0].upper()}{doubt[1:]}." for doubt in self.config.doubts()]
        if self.runner is not None:
            notes += SessionObserver(self.runner, 8, self.turns).notes()
        notes.append("The reference ships the controller switched off.")
        return notes

    def draw(self, loads: Sequence[float]) -> None:
        """Take other loads for the trajectory drawn by hand; LabError for what cannot be meant."""
        chosen = [float(load) for load in loads]
        drawn(chosen)
        self.loads = chosen


def _single(table: ObservationTable) -> dict[str, ObservationTable]:
    """A table's sessions, each a table of its own."""
    return {
        f"table: {name}": table.take_sessions([i])
        for i, name in enumerate(table.sessions[:_MOST_TABLES])
    }
