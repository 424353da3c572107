"""Cassettes: exchanges recorded for tests by VCR and its relatives, in YAML or JSON.

Python's vcrpy ({request: {body, headers, method, uri}, response: {body: {string}, status: {code}}}
under `interactions`), Ruby's VCR (`http_interactions`, `recorded_at`), and cassettes that hold
bodies parsed (`parsed_body`). Sources: the recorders' own documentation and recorded cassettes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from codesmith_lab.sessions.reading.calls import Call, Keys, Opener, moment, status_of
from codesmith_lab.sessions.reading.formats.exchange import (
    Exchange,
    answer_of,
    call_of,
    decoded,
    headers_of,
)
from codesmith_lab.sessions.reading.json_spans import BadJson
from codesmith_lab.sessions.reading.lines import LineWalker
from codesmith_lab.sessions.reading.spans import ObjectSpan, value_of

__all__ = ["CassetteOpener"]


class CassetteOpener(Opener):
    """Interactions of a cassette."""

    name = "vcr"

    def __init__(self) -> None:
        self._walker = LineWalker()
        self._keys = Keys()

    def claims(self, record: ObjectSpan) -> bool:
        """An interaction has a request with an address and a response."""
        request = record.members.get("request")
        known = isinstance(request, ObjectSpan) and {"uri", "method"} <= request.members.keys()
        return known and "response" in record.members

    def open(self, record: ObjectSpan, line: int) -> Iterator[Call]:
        """The call of an interaction in JSON."""
        return self.interaction(value_of(record), line)

    def interaction(self, record: Any, line: int) -> Iterator[Call]:
        """The call of an interaction."""
        if not isinstance(record, Mapping) or not isinstance(record.get("request"), Mapping):
            raise BadJson("an interaction of the cassette has no request")
        request, response = record["request"], record.get("response")
        response = response if isinstance(response, Mapping) else {}
        exchange = Exchange(line, _text(request.get("method")), _text(request.get("uri")))
        exchange.headers = headers_of(request.get("headers"))
        exchange.answer_headers = headers_of(response.get("headers"))
        exchange.sent = decoded(_body(request, exchange.notes), exchange.headers)
        status = response.get("status")
        exchange.status = status_of(status.get("code") if isinstance(status, Mapping) else status)
        exchange.answer = answer_of(
            lambda: decoded(_body(response, []), exchange.answer_headers), exchange.notes
        )
        call = call_of(exchange, self._walker, self._keys)
        call.time = _time(record, exchange.answer_headers, call.notes)
        yield call


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _body(side: Mapping[str, Any], notes: list[str]) -> bytes:
    """The body of a request or response as bytes."""
    if isinstance(side.get("parsed_body"), dict | list):
        notes.append("the cassette holds the body parsed: how its JSON was written is not known")
        return _json(side["parsed_body"])
    body = side.get("body")
    if isinstance(body, Mapping):
        packed = body.get("base64_string")
        body = decoded(packed.encode(), {}, True) if isinstance(packed, str) else body.get("string")
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    if isinstance(body, dict | list):
        notes.append("the cassette holds the body parsed: how its JSON was written is not known")
        return _json(body)
    return body if isinstance(body, bytes) else b""


def _json(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise BadJson("a parsed body of the cassette is not what JSON can hold") from None
    return text.encode("utf-8", "surrogatepass")


def _time(
    record: Mapping[str, Any], headers: Mapping[str, str], notes: list[str]
) -> datetime | None:
    """When it was recorded: the cassette's own time, or the second that the response names."""
    for given, note in (
        (record.get("recorded_at"), ""),
        (headers.get("date"), "its time is that of the response's Date header"),
    ):
        if given is None:
            continue
        try:
            found = moment(given)
        except (ValueError, OverflowError, TypeError):
            try:
                found = parsedate_to_datetime(str(given)[:100])
                found = (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).astimezone(
                    timezone.utc
                )
            except (ValueError, OverflowError, TypeError):
                continue
        if note:
            notes.append(note)
        return found
    return None
