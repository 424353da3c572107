"""Walk the lines of a log, reading only what a line does not share with the one before it.

A log repeats its whole history in every line. Equal values are found by comparing bytes, decoded
once, and shared: memory and decoding grow with what is new, not with the square of the turns.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from codesmith_lab.sessions.reading.json_spans import (
    BadJson,
    Span,
    decode_at,
    key_at,
    next_item,
    skip,
    twice,
)
from codesmith_lab.sessions.reading.recent import REMEMBERED_REQUESTS, Recent
from codesmith_lab.sessions.reading.shared import Shared
from codesmith_lab.sessions.reading.spans import ArraySpan, Member, ObjectSpan

__all__ = ["ArraySpan", "LineWalker", "Member", "ObjectSpan", "Span", "common_bytes"]

_ARRAYS = ("messages", "tools", "system", "functions", "input", "contents")
_OBJECTS = (
    *("request", "request_body", "body", "toolConfig", "proxy_server_request"),
    *("input", "inputBodyJson"),
)
"""Members that are walked into, for they hold a request or parts of one."""
_MAX_LEVELS = 4
_KNOWN_ARRAYS = 64
"""As many sessions may be mixed in one log and still be read by comparing bytes."""
_LINE_BYTES = 4 * 2**20
"""Of so many bytes the newest lines are kept whole; older ones are compared item by item."""
_SHORT_BYTES = 64
_CLOSED = b'}]"'


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
    """An array of an earlier line. ends[i]: where item i ends, from the opening bracket.

    line: b"" where it was dropped to save memory.
    """

    line: bytes
    at: int
    array: ArraySpan
    ends: list[int]
    places: dict[int, int] = field(default_factory=dict)
    request: int = 0

    def common(self, line: bytes, start: int) -> int:
        """How many bytes are equal to those from `start` on; whole items only without the line."""
        if self.line:
            return common_bytes(self.line, self.at, line, start, self.ends[-1])
        at = start
        for gap, item in zip(self.array.gaps, self.array.items, strict=False):
            end = at + len(gap)
            if not (line.startswith(gap, at) and line.startswith(item.raw, end)):
                break
            at = end + len(item.raw)
        return at - start

    def restore(self) -> None:
        """Make the line anew, as far as it is the array."""
        if not self.line and self.ends:
            self.line, self.at = self.array.raw, 0

    def place(self, item: Span) -> int | None:
        if not self.places:
            self.places = {id(known): i for i, known in enumerate(self.array.items)}
        return self.places.get(id(item))


@dataclass(slots=True)
class LineWalker:
    """Walks lines, remembering the last value of each member and every array item."""

    _values: dict[str, Span] = field(default_factory=dict)
    _arrays: dict[str, list[_Known]] = field(default_factory=dict)
    _items: Recent[bytes, Span] = field(default_factory=Recent)
    _short: Recent[bytes, bytes] = field(default_factory=Recent)
    _expected: Recent[bytes, bytes] = field(default_factory=Recent)
    _requests: int = 0

    def expect(self, raw: bytes) -> None:
        """A value that may come as an item of an array: its bytes will be kept once."""
        self._expected.keep(raw, raw)

    def walk(self, line: bytes) -> ObjectSpan:
        """The object a line holds. Raises BadJson."""
        self._request()
        at = skip(line, 0)
        if line[at : at + 1] != b"{":
            decode_at(line, at)
            raise BadJson("it is not a JSON object")
        found, end = self._object(line, at, "")
        end = skip(line, end)
        if end < len(line):
            raise BadJson(f"something follows the object at byte {end + 1}")
        return found

    def array(self, text: bytes, name: str) -> ArraySpan:
        """The array a text holds, shared with earlier ones of that name. Raises BadJson."""
        self._request()
        at = skip(text, 0)
        if text[at : at + 1] != b"[":
            decode_at(text, at)
            raise BadJson("it is not a JSON array")
        found, end = self._array(text, at, name)
        if skip(text, end) < len(text):
            raise BadJson(f"something follows the array at byte {end + 1}")
        return found

    def _request(self) -> None:
        self._requests += 1
        self._items.request()
        self._short.request()
        self._expected.request()

    def _shorten(self, piece: bytes) -> bytes:
        """The same bytes; of short ones, which recur in every line, the same object."""
        if len(piece) > _SHORT_BYTES:
            return piece
        known = self._short.get(piece)
        return self._short.keep(piece, piece) if known is None else known

    def _object(self, line: bytes, start: int, path: str) -> tuple[ObjectSpan, int]:
        found = ObjectSpan()
        at, gap = start + 1, start
        while True:
            at, closed = next_item(line, at, b"}", not found.members)
            if closed:
                found.pieces.append(self._shorten(line[gap:at]))
                return found, at
            key, value_at = key_at(line, at)
            if key in found.members:
                raise twice(key)
            member, at = self._member(line, value_at, path, key)
            found.members[key] = member
            found.pieces += (self._shorten(line[gap:value_at]), member)
            gap = at

    def _member(self, line: bytes, at: int, path: str, key: str) -> tuple[Member, int]:
        opening = line[at : at + 1]
        if opening == b"[" and key in _ARRAYS:
            return self._array(line, at, f"{path}{key}")
        if opening == b"{" and key in _OBJECTS and path.count(".") < _MAX_LEVELS:
            return self._object(line, at, f"{path}{key}.")
        name = f"{path}{key}"
        known = self._values.get(name)
        if known is not None and line.startswith(known.raw, at) and known.raw[-1] in _CLOSED:
            return known, at + len(known.raw)
        value, end = decode_at(line, at)
        span = self._values[name] = Span(self._shorten(line[at:end]), value)
        return span, end

    def _array(self, line: bytes, start: int, path: str) -> tuple[ArraySpan, int]:
        known = self._nearest(line, start, path)
        items, gaps, ends = list[Span](), list[bytes](), list[int]()
        taken: list[tuple[int, int, int]] = []
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
            taken.append((len(items), first, last))
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
            gaps.append(self._shorten(line[at:value_at]))
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
            array = ArraySpan(items, gaps, _keep(items, gaps, known.array.kept, taken))
        common = sum(last - first for _, first, last in taken)
        self._remember(path, known, _Known(line, start, array, ends), common)
        return array, value_at

    def _nearest(self, line: bytes, start: int, path: str) -> _Known:
        """The known array that shares the longest beginning with the one that starts here."""
        best, longest = _Known(b"", 0, ArraySpan([], []), []), 0
        for known in self._arrays.get(path, ()):
            if (known.ends[-1] if known.ends else 0) <= longest:
                continue
            same = known.common(line, start)
            if same > longest:
                best, longest = known, same
        best.restore()
        return best

    def _remember(self, path: str, before: _Known, now: _Known, common: int) -> None:
        """Keep an array in place of the one it goes on from, else in place of the oldest."""
        kept = self._arrays.setdefault(path, [])
        if before in kept and 2 * common >= len(before.ends):
            kept.remove(before)
        now.request = self._requests
        kept.insert(0, now)
        del kept[_KNOWN_ARRAYS:]
        while now.request - kept[-1].request > REMEMBERED_REQUESTS:
            del kept[-1]
        held = 0
        for known in kept:
            held += len(known.line)
            if held > _LINE_BYTES and known is not now:
                known.line = b""

    def _item(self, line: bytes, at: int) -> tuple[Span, int]:
        value, end = decode_at(line, at)
        raw = line[at:end]
        span = self._items.get(raw)
        if span is None:
            raw = self._expected.get(raw) or raw
            span = self._items.keep(raw, Span(raw, value))
        return span, end


def _keep(
    items: list[Span],
    gaps: list[bytes],
    known: Shared[bytes],
    taken: list[tuple[int, int, int]],
) -> Shared[bytes]:
    """Gaps and items in turn; taken: (place, first, last) of each stretch of known items."""
    kept = Shared[bytes]()
    at = 0
    for place, first, last in [*taken, (len(items), 0, 0)]:
        kept = kept.plus([p for i in range(at, place) for p in (gaps[i], items[i].raw)])
        kept = kept.joined(known.slice(2 * first, 2 * last))
        at = place + last - first
    return kept
