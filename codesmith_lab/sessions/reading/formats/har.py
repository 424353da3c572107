"""HAR files, as browsers and proxies save them: one record an entry of `log.entries`.

Source: HAR 1.2 (the Web Performance group's format). The body is the text that was posted: what
stands in the HAR is that text as a JSON string, so the bytes sent are its characters in UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from codesmith_lab.sessions.reading.calls import Call, Keys, Opener, status_of
from codesmith_lab.sessions.reading.formats.exchange import (
    Exchange,
    answer_of,
    call_of,
    decoded,
    headers_of,
)
from codesmith_lab.sessions.reading.formats.plain import log_time
from codesmith_lab.sessions.reading.lines import LineWalker
from codesmith_lab.sessions.reading.spans import ObjectSpan, value_of

__all__ = ["HarOpener"]


class HarOpener(Opener):
    """Entries of a HAR file."""

    name = "har"

    def __init__(self) -> None:
        self._walker = LineWalker()
        self._keys = Keys()

    def claims(self, record: ObjectSpan) -> bool:
        """An entry has a start and a request with an address."""
        request = record.members.get("request")
        return "startedDateTime" in record.members and isinstance(request, ObjectSpan)

    def open(self, record: ObjectSpan, line: int) -> Iterator[Call]:
        """The call of an entry."""
        request = _dict(value_of(record.members.get("request")))
        response = _dict(value_of(record.members.get("response")))
        posted, content = _dict(request.get("postData")), _dict(response.get("content"))
        exchange = Exchange(
            line,
            _text(request.get("method")),
            _text(request.get("url")),
            headers_of(request.get("headers")),
            _bytes(posted.get("text")),
            status_of(response.get("status")),
            headers_of(response.get("headers")),
        )
        packed = content.get("encoding") == "base64"
        # Browsers save the content unpacked whatever the header says.
        exchange.answer = answer_of(
            lambda: decoded(_bytes(content.get("text")), {}, packed), exchange.notes
        )
        call = call_of(exchange, self._walker, self._keys)
        call.time = log_time(record.members, call.notes, ("startedDateTime",))
        yield call


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _bytes(value: Any) -> bytes:
    return _text(value).encode("utf-8", "surrogatepass")
