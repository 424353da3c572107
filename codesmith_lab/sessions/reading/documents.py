"""A file as records: lines of JSON, or the values of a JSON document, read piece by piece.

One record is held at a time. Lines are cut at their ends. In a document (pretty-printed bodies, a
JSON array, a HAR) records are found by counting brackets, so that a file of any size is read in the
memory of its largest record.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO, Final

from codesmith_lab.sessions.reading import cutting
from codesmith_lab.sessions.reading.cutting import Document, Report, holds_records, too_long
from codesmith_lab.sessions.reading.json_spans import BadJson

__all__ = ["MAX_BLANK_LINES", "MAX_SKIPPED_BYTES", "read_records"]

MAX_BLANK_LINES: Final = 1_000_000
"""Behind so many blank lines in a row, the rest of the file is not read."""
MAX_SKIPPED_BYTES: Final = 2 * 2**30
"""After so many bytes of one line that is too long, the rest of the file is not read."""

_CHUNK: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"


def read_records(stream: BinaryIO, report: Report) -> Iterator[tuple[int, bytes]]:
    """Line (1-based) and bytes of each record of a file of JSON."""
    lines = _Lines(stream, report)
    while (start := lines.peek()).isspace():
        lines.next()
    if not start.endswith(b"\n") and _opens_records(start.removeprefix(_BOM)):
        yield from Document(stream, start.removeprefix(_BOM), lines.number + 1, report).records()
        return
    first = lines.next()
    while first is not None and not first:
        first = lines.next()
    if first is None:
        return
    if _is_document(first, lines):
        head = first + lines.ending + b"".join(lines.held)
        yield from Document(stream, head, lines.number, report).records()
        return
    line: bytes | None = first
    while line is not None:
        if holds_records(line):
            yield from Document(BytesIO(line), b"", lines.number, report).records()
        elif line:
            yield lines.number, line
        line = lines.next()


def _opens_records(start: bytes) -> bool:
    return start[:1] == b"[" or holds_records(start)


class _Lines:
    """Lines without their ends and without byte order marks; blank and overlong ones are b""."""

    def __init__(self, stream: BinaryIO, report: Report) -> None:
        self.number = 0
        self.held: list[bytes] = []
        self.ending = b""
        self._blank = 0
        self._stream = stream
        self._report = report

    def next(self) -> bytes | None:
        """The next line, None behind the last."""
        piece = self._piece()
        if not piece:
            return None
        self.number += 1
        if piece.endswith(b"\n"):
            size, bare = len(piece), piece.rstrip(b"\r\n")
            self.ending = piece[len(bare) :]
        else:
            size, bare = self._long(piece)
        if size > cutting.MAX_RECORD_BYTES + 2 or len(bare) > cutting.MAX_RECORD_BYTES:
            self._report(self.number, too_long())
            if size > MAX_SKIPPED_BYTES:
                self._report(self.number, "the rest of the file was not read")
                self._stream = BytesIO()
            return b""
        bare = bare.removeprefix(_BOM)
        if bare and not bare.isspace():
            self._blank = 0
            return bare
        self._blank += 1
        if self._blank > MAX_BLANK_LINES:
            self._report(self.number, "blank lines without an end; the rest was not read")
            self._stream, self._blank = BytesIO(), 0
        return b""

    def _long(self, piece: bytes) -> tuple[int, bytes]:
        """Size and bytes of a line of several pieces: put together in one place, never copied."""
        line = BytesIO()
        size = line.write(piece)
        while piece and not piece.endswith(b"\n") and size <= MAX_SKIPPED_BYTES:
            piece = self._piece()
            size += len(piece)
            if size <= cutting.MAX_RECORD_BYTES + 2:
                line.write(piece)
            else:
                line.truncate(0)
        return size, self._bare(line)

    def _bare(self, line: BytesIO) -> bytes:
        """The line without its end."""
        with line.getbuffer() as view:
            size = len(view)
            while size and view[size - 1] in b"\r\n":
                size -= 1
            self.ending = bytes(view[size:])
        line.truncate(size)
        return line.getvalue()

    def peek(self) -> bytes:
        """The piece behind the line, which stays to be read."""
        if not self.held:
            self.held.append(self._piece())
        return self.held[0]

    def _piece(self) -> bytes:
        return self.held.pop() if self.held else self._stream.readline(_CHUNK)


def _is_document(first: bytes, lines: _Lines) -> bool:
    """Whether the first line opens a value that ends on a later one, or is an array of records."""
    opening = first.lstrip()[:1]
    if opening == b"[":
        return True
    if opening != b"{":
        return False
    scan = Document(BytesIO(), first, 0, lambda *_: None)
    try:
        scan.end_of(0)
        return False
    except BadJson:
        if scan.broken_in_text:
            return False
    follows = lines.peek()
    if not follows.strip():
        return bool(follows)
    # A line that is merely cut off is followed by the next record.
    return follows[:1] != b"{" or first.rstrip()[-1:] in (b"[", b",", b":")
