"""A call: one request to a model as a log records it, whatever the log's format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final

from codesmith_lab.billing.usage import UsageApi
from codesmith_lab.sessions.reading.json_spans import Span, plain
from codesmith_lab.sessions.reading.spans import Member, ObjectSpan

__all__ = ["Call", "Keys", "Opener", "moment", "status_of", "text_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NAME_CHARACTERS: Final = 200


@dataclass(slots=True, eq=False)
class Call:
    """One call, before its body is read.

    line: where its record starts.
    body: the request body where the log holds one; parts: its members (where the log holds
        content without a body, these alone).
    api: the body's API, "" to find out.
    response: the response's JSON, or the list of its stream's events. usage: counters that stand
        beside it; usage_api says whose they are, None = find out.
    model: named beside the body. log_keys: keys of the body that belong to the log, no settings.
    merge: this record belongs to the same response as an earlier one with its id (transcripts
        write one a content block), which is no duplicate.
    """

    line: int
    body: ObjectSpan | None = None
    parts: Mapping[str, Member] | None = None
    api: str = ""
    response: Span | None = None
    usage: Any = None
    usage_api: UsageApi | None = None
    time: datetime | None = None
    model: str = ""
    response_id: str = ""
    status: int | None = None
    provider: str = ""
    account: str = ""
    cache_key: str = ""
    session: str = ""
    cost_usd: Decimal | None = None
    rebuild: Any = None
    log_keys: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    partial: bool = False
    merge: bool = False

    @property
    def members(self) -> Mapping[str, Member] | None:
        """What the body says, None without content."""
        return self.parts if self.parts is not None or self.body is None else self.body.members


class Opener:
    """Finds the calls in the records of one log format.

    One opener reads one file, in order: formats that spread a call over several lines keep what
    they need between them. Subclasses set `name` and `claims`.
    """

    name = ""

    def claims(self, record: ObjectSpan) -> bool:
        """Whether a record is this format's, by fields that only it has."""
        raise NotImplementedError

    def open(self, record: ObjectSpan, line: int) -> Iterator[Call]:
        """The calls in a record. Raises BadJson for one that should hold a call and does not."""
        raise NotImplementedError

    def finish(self) -> Iterator[Call]:
        """Calls that were still open at the end of the file."""
        return iter(())


class Keys:
    """Names keys by the order in which they appear: a key itself is never kept or shown."""

    def __init__(self) -> None:
        self._seen: dict[int, str] = {}

    def label(self, key: Any) -> str:
        """ "key 1", "key 2", ...; "" for no key. Equal keys have equal labels in one log."""
        if not isinstance(key, str) or not key:
            return ""
        return self._seen.setdefault(hash(key), f"key {len(self._seen) + 1}")


def text_of(value: Any) -> str:
    """A short text that UTF-8 can carry, "" for what is no text."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    cleaned: str = plain(str(value)[:_NAME_CHARACTERS])
    return cleaned


def status_of(value: Any) -> int | None:
    """An HTTP status, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 100 <= value <= 599:
        return None
    return value


def moment(value: Any) -> datetime:
    """A time as logs write it: ISO 8601, or seconds, milli-, micro- or nanoseconds since 1970.

    A time without a zone is UTC. Raises ValueError, OverflowError or TypeError for anything else.
    """
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            found = datetime.fromisoformat(value)
            # Times at the edge of the calendar overflow here, not later.
            return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).astimezone(
                timezone.utc
            )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(type(value).__name__)
    # Seconds reach 1e11 in the year 5138; milliseconds passed it in 1973, microseconds 1e14 and
    # nanoseconds 1e17 in the same year.
    unit = 1e9 if value >= 1e17 else 1e6 if value >= 1e14 else 1e3 if abs(value) >= 1e11 else 1
    return _EPOCH + timedelta(seconds=value / unit)
