"""The blocks of a history, taken over from the request it goes on from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.reading.apis.block_maker import BlockMaker
from codesmith_lab.sessions.reading.apis.drafts import Draft, Reading
from codesmith_lab.sessions.reading.json_spans import Span
from codesmith_lab.sessions.reading.recent import REMEMBERED_REQUESTS
from codesmith_lab.sessions.reading.shared import Shared

__all__ = ["Histories", "History"]


@dataclass(slots=True, eq=False)
class History:
    """Blocks of the messages behind the system prompt, taken over from the request before.

    Kept for the request before: its messages, the running number of blocks behind each message
    (`_ends`), all blocks as history (`_flat`), the tool calls, and what is not plain (`_special`).
    """

    maker: BlockMaker
    read: Callable[[Span], Draft]
    _start: int = -1
    _items: list[Span] = field(default_factory=list)
    _drafts: list[Draft] = field(default_factory=list)
    _names: list[tuple[str, ...]] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _flat: list[Block] = field(default_factory=list)
    _calls: dict[str, str] = field(default_factory=dict)
    _special: list[int] = field(default_factory=list)
    _view: Shared[Block] = field(default_factory=Shared)
    last_request: int = 0

    @property
    def length(self) -> int:
        """How many messages it holds."""
        return len(self._items)

    def shared_with(self, items: Sequence[Span], start: int) -> int:
        """How many messages from `start` on are those of the request before."""
        return _shared(self._items, items, start) if start == self._start else 0

    def extend(self, reading: Reading, items: Sequence[Span], start: int) -> None:
        """Append the blocks of messages `start` and following to a reading.

        What follows the last assistant message is this turn's own: zone "scratch".
        """
        self._rewind(items, start)
        for place in range(len(self._items), len(items) - start):
            self._push(items[start + place], start + place)
        self._view = self._view.plus(self._flat[self._view.length :])
        base = len(reading.blocks)
        own = len(self._drafts)
        while own and self._drafts[own - 1].role != "assistant":
            own -= 1
        reading.history = self._view.slice(0, self._ends[own - 1] if own else 0)
        for place in range(own, len(self._drafts)):
            reading.own += self.maker.message(
                self._drafts[place], start + place, "scratch", self._names[place]
            )
        for place in self._special:
            draft = self._drafts[place]
            reading.notes += draft.notes
            at = base + (self._ends[place - 1] if place else 0)
            reading.markers += ((at + i, p.marker) for i, p in enumerate(draft.parts) if p.marker)

    def _rewind(self, items: Sequence[Span], start: int) -> None:
        """Keep what these messages share with the ones before."""
        kept = self.shared_with(items, start)
        if kept < len(self._items) or start != self._start:
            self._start = start
            del self._items[kept:], self._drafts[kept:], self._ends[kept:], self._names[kept:]
            blocks = self._ends[-1] if self._ends else 0
            del self._flat[blocks:]
            self._view = self._view.slice(0, blocks)
            self._special = [place for place in self._special if place < kept]
            self._calls = {call: name for draft in self._drafts for call, name in draft.calls}

    def _push(self, item: Span, index: int) -> None:
        draft = self.maker.draft(item, "message", self.read)
        found = tuple(self._calls.get(p.answers, "") if p.answers else "" for p in draft.parts)
        names = found if any(found) else ()
        self._flat += self.maker.message(draft, index, "log", names)
        if draft.calls:
            self._calls.update(draft.calls)
        if draft.notes or any(part.marker for part in draft.parts):
            self._special.append(len(self._items))
        self._items.append(item)
        self._drafts.append(draft)
        self._names.append(names)
        self._ends.append(len(self._flat))


def _shared(known: list[Span], items: Sequence[Span], start: int) -> int:
    """How many of the known spans stand in `items` from `start` on. Spans equal only themselves."""
    most = max(0, min(len(known), len(items) - start))
    if most and known[0] is not items[start]:
        return 0
    if known[:most] == list(items[start : start + most]):
        return most
    return next(i for i in range(most) if known[i] is not items[start + i])


_HISTORIES: Final = 64


class Histories:
    """Histories of the sessions that are mixed in one log; the newest is first."""

    def __init__(self, maker: BlockMaker, read: Callable[[Span], Draft]) -> None:
        self._maker = maker
        self._read = read
        self._known: list[History] = []
        self._requests = 0

    def extend(self, reading: Reading, items: Sequence[Span], start: int) -> None:
        """Append the blocks of the messages, taken over from the history they go on from."""
        self._maker.request()
        shared = [known.shared_with(items, start) for known in self._known]
        most = max(shared, default=0)
        near = self._known[shared.index(most)] if most else None
        if near is not None and 2 * most >= near.length:
            history = near
            self._known.remove(near)
        elif len(self._known) >= _HISTORIES:
            history = self._known.pop()
        else:
            history = History(self._maker, self._read)
        self._known.insert(0, history)
        self._requests += 1
        history.last_request = self._requests
        while self._requests - self._known[-1].last_request > REMEMBERED_REQUESTS:
            del self._known[-1]
        history.extend(reading, items, start)
