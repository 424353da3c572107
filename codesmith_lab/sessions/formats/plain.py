"""Request bodies, bare or with what came back: one a line, or the items of an array.

The CodeSmith recorder writes the wrapped form: {"time", "request", "response" or "usage",
"rebuild"}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from codesmith_lab.sessions.apis.detection import is_other_call
from codesmith_lab.sessions.calls import Call, Opener, moment, status_of, text_of
from codesmith_lab.sessions.json_spans import BadJson, Span
from codesmith_lab.sessions.spans import Member, ObjectSpan, value_of

__all__ = ["PlainOpener", "has_body", "log_time"]

_TIME_KEYS: Final = ("time", "timestamp", "created_at", "ts")
_LOG_KEYS: Final = frozenset((*_TIME_KEYS, "response", "usage", "rebuild"))
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
        wrapped = members.get("request")
        if isinstance(wrapped, ObjectSpan) and not has_body(members):
            inner = wrapped.members.get("body")
            body = (
                inner
                if isinstance(inner, ObjectSpan) and not has_body(wrapped.members)
                else wrapped
            )
            call = Call(line, body)
            call.status = status_of(value_of(members.get("status")))
            call.model = text_of(value_of(members.get("model")))
            for key in ("session_id", "session", "conversation_id"):
                call.session = call.session or text_of(value_of(members.get(key)))
            call.provider = text_of(value_of(members.get("provider")))
        elif "request" in members and not has_body(members):
            raise BadJson("its request is not an object")
        else:
            call = Call(line, record, log_keys=_LOG_KEYS)
        _check(call.body.members if call.body else {})
        response = members.get("response")
        call.response = response if isinstance(response, Span) else None
        call.usage = value_of(members.get("usage"))
        call.rebuild = value_of(members.get("rebuild"))
        call.time = log_time(members, call.notes)
        yield call


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
