"""Values that changed between two versions of a text, and what kind of value each is.

Only what changed is looked at: a constant date is innocent. The two versions are cut into the same
kinds of tokens line by line, so that several values in one text are told apart. The patterns are
ours; text from logs is only ever matched against them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from codesmith_lab.sessions.findings.differences import changed_range

__all__ = ["KINDS", "ValueChange", "clock_step_s", "value_changes"]

KINDS = {
    "clock": "volatile_timestamp",
    "date": "volatile_date",
    "counter": "volatile_counter",
    "id": "volatile_id",
    "path": "volatile_path",
    "space": "whitespace",
    "form": "unicode_escape",
    "number": "",
    "text": "",
}
"""Kinds of change and their finding classes; "" is an edit like any other."""

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|\b(?:mon|tue|wed|thu|fri|sat|sun)\b"
_TOKEN = re.compile(
    r"(?P<clock>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b\d{8}T\d{4,6}Z?\b"
    r"|\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\b\.?)?)"
    rf"|(?P<date>\d{{4}}-\d\d-\d\d|\b\d{{1,2}}(?:\.\d{{1,2}}\.\d{{4}}|/\d{{1,2}}/\d{{2,4}})\b|\d{{4}}/\d\d/\d\d"
    rf"|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?|\b\d{{1,2}}\.? {_MONTH}(?: \d{{4}})?"
    rf"|{_DAY})"
    r"|(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
    r"|(?P<path>(?:~|\b[A-Za-z]:|(?<![\w/]))(?:[\\/][\w.@+~-]+){2,})"
    r"|(?P<release>(?<![\w.])\d+(?:\.\d+){2,}(?!\w))"
    r"|(?P<number>(?<![\w.])\d+(?:\.\d+)?(?![\w]))"
    r"|(?P<word>[^\W_][\w-]*|_+)|(?P<space>\s+)|(?P<sign>.)",
    re.IGNORECASE | re.DOTALL,
)
_HEX = re.compile(r"[0-9a-f]{5,}", re.IGNORECASE)
_COUNTED = re.compile(r"(.*?)(\d{1,6})")
_MOST_CHANGES = 40
_MOST_LINE_CHARS = 20_000
_MOST_PAIRS = 250_000
_SHORT_LINE_CHARS = 400
_CONTEXT_CHARS = 60


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One value that differs. start, end: its characters in the new text."""

    kind: str
    start: int
    end: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    at: int
    text: str


def value_changes(old: str, new: str) -> list[ValueChange]:
    """What differs between two texts, in the order of the new one; at most 40 changes.

    What is no single value (words edited, lines added) is one change of kind "text".
    """
    if old == new:
        return []
    found: list[ValueChange] = []
    for start, before, after in _line_pairs(old, new):
        if before is None or after is None:
            text = after or ""
            found.append(ValueChange("text", start, start + len(text), before or "", text))
        else:
            found += _in_line(*_around(before, after, start))
        if len(found) >= _MOST_CHANGES:
            break
    return found[:_MOST_CHANGES]


def clock_step_s(text: str) -> int:
    """The resolution of a written time in seconds: 1 with seconds, else 60."""
    digits = re.sub(r"\D", " ", text).split()
    if len(digits) == 1 and len(digits[0]) >= 10:
        return 1
    return 1 if text.count(":") >= 2 or re.search(r"T\d{6}", text) else 60


def _line_pairs(old: str, new: str) -> Iterator[tuple[int, str | None, str | None]]:
    """(place in the new text, old line, new line) where lines differ; None for a missing one."""
    a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    head = min(len(a), len(b)) if head is None else head
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    mid_a, mid_b = a[head : len(a) - tail], b[head : len(b) - tail]
    at = sum(map(len, b[:head]))
    if len(mid_a) == len(mid_b):
        codes = [("replace", 0, len(mid_a), 0, len(mid_b))]
    elif len(mid_a) * len(mid_b) > _MOST_PAIRS:
        yield at, "".join(mid_a), "".join(mid_b)
        return
    else:
        codes = list(SequenceMatcher(None, mid_a, mid_b, autojunk=False).get_opcodes())
    for _, i1, i2, j1, j2 in codes:
        if i2 - i1 != j2 - j1:
            yield at, "".join(mid_a[i1:i2]) or None, "".join(mid_b[j1:j2]) or None
            at += sum(map(len, mid_b[j1:j2]))
            continue
        for x, y in zip(mid_a[i1:i2], mid_b[j1:j2], strict=True):
            if x != y:
                yield at, x, y
            at += len(y)


def _around(old: str, new: str, start: int) -> tuple[str, str, int]:
    """The part of a long line that differs, with some text around it."""
    if max(len(old), len(new)) <= _SHORT_LINE_CHARS:
        return old, new, start
    low, old_high, high = changed_range(old, new)
    low = new.rfind(" ", 0, max(0, low - _CONTEXT_CHARS)) + 1
    end = new.find(" ", high + _CONTEXT_CHARS)
    more = (len(new) if end < 0 else end) - high
    return old[low : old_high + more], new[low : high + more], start + low


def _in_line(old: str, new: str, start: int) -> list[ValueChange]:
    if max(len(old), len(new)) > _MOST_LINE_CHARS:
        return [ValueChange("text", start, start + len(new), old, new)]
    if unicodedata.normalize("NFC", old) == unicodedata.normalize("NFC", new):
        return [ValueChange("form", start, start + len(new), old, new)]
    a, b = _scan(old), _scan(new)
    if len(a) == len(b) and all(x.kind == y.kind for x, y in zip(a, b, strict=True)):
        groups = [([x], [y]) for x, y in zip(a, b, strict=True) if x.text != y.text]
    elif len(a) * len(b) > _MOST_PAIRS:
        return [ValueChange("text", start, start + len(new), old, new)]
    else:
        codes = SequenceMatcher(None, [t.text for t in a], [t.text for t in b], False).get_opcodes()
        groups = [(a[i1:i2], b[j1:j2]) for tag, i1, i2, j1, j2 in codes if tag != "equal"]
    found = []
    for x, y in groups:
        before, after = "".join(t.text for t in x), "".join(t.text for t in y)
        kind = _kind(x, y, new) if x and y else "space" if not (before + after).strip() else "text"
        if kind == "date" and _clock_near(b, y[-1]):
            kind = "clock"
        at = y[0].at if y else 0
        found.append(ValueChange(kind, start + at, start + at + len(after), before, after))
    return found


def _scan(line: str) -> list[_Token]:
    return [_Token(m.lastgroup or "sign", m.start(), m.group()) for m in _TOKEN.finditer(line)]


def _clock_near(tokens: list[_Token], date: _Token) -> bool:
    """A clock behind a date that rolled over is still a clock."""
    at = next(i for i, token in enumerate(tokens) if token is date)
    return any(token.kind == "clock" for token in tokens[at + 1 : at + 6])


def _kind(a: list[_Token], b: list[_Token], line: str) -> str:
    old, new = "".join(t.text for t in a), "".join(t.text for t in b)
    kinds = {t.kind for t in (*a, *b)}
    if kinds == {"space"}:
        return "space"
    if len(a) == len(b) == 1 and a[0].kind == b[0].kind and a[0].kind in ("clock", "date", "path"):
        return a[0].kind
    if kinds == {"uuid"}:
        return "id"
    if "release" in kinds:
        return "text"
    if kinds == {"number"} and len(a) == len(b) == 1:
        return _number_kind(old, new)
    if " " in old + new or len(old) > 200 or len(new) > 200:
        return "text"
    return _word_kind(old, new, line[: b[0].at])


def _number_kind(old: str, new: str) -> str:
    whole = old.split(".")[0], new.split(".")[0]
    if _is_epoch(whole[0]) and _is_epoch(whole[1]):
        return "clock"
    if "." in old or "." in new:
        return "number"
    was, now = int(old), int(new)
    if len(old) == len(new) == 4 and 1990 <= was < now == was + 1 <= 2100:
        return "date"
    if len(old) >= 6 and len(new) >= 6 and abs(now - was) > 1000:
        return "id"
    return "counter" if now > was else "number"


def _is_epoch(digits: str) -> bool:
    """Seconds or milliseconds since 1970, between 2001 and 2096."""
    value = int(digits) if len(digits) in (10, 13) else 0
    seconds = value / 1000 if len(digits) == 13 else value
    return 1e9 <= seconds < 4e9


def _word_kind(old: str, new: str, before: str) -> str:
    a, b = _COUNTED.fullmatch(old), _COUNTED.fullmatch(new)
    if a and b and a[1] == b[1] and not _random(old) and 0 < int(b[2]) - int(a[2]) <= 1000:
        return "counter"
    if _random(old) and _random(new):
        return "id"
    # Without a digit it takes the shape and the place of a value: `cch=aaaaa`.
    shaped = len(old) == len(new) and bool(_HEX.fullmatch(old) and _HEX.fullmatch(new))
    return "id" if shaped and before.rstrip().endswith(("=", ":")) else "text"


def _random(word: str) -> bool:
    """Letters and digits mixed as no name mixes them."""
    core = word.replace("_", "").replace("-", "")
    if len(core) < 6 or not core.isalnum():
        return False
    turns = sum(x.isdigit() != y.isdigit() for x, y in pairwise(core))
    digits = sum(ch.isdigit() for ch in core)
    if _HEX.fullmatch(core) and digits and len(core) >= 7:
        return True
    cases = sum(x.islower() and y.isupper() for x, y in pairwise(core))
    return turns >= 3 or (len(core) >= 16 and (digits > 0 or cases >= 4))
