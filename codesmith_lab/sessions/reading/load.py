"""Read a log: its format found out, its raw bytes kept, what cannot be used counted."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final, cast

from codesmith_lab.errors import InputError
from codesmith_lab.sessions.reading.apis import READERS
from codesmith_lab.sessions.reading.cutting import MAX_RECORD_BYTES
from codesmith_lab.sessions.reading.formats import OPENERS
from codesmith_lab.sessions.reading.log_reader import LogReader
from codesmith_lab.sessions.reading.sources import log_files
from codesmith_lab.sessions.records import Session

__all__ = ["FORMATS", "MAX_LINE_BYTES", "load", "load_bytes"]

FORMATS: Final = (
    *(api for api in READERS if api != "otel-messages"),
    *(name for name in OPENERS if name != "plain"),
)
"""Formats by name: APIs whose bodies a log may hold, and logs of another shape."""
MAX_LINE_BYTES: Final = MAX_RECORD_BYTES
"""A longer line or record is skipped unread."""

_SHORT_NAMES: Final = {
    "openai": "openai-chat",
    "anthropic": "anthropic-messages",
    "responses": "openai-responses",
    "bedrock": "bedrock-converse",
    "cassette": "vcr",
}


def load(path: str | Path | Sequence[str | Path], format: str | None = None) -> Session:
    """Read a log, several logs, or a folder of logs.

    Parameters
    ----------
    path: a file, a folder (with those in it), "-" for standard input, or a list of files. Files
        may be packed with gzip or Zstandard. A log is JSONL or one JSON document, of request bodies
        or of one of the formats in `FORMATS`; cassettes may be YAML. A line of bodies may be bare
        or {"request": ...} with `response` or `usage` beside it, a time (`time`, `timestamp`,
        `created_at` or `ts`: ISO 8601, or seconds or milliseconds since 1970; UTC unless it says
        otherwise), and a signed `rebuild` {reason, before, after}. A response may be a recorded
        stream.
    format: one of `FORMATS` ("openai", "anthropic", "responses", "bedrock" for short); None finds
        out record by record. Where it is given, every record is read as that format.

    Requests come in time order when every one has a time, else in the order of the files. A
    response that is recorded more than once is one request, and is flagged. Lines that cannot be
    read are skipped and listed in `Session.skipped`. Limits: a record of 128 MiB, 200 levels of
    nesting, 64 GiB unpacked, a Zstandard window of 128 MiB, a million values out of a cassette's
    aliases. Raises InputError, naming file and line, when nothing in it is of use.
    """
    paths = [path] if isinstance(path, str | Path) else list(path)
    several = len(paths) > 1
    shown = f"{len(paths)} files" if several else _shown(*paths)
    reader = LogReader(_format(format, shown))
    if not paths:
        raise InputError("no file was named")
    if "" in paths:
        # Path("") would be the folder one is in: most likely a variable that is not set.
        raise InputError("the name of a file is empty")
    for one in paths:
        if str(one) == "-":
            _add_standard_input(reader, several)
        else:
            _add(reader, Path(one), str(one), several)
    return reader.session(shown if several else Path(shown).name or shown, shown)


def _shown(path: str | Path = "") -> str:
    """A path as messages name it."""
    return "standard input" if str(path) == "-" else str(path)


def load_bytes(data: bytes, name: str = "log", format: str | None = None) -> Session:
    """The same for a log that is already in memory; `name` stands for the file's."""
    reader = LogReader(_format(format, name))
    reader.add(io.BytesIO(data), name)
    return reader.session(name, name)


def _format(given: str | None, path: str) -> str | None:
    chosen = _SHORT_NAMES.get(given, given) if given is not None else None
    if chosen is not None and chosen not in FORMATS:
        raise InputError(f"the format {given!r} is unknown; use one of {', '.join(FORMATS)}", path)
    return chosen


def _add_standard_input(reader: LogReader, several: bool) -> None:
    name = _shown("-")
    if sys.stdin is None:
        raise InputError(f"{name} is closed")
    reader.add(sys.stdin.buffer, name, name if several else "")


def _add(reader: LogReader, path: Path, shown: str, several: bool) -> None:
    try:
        if path.is_dir():
            files, others = log_files(path)
            if not files:
                rest = f" ({others} others)" if others else ""
                raise InputError(f"this folder holds no log{rest}; name a file", shown)
            for file in files:
                with _open(file) as stream:
                    reader.add(stream, str(file), file.relative_to(path).as_posix())
            reader.passed_over(others, shown)
        else:
            with _open(path) as stream:
                reader.add(stream, shown, path.name if several else "")
    except FileNotFoundError:
        raise InputError("there is no such file", shown) from None
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", shown) from None
    except ValueError:
        # A null character: no file can have such a name.
        raise InputError("this cannot be the name of a file", shown) from None


def _open(path: Path) -> BinaryIO:
    # What reads it keeps a buffer of its own.
    return cast(BinaryIO, path.open("rb", buffering=0))
