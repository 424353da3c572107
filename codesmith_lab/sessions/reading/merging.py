"""One response recorded more than once is one request."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from codesmith_lab.billing.usage import Usage
from codesmith_lab.sessions.reading.stored import LoggedRequest

__all__ = ["Responses"]

_COUNTERS = (
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens"),
    *("cache_write_1h_tokens", "reasoning_tokens"),
)


class Responses:
    """Requests in the order of the log, those of one response put together.

    Only what cannot be two responses is put together: the same id, and the same body or none on one
    side.
    """

    def __init__(self) -> None:
        self._requests: list[LoggedRequest] = []
        self._places: list[tuple[int, int]] = []
        self._by_id: dict[str, int] = {}
        self._again: dict[int, list[str]] = {}

    @property
    def count(self) -> int:
        """How many requests there are."""
        return len(self._requests)

    def add(self, request: LoggedRequest, number: int, merge: bool) -> None:
        """Take a request over.

        number: which file it is from. merge: a log writes several records for one response as a
        rule.
        """
        place = (number, request.line)
        key = request.response_id
        at = self._by_id.get(key) if key else None
        if at is None:
            if key:
                self._by_id[key] = len(self._requests)
            self._append(request, place)
            return
        known = self._requests[at]
        if known.has_body and request.has_body and known.body != request.body:
            self._append(request, place)
            return
        same_file = known.file == request.file
        if not (merge and same_file):
            where = f"line {request.line}" + (f" of {request.file}" if request.file else "")
            self._again.setdefault(at, []).append(where)
        self._requests[at] = _merged(known, request)

    def _append(self, request: LoggedRequest, place: tuple[int, int]) -> None:
        self._requests.append(request)
        self._places.append(place)

    def requests(self) -> list[LoggedRequest]:
        """All of them, in the order of the files; those recorded more than once say so."""
        for at, places in self._again.items():
            request = self._requests[at]
            shown = ", ".join(places[:3]) + (" and more" if len(places) > 3 else "")
            request.at(
                request.index,
                notes=(*request.notes, f"the same response stands again in {shown}: counted once"),
                flags=tuple(dict.fromkeys((*request.flags, "duplicate_usage"))),
            )
        self._again = {}
        order = sorted(range(len(self._requests)), key=self._places.__getitem__)
        return [self._requests[at] for at in order]


def _merged(known: LoggedRequest, again: LoggedRequest) -> LoggedRequest:
    """The fuller of two records of a response, with the larger counters of both."""
    keep, other = (again, known) if again.content != "none" == known.content else (known, again)
    return keep.at(
        known.index,
        line=known.line,
        file=known.file,
        time=_earlier(known.time, again.time),
        usage=_larger(known.usage, again.usage),
        output=keep.output or other.output,
        rebuild=keep.rebuild or other.rebuild,
        notes=tuple(dict.fromkeys((*keep.notes, *other.notes))),
        flags=tuple(dict.fromkeys((*keep.flags, *other.flags))),
    )


def _earlier(a: datetime | None, b: datetime | None) -> datetime | None:
    return min(a, b) if a is not None and b is not None else a or b


def _larger(a: Usage | None, b: Usage | None) -> Usage | None:
    """Counter by counter the larger: records of a stream that still runs hold less."""
    if a is None or b is None:
        return b if a is None else a
    larger = b if (b.output_tokens or 0) >= (a.output_tokens or 0) else a
    found: dict[str, Any] = {}
    for name in _COUNTERS:
        known = [n for n in (getattr(a, name), getattr(b, name)) if n is not None]
        found[name] = max(known) if known else None
    return replace(larger, **found)
