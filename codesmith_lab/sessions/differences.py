"""What kind of change a piece of text went through.

Everything here looks at two versions of one text: a pattern that never changed is no finding, so a
constant date is innocent. The patterns are ours; text from logs is only ever matched against them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Change", "changed_range", "classify_text", "first_difference"]

_SHOWN_CHARS = 80
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?|\d{10,13}(\.\d+)?")
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    r"|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2}"
    r"|\b(mon|tues|wednes|thurs|fri|satur|sun)day\b",
    re.IGNORECASE,
)
_ID = re.compile(r"(?=[^\W_]*\d)[\w-]{4,}|\d+|[0-9a-fA-F]{5,}|\b([a-z])\1{3,}\b")
_WORDS = re.compile(r"[^\w:.+-]")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two texts.

    at: characters in common before it. line, column: 1-based, of that place in the new text.
    before, after: what differs, widened to whole words, at most 80 characters each.
    """

    at: int
    line: int
    column: int
    before: str
    after: str


def changed_range(old: str, new: str) -> tuple[int, int, int]:
    """(start, old end, new end) of the differing middle, in characters."""
    n = min(len(old), len(new))
    start = _common_prefix(old, new, n)
    room = n - start
    tail = _common_prefix(old[len(old) - room :][::-1], new[len(new) - room :][::-1], room)
    return start, len(old) - tail, len(new) - tail


def _common_prefix(a: str, b: str, n: int) -> int:
    if a[:n] == b[:n]:
        return n
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def first_difference(old: str, new: str) -> Change:
    """Where two texts part, and what stands there in each, as whole words."""
    start, old_end, new_end = changed_range(old, new)
    head = new[:start]
    line = head.count("\n") + 1
    column = start - (head.rfind("\n") + 1) + 1
    left = start
    while left > 0 and start - left < 24 and not _WORDS.match(new[left - 1]):
        left -= 1
    before = _to_word_end(old, left, old_end)
    after = _to_word_end(new, left, new_end)
    return Change(start, line, column, before, after)


def _to_word_end(text: str, start: int, end: int) -> str:
    while end < len(text) and end - start < _SHOWN_CHARS and not _WORDS.match(text[end]):
        end += 1
    shown = text[start:end]
    return shown if len(shown) <= _SHOWN_CHARS else shown[: _SHOWN_CHARS - 1] + "…"


def classify_text(old: str, new: str) -> list[str]:
    """Classes of a change in running text, the most telling first; [] when only "edited" fits.

    A value counts as volatile when it changed in place and both versions look like a clock, a
    date or an identifier.
    """
    change = first_difference(old, new)
    if old.split() == new.split():
        return ["whitespace"]
    before, after = change.before, change.after
    if not before or not after or len(before) > 60 or len(after) > 60:
        return []
    if _CLOCK.search(before) and _CLOCK.search(after):
        return ["volatile_timestamp"]
    if _DATE.search(before) and _DATE.search(after):
        # A clock behind a date that rolled over is still a clock.
        return ["volatile_date" if not _clock_follows(new, change) else "volatile_timestamp"]
    if _only_a_value(old, new) and _ID.fullmatch(_core(before)) and _ID.fullmatch(_core(after)):
        return ["volatile_id"]
    return []


def _core(text: str) -> str:
    return re.split(r"[=:]", text)[-1].strip(".,;'\"()[]")


def _only_a_value(old: str, new: str) -> bool:
    start, old_end, new_end = changed_range(old, new)
    return "\n" not in old[start:old_end] + new[start:new_end]


def _clock_follows(text: str, change: Change) -> bool:
    return bool(_CLOCK.match(text[change.at : change.at + 40].lstrip("0123456789-/. T")))
