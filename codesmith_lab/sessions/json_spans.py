"""JSON values together with the exact bytes they were written in.

Values are decoded by Python's own scanner; only the outer levels are walked here, so that every
message keeps the slice of the log it came from. Nothing is serialised again.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

__all__ = ["BadJson", "decode_line", "items_of", "members_of", "plain_text"]

_SPACE = re.compile(r"[ \t\n\r]*")


class BadJson(ValueError):
    """A line that is not the JSON we can use; the text says why."""


def _constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is not a JSON number")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadJson(f"the key {twice[:40]!r} stands twice in one object, so its value is unclear")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except BadJson:
        raise
    except RecursionError:
        raise BadJson("it nests deeper than a request can") from None
    except ValueError as error:
        where = getattr(error, "pos", at)
        raise BadJson(f"it is not JSON (at character {where + 1})") from None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def decode_line(line: bytes) -> str:
    """The text of a line; BadJson for bytes that are not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson(f"byte {error.start + 1} is not UTF-8") from None


def members_of(text: str) -> dict[str, tuple[Any, str]]:
    """Members of one JSON object: value and exact text of each, by key."""
    at = _skip(text, 0)
    if not text.startswith("{", at):
        raise BadJson("it is not a JSON object")
    members: dict[str, tuple[Any, str]] = {}
    at = _skip(text, at + 1)
    while not text.startswith("}", at):
        key, at = _value(text, at)
        at = _skip(text, at)
        if not isinstance(key, str) or not text.startswith(":", at):
            raise BadJson(f"it is not JSON (at character {at + 1})")
        start = _skip(text, at + 1)
        value, at = _value(text, start)
        if key in members:
            raise BadJson(
                f"the key {key[:40]!r} stands twice in one object, so its value is unclear"
            )
        members[key] = (value, text[start:at])
        at = _next(text, at, "}")
    if text[at + 1 :].strip(" \t\r\n"):
        raise BadJson(f"something follows the object (at character {at + 2})")
    return members


def items_of(text: str) -> list[tuple[Any, str]]:
    """Items of one JSON array: value and exact text of each."""
    at = _skip(text, 0)
    if not text.startswith("[", at):
        raise BadJson("it is not a JSON array")
    items = []
    at = _skip(text, at + 1)
    while not text.startswith("]", at):
        start = at
        value, at = _value(text, start)
        items.append((value, text[start:at]))
        at = _next(text, at, "]")
    return items


def _next(text: str, at: int, close: str) -> int:
    at = _skip(text, at)
    if text.startswith(",", at):
        at = _skip(text, at + 1)
        if not text.startswith(close, at):
            return at
    elif text.startswith(close, at):
        return at
    raise BadJson(f"it is not JSON (at character {at + 1})")


def plain_text(text: str) -> str:
    """Text with lone surrogates replaced by U+FFFD: what UTF-8 can carry."""
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
