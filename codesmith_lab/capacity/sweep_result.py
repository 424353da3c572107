"""What a sweep costs, gives, and listens to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.lanes import COUNTS
from codesmith_lab.errors import LabError

__all__ = ["Cancel", "SweepCancelled", "SweepCosts", "SweepResult"]

FloatArray = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


class Cancel(Protocol):
    """Anything that can say stop, for example a `threading.Event`."""

    def is_set(self) -> bool: ...


class SweepCancelled(LabError):
    """The sweep was stopped; `done` of `total` configurations were ready and are thrown away."""

    def __init__(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        super().__init__(
            f"the sweep was stopped after {done:,} of {total:,} configurations; start it again"
        )


@dataclass(frozen=True, slots=True)
class SweepCosts:
    """What interventions and failures cost, in USD.

    refresh_usd, replay_usd, replan_usd: one price, or one for each observation, (n,). Negative
        where the shorter history saves more than the intervention costs.
    missed_failure_usd: a failure that no intervention came before.
    """

    refresh_usd: float | FloatArray = 0.0
    replay_usd: float | FloatArray = 0.0
    replan_usd: float | FloatArray = 0.0
    missed_failure_usd: float = 0.0

    def rows(self, n: int) -> FloatArray:
        """(3, n): the price of each intervention at each row. LabError for NaN or a wrong size."""
        given = (self.refresh_usd, self.replay_usd, self.replan_usd)
        parts = []
        for name, value in zip(("refresh_usd", "replay_usd", "replan_usd"), given, strict=True):
            part = np.asarray(value, np.float64)
            if part.shape not in ((), (n,)):
                raise LabError(f"{name} has the shape {part.shape}; pass a number or {n} of them")
            if not np.isfinite(part).all():
                raise LabError(f"{name} holds a value that is not finite; pass dollars")
            parts.append(np.broadcast_to(part, (n,)))
        if not math.isfinite(self.missed_failure_usd):
            raise LabError(
                f"missed_failure_usd is {self.missed_failure_usd!r}, but it must be finite; "
                "pass dollars"
            )
        return np.array(parts)


@dataclass(frozen=True, slots=True, eq=False)
class SweepResult:
    """What every combination gave; arrays have one axis a parameter, in the order of `names`.

    refreshes, replays, replans: interventions carried out. missed_failures: labelled failures
    without an intervention on their turn or the `answer_turns` before it. false_alarms:
    interventions without a failure on their turn or the `answer_turns` after it. Without labels
    both are None. money_usd: interventions and missed failures, at the prices given.
    """

    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    base: CapacityConfig
    observations: int
    answer_turns: int
    refreshes: npt.NDArray[np.int64]
    replays: npt.NDArray[np.int64]
    replans: npt.NDArray[np.int64]
    missed_failures: npt.NDArray[np.int64] | None
    false_alarms: npt.NDArray[np.int64] | None
    money_usd: FloatArray

    @property
    def interventions(self) -> npt.NDArray[np.int64]:
        """All interventions together."""
        return self.refreshes + self.replays + self.replans

    @property
    def steps(self) -> int:
        """Observations times configurations."""
        return int(self.money_usd.size) * self.observations

    def config(self, *at: int) -> CapacityConfig:
        """The configuration at an index into the arrays."""
        chosen = {n: v[i] for n, v, i in zip(self.names, self.values, at, strict=True)}
        return self.base.with_values(**chosen)

    def cheapest(self) -> tuple[tuple[int, ...], CapacityConfig]:
        """Index and configuration of the least money; the first of equals."""
        at = np.unravel_index(int(self.money_usd.argmin()), self.money_usd.shape)
        index = tuple(int(i) for i in at)
        return index, self.config(*index)

    def table(self) -> dict[str, Array]:
        """One row a combination, as columns: `pandas.DataFrame(result.table())`."""
        grids = np.meshgrid(*self.values, indexing="ij")
        columns = {name: grid.ravel() for name, grid in zip(self.names, grids, strict=True)}
        for name in (*COUNTS, "money_usd"):
            values = getattr(self, name)
            if values is not None:
                columns[name] = values.ravel()
        return columns
