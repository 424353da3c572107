"""Invented trajectories with named shapes, and trajectories drawn by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from codesmith_lab.capacity.arrays import observe_all
from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.errors import LabError

__all__ = ["SHAPES", "draw_labels", "drawn", "synthetic"]

_JITTER = 0.06
_MOST_TURNS = 100_000


def _calm(at: float) -> float:
    return 0.04 + 0.03 * at


def _slow_burn(at: float) -> float:
    return 0.05 + 0.85 * math.pow(at, 1.6)


def _burst(at: float) -> float:
    return 0.10 + 0.75 * math.exp(-(((at - 0.5) / 0.11) ** 2))


def _thrash(at: float) -> float:
    return 0.38 + 0.30 * math.sin(at * 14 * math.pi)


def _recovery(at: float) -> float:
    return 0.08 + 0.78 * math.pow(at / 0.55, 1.4) if at < 0.55 else 0.08 + 0.02 * at


SHAPES: dict[str, Callable[[float], float]] = {
    "calm": _calm,
    "slow burn": _slow_burn,
    "burst": _burst,
    "thrash": _thrash,
    "recovery": _recovery,
}
"""Load of a turn, 0 (idle) to 1 (as much as there is), by its place in the session, 0 to 1."""


def synthetic(
    shape: str, turns: int = 60, model: str = "deepseek-v4-pro", seed: int = 0
) -> ObservationTable:
    """A session of a named shape, observed twice a turn.

    shape: a key of `SHAPES`. turns: 1 or more. seed: of the small differences between turns; the
        same seed gives the same rows on every machine.

    Raises LabError for an unknown shape or a number of turns that cannot be meant.
    """
    if shape not in SHAPES:
        raise LabError(f"shape is {shape!r}; choose one of {', '.join(SHAPES)}")
    if isinstance(turns, bool) or not isinstance(turns, int) or not 1 <= turns <= _MOST_TURNS:
        raise LabError(f"turns is {turns!r}; pass a whole number from 1 to {_MOST_TURNS:,}")
    source = random.Random(f"{shape} {seed}")  # text seeds are the same in every process
    curve = SHAPES[shape]
    loads = [
        curve(turn / max(1, turns - 1)) + _JITTER * (source.random() - 0.5) for turn in range(turns)
    ]
    return drawn(loads, model, shape)


def drawn(
    loads: Sequence[float], model: str = "deepseek-v4-pro", session: str = "drawn by hand"
) -> ObservationTable:
    """A session from one number a turn: its load, from 0 (idle) to 1 (as much as there is).

    A load stands for a fitting number of actions, tool calls, references and share of the context;
    loads outside are taken as the nearer end. Every turn is observed before its request and after
    its tools, when it has done more.

    Raises LabError for no load at all, or one that is not finite.
    """
    if len(loads) == 0:
        raise LabError("there is no load; draw one turn at least")
    for turn, load in enumerate(loads):
        if not math.isfinite(load):
            raise LabError(f"the load of turn {turn} is {load!r}; pass a number from 0 to 1")
    inside = [min(1.0, max(0.0, float(load))) for load in loads]
    both = [(turn, load, after) for turn, load in enumerate(inside) for after in (0, 1)]
    return ObservationTable.from_columns(
        session=[session] * len(both),
        turn_index=[turn for turn, _, _ in both],
        model=[model] * len(both),
        action_count_this_turn=[1 + after * (1 + round(30 * load)) for _, load, after in both],
        tool_calls_recent_window=[round(60 * load) + 2 * after for _, load, after in both],
        unique_reference_ids_recent_window=[
            round(160 * load) + 2 * after for _, load, after in both
        ],
        context_used_ratio=[load + 0.01 * after for _, load, after in both],
        phase=["post_tool" if after else "pre_turn" for _, _, after in both],
    )


def draw_labels(table: ObservationTable, config: CapacityConfig, seed: int = 0) -> ObservationTable:
    """The table with failures drawn from the p_fail that `config` gives each row.

    For tests and lessons: a world in which that configuration is the truth.
    """
    source = random.Random(f"labels {seed}")
    p_fail = observe_all(config, table).p_fail
    return table.with_labels([source.random() < p for p in p_fail])
