"""What a log line holds beside the request: response, usage, time, a signed rebuild."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from codesmith_lab.sessions.json_spans import BadJson, Span
from codesmith_lab.sessions.lines import ObjectSpan

__all__ = ["Envelope", "log_time", "open_envelope"]

_TIME_KEYS: Final = ("time", "timestamp", "created_at", "ts")
_LOG_KEYS: Final = frozenset((*_TIME_KEYS, "response", "usage", "rebuild"))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(slots=True, eq=False)
class Envelope:
    """One line: the request's body, and what the log says of it.

    log_keys: keys of the body that belong to the log and are no settings (bare bodies only).
    """

    line: int
    body: ObjectSpan
    log: dict[str, Span]
    log_keys: frozenset[str]


def open_envelope(found: ObjectSpan, line: int) -> Envelope:
    """Find the request in a line. Raises BadJson when there is none."""
    members = found.members
    log = {k: m for k, m in members.items() if k in _LOG_KEYS and isinstance(m, Span)}
    wrapped = members.get("request")
    if isinstance(wrapped, ObjectSpan) and "messages" not in members:
        _check(wrapped)
        return Envelope(line, wrapped, log, frozenset())
    if "messages" not in members and "request" in members:
        raise BadJson("its request is not an object")
    _check(found)
    return Envelope(line, found, log, _LOG_KEYS)


def _check(body: ObjectSpan) -> None:
    if "messages" in body.members:
        return
    if "input" in body.members:
        raise BadJson("it has no messages but 'input', as the Responses API has: not read here")
    raise BadJson("it holds no request: neither 'messages' nor a 'request' with messages")


def log_time(log: dict[str, Span], notes: list[str]) -> datetime | None:
    """The first time that can be read; others are noted. A naive time is UTC."""
    for key in _TIME_KEYS:
        value = log[key].value if key in log else None
        if value is None:
            continue
        try:
            return _moment(value)
        except (ValueError, OverflowError, TypeError):
            notes.append(f"its {key} is neither ISO 8601 nor seconds or milliseconds since 1970")
    return None


def _moment(value: Any) -> datetime:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            moment = datetime.fromisoformat(value)
            # Times at the edge of the calendar overflow here, not later.
            return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).astimezone(
                timezone.utc
            )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(type(value).__name__)
    # Seconds reach 1e11 in the year 5138; milliseconds passed it in 1973.
    return _EPOCH + (timedelta(milliseconds=value) if abs(value) >= 1e11 else timedelta(0, value))
