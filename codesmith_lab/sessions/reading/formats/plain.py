"""Request bodies, bare or with what came back: one a line, or the items of an array.

The CodeSmith recorder writes the wrapped form: {"time", "request", "response" or "usage",
"rebuild"}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from codesmith_lab.sessions.reading.apis.detection import is_other_call
from codesmith_lab.sessions.reading.calls import Call, Opener, moment, status_of, text_of
from codesmith_lab.sessions.reading.json_spans import BadJson, Span, members_of
from codesmith_lab.sessions.reading.spans import Member, ObjectSpan, value_of

__all__ = ["PlainOpener", "has_body", "log_time"]

_TIME_KEYS: Final = ("time", "timestamp", "created_at", "ts")
_LOG_KEYS: Final = frozenset((*_TIME_KEYS, "response", "usage", "rebuild"))
_WRAPPERS: Final = ("request", "request_body", "body")
_RESPONSES: Final = ("response", "response_body")
_STATUS: Final = ("status", "status_code")
_SESSIONS: Final = ("session_id", "session", "conversation_id")
_CONTENT: Final = ("messages", "input", "contents")


def has_body(members: Mapping[str, Member]) -> bool:
    """Whether these are the fields of a request body."""
    return any(key in members for key in _CONTENT)


class PlainOpener(Opener):
    """Bodies as they were sent, and what this project's own recorder adds to them."""

    name = "plain"

    def claims(self, record: ObjectSpan) -> bool:
        """Everything that nobody else claims."""
        return True

    def open(self, record: ObjectSpan, line: int) -> Iterator[Call]:
        """The one call of a record."""
        members = record.members
        wrapped = next((members[key] for key in _WRAPPERS if key in members), None)
        if wrapped is None or has_body(members):
            call = Call(line, record, log_keys=_LOG_KEYS)
        elif isinstance(wrapped, ObjectSpan):
            inner = wrapped.members.get("body")
            nested = isinstance(inner, ObjectSpan) and not has_body(wrapped.members)
            call = Call(line, inner if nested and isinstance(inner, ObjectSpan) else wrapped)
            _beside(members, call)
        else:
            raise BadJson("its request is not an object")
        _check(call.body.members if call.body else {})
        response = next((members[key] for key in _RESPONSES if key in members), None)
        call.response = _unwrapped(response, call) if isinstance(response, Span) else None
        call.usage = value_of(members.get("usage"))
        call.rebuild = value_of(members.get("rebuild"))
        call.time = log_time(members, call.notes)
        yield call


def _beside(members: Mapping[str, Member], call: Call) -> None:
    """What a log says of a request beside it."""
    for key in _STATUS:
        call.status = call.status or status_of(value_of(members.get(key)))
    for key in _SESSIONS:
        call.session = call.session or text_of(value_of(members.get(key)))
    call.model = text_of(value_of(members.get("model")))
    call.provider = text_of(value_of(members.get("provider")))


def _unwrapped(response: Span, call: Call) -> Span:
    """The response, out of an object of its status and body."""
    value = response.value
    if not isinstance(value, dict) or not isinstance(value.get("body"), dict | list | str):
        return response
    for key in _STATUS:
        call.status = call.status or status_of(value.get(key))
    return members_of(response.raw)["body"]


def _check(members: Mapping[str, Member]) -> None:
    if not has_body(members):
        raise BadJson("it holds no request: neither 'messages' nor a 'request' with messages")
    if "messages" not in members and is_other_call(members):
        raise BadJson("it asks for no text from a language model, so there is no prompt to cache")


def log_time(
    members: Mapping[str, Member], notes: list[str], keys: tuple[str, ...] = _TIME_KEYS
) -> datetime | None:
    """The first time that can be read; others are noted. A time without a zone is UTC."""
    for key in keys:
        value = value_of(members.get(key))
        if value is None:
            continue
        try:
            return moment(value)
        except (ValueError, OverflowError, TypeError):
            notes.append(f"its {key} is neither ISO 8601 nor seconds or milliseconds since 1970")
    return None
