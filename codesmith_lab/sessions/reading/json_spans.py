"""JSON values together with the exact bytes they were written in.

Values are decoded by Python's own scanner. Only the outer levels are walked here, so that every
message, tool and part keeps its slice of the log; nothing is serialised again.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any, Final, NoReturn

__all__ = ["MAX_DEPTH", "BadJson", "Span", "decode_at", "items_of", "members_of", "plain", "skip"]

MAX_DEPTH = 200
"""Deeper values are refused: a fixed limit, so that the caller's stack decides nothing."""

_FIRST_WINDOW_BYTES = 2048
_SPACE = re.compile(rb"[ \t\n\r]*")
_KEY = re.compile(rb'"([ !#-\[\]-~]{0,64})"[ \t\n\r]*:[ \t\n\r]*')
# A text that the window cuts ends with the window.
_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


class BadJson(ValueError):
    """A line that is not the JSON we can use; the text says why."""


_DROPPED: Final = object()


class Span:
    """One JSON value and the exact bytes it was written in. Equal only to itself.

    seen: for whoever has to look at the value again and again; nobody else's.
    """

    __slots__ = ("_value", "raw", "seen")

    def __init__(self, raw: bytes, value: Any) -> None:
        self.raw = raw
        self._value = value
        self.seen: Any = None

    @property
    def value(self) -> Any:
        """The decoded value; decoded anew when it was dropped."""
        return decode_at(self.raw, 0)[0] if self._value is _DROPPED else self._value

    def drop(self) -> None:
        """Keep the bytes alone: what was read of a value takes its place in memory."""
        if self.raw:
            self._value = _DROPPED


def _constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is not a JSON number")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise BadJson(f"the number {digits[:40]} is too large")
    return number


def twice(key: str) -> BadJson:
    """The refusal of a repeated key.

    JSON leaves its meaning open (RFC 8259, section 4): what the model read cannot be known.
    """
    return BadJson(f"the key {plain(key[:40])!r} stands twice in one object, its value is unclear")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise twice(key)
            seen.add(key)
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float)


def decode_at(line: bytes, at: int) -> tuple[Any, int]:
    """The JSON value that starts at byte `at` of a UTF-8 line, and the byte where it ends.

    A growing window is decoded, not the whole rest of the line: a long log repeats its history in
    every line and only the new end is read. Raises BadJson.
    """
    size = _FIRST_WINDOW_BYTES
    while True:
        whole = at + size >= len(line)
        try:
            text, _ = codecs.utf_8_decode(line[at : at + size], "strict", whole)
        except UnicodeDecodeError as error:
            raise BadJson(f"byte {at + error.start + 1} of the line is not UTF-8") from None
        _check_depth(text)
        try:
            value, end = _DECODER.raw_decode(text)
            # A number may go on behind the window.
            if whole or end < len(text):
                used = text if end == len(text) else text[:end]
                return value, at + (end if used.isascii() else len(used.encode("utf-8")))
        except BadJson:
            raise
        except RecursionError:
            raise BadJson("the caller's stack has no room left to read it") from None
        except json.JSONDecodeError as error:
            if whole:
                raise _not_json(text, error, at) from None
        except ValueError:
            # Python refuses integers beyond 4,300 digits.
            raise BadJson("a whole number has too many digits to be read") from None
        size *= 8


def _too_deep() -> BadJson:
    return BadJson(f"it nests deeper than {MAX_DEPTH} levels, more than a request can")


def _not_json(text: str, error: json.JSONDecodeError, at: int) -> BadJson:
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
        return BadJson("it is not JSON: it is cut off before its end")
    byte = at + len(text[: error.pos].encode("utf-8")) + 1
    return BadJson(f"it is not JSON at byte {byte} ({error.msg.removesuffix(' at').lower()})")


def _check_depth(text: str) -> None:
    """Refuse a value that nests too deep before it is decoded.

    Python's own scanner stops at the interpreter's recursion limit, which anybody may change: what
    a log is then called would depend on it.
    """
    if text.count("[") + text.count("{") <= MAX_DEPTH or text[0] not in "[{":
        return
    depth = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep()
        elif found[0] in "]}":
            depth -= 1
            if not depth:
                return


def skip(line: bytes, at: int) -> int:
    """The first byte from `at` on that is not JSON white space."""
    found = _SPACE.match(line, at)
    return found.end() if found else at


def expected(line: bytes, at: int, what: str) -> BadJson:
    """What to say where `what` should stand in the line and does not."""
    if at >= len(line):
        return BadJson("it is not JSON: it is cut off before its end")
    return BadJson(f"it is not JSON at byte {at + 1} (expecting {what})")


def key_at(line: bytes, at: int) -> tuple[str, int]:
    """The key at byte `at`, and where its value starts."""
    if line[at : at + 1] != b'"':
        raise expected(line, at, "a key in double quotes")
    plain_key = _KEY.match(line, at)
    if plain_key:
        return plain_key[1].decode("ascii"), plain_key.end()
    key, at = decode_at(line, at)
    at = skip(line, at)
    if line[at : at + 1] != b":":
        raise expected(line, at, "':'")
    return key, skip(line, at + 1)


def next_item(line: bytes, at: int, close: bytes, first: bool) -> tuple[int, bool]:
    """Step over white space and a comma to the next item; true when the list closes instead."""
    at = skip(line, at)
    if line[at : at + 1] == close:
        return at + 1, True
    if first:
        return at, False
    if line[at : at + 1] != b",":
        raise expected(line, at, f"',' or '{close.decode()}'")
    return skip(line, at + 1), False


def members_of(raw: bytes) -> dict[str, Span]:
    """Members of one JSON object, by key."""
    at, members, closed = skip(raw, 0), dict[str, Span](), False
    if raw[at : at + 1] != b"{":
        raise BadJson("it is not a JSON object")
    at += 1
    while True:
        at, closed = next_item(raw, at, b"}", not members)
        if closed:
            return members
        key, start = key_at(raw, at)
        value, at = decode_at(raw, start)
        if key in members:
            raise twice(key)
        members[key] = Span(raw[start:at], value)


def items_of(raw: bytes) -> list[Span]:
    """Items of one JSON array, in order."""
    at, items, closed = skip(raw, 0), list[Span](), False
    if raw[at : at + 1] != b"[":
        raise BadJson("it is not a JSON array")
    at += 1
    while True:
        start, closed = next_item(raw, at, b"]", not items)
        if closed:
            return items
        value, at = decode_at(raw, start)
        items.append(Span(raw[start:at], value))


def plain(value: Any) -> Any:
    """The value with lone surrogates replaced by U+FFFD in every text: what UTF-8 can carry."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return value
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return value
