"""Decisions and throttles of many configurations at once.

A lane is one configuration on one session. Rows are taken one after the other, and at each row
every lane decides with a handful of array operations; `simulate` is the clear form of the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from codesmith_lab.capacity.observations import ObservationTable

__all__ = ["COUNTS", "DECISION_NAMES", "Padded", "Tally", "pad", "run_lanes"]

FloatArray = npt.NDArray[np.float64]
LongArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

COUNTS = ("refreshes", "replays", "replans", "missed_failures", "false_alarms")
DECISION_NAMES = (
    "low_risk_max",
    "medium_risk_max",
    "severe_min_slack",
    "severe_violation_ratio",
    "refresh_cooldown_turns",
    "replan_cooldown_turns",
    "max_replay_per_turn",
    "min_turns_before_guardrail",
)
"""Settings that only the decisions need: they vary without a new profile or p_fail."""
_NEVER = -(2**62)


@dataclass(frozen=True, slots=True, eq=False)
class Padded:
    """Sessions side by side, (T, S), for T the longest; `valid` marks what is a row."""

    rows: LongArray
    valid: BoolArray
    turn: LongArray
    new_turn: BoolArray
    post_tool: BoolArray
    replay_fails: BoolArray
    failed: BoolArray
    answered: BoolArray


def pad(table: ObservationTable, sessions: LongArray, answer_turns: int) -> Padded:
    """The sessions laid out for `run_lanes`."""
    starts, ends = table.starts[sessions], table.ends[sessions]
    longest = int((ends - starts).max())
    rows = starts[None, :] + np.arange(longest)[:, None]
    valid = rows < ends[None, :]
    rows = np.where(valid, rows, starts[None, :])
    turn = table.turn_index[rows]
    new_turn = np.ones_like(valid)
    new_turn[1:] = turn[1:] != turn[:-1]
    labels = np.zeros(len(table), np.bool_) if table.failed is None else table.failed
    soon = _failure_soon(table, labels, answer_turns)
    return Padded(
        rows,
        valid,
        turn,
        new_turn & valid,
        table.post_tool[rows],
        table.replay_fails[rows],
        labels[rows] & valid,
        soon[rows],
    )


def _failure_soon(table: ObservationTable, labels: BoolArray, turns: int) -> BoolArray:
    """Whether a labelled failure comes at this row or within the next `turns` turns."""
    soon = np.zeros(len(table), np.bool_)
    for start, end in zip(table.starts, table.ends, strict=True):
        following = _NEVER
        for row in range(end - 1, start - 1, -1):
            if labels[row]:
                following = int(table.turn_index[row])
            soon[row] = following - int(table.turn_index[row]) <= turns and following != _NEVER
    return soon


@dataclass(slots=True, eq=False)
class Tally:
    """Sums over rows and sessions, (lanes of configurations,) each."""

    counts: dict[str, LongArray]
    money_usd: FloatArray


@dataclass(slots=True, eq=False)
class _State:
    """What each lane remembers, (F, D, S)."""

    last_refresh: LongArray
    last_replan: LongArray
    last_done: LongArray
    replays: LongArray
    replay_disabled: BoolArray
    applied: BoolArray

    @classmethod
    def fresh(cls, shape: tuple[int, int, int]) -> _State:
        return cls(
            np.full(shape, _NEVER, np.int64),
            np.full(shape, _NEVER, np.int64),
            np.full(shape, _NEVER, np.int64),
            np.zeros(shape, np.int64),
            np.zeros(shape, np.bool_),
            np.zeros(shape, np.bool_),
        )

    def start_turn(self, started: BoolArray) -> None:
        if started.all():
            for part in (self.replays, self.replay_disabled, self.applied):
                part[:] = 0
        elif started.any():
            for part in (self.replays, self.replay_disabled, self.applied):
                part[..., started] = 0


def run_lanes(
    padded: Padded,
    p_fail: FloatArray,
    min_slack: FloatArray,
    violation_ratio: FloatArray,
    settings: dict[str, Array],
    action_usd: FloatArray,
    answer_turns: int,
) -> Tally:
    """Decide every row on every lane.

    p_fail, min_slack, violation_ratio: (F, n) for F formulas over the table's n rows.
    settings: each of `DECISION_NAMES`, (D,). action_usd: (3, n), the price of a refresh, a replay
        and a replan at each row. Every formula meets every setting: F * D configurations.

    Gives sums of the shape (F, D).
    """
    wide = {name: values[None, :, None] for name, values in settings.items()}
    sessions = padded.rows.shape[1]
    shape = (len(p_fail), len(settings[DECISION_NAMES[0]]), sessions)
    state = _State.fresh(shape)
    counts = {name: np.zeros(shape, np.int32) for name in COUNTS}
    money = np.zeros(shape)
    for at in range(len(padded.rows)):
        rows, valid = padded.rows[at], padded.valid[at]
        state.start_turn(padded.new_turn[at])
        risk = p_fail[:, None, rows]
        acts = ~(risk <= wide["low_risk_max"]) & valid
        high = acts & ~(risk <= wide["medium_risk_max"])
        severe = min_slack[:, None, rows] <= wide["severe_min_slack"]
        severe = severe | (violation_ratio[:, None, rows] >= wide["severe_violation_ratio"])
        done = _carry_out(state, wide, padded, at, acts, high, severe)
        for name, part, price in zip(COUNTS[:3], done, action_usd, strict=True):
            if part is not None:
                counts[name] += part
                money += part * price[rows]
        _judge(state, counts, padded, at, answer_turns, done)
    sums = {name: values.sum(axis=2, dtype=np.int64) for name, values in counts.items()}
    return Tally(sums, money.sum(axis=2))


Done = tuple[BoolArray | None, BoolArray | None, BoolArray | None]


def _carry_out(
    state: _State,
    wide: dict[str, Array],
    padded: Padded,
    at: int,
    acts: BoolArray,
    high: BoolArray,
    severe: BoolArray,
) -> Done:
    """What each lane carries out at a row: refreshes, replays, replans; None where the point of
    the turn rules one out on every session."""
    turn, post = padded.turn[at], padded.post_tool[at]
    free = ~state.applied
    free &= turn >= wide["min_turns_before_guardrail"]
    refreshed = replayed = replanned = None
    if not post.all():
        # Only a medium risk asks for a refresh.
        refreshed = acts & ~high & free & ~post
        refreshed &= turn > state.last_refresh + wide["refresh_cooldown_turns"]
        np.copyto(state.last_refresh, turn, where=refreshed)
    if post.any():
        high = high & free & post
        replanned = high & severe
        replanned &= turn > state.last_replan + wide["replan_cooldown_turns"]
        replayed = high & ~severe & ~state.replay_disabled
        replayed &= state.replays < wide["max_replay_per_turn"]
        np.copyto(state.last_replan, turn, where=replanned)
        state.replays += replayed
        state.replay_disabled |= replayed & padded.replay_fails[at]
    for part in (refreshed, replayed, replanned):
        if part is not None:
            state.applied |= part
            np.copyto(state.last_done, turn, where=part)
    return refreshed, replayed, replanned


def _judge(
    state: _State,
    counts: dict[str, npt.NDArray[np.int32]],
    padded: Padded,
    at: int,
    answer_turns: int,
    done: Done,
) -> None:
    """Count failures without an intervention before them, and interventions without a failure."""
    failed = padded.failed[at]
    if failed.any():
        counts["missed_failures"] += failed & (padded.turn[at] - answer_turns > state.last_done)
    needless = ~padded.answered[at]
    if needless.any():
        for part in done:
            if part is not None:
                counts["false_alarms"] += part & needless
