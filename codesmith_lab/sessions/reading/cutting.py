"""A JSON document cut into records by counting brackets, one record held at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from codesmith_lab.sessions.reading.json_spans import MAX_DEPTH, BadJson, decode_at

__all__ = ["MAX_RECORD_BYTES", "Document", "Report", "holds_records", "too_long"]

MAX_RECORD_BYTES: Final = 128 * 2**20
"""A longer line or record is skipped unread."""

Report = Callable[[int, str], None]
"""Called with the line and the reason of what is left out."""

_CHUNK: Final = 1 << 20
_PLACES: Final = (
    ("log", "entries"),
    ("resourceSpans",),
    ("resourceLogs",),
    ("interactions",),
    ("http_interactions",),
    *((key,) for key in ("data", "requests", "records", "entries", "spans", "logs")),
)
"""Where records stand inside an object."""
_WAYS: Final = {place[:i] for place in _PLACES for i in range(1, len(place))}
_FIRST_KEY: Final = re.compile(
    rb'\s*\{\s*"(?:version|recorded_with|'
    + b"|".join(sorted({place[0].encode() for place in _PLACES}))
    + rb')"\s*:'
)
_STRUCTURE: Final = re.compile(rb'["\[\]{}]')
_SCALAR_END: Final = re.compile(rb"[,\]}\s]")
_SPACE: Final = re.compile(rb"[ \t\r\n]*")


def holds_records(start: bytes) -> bool:
    """Whether an object starts like one that holds records."""
    return bool(_FIRST_KEY.match(start, 0, 200))


def too_long() -> str:
    """What is said of a record beyond the limit."""
    return f"it is longer than {MAX_RECORD_BYTES >> 20} MiB; split the log"


class Document:
    """A stream of JSON values, one behind the other, cut into records."""

    def __init__(self, stream: BinaryIO, head: bytes, line: int, report: Report) -> None:
        self._stream = stream
        self._data = bytearray(head)
        self._line = max(1, line)
        self._counted = 0
        self._report = report
        self._ended = False
        self.broken_in_text = False

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Line and bytes of each record; what breaks the document ends it and is reported."""
        try:
            while (at := self._skip(0)) < len(self._data):
                self._drop(at)
                if self._data[:1] == b"[":
                    yield from self._items(0)
                elif self._data[:1] == b"{":
                    yield from self._object()
                else:
                    end = self.end_of(0)
                    yield self._line, bytes(self._data[:end])
                    self._drop(end)
        except BadJson as error:
            self._report(self._line, str(error))

    def _object(self) -> Iterator[tuple[int, bytes]]:
        """The records inside the object at the start, or the object itself."""
        place: list[str] = []
        at, inside = 1, False
        while True:
            at = self._skip(at)
            byte = self._data[at : at + 1]
            if byte == b"}":
                at += 1
                if not place:
                    break
                place.pop()
                continue
            if byte == b",":
                at = self._skip(at + 1)
            if self._data[at : at + 1] != b'"':
                self._fail(at, "a key in double quotes")
            end = self._text_end(at)
            key = self._key(at, end)
            at = self._skip(end)
            if self._data[at : at + 1] != b":":
                self._fail(at, "':'")
            at = self._skip(at + 1)
            here = (*place, key)
            opening = self._data[at : at + 1]
            if here in _PLACES and opening == b"[":
                inside = True
                self._drop(at)
                yield from self._items(0)
                at = 0
            elif here in _WAYS and opening == b"{":
                place.append(key)
                at += 1
            else:
                at = self.end_of(at)
            if inside:
                self._drop(at)
                at = 0
            elif at > MAX_RECORD_BYTES:
                raise BadJson(too_long())
        if not inside:
            yield self._line, bytes(self._data[:at])
        self._drop(at)

    def _items(self, at: int) -> Iterator[tuple[int, bytes]]:
        """The items of the array at `at`; afterwards the data start behind it."""
        at, first = self._skip(at + 1), True
        while self._data[at : at + 1] != b"]":
            if not first:
                if self._data[at : at + 1] != b",":
                    self._fail(at, "',' or ']'")
                at = self._skip(at + 1)
            first = False
            self._drop(at)
            end = self.end_of(0)
            yield self._line, bytes(self._data[:end])
            self._drop(end)
            at = self._skip(0)
        self._drop(at + 1)

    def end_of(self, at: int) -> int:
        """Where the value that starts at `at` ends. Raises BadJson."""
        start, depth = at, 0
        opening = self._data[at : at + 1]
        if opening == b'"':
            return self._text_end(at)
        if opening != b"{" and opening != b"[":
            return self._scalar_end(at)
        while True:
            at = self._structure(at)
            byte = self._data[at - 1]
            if byte == 0x22:
                at = self._text_end(at - 1)
            elif byte in (0x7B, 0x5B):
                depth += 1
                if depth > MAX_DEPTH + 8:
                    raise BadJson(f"it nests deeper than {MAX_DEPTH} levels")
            else:
                depth -= 1
                if not depth:
                    return at
            if at - start > MAX_RECORD_BYTES:
                raise BadJson(too_long())

    def _structure(self, at: int) -> int:
        """The place behind the next bracket or quotation mark from `at` on."""
        start = at
        while True:
            found = _STRUCTURE.search(self._data, at)
            if found:
                return found.end()
            at = len(self._data)
            # The match holds the buffer, which could not grow.
            del found
            if at - start > MAX_RECORD_BYTES:
                raise BadJson(too_long())
            if not self._more():
                raise BadJson("it is not JSON: it is cut off before its end")

    def _text_end(self, at: int) -> int:
        start = at
        at += 1
        while True:
            quote = self._data.find(b'"', at)
            if quote < 0:
                at = len(self._data)
                if at - start > MAX_RECORD_BYTES:
                    raise BadJson(too_long())
                if not self._more():
                    self.broken_in_text = True
                    raise BadJson("it is not JSON: it is cut off before its end")
                continue
            before = quote
            while self._data[before - 1] == 0x5C and before - 1 > start:
                before -= 1
            if (quote - before) % 2 == 0:
                return quote + 1
            at = quote + 1

    def _scalar_end(self, at: int) -> int:
        start = at
        while True:
            found = _SCALAR_END.search(self._data, at)
            if found:
                if found.start() == start:
                    del found
                    self._fail(start, "value")
                return found.start()
            del found
            at = len(self._data)
            if at - start > MAX_RECORD_BYTES:
                raise BadJson(too_long())
            if not self._more():
                if at == start:
                    raise BadJson("it is not JSON: it is cut off before its end")
                return at

    def _skip(self, at: int) -> int:
        """The first byte from `at` on that is no white space."""
        passed = 0
        while True:
            found = _SPACE.match(self._data, at)
            end = found.end() if found else at
            del found
            if end < len(self._data):
                return end
            passed += end - at
            if passed > MAX_RECORD_BYTES:
                raise BadJson(too_long())
            # Blank space is not kept, or a file of it would fill the memory.
            if at == 0:
                self._drop(end)
                end = 0
            if not self._more():
                return end
            at = end

    def _key(self, start: int, end: int) -> str:
        if end - start > 200:
            return ""
        value, _ = decode_at(bytes(self._data[start:end]), 0)
        return str(value)

    def _more(self) -> bool:
        if self._ended:
            return False
        piece = self._stream.read(_CHUNK)
        self._ended = not piece
        self._data += piece
        return bool(piece)

    def _drop(self, at: int) -> None:
        """Forget the data before `at`."""
        self._line += self._data.count(b"\n", 0, at)
        del self._data[:at]

    def _fail(self, at: int, what: str) -> None:
        if at >= len(self._data):
            raise BadJson("it is not JSON: it is cut off before its end")
        self._drop(at)
        raise BadJson(f"it is not JSON on line {self._line} (expecting {what})")
