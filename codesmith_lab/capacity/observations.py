"""Observations of whole sessions as columns, checked once and shared by every computation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from codesmith_lab.capacity.formulas import PHASES, CapacityObservation, Phase
from codesmith_lab.errors import LabError

__all__ = ["ObservationTable", "join_tables"]

LongArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_MOST = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class ObservationTable:
    """n observations of one or more sessions, in order, each session in one piece.

    sessions: names, in order. starts: first row of each session.
    turn_index, actions, tools, references: whole numbers >= 0, (n,); turns never go back within
        a session. context_used_ratio: (n,), NaN allowed (it makes the risk high).
    post_tool: made after a tool (true) or before a request (false), (n,).
    models: distinct names; model: index of each row's into them, (n,).
    failed: labels, (n,): the task failed at, or soon after, this row. None without labels.
    replay_fails: a replay at this row would fail, (n,).

    Made by `from_rows`, `from_columns` or one of the sources; the constructor does not check.
    """

    sessions: tuple[str, ...]
    starts: LongArray
    turn_index: LongArray
    actions: LongArray
    tools: LongArray
    references: LongArray
    context_used_ratio: FloatArray
    post_tool: BoolArray
    models: tuple[str, ...]
    model: LongArray
    failed: BoolArray | None
    replay_fails: BoolArray

    def __len__(self) -> int:
        return len(self.turn_index)

    @property
    def ends(self) -> LongArray:
        """One behind the last row of each session."""
        return np.append(self.starts[1:], len(self))

    @property
    def session_of(self) -> LongArray:
        """Each row's session, as an index into `sessions`."""
        return np.repeat(np.arange(len(self.starts)), self.ends - self.starts)

    def observation(self, row: int) -> CapacityObservation:
        """One row as the scalar form takes it."""
        return CapacityObservation(
            int(self.turn_index[row]),
            self.models[self.model[row]],
            int(self.actions[row]),
            int(self.tools[row]),
            int(self.references[row]),
            float(self.context_used_ratio[row]),
        )

    def phase(self, row: int) -> Phase:
        """Where a row was observed."""
        return PHASES[int(self.post_tool[row])]

    def rows(self) -> Iterator[CapacityObservation]:
        """Every row."""
        return (self.observation(row) for row in range(len(self)))

    def take_sessions(self, chosen: Sequence[int]) -> ObservationTable:
        """Some of the sessions, in the order given."""
        ends = self.ends
        rows = np.concatenate([np.arange(self.starts[s], ends[s]) for s in chosen])
        lengths = [int(ends[s] - self.starts[s]) for s in chosen]
        return ObservationTable(
            tuple(self.sessions[s] for s in chosen),
            np.cumsum([0, *lengths[:-1]]),
            self.turn_index[rows],
            self.actions[rows],
            self.tools[rows],
            self.references[rows],
            self.context_used_ratio[rows],
            self.post_tool[rows],
            self.models,
            self.model[rows],
            None if self.failed is None else self.failed[rows],
            self.replay_fails[rows],
        )

    def with_labels(self, failed: Sequence[bool] | BoolArray | None) -> ObservationTable:
        """The same rows with other labels."""
        if failed is None:
            return replace(self, failed=None)
        labels = _column("failed", failed, len(self), np.bool_)
        return replace(self, failed=labels)

    @classmethod
    def from_rows(
        cls,
        observations: Sequence[CapacityObservation],
        phases: Sequence[Phase] | None = None,
        session: str = "session",
    ) -> ObservationTable:
        """One session from scalar observations; without `phases` all are before a request.

        Raises LabError for none at all, or a turn that goes back.
        """
        return cls.from_columns(
            session=[session] * len(observations),
            turn_index=[o.turn_index for o in observations],
            model=[o.model for o in observations],
            action_count_this_turn=[o.action_count_this_turn for o in observations],
            tool_calls_recent_window=[o.tool_calls_recent_window for o in observations],
            unique_reference_ids_recent_window=[
                o.unique_reference_ids_recent_window for o in observations
            ],
            context_used_ratio=[o.context_used_ratio for o in observations],
            phase=phases,
        )

    @classmethod
    def from_columns(
        cls,
        *,
        session: Sequence[str],
        turn_index: Any,
        model: Sequence[str],
        action_count_this_turn: Any,
        tool_calls_recent_window: Any,
        unique_reference_ids_recent_window: Any,
        context_used_ratio: Any,
        phase: Sequence[str] | None = None,
        failed: Any = None,
        replay_fails: Any = None,
    ) -> ObservationTable:
        """From columns of equal length; rows of a session need not stand together.

        Sessions come in the order of their first rows; the order within one is kept.

        Raises LabError, naming column and row, for what cannot be meant; also for no rows.
        """
        n = len(session)
        if n == 0:
            raise LabError(
                "there is no observation; a capacity trajectory needs one at least, so add rows"
            )
        names, codes = _codes([str(name) for name in session])
        order = np.argsort(codes, kind="stable")
        models, model_codes = _codes([str(name) for name in _sized("model", model, n)])
        counts = {
            "turn_index": turn_index,
            "action_count_this_turn": action_count_this_turn,
            "tool_calls_recent_window": tool_calls_recent_window,
            "unique_reference_ids_recent_window": unique_reference_ids_recent_window,
        }
        whole = {name: _counts(name, values, n)[order] for name, values in counts.items()}
        ratio = _column("context_used_ratio", context_used_ratio, n, np.float64)
        made = cls(
            names,
            np.searchsorted(codes[order], np.arange(len(names))),
            whole["turn_index"],
            whole["action_count_this_turn"],
            whole["tool_calls_recent_window"],
            whole["unique_reference_ids_recent_window"],
            ratio[order],
            _post_tool(phase, n)[order],
            models,
            model_codes[order],
            None if failed is None else _column("failed", failed, n, np.bool_)[order],
            np.zeros(n, np.bool_)
            if replay_fails is None
            else _column("replay_fails", replay_fails, n, np.bool_)[order],
        )
        _check_turns(made, order)
        return made


def join_tables(tables: Sequence[ObservationTable]) -> ObservationTable:
    """Several tables as one; sessions of the same name are told apart by a number.

    Raises LabError for no table, or when only some have labels.
    """
    if not tables:
        raise LabError("there is no table to join; pass one at least")
    labelled = [table.failed is not None for table in tables]
    if any(labelled) and not all(labelled):
        raise LabError("some tables have labels and some have none; label all of them or none")
    names: list[str] = []
    for table in tables:
        for name in table.sessions:
            count, fresh = 1, name
            while fresh in names:
                count += 1
                fresh = f"{name} ({count})"
            names.append(fresh)
    sizes = [len(table) for table in tables]
    offsets = np.cumsum([0, *sizes[:-1]])
    models = tuple(dict.fromkeys(name for table in tables for name in table.models))
    place = {name: i for i, name in enumerate(models)}

    def glued(name: str) -> Any:
        return np.concatenate([getattr(table, name) for table in tables])

    return ObservationTable(
        tuple(names),
        np.concatenate([t.starts + offset for t, offset in zip(tables, offsets, strict=True)]),
        glued("turn_index"),
        glued("actions"),
        glued("tools"),
        glued("references"),
        glued("context_used_ratio"),
        glued("post_tool"),
        models,
        np.concatenate([np.array([place[m] for m in t.models])[t.model] for t in tables]),
        glued("failed") if all(labelled) else None,
        glued("replay_fails"),
    )


def _codes(names: Sequence[str]) -> tuple[tuple[str, ...], LongArray]:
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(name, len(known)) for name in names], np.int64)
    return tuple(known), codes


def _sized(name: str, values: Any, n: int) -> Any:
    if len(values) != n:
        raise LabError(f"{name} has {len(values)} rows, but session has {n}; make them equal")
    return values


def _column(name: str, values: Any, n: int, kind: type) -> Any:
    column = np.asarray(_sized(name, values, n))
    if kind is np.bool_:
        if column.dtype.kind != "b" and not np.isin(column, (0, 1)).all():
            at = int(np.flatnonzero(~np.isin(column, (0, 1)))[0])
            raise LabError(
                f"{name} in row {at} is {column[at]!r}, but a label is 0 or 1; write one of them"
            )
        return column.astype(np.bool_)
    if column.dtype.kind not in "iuf":
        raise LabError(f"{name} holds {column.dtype} values, but it is a number; convert it")
    return column.astype(np.float64)


def _counts(name: str, values: Any, n: int) -> LongArray:
    column = np.asarray(_sized(name, values, n))
    if column.dtype.kind not in "iuf":
        raise LabError(f"{name} holds {column.dtype} values, but it counts; convert it to numbers")
    with np.errstate(invalid="ignore"):
        good = (column >= 0) & (column <= _MOST) & (column == np.floor(column))
    if not good.all():
        at = int(np.flatnonzero(~good)[0])
        raise LabError(
            f"{name} in row {at} is {column[at].item()!r}, but it counts; "
            "write a whole number from 0 on"
        )
    return column.astype(np.int64)


def _post_tool(phase: Sequence[str] | None, n: int) -> BoolArray:
    if phase is None:
        return np.zeros(n, np.bool_)
    given = [str(value) for value in _sized("phase", phase, n)]
    for at, value in enumerate(given):
        if value not in PHASES:
            raise LabError(f"phase in row {at} is {value!r}; write one of {', '.join(PHASES)}")
    return np.array([value == PHASES[1] for value in given], np.bool_)


def _check_turns(table: ObservationTable, order: LongArray) -> None:
    back = np.flatnonzero(np.diff(table.turn_index) < 0) + 1
    back = back[~np.isin(back, table.starts)]
    if len(back):
        at = int(back[0])
        raise LabError(
            f"turn_index in row {int(order[at])} is {table.turn_index[at]}, but the row before it "
            f"in session {table.sessions[table.session_of[at]]!r} has {table.turn_index[at - 1]}; "
            "sort the rows of a session by time"
        )
