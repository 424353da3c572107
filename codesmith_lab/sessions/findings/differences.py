"""Where two versions of one text differ, and what stands there in each."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Change", "changed_range", "first_difference"]

_SHOWN_CHARS = 80
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
