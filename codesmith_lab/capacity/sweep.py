"""Sweeps: every combination of settings over the same observations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from codesmith_lab.capacity.arrays import (
    ProfileArrays,
    profile_arrays,
    risk_arrays,
    slack_arrays,
)
from codesmith_lab.capacity.config import COEFFICIENTS, CapacityConfig
from codesmith_lab.capacity.lanes import COUNTS, DECISION_NAMES, Padded, pad, run_lanes
from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.capacity.sweep_result import Cancel, SweepCancelled, SweepCosts, SweepResult
from codesmith_lab.errors import LabError

__all__ = ["money_of", "sweep"]

FloatArray = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

_LANES = 8192  # lanes at a time: their state stays in the processor's cache
_LEAST = 64  # smaller pieces cost more to hand over than to compute
_PIECES = 16  # so many at least, where there is enough to do: progress, cancel, and processes
_SESSIONS = 256
_MOST_POINTS = 50_000_000


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """What every task of a sweep shares."""

    table: ObservationTable
    base: CapacityConfig
    action_usd: FloatArray
    answer_turns: int


Task = tuple[int, int, list[dict[str, float]], dict[str, Array]]
Part = tuple[int, int, dict[str, Array]]


def sweep(
    table: ObservationTable,
    parameters: Mapping[str, Sequence[float]],
    base: CapacityConfig | None = None,
    costs: SweepCosts | None = None,
    answer_turns: int = 3,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    cancel: Cancel | None = None,
) -> SweepResult:
    """Run the controller with every combination of `parameters` over every observation.

    Parameters
    ----------
    table: the observations; labels are used where it has some.
    parameters: name of a setting (`prior.KEY` for a prior) -> the values to try.
    base: all other settings; `enabled` is taken as true.
    costs: prices for `money_usd`, all zero when None.
    answer_turns: how many turns an intervention may come before a failure and still answer it.
    n_jobs: processes of joblib; None follows `joblib.parallel_config`, so that a surrounding
        `parallel_config(backend="dask")` takes the same call to a cluster.
    progress: called with (configurations done, all) after each piece.
    cancel: asked between pieces; set, the sweep ends with `SweepCancelled`.

    Raises LabError for an unknown setting or a value out of its range, before anything runs.
    """
    base = replace(base or CapacityConfig(), enabled=True)
    names, values = _checked(parameters, base)
    answer_turns = _whole("answer_turns", answer_turns)
    job = _Job(table, base, (costs or SweepCosts()).rows(len(table)), answer_turns)
    formula = [i for i, name in enumerate(names) if name not in DECISION_NAMES]
    decision = [i for i, name in enumerate(names) if name in DECISION_NAMES]
    shapes = [math.prod(len(values[i]) for i in axes) for axes in (formula, decision)]
    sums: dict[str, Array] = {
        name: np.zeros(shapes, np.float64 if name == "money_usd" else np.int64)
        for name in (*COUNTS, "money_usd")
    }
    tasks = _tasks(names, values, formula, decision, job)
    done, total = 0, math.prod(shapes)
    with closing(_run(job, tasks, n_jobs, cancel)) as parts:
        for row, column, part in parts:
            size = part["money_usd"].shape
            for name, found in part.items():
                sums[name][row : row + size[0], column : column + size[1]] = found
            done += size[0] * size[1]
            if progress is not None:
                progress(done, total)
            if cancel is not None and cancel.is_set():
                break
    if done < total:
        raise SweepCancelled(done, total)
    return _result(names, values, job, costs, [*formula, *decision], sums)


def money_of(
    table: ObservationTable,
    base: CapacityConfig,
    settings: Sequence[Mapping[str, float]],
    costs: SweepCosts,
    answer_turns: int = 3,
) -> FloatArray:
    """`money_usd` of each of some combinations of thresholds and throttles, (D,).

    settings: values of `DECISION_NAMES`; what one leaves out is the base's.
    """
    configs = [base.with_values(**dict(values)) for values in settings]
    columns = {name: np.array([getattr(c, name) for c in configs]) for name in DECISION_NAMES}
    job = _Job(table, base, costs.rows(len(table)), _whole("answer_turns", answer_turns))
    _, _, sums = _piece(job, (0, 0, [{}], columns))
    money: FloatArray = sums["money_usd"] + costs.missed_failure_usd * sums["missed_failures"]
    first: FloatArray = money[0]
    return first


def _checked(
    parameters: Mapping[str, Sequence[float]], base: CapacityConfig
) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    if not parameters:
        raise LabError("there is no parameter to sweep; name one at least, with its values")
    values = []
    for name, tried in parameters.items():
        if name in ("enabled", "model_priors"):
            raise LabError(f"{name} is no number and cannot be swept; use prior.KEY for a prior")
        if len(tried) == 0:
            raise LabError(f"{name} has no values to try; pass one at least")
        checked = [base.with_values(**{name: value}) for value in tried]
        if name.startswith("prior."):
            key = name.removeprefix("prior.")
            values.append(tuple(config.model_priors[key] for config in checked))
        else:
            values.append(tuple(getattr(config, name) for config in checked))
    points = math.prod(map(len, values))
    if points > _MOST_POINTS:
        raise LabError(
            f"the sweep has {points:,} combinations, and at most {_MOST_POINTS:,} are taken; "
            "try fewer values"
        )
    return tuple(parameters), tuple(values)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
        raise LabError(f"{name} is {value!r}, but it counts; pass a whole number from 0 on")
    return int(value.__index__())


def _tasks(
    names: tuple[str, ...],
    values: tuple[tuple[float, ...], ...],
    formula: list[int],
    decision: list[int],
    job: _Job,
) -> Iterator[Task]:
    """Pieces of the grid, each some formulas times some settings."""
    formulas = [
        dict(zip([names[i] for i in formula], point, strict=True))
        for point in product(*(values[i] for i in formula))
    ]
    grids = np.meshgrid(*(np.array(values[i]) for i in decision), indexing="ij")
    size = math.prod(len(values[i]) for i in decision)
    settings = {name: np.full(size, getattr(job.base, name)) for name in DECISION_NAMES}
    settings |= {names[i]: grid.ravel() for i, grid in zip(decision, grids, strict=True)}
    most = max(1, _LANES // min(_SESSIONS, len(job.table.sessions)))
    points = min(most, max(_LEAST, size * len(formulas) // _PIECES))
    columns = min(size, points)
    rows = max(1, points // columns)
    for row in range(0, len(formulas), rows):
        for column in range(0, size, columns):
            part = {name: found[column : column + columns] for name, found in settings.items()}
            yield row, column, formulas[row : row + rows], part


def _run(
    job: _Job, tasks: Iterator[Task], n_jobs: int | None, cancel: Cancel | None
) -> Generator[Part]:
    try:
        from joblib import Parallel, delayed
    except ImportError:
        if n_jobs not in (None, 1):
            raise LabError(
                f"n_jobs is {n_jobs}, which needs joblib; "
                'run: pip install "codesmith-lab[capacity]"'
            ) from None
        yield from (_piece(job, task) for task in tasks)
        return
    stopped = (task for task in tasks if cancel is None or not cancel.is_set())
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    results = parallel(delayed(_piece)(job, task) for task in stopped)
    try:
        for result in results:  # noqa: UP028, with "yield from" a close would reach joblib first
            yield result
    finally:
        with warnings.catch_warnings():
            # Told to stop, joblib drops the pieces under way and warns of them: that is meant.
            warnings.simplefilter("ignore", UserWarning)
            results.close()


def _piece(job: _Job, task: Task) -> Part:
    """One piece of the grid; runs wherever joblib sends it."""
    row, column, formulas, settings = task
    p_fail, least, share = _formulas(job, formulas)
    total: dict[str, Array] = {}
    for padded in _batches(job.table, job.answer_turns):
        tally = run_lanes(padded, p_fail, least, share, settings, job.action_usd, job.answer_turns)
        for name, found in [*tally.counts.items(), ("money_usd", tally.money_usd)]:
            total[name] = total[name] + found if name in total else found
    return row, column, total


def _batches(table: ObservationTable, answer_turns: int) -> Iterator[Padded]:
    """Sessions of about the same length together, so that little is padded."""
    order = np.argsort(table.ends - table.starts, kind="stable")
    for start in range(0, len(order), _SESSIONS):
        yield pad(table, order[start : start + _SESSIONS], answer_turns)


def _formulas(
    job: _Job, formulas: list[dict[str, float]]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """p_fail, minimum slack and violation ratio, (F, n); equal profiles are computed once."""
    configs = [job.base.with_values(**values) for values in formulas]
    keys = [
        (config.profile_window, *(v for v in values.items() if v[0] not in COEFFICIENTS))
        for config, values in zip(configs, formulas, strict=True)
    ]
    distinct = dict(zip(keys, configs, strict=True))
    known: dict[Any, ProfileArrays] = {}
    for window in dict.fromkeys(key[0] for key in distinct):
        group = [key for key in distinct if key[0] == window]
        known |= zip(group, _profiles(job, [distinct[key] for key in group]), strict=True)
    profiles = [known[key] for key in keys]
    with np.errstate(invalid="ignore"):
        p_fail = np.array([risk_arrays(c, p) for c, p in zip(configs, profiles, strict=True)])
    return (
        p_fail,
        np.array([profile.min_slack for profile in profiles]),
        np.array([profile.violation_ratio for profile in profiles]),
    )


def _profiles(job: _Job, configs: list[CapacityConfig]) -> list[ProfileArrays]:
    """Profiles of configurations with one window, computed as one long table."""
    n = len(job.table)
    with np.errstate(invalid="ignore"):
        slack = np.concatenate([slack_arrays(config, job.table)[2] for config in configs])
        starts = (np.arange(len(configs))[:, None] * n + job.table.starts).ravel()
        whole = profile_arrays(slack, starts, configs[0].profile_window)
    parts = [np.split(part, len(configs)) for part in whole.columns()]
    return [ProfileArrays(*found) for found in zip(*parts, strict=True)]


def _result(
    names: tuple[str, ...],
    values: tuple[tuple[float, ...], ...],
    job: _Job,
    costs: SweepCosts | None,
    axes: list[int],
    sums: dict[str, Array],
) -> SweepResult:
    """The sums on one axis a parameter."""
    shape = [len(values[i]) for i in axes]
    back = np.argsort(axes)
    grid: dict[str, Any] = {
        name: found.reshape(shape).transpose(back) for name, found in sums.items()
    }
    missed_usd = 0.0 if costs is None else costs.missed_failure_usd
    money = grid["money_usd"] + missed_usd * grid["missed_failures"]
    labelled = job.table.failed is not None
    return SweepResult(
        names,
        values,
        job.base,
        len(job.table),
        job.answer_turns,
        grid["refreshes"],
        grid["replays"],
        grid["replans"],
        grid["missed_failures"] if labelled else None,
        grid["false_alarms"] if labelled else None,
        money,
    )
