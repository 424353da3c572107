"""Records out of lines and documents, however they are laid out."""

from __future__ import annotations

import io
import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.errors import InputError
from codesmith_lab.sessions.reading import cutting, documents
from codesmith_lab.sessions.reading.documents import read_records
from codesmith_lab.sessions.reading.load import load_bytes

GOOD: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": 'hi "{[\\" é'}]}


class Drip(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data = io.BytesIO(data)
        self._size = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._data.read(min(self._size, len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)


def records(data: bytes, size: int = 1 << 20) -> tuple[list[tuple[int, bytes]], list[Any]]:
    left: list[Any] = []
    stream = io.BufferedReader(Drip(data, size), 1 << 16)
    return list(read_records(stream, lambda line, reason: left.append((line, reason)))), left


@pytest.mark.parametrize("indent", [None, 0, 1, 4, "\t"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\n\n\n"])
def test_bodies_one_behind_the_other_and_in_arrays(indent: Any, ending: str) -> None:
    text = json.dumps(GOOD, indent=indent, ensure_ascii=False)
    text = text.replace("\n", "\r\n" if ending == "\r\n" else "\n")
    for log in (
        ending.join([text, text, text]),
        f"[{text},{ending}{text},{text}]",
        f"[{ending}  {text}{ending},{text},{ending}{text}{ending}]{ending}",
        f"\ufeff{ending}{text}{ending}{text}{ending}{text}{ending}",
        f'{{"version": 2,{ending}"records": [{text}, {text}, {text}], "n": [1, 2]}}',
        f'{{{ending}"x": {{"entries": []}}, "log": {{"a": [1], "entries": [{text},{text}'
        f",{text}]}}}}",
    ):
        session = load_bytes(log.encode())
        assert [json.loads(r.body) for r in session.requests] == [GOOD] * 3, log
        assert session.skipped == ()
        for request in session.requests:
            assert request.body == text.encode()


@given(
    st.lists(
        st.recursive(
            st.none() | st.integers() | st.text(max_size=9),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
            max_leaves=9,
        ),
        max_size=5,
    ),
    st.sampled_from([None, 1]),
    st.integers(1, 40),
)
def test_items_of_an_array_are_cut_exactly(values: list[Any], indent: Any, size: int) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    found, left = records(text, size)
    assert [json.loads(data.decode("utf-8", "surrogatepass")) for _, data in found] == values
    assert left == []


def test_lines_of_records_in_a_document_are_where_they_start() -> None:
    text = json.dumps([GOOD, GOOD], indent=1).encode()
    found, _ = records(text)
    lines = text.split(b"\n")
    assert [lines[line - 1] for line, _ in found] == [b" {", b" {"]


@pytest.mark.parametrize(
    ("log", "line", "reason"),
    [
        (b"[%s,\n%s\n%s]", 3, "not JSON on line 3 (expecting ',' or ']')"),
        (b"[%s,\n%s", 2, "cut off"),
        (b"[%s,\n%s, {", 2, "cut off"),
        (b'[%s,\n%s, {"a', 2, "cut off"),
        (b"[%s,\n%s,]", 2, "expecting value"),
        (b"[%s,\n%s]\n]", 3, "expecting value"),
        (b'[%s,\n%s, {"messages": 5}]', 2, "no list of messages"),
        (b"[%s,\n%s, 7]", 2, "not a JSON object"),
    ],
)
def test_what_breaks_a_document_is_named_and_what_was_read_is_kept(
    log: bytes, line: int, reason: str
) -> None:
    body = json.dumps(GOOD).encode()
    session = load_bytes(log.replace(b"%s", body))
    assert len(session.requests) == (3 if log.count(b"%s") == 3 and b"\n%s\n" not in log else 2)
    assert [entry.line for entry in session.skipped] == [line]
    assert reason in session.skipped[0].reason


def test_a_line_that_is_cut_off_does_not_make_a_document_of_the_log() -> None:
    body = json.dumps(GOOD).encode()
    for cut in range(2, len(body) - 1):
        if body[:cut].rstrip()[-1:] in b"[,:{":
            continue
        session = load_bytes(body[:cut] + b"\n" + body + b"\n" + body)
        assert (len(session.requests), len(session.skipped)) == (2, 1), body[:cut]


def test_records_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "MAX_RECORD_BYTES", 1 << 20)
    body = json.dumps(GOOD).encode()
    long = json.dumps({**GOOD, "pad": "x" * (3 << 20)}).encode()
    many = b'{"a":[' + b"1," * (1 << 20) + b"1]}"
    for record in (long, many, b"9" * (3 << 20)):
        session = load_bytes(b"[" + body + b",\n" + record + b"]")
        assert len(session.requests) == 1
        assert session.skipped[0].line == 2
        assert session.skipped[0].reason == "it is longer than 1 MiB; split the log"


def test_a_line_without_an_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "MAX_RECORD_BYTES", 1 << 20)
    monkeypatch.setattr(documents, "MAX_SKIPPED_BYTES", 8 << 20)

    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self.given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            self.given += len(buffer)
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    endless = Endless()
    left: list[tuple[int, str]] = []
    stream = io.BufferedReader(endless, 1 << 20)
    assert list(read_records(stream, lambda line, reason: left.append((line, reason)))) == []
    assert left == [
        (1, "it is longer than 1 MiB; split the log"),
        (1, "the rest of the file was not read"),
    ]
    assert endless.given < 16 << 20


def test_a_document_of_other_things_is_an_error(made: ModuleType) -> None:
    for log in (b'{\n "a": 1\n}', b"[]", b'{"log": {"entries": []}}', b'[\n{"x": 1}\n]'):
        with pytest.raises(InputError, match="request"):
            load_bytes(log)
