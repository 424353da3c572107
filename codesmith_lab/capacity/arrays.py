"""The formulas over columns: many observations at once, in the scalar form's order of sums.

All sums run over the window from old to new, column by column, so that only NumPy's `log2` and
`exp` can differ from the scalar form, by the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.formulas import capacity_prior
from codesmith_lab.capacity.observations import ObservationTable

__all__ = [
    "ProfileArrays",
    "SnapshotArrays",
    "observe_all",
    "profile_arrays",
    "risk_arrays",
    "slack_arrays",
]

FloatArray = npt.NDArray[np.float64]
LongArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.int8]
BoolArray = npt.NDArray[np.bool_]

_BLOCK = 4096  # rows at a time: the working set stays in the processor's cache


@dataclass(frozen=True, slots=True, eq=False)
class ProfileArrays:
    """The profile after each observation, (n,) each; see `SlackProfile`."""

    final_slack: FloatArray
    min_slack: FloatArray
    violation_ratio: FloatArray
    slack_volatility: FloatArray
    slack_drop: FloatArray

    def columns(self) -> tuple[FloatArray, ...]:
        """The columns in the order of the coefficients."""
        return (
            self.final_slack,
            self.min_slack,
            self.violation_ratio,
            self.slack_volatility,
            self.slack_drop,
        )


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotArrays:
    """What `observe` gives, for every row, (n,) each.

    band: 0 low, 1 medium, 2 high. severe: would make a high risk a severe one.
    """

    h_hat: FloatArray
    c_hat: FloatArray
    slack: FloatArray
    profile: ProfileArrays
    p_fail: FloatArray
    band: ByteArray
    severe: BoolArray


def slack_arrays(
    config: CapacityConfig, table: ObservationTable
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """h_hat, c_hat and slack (bits) of every row."""
    h_hat = np.empty(len(table))
    priors = np.array([capacity_prior(config, name) for name in table.models])
    c_hat = priors[table.model]
    for start in range(0, len(table), _BLOCK):
        rows = slice(start, start + _BLOCK)
        h_hat[rows] = _h_block(config, table, rows)
    return h_hat, c_hat, c_hat - h_hat


def _h_block(config: CapacityConfig, table: ObservationTable, rows: slice) -> FloatArray:
    total: FloatArray = _bits(table.actions[rows], config.action_weight)
    total += _bits(table.tools[rows], config.tool_weight)
    total += _bits(table.references[rows], config.reference_weight)
    ratio: FloatArray = np.clip(table.context_used_ratio[rows], 0.0, 2.0)
    ratio *= config.context_scale
    ratio *= config.context_weight
    total += ratio
    return total


def _bits(counts: LongArray, weight: float) -> FloatArray:
    bits = counts.astype(np.float64)
    bits += 1.0
    np.log2(bits, out=bits)
    bits *= weight
    return bits


def profile_arrays(slack: FloatArray, starts: LongArray, window: int) -> ProfileArrays:
    """The profile of the newest `window` slacks after each row; windows end at session starts.

    slack: (n,), sessions one after another. starts: first row of each session, rising from 0.
    """
    n = len(slack)
    result = np.zeros((5, n))
    if window > 0 and n:
        steps = np.diff(slack)
        _whole_windows(slack, steps, window, result)
        _young_windows(slack, steps, starts, window, result)
    return ProfileArrays(*result)


def _whole_windows(slack: FloatArray, steps: FloatArray, window: int, result: FloatArray) -> None:
    """Every row with `window` rows up to it; those that cross into a session come out wrong."""
    n = len(slack)
    for start in range(window - 1, n, _BLOCK):
        end = min(n, start + _BLOCK)
        oldest = [start - window + 1 + k for k in range(window)]
        size = end - start
        _profile(
            [slack[at : at + size] for at in oldest],
            [steps[at : at + size] for at in oldest[:-1]],
            result[:, start:end],
        )


def _young_windows(
    slack: FloatArray, steps: FloatArray, starts: LongArray, window: int, result: FloatArray
) -> None:
    """The first rows of each session, whose windows are not full yet.

    Columns are ages: the window of age a holds the session's slacks 0 to a, so that slack k enters
    the columns from k on, in one operation.
    """
    ends = np.append(starts[1:], len(slack))
    ages = min(window - 1, int((ends - starts).max()))
    if ages < 1:
        return
    rows = starts[:, None] + np.arange(ages)
    real = rows < ends[:, None]
    rows = np.minimum(rows, len(slack) - 1)
    least = np.full(rows.shape, np.inf)
    hits = np.zeros(rows.shape, np.int16)
    mean = np.zeros(rows.shape)
    volatility = np.zeros(rows.shape)
    for k in range(ages):
        value = slack[rows[:, k], None]
        np.fmin(least[:, k:], value, out=least[:, k:])
        hits[:, k:] += value <= 0.0
    rises = steps[np.minimum(rows, len(steps) - 1)] if ages > 1 else np.zeros(rows.shape)
    for k in range(1, ages):
        mean[:, k:] += rises[:, k - 1, None]
    mean[:, 1:] /= np.arange(1, ages)
    for k in range(1, ages):
        away = rises[:, k - 1, None] - mean[:, k:]
        away *= away
        volatility[:, k:] += away
    volatility[:, 1:] /= np.arange(1, ages)
    drop = np.zeros(rows.shape)
    np.fmax(-rises[:, : ages - 1], 0.0, out=drop[:, 1:])
    young = (slack[rows], least, hits / np.arange(1, ages + 1), np.sqrt(volatility), drop)
    for column, found in zip(result, young, strict=True):
        column[rows[real]] = found[real]


def _profile(slacks: Sequence[FloatArray], steps: Sequence[FloatArray], result: FloatArray) -> None:
    """Profiles of windows given as columns, oldest first; steps are their differences."""
    final, least, violations, volatility, drop = result
    final[:] = slacks[-1]
    least[:] = np.inf
    hits = np.zeros(len(final), np.int16)
    for slack in slacks:
        np.fmin(least, slack, out=least)
        hits += slack <= 0.0
    np.divide(hits, len(slacks), out=violations)
    if not steps:
        volatility[:] = 0.0
        drop[:] = 0.0
        return
    mean: FloatArray = steps[0] + 0.0
    for step in steps[1:]:
        mean += step
    mean /= len(steps)
    volatility[:] = 0.0
    away = np.empty_like(mean)
    for step in steps:
        np.subtract(step, mean, out=away)
        away *= away
        volatility += away
    volatility /= len(steps)
    np.sqrt(volatility, out=volatility)
    np.negative(steps[-1], out=drop)
    np.fmax(drop, 0.0, out=drop)


def risk_arrays(config: CapacityConfig, profile: ProfileArrays) -> FloatArray:
    """p_fail of every row."""
    z = profile.final_slack * config.final_slack_coefficient
    z += profile.min_slack * config.min_slack_coefficient
    z += profile.violation_ratio * config.violation_ratio_coefficient
    z += profile.slack_volatility * config.slack_volatility_coefficient
    z += profile.slack_drop * config.slack_drop_coefficient
    z += config.bias
    with np.errstate(invalid="ignore", under="ignore"):
        grown = np.exp(-np.abs(z))
        p_fail: FloatArray = np.where(z >= 0.0, 1.0, grown)
        p_fail /= 1.0 + grown
    return p_fail


def observe_all(config: CapacityConfig, table: ObservationTable) -> SnapshotArrays:
    """What an enabled controller observes on every row, each session from its own start.

    `config.enabled` is not looked at. Equal to the scalar form but for the last bit of `log2` and
    `exp`; see the module.
    """
    with np.errstate(invalid="ignore"):
        h_hat, c_hat, slack = slack_arrays(config, table)
        profile = profile_arrays(slack, table.starts, config.profile_window)
        p_fail = risk_arrays(config, profile)
    high = ~(p_fail <= config.medium_risk_max)
    band = np.where(p_fail <= config.low_risk_max, 0, 1 + high).astype(np.int8)
    severe = (profile.min_slack <= config.severe_min_slack) | (
        profile.violation_ratio >= config.severe_violation_ratio
    )
    return SnapshotArrays(h_hat, c_hat, slack, profile, p_fail, band, severe)
