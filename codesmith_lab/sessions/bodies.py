"""What both request formats share: drafts of messages, blocks made of them, blocks kept.

A draft is what one message says, whatever its place. It is read once; its blocks are made once for
each place and zone, and a request that only appends takes the earlier request's blocks over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from codesmith_lab.prompt.blocks import Block, BlockKind, Zone
from codesmith_lab.sessions.json_spans import Span, plain
from codesmith_lab.sessions.system_text import split_sections

__all__ = ["BlockMaker", "Draft", "History", "Part", "Reading", "compact", "dump", "media_text"]

_NAME_CHARACTERS: Final = 200
_ROLES: Final = ("system", "developer", "tool", "user", "assistant")


@dataclass(slots=True)
class Part:
    """One piece of a message.

    answers: id of the tool call whose result it is, or "". marker: lifetime of its cache marker
    ("5m" unless it says otherwise), or "".
    """

    name: str
    text: str
    raw: bytes
    calls: int = 0
    answers: str = ""
    marker: str = ""


@dataclass(slots=True, eq=False)
class Draft:
    """What a message says, apart from its place.

    calls: ids and names of the tools it calls. notes: what had to be repaired.
    """

    role: str
    parts: list[Part] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say what had to be repaired or could not be read."""
        self.notes.append(text)

    def clean(self, value: str) -> str:
        """Text that UTF-8 can carry; a repair is noted."""
        cleaned: str = plain(value)
        if cleaned != value:
            self.note("a lone surrogate was read as U+FFFD")
        return cleaned

    def finish(self) -> Draft:
        """Texts, names and role in the form blocks carry."""
        for part in self.parts:
            part.text = self.clean(part.text)
            part.name = label(part.name)
        if self.role not in _ROLES:
            known = "tool" if self.role == "function" else "user"
            if known == "user":
                self.note(f"a message of the role {label(self.role)!r} was read as the user's")
            self.role = known
        return self


@dataclass(slots=True)
class Reading:
    """What one body gave. markers: (block index, lifetime) of each cache marker."""

    blocks: list[Block] = field(default_factory=list)
    markers: list[tuple[int, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ignored: dict[str, Any] = field(default_factory=dict)

    def add(self, draft: Draft, blocks: Iterable[Block]) -> None:
        """Append the blocks of a draft, with its markers and notes."""
        start = len(self.blocks)
        self.blocks += blocks
        self.notes += draft.notes
        self.markers += ((start + i, p.marker) for i, p in enumerate(draft.parts) if p.marker)


def label(name: Any) -> str:
    """A name for people: short, and carried by UTF-8."""
    text: str = plain(name if isinstance(name, str) else compact(name))
    return text if len(text) <= _NAME_CHARACTERS else text[: _NAME_CHARACTERS - 1] + "…"


def dump(value: Any) -> str:
    """JSON as chat templates write it: keys in the sender's order, non-ASCII raw."""
    return json.dumps(value, ensure_ascii=False)


def compact(value: Any) -> str:
    """The same without spaces, for what is kept as its JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def media_text(kind: str, content: Any, *details: Any) -> str:
    """A stand-in for an image or a file: its digest, so that a change shows and nothing is bulky.

    The digest is the SHA-256 of the text sent (URL, data URL, base64), or of its JSON.
    """
    text = content if isinstance(content, str) else compact(content)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return " ".join([f"{kind} sha256:{digest}", *(d for d in details if isinstance(d, str) and d)])


@dataclass(slots=True)
class BlockMaker:
    """Makes blocks and keeps them: what repeats in a log is made once.

    Drafts are kept by span, so spans must stay alive as long as the maker does; its keys see to it.
    """

    _drafts: dict[tuple[Span, str], Draft] = field(default_factory=dict)
    _blocks: dict[tuple[Any, ...], tuple[Block, ...]] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)

    def draft(self, span: Span, use: str, read: Callable[[Span], Draft]) -> Draft:
        """What a span says when read for `use`; read once."""
        known = self._drafts.get((span, use))
        if known is None:
            known = self._drafts[(span, use)] = read(span).finish()
        return known

    def message(
        self, draft: Draft, index: int, zone: Zone, names: Sequence[str] = ()
    ) -> tuple[Block, ...]:
        """The blocks of a message; `names` are those of the tools its parts answer."""
        key = (draft, index, zone, *names)
        known = self._blocks.get(key)
        if known is None:
            parts = draft.parts
            kind: BlockKind = "message" if len(parts) == 1 else "part"
            last = len(parts) - 1
            known = self._blocks[key] = tuple(
                Block(
                    zone,
                    kind,
                    draft.role,
                    label(f"tool {names[i]}") if names and names[i] else part.name,
                    part.text,
                    part.raw,
                    index,
                    i == 0,
                    i == last,
                    part.calls,
                )
                for i, part in enumerate(parts)
            )
        return known

    def tool(self, draft: Draft) -> tuple[Block, ...]:
        """The block of a tool definition."""
        known = self._blocks.get((draft,))
        if known is None:
            part = draft.parts[0]
            block = Block("pinned", "tool", "", part.name, part.text, part.raw)
            known = self._blocks[(draft,)] = (block,)
        return known

    def system(self, reading: Reading, prompts: Sequence[tuple[Draft, int]]) -> None:
        """Append the sections of a request's system prompts, their names distinct over all.

        prompts: each draft with the index of its message, or -1. An empty prompt is one empty
        section, for its message is still sent.
        """
        key = ("system", *prompts)
        known = self._blocks.get(key)
        if known is None:
            known = self._blocks[key] = _distinct(
                [block for draft, index in prompts for block in self._sections(draft, index)]
            )
        start = len(reading.blocks)
        reading.blocks += known
        for draft, _index in prompts:
            reading.notes += draft.notes
            for part in draft.parts:
                start += len(self._split(part))
                if part.marker:
                    reading.markers.append((start - 1, part.marker))

    def _sections(self, draft: Draft, index: int) -> list[Block]:
        blocks = [
            Block(
                "pinned",
                "section",
                draft.role,
                block.name,
                block.text,
                part.raw,
                index,
                False,
                False,
                0,
                block.section,
            )
            for part in draft.parts
            for block in self._split(part)
        ]
        blocks[0] = replace(blocks[0], first=True)
        blocks[-1] = replace(blocks[-1], last=True)
        return blocks

    def _split(self, part: Part) -> tuple[Block, ...]:
        """A system text's sections as blocks without a place; split once for each text."""
        key = ("text", part.text)
        known = self._blocks.get(key)
        if known is None:
            known = self._blocks[key] = tuple(
                Block("pinned", "section", "", meta.id, self._text(text), b"", section=meta)
                for meta, text in split_sections(part.text)
            ) or (Block("pinned", "section", "", "system", "", b""),)
        return known

    def _text(self, text: str) -> str:
        return self._texts.setdefault(text, text)


def _distinct(blocks: list[Block]) -> tuple[Block, ...]:
    seen: set[str] = set()
    named = []
    for block in blocks:
        name, count = block.name, 1
        while name in seen:
            count += 1
            name = f"{block.name} ({count})"
        seen.add(name)
        named.append(block if name == block.name else replace(block, name=name))
    return tuple(named)


@dataclass(slots=True)
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

    def extend(self, reading: Reading, items: Sequence[Span], start: int) -> None:
        """Append the blocks of messages `start` and following to a reading.

        What follows the last assistant message is this turn's own: zone "scratch".
        """
        self._rewind(items, start)
        for place in range(len(self._items), len(items) - start):
            self._push(items[start + place], start + place)
        base = len(reading.blocks)
        own = len(self._drafts)
        while own and self._drafts[own - 1].role != "assistant":
            own -= 1
        reading.blocks += self._flat[: self._ends[own - 1] if own else 0]
        for place in range(own, len(self._drafts)):
            reading.blocks += self.maker.message(
                self._drafts[place], start + place, "scratch", self._names[place]
            )
        for place in self._special:
            draft = self._drafts[place]
            reading.notes += draft.notes
            at = base + (self._ends[place - 1] if place else 0)
            reading.markers += ((at + i, p.marker) for i, p in enumerate(draft.parts) if p.marker)

    def _rewind(self, items: Sequence[Span], start: int) -> None:
        """Keep what these messages share with the ones before."""
        kept = _shared(self._items, items, start) if start == self._start else 0
        if kept < len(self._items) or start != self._start:
            self._start = start
            del self._items[kept:], self._drafts[kept:], self._ends[kept:], self._names[kept:]
            del self._flat[self._ends[-1] if self._ends else 0 :]
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
    most = min(len(known), len(items) - start)
    if known[:most] == list(items[start : start + most]):
        return most
    return next(i for i in range(most) if known[i] is not items[start + i])
