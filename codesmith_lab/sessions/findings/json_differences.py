"""How two spellings of one JSON value differ: space, escapes, numbers, order, shape.

Both are read as tokens, never parsed and written again: what a parser makes equal is just what is
looked for here. Cache markers are left out on both sides; they are no part of what is cached.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["JsonDifference", "classify_json", "compare_json", "embedded_json"]

_TOKEN = re.compile(
    r'(\s*)("[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*|true|false|null|[\[\]{}:,])', re.DOTALL
)
_MARKERS = ('"cache_control"', '"prompt_cache_breakpoint"')
_IDS = ("id", "call_id", "tool_call_id", "tool_use_id", "item_id")
_JSON_START = re.compile(r"^[\[{]", re.MULTILINE)
_DECODER = json.JSONDecoder()
_MOST_FAILURES = 20


@dataclass(frozen=True, slots=True)
class JsonDifference:
    """Two spellings of one value, or two shapes of it.

    classes: in the order of their first places. old_at, new_at: characters before the first
        difference. path: of the value it stands in, e.g. "content[0].text".
    """

    classes: tuple[str, ...]
    old_at: int
    new_at: int
    path: str


@dataclass(frozen=True, slots=True)
class _Token:
    at: int
    space: str
    text: str


def classify_json(old: str, new: str) -> list[str]:
    """Classes of a change between two JSON texts that mean the same; [] when they do not."""
    found = compare_json(old, new)
    if found is None or {"shape_change", "volatile_id"} & set(found.classes):
        return []
    return list(found.classes)


def compare_json(old: str, new: str) -> JsonDifference | None:
    """How two JSON objects or lists differ; None when nothing does, or one is no such JSON."""
    a, b = _tokens(old), _tokens(new)
    if a is None or b is None:
        return None
    first = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if not _same(x, y)), None)
    if first is None and len(a) == len(b):
        return None
    first = min(len(a), len(b)) - 1 if first is None else first
    try:
        was, now = json.loads("".join(t.text for t in a)), json.loads("".join(t.text for t in b))
    except (ValueError, RecursionError):
        return None
    if not isinstance(was, dict | list) or not isinstance(now, dict | list):
        return None
    return JsonDifference(
        tuple(_classes(a, b, was, now)),
        _where(a[first], b[first]),
        _where(b[first], a[first]),
        _path(b[:first]),
    )


def embedded_json(text: str) -> tuple[list[str], list[str]]:
    """Plain stretches of a text, and the JSON objects and lists that begin its lines between."""
    plain, values, at, start, failed = list[str](), list[str](), 0, 0, 0
    while failed < _MOST_FAILURES and (found := _JSON_START.search(text, at)):
        try:
            _, end = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            # Each failure costs a look over the text before it: a log full of "[INFO]" ends here.
            at, failed = found.end(), failed + 1
            continue
        plain.append(text[start : found.start()])
        values.append(text[found.start() : end])
        at = start = end
    return [*plain, text[start:]], values


def _tokens(text: str) -> list[_Token] | None:
    """The tokens of a JSON text without its cache markers; None when it is no JSON."""
    tokens: list[_Token] = []
    at = 0
    while found := _TOKEN.match(text, at):
        tokens.append(_Token(found.start(2), found[1], found[2]))
        at = found.end()
    if not tokens or text[at:].strip():
        return None
    if any(marker in text for marker in _MARKERS):
        tokens = _unmarked(tokens)
    return tokens


def _unmarked(tokens: Sequence[_Token]) -> list[_Token]:
    kept: list[_Token] = []
    i = 0
    while i < len(tokens):
        is_key = i + 1 < len(tokens) and tokens[i + 1].text == ":"
        if tokens[i].text not in _MARKERS or not is_key:
            kept.append(tokens[i])
            i += 1
            continue
        i = _value_end(tokens, i + 2)
        # With the member goes one comma: the one behind it, or before the last member.
        if i < len(tokens) and tokens[i].text == ",":
            i += 1
        elif kept and kept[-1].text == ",":
            kept.pop()
    return kept


def _value_end(tokens: Sequence[_Token], at: int) -> int:
    depth = 0
    while at < len(tokens):
        depth += (tokens[at].text in "[{") - (tokens[at].text in "]}")
        at += 1
        if depth <= 0:
            break
    return at


def _same(a: _Token, b: _Token) -> bool:
    return a.text == b.text and a.space == b.space


def _where(token: _Token, other: _Token) -> int:
    return token.at - len(token.space) if token.space != other.space else token.at


def _classes(a: Sequence[_Token], b: Sequence[_Token], was: Any, now: Any) -> list[str]:
    if _loose(was, arrays=True) != _loose(now, arrays=True):
        return ["volatile_id"] if _only_ids(was, now) else ["shape_change"]
    if _loose(was, arrays=False) != _loose(now, arrays=False):
        return ["json_array_order", *_spelling(a, b)]
    if _keys(was) != _keys(now):
        return ["json_key_order", *_spelling(a, b)]
    # The same tokens in the same order: each difference has its own place.
    found: dict[str, None] = {}
    for x, y in zip(a, b, strict=True):
        if x.space != y.space:
            found.setdefault("whitespace")
        if x.text != y.text:
            found.setdefault("unicode_escape" if y.text.startswith('"') else "number_format")
    return list(found)


def _spelling(a: Sequence[_Token], b: Sequence[_Token]) -> list[str]:
    """Classes of spelling beside another order, where places say nothing."""
    classes = []
    if _spaces(a) != _spaces(b):
        classes.append("whitespace")
    for start, cls in (('"', "unicode_escape"), ("-0123456789", "number_format")):
        if _of(a, start) != _of(b, start):
            classes.append(cls)
    return classes


def _of(tokens: Iterable[_Token], start: str) -> list[str]:
    return sorted(t.text for t in tokens if t.text[0] in start)


def _spaces(tokens: Iterable[_Token]) -> list[str]:
    return sorted(t.space for t in tokens)


def _loose(value: Any, arrays: bool) -> Any:
    """A form in which key order, number spelling and (optionally) array order do not count."""
    if isinstance(value, dict):
        return ("{", sorted(((k, _loose(v, arrays)) for k, v in value.items()), key=repr))
    if isinstance(value, list):
        items = [_loose(v, arrays) for v in value]
        return ("[", sorted(items, key=repr) if arrays else items)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    return ("n", float(value) if abs(value) < 2**53 else value)


def _keys(value: Any) -> Any:
    if isinstance(value, dict):
        return [(k, _keys(v)) for k, v in value.items()]
    return [_keys(v) for v in value] if isinstance(value, list) else None


def _only_ids(a: Any, b: Any, key: str = "") -> bool:
    """The values differ in nothing but identifiers of calls."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_only_ids(a[k], b[k], k) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_only_ids(x, y) for x, y in zip(a, b, strict=True))
    return a == b or (key in _IDS and isinstance(a, str) and isinstance(b, str))


def _path(tokens: Sequence[_Token]) -> str:
    """Where the token behind these stands: keys and indices from the outermost value on."""
    stack: list[str | int] = []
    for i, token in enumerate(tokens):
        if token.text == "{":
            stack.append("")
        elif token.text == "[":
            stack.append(0)
        elif token.text in "]}":
            stack.pop()
        elif token.text == ":":
            stack[-1] = json.loads(tokens[i - 1].text)
        elif token.text == "," and stack:
            top = stack[-1]
            stack[-1] = top + 1 if isinstance(top, int) else ""
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" if s else "" for s in stack)
