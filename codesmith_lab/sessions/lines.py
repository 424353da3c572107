"""Walk the lines of a log, reading only what a line does not share with the one before it.

A log repeats its whole history in every line. Equal values are found by comparing bytes, decoded
once, and shared: memory and decoding grow with what is new, not with the square of the turns.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from codesmith_lab.sessions.json_spans import (
    BadJson,
    Span,
    decode_at,
    key_at,
    next_item,
    skip,
    twice,
)

__all__ = ["ArraySpan", "LineWalker", "Member", "ObjectSpan", "common_bytes"]

_ARRAYS = ("messages", "tools", "system", "functions")
_OBJECTS = ("request",)
_CLOSED = b'}]"'


@dataclass(slots=True, eq=False)
class ArraySpan:
    """An array as its items and the bytes around them.

    gaps: one more than items; gaps[0] opens the array and the last one closes it.
    """

    items: list[Span]
    gaps: list[bytes]

    @property
    def raw(self) -> bytes:
        """The exact bytes of the array."""
        pieces = [b""] * (2 * len(self.items) + 1)
        pieces[::2] = self.gaps
        pieces[1::2] = [item.raw for item in self.items]
        return b"".join(pieces)


@dataclass(slots=True, eq=False)
class ObjectSpan:
    """An object as its members and, in order, the bytes it is made of."""

    members: dict[str, Member] = field(default_factory=dict)
    pieces: list[bytes | Member] = field(default_factory=list)

    @property
    def raw(self) -> bytes:
        """The exact bytes of the object."""
        return b"".join(p if isinstance(p, bytes) else p.raw for p in self.pieces)


Member = Span | ArraySpan | ObjectSpan


def common_bytes(a: bytes, a_at: int, b: bytes, b_at: int, most: int) -> int:
    """How many bytes, at most `most`, are equal from `a_at` and from `b_at` on."""
    most = min(most, len(a) - a_at, len(b) - b_at)
    step, done = 256, 0
    while done < most:
        size = min(step, most - done)
        if not b.startswith(a[a_at + done : a_at + done + size], b_at + done):
            break
        done += size
        step = min(step * 8, 1 << 18)
    else:
        return most
    while size > 1:
        half = size // 2
        if a[a_at + done : a_at + done + half] == b[b_at + done : b_at + done + half]:
            done += half
            size -= half
        else:
            size = half
    return done


@dataclass(slots=True, eq=False)
class _Known:
    """An array of an earlier line. ends[i]: where item i ends, from the opening bracket."""

    line: bytes
    at: int
    array: ArraySpan
    ends: list[int]
    places: dict[int, int] = field(default_factory=dict)

    def place(self, item: Span) -> int | None:
        if not self.places:
            self.places = {id(known): i for i, known in enumerate(self.array.items)}
        return self.places.get(id(item))


@dataclass(slots=True)
class LineWalker:
    """Walks lines, remembering the last value of each member and every array item."""

    _values: dict[str, Span] = field(default_factory=dict)
    _arrays: dict[str, _Known] = field(default_factory=dict)
    _items: dict[bytes, Span] = field(default_factory=dict)

    def walk(self, line: bytes) -> ObjectSpan:
        """The object a line holds. Raises BadJson."""
        at = skip(line, 0)
        if line[at : at + 1] != b"{":
            decode_at(line, at)
            raise BadJson("it is not a JSON object")
        found, end = self._object(line, at, "")
        end = skip(line, end)
        if end < len(line):
            raise BadJson(f"something follows the object at byte {end + 1}")
        return found

    def _object(self, line: bytes, start: int, path: str) -> tuple[ObjectSpan, int]:
        found = ObjectSpan()
        at, gap = start + 1, start
        while True:
            at, closed = next_item(line, at, b"}", not found.members)
            if closed:
                found.pieces.append(line[gap:at])
                return found, at
            key, value_at = key_at(line, at)
            if key in found.members:
                raise twice(key)
            member, at = self._member(line, value_at, path, key)
            found.members[key] = member
            found.pieces += (line[gap:value_at], member)
            gap = at

    def _member(self, line: bytes, at: int, path: str, key: str) -> tuple[Member, int]:
        opening = line[at : at + 1]
        if opening == b"[" and key in _ARRAYS:
            return self._array(line, at, f"{path}{key}")
        if opening == b"{" and key in _OBJECTS and not path:
            return self._object(line, at, f"{key}.")
        name = f"{path}{key}"
        known = self._values.get(name)
        if known is not None and line.startswith(known.raw, at) and known.raw[-1] in _CLOSED:
            return known, at + len(known.raw)
        value, end = decode_at(line, at)
        span = self._values[name] = Span(line[at:end], value)
        return span, end

    def _array(self, line: bytes, start: int, path: str) -> tuple[ArraySpan, int]:
        known = self._arrays.get(path) or _Known(b"", 0, ArraySpan([], []), [])
        items, gaps, ends = list[Span](), list[bytes](), list[int]()
        at, next_known = start, 0

        def share(first: int) -> int:
            """Take over the known items that stand here, from `first` on; gives how many."""
            nonlocal at, next_known
            if first >= len(known.ends):
                return 0
            before = known.ends[first - 1] if first else 0
            same = common_bytes(known.line, known.at + before, line, at, known.ends[-1] - before)
            last = bisect_right(known.ends, before + same)
            # A number or a word could go on where the equal bytes stop.
            if last > first and known.array.items[last - 1].raw[-1] not in _CLOSED:
                last -= 1
            if last <= first:
                return 0
            shift = at - start - before
            items.extend(known.array.items[first:last])
            gaps.extend(known.array.gaps[first:last])
            fresh = known.ends[first:last]
            ends.extend(fresh if not shift else [end + shift for end in fresh])
            at, next_known = start + ends[-1], last
            return last - first

        share(0)
        while True:
            opened = at if items else at + 1
            value_at, closed = next_item(line, opened, b"]", not items)
            gaps.append(line[at:value_at])
            if closed:
                break
            item, at = self._item(line, value_at)
            items.append(item)
            ends.append(at - start)
            place = known.place(item) if next_known < len(known.ends) else None
            if place is not None:
                # Something before it was removed, or moved.
                next_known = place + 1
                share(next_known)
            elif not share(next_known + 1) and not share(next_known):
                # Neither edited nor inserted: go on as if edited.
                next_known += 1
        if items == known.array.items and gaps == known.array.gaps:
            array = known.array
        else:
            array = ArraySpan(items, gaps)
        self._arrays[path] = _Known(line, start, array, ends)
        return array, value_at

    def _item(self, line: bytes, at: int) -> tuple[Span, int]:
        value, end = decode_at(line, at)
        raw = line[at:end]
        span = self._items.get(raw)
        if span is None:
            span = self._items[raw] = Span(raw, value)
        return span, end
