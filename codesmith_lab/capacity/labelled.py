"""Labelled observations from CSV, Parquet or a DataFrame.

One row an observation, rows of a session in the order of time:

| column | what |
|---|---|
| session | name of the session; what is split by in cross-validation |
| turn_index | whole number from 0, never falling within a session |
| model | as sent; names nobody knows get the fallback prior |
| action_count_this_turn | whole number from 0 |
| tool_calls_recent_window | whole number from 0 |
| unique_reference_ids_recent_window | whole number from 0 |
| context_used_ratio | prompt tokens over the context window |
| failed | 1 when the task failed at, or soon after, this row, else 0 |
| phase | optional: pre_turn (the default) or post_tool |
| replay_fails | optional: 1 when a tool replay here would fail |

Other columns are ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.errors import InputError, LabError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "OPTIONAL_COLUMNS", "labelled_frame", "read_labelled"]

COLUMNS = (
    "session",
    "turn_index",
    "model",
    "action_count_this_turn",
    "tool_calls_recent_window",
    "unique_reference_ids_recent_window",
    "context_used_ratio",
    "failed",
)
OPTIONAL_COLUMNS = ("phase", "replay_fails")


def read_labelled(source: str | Path | pd.DataFrame) -> ObservationTable:
    """Observations with labels; columns as in the module's table.

    source: a `.csv` or `.parquet` file, or a DataFrame.

    Raises InputError for a file that cannot be read, and for columns that are missing or hold
    what cannot be meant; the message names column and row (0-based, headings not counted).
    """
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return _table(source, "")
    path = Path(source)
    frame = _read(path)
    return _table(frame, path.name)


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    readers = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"files of type {path.suffix!r} are not read; write .csv or .parquet", path.name
        )
    try:
        # An open file, never the name: pandas would take some names for network addresses.
        with path.open("rb") as stream:
            return reader(stream)
    except ImportError:
        raise LabError(
            'reading Parquet needs pyarrow; run: pip install "codesmith-lab[capacity]"'
        ) from None
    except (OSError, ValueError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"the file cannot be read: {first}", path.name) from None


def _table(frame: pd.DataFrame, name: str) -> ObservationTable:
    missing = [column for column in COLUMNS if column not in frame.columns]
    if missing:
        raise InputError(
            f"the columns {', '.join(missing)} are missing; the columns needed are "
            f"{', '.join(COLUMNS)}",
            name,
        )
    wanted = [*COLUMNS, *(c for c in OPTIONAL_COLUMNS if c in frame.columns)]
    for column in wanted:
        if list(frame.columns).count(column) > 1:
            raise InputError(f"the column {column} is there twice; keep one of them", name)
        empty = frame[column].isna()
        # A ratio may be unknown; the formula documents what it makes of that.
        if column != "context_used_ratio" and empty.any():
            raise InputError(f"{column} in row {int(empty.argmax())} is empty; fill it in", name)
    try:
        return ObservationTable.from_columns(**{c: _values(frame[c]) for c in wanted})
    except LabError as error:
        raise InputError(str(error), name) from None


def _values(column: pd.Series[Any]) -> Any:
    """A column as an array NumPy knows; numbers stay numbers, the rest is text."""
    values = column.to_numpy()
    if values.dtype.kind in "biuf":
        return values
    if column.name in ("session", "model", "phase"):
        return [str(value) for value in values]
    try:
        return column.to_numpy(dtype=float)
    except (TypeError, ValueError):
        return values


def labelled_frame(table: ObservationTable) -> pd.DataFrame:
    """A table as the DataFrame that `read_labelled` reads; `failed` is left out without labels."""
    import pandas as pd

    columns: dict[str, Any] = {
        "session": [table.sessions[s] for s in table.session_of],
        "turn_index": table.turn_index,
        "model": [table.models[m] for m in table.model],
        "action_count_this_turn": table.actions,
        "tool_calls_recent_window": table.tools,
        "unique_reference_ids_recent_window": table.references,
        "context_used_ratio": table.context_used_ratio,
        "phase": [table.phase(row) for row in range(len(table))],
        "replay_fails": table.replay_fails.astype(int),
    }
    if table.failed is not None:
        columns["failed"] = table.failed.astype(int)
    return pd.DataFrame(columns)
