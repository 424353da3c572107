"""Reads the files of one log into requests, and keeps count of what was left out."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from codesmith_lab.errors import InputError
from codesmith_lab.sessions.reading.calls import Call, Opener
from codesmith_lab.sessions.reading.documents import read_records
from codesmith_lab.sessions.reading.formats import OPENERS, CassetteOpener
from codesmith_lab.sessions.reading.formats.exchange import NoCall
from codesmith_lab.sessions.reading.json_spans import BadJson, plain
from codesmith_lab.sessions.reading.lines import LineWalker
from codesmith_lab.sessions.reading.merging import Responses
from codesmith_lab.sessions.reading.requests import Requests, api_of_call, apply_stream
from codesmith_lab.sessions.reading.sources import Guarded, unpacked
from codesmith_lab.sessions.reading.yaml_records import is_cassette, read_interactions
from codesmith_lab.sessions.records import Session, Skipped

__all__ = ["HOPELESS_BYTES", "HOPELESS_LINES", "MAX_BROKEN", "LogReader"]

HOPELESS_LINES: Final = 1000
HOPELESS_BYTES: Final = 2**30
"""A file of which nothing is of use after so many lines or unpacked bytes is not read on."""
MAX_BROKEN: Final = 1_000_000
"""Nor is one of which so many records were of no use, for each of them is listed."""

_HEAD_BYTES: Final = 4096
_UNDECIDED: Final = 64
"""So many bodies that could be either of two APIs wait for one that tells."""


class LogReader:
    """Files in, a session out.

    format: read every record as this format; None finds out.
    """

    def __init__(self, format: str | None = None) -> None:
        self._opener_name = format if format in OPENERS else None
        self._api = format if format not in OPENERS else None
        self._requests = Requests()
        self._responses = Responses()
        self._kinds: Counter[str] = Counter()
        self._undecided: list[tuple[Call, str]] = []
        self._skipped: list[Skipped] = []
        self._reason: InputError | None = None
        self._walker = LineWalker()
        self._files = 0

    def add(self, stream: BinaryIO, path: str, file: str = "") -> None:
        """Read one file. path: as errors name it; file: as requests name it."""
        self._files += 1
        before, had = len(self._skipped), self._responses.count
        try:
            source = unpacked(stream, path)
        except InputError as error:
            self._leave(1, error.reason, file, error)
            return
        buffered = io.BufferedReader(source, 1 << 20)
        head = buffered.peek(_HEAD_BYTES)[:_HEAD_BYTES]
        found = _File(self, source, file)
        found.read(buffered, head)
        self._flush()
        if source.reason:
            self._leave(found.line, source.reason, file)
        if self._responses.count == had and self._reason is None:
            self._reason = _nothing(head, source.reason, self._skipped[before:], path)

    def passed_over(self, others: int, folder: str) -> None:
        """Say that a folder holds files that are no logs by their names."""
        if others:
            files = "1 file" if others == 1 else f"{others} files"
            self._leave(1, f"{files} in the folder are no logs by their names", folder)

    def session(self, name: str, path: str) -> Session:
        """What was read. Raises InputError when there is nothing of use."""
        requests = self._responses.requests()
        if not requests:
            raise self._reason or InputError("it holds no request", path)
        if all(request.time is not None for request in requests):
            requests.sort(key=lambda request: request.time.timestamp() if request.time else 0.0)
        kind = (
            max(self._kinds, key=lambda kind: self._kinds[kind]) if self._kinds else "openai-chat"
        )
        numbered = tuple(request.at(index) for index, request in enumerate(requests))
        if self._files == 1:
            self._skipped.sort(key=lambda entry: entry.line)
        return Session(plain(name), kind, numbered, tuple(self._skipped))

    def leave(self, line: int, reason: str, file: str) -> None:
        """Count what was left out."""
        self._leave(line, reason, file)

    def _leave(self, line: int, reason: str, file: str, error: InputError | None = None) -> None:
        self._skipped.append(Skipped(line, plain(reason), file))
        if error is not None and self._reason is None:
            self._reason = error

    def openers(self) -> list[Opener]:
        """New openers for one file; the last claims everything."""
        names = OPENERS if self._opener_name is None else [self._opener_name]
        return [OPENERS[name]() for name in names]

    @property
    def walker(self) -> LineWalker:
        """The walker that all files share."""
        return self._walker

    def take(self, call: Call, kind: str, file: str) -> None:
        """Read a call, or keep it until another tells its API."""
        apply_stream(call)
        found = "" if self._api and call.api else api_of_call(call)
        api = call.api or self._api or found
        if self._api and found and found != api:
            call.notes.append(f"it looks like {found} and was read as {api}, as was asked")
        if not api and call.members is not None:
            self._undecided.append((call, file))
            if len(self._undecided) >= _UNDECIDED:
                self._flush()
            return
        self._make(call, api, kind, file)

    def _make(self, call: Call, api: str, kind: str, file: str) -> None:
        if kind == "plain":
            kind = api
        try:
            request = self._requests.read(call, api, file)
        except BadJson as error:
            self._leave(call.line, str(error), file)
            return
        self._kinds[kind] += 1
        for block in request.output or ():
            # Agents put the response as it came into the next request.
            self._walker.expect(block.raw)
        self._responses.add(request, self._files, call.merge)

    def _flush(self) -> None:
        """Read the calls that could be of either API: as the one that more of the others are."""
        waiting, self._undecided = self._undecided, []
        claude, chat = self._kinds["anthropic-messages"], self._kinds["openai-chat"]
        api = "anthropic-messages" if claude > chat else "openai-chat"
        for call, file in waiting:
            self._make(call, api, "plain", file)


class _File:
    """One file on its way in."""

    def __init__(self, reader: LogReader, source: Guarded, file: str) -> None:
        self._reader = reader
        self._source = source
        self._file = file
        self._openers = reader.openers()
        self._no_calls = 0
        self._first_no_call = 0
        # Of the records that begin on one line, the one being read, from 1 on.
        self._on_line = (0, 0)
        self.line = 1
        self.calls = 0
        self.broken = 0

    def read(self, stream: BinaryIO, head: bytes) -> None:
        """Every call of the file."""
        if is_cassette(head):
            self._cassette(stream)
        else:
            for line, data in read_records(stream, self._report):
                self.line = line
                self._record(line, data)
                if self._hopeless():
                    break
        for opener in self._openers:
            self._calls(opener.finish, self.line, opener.name)
        if self._no_calls:
            records = "1 record is" if self._no_calls == 1 else f"{self._no_calls} records are"
            reason = f"{records} no call to a language model"
            self._reader.leave(self._first_no_call, reason, self._file)

    def _cassette(self, stream: BinaryIO) -> None:
        opener = next((o for o in self._openers if isinstance(o, CassetteOpener)), None)
        opener = opener or CassetteOpener()
        try:
            for line, value in read_interactions(stream):
                self.line = line
                self._calls(_later(opener.interaction, value, line), line, opener.name)
                if self._hopeless():
                    break
        except BadJson as error:
            self._report(self.line, str(error))

    def _record(self, line: int, data: bytes) -> None:
        self._on_line = (line, self._on_line[1] + 1 if self._on_line[0] == line else 1)
        try:
            record = self._reader.walker.walk(data)
        except BadJson as error:
            self._report(line, str(error))
            return
        opener = next((o for o in self._openers if o.claims(record)), self._openers[-1])
        self._calls(_later(opener.open, record, line), line, opener.name)

    def _calls(self, open_: Callable[[], Iterator[Call]], line: int, kind: str) -> None:
        try:
            for call in open_():
                self.calls += 1
                self._reader.take(call, kind, self._file)
        except BadJson as error:
            self._report(line, str(error))
        except NoCall:
            self._no_calls += 1
            self._first_no_call = self._first_no_call or line

    def _report(self, line: int, reason: str) -> None:
        self.line = max(self.line, line)
        self.broken += 1
        if self._on_line[0] == line and self._on_line[1] > 1:
            reason = f"record {self._on_line[1]:,} on it: {reason}"
        self._reader.leave(line, reason, self._file)

    def _hopeless(self) -> bool:
        if self.broken >= MAX_BROKEN:
            reason = f"{MAX_BROKEN:,} records are of no use; the rest was not read"
            self._reader.leave(self.line, reason, self._file)
            return True
        if self.calls:
            return False
        return self.broken >= HOPELESS_LINES or self._source.given > HOPELESS_BYTES


def _later(
    open_: Callable[..., Iterator[Call]], *arguments: object
) -> Callable[[], Iterator[Call]]:
    return lambda: open_(*arguments)


def _nothing(head: bytes, broken: str, skipped: list[Skipped], path: str) -> InputError:
    """Why nothing in a file is of use."""
    if broken:
        return InputError(f"{broken}, and nothing before that is of use", path)
    if not skipped:
        if head.strip().removeprefix(b"\xef\xbb\xbf"):
            return InputError("it holds no request to a language model", path)
        return InputError("the file is empty; a log holds one JSON request a line", path)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return InputError("this is UTF-16 text; save it as UTF-8", path, 1)
    if b"\0" in head:
        return InputError("this is binary data, not JSONL", path, skipped[0].line)
    first = skipped[0]
    lines = (
        "this line does not hold" if len(skipped) == 1 else f"none of {len(skipped)} lines holds"
    )
    return InputError(
        f"{lines} a usable request: {first.reason}; a log holds one JSON request a line",
        path,
        first.line,
    )
