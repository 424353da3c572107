"""Makes the blocks of drafts and keeps them: what repeats in a log is made once.

A draft is read once; its blocks are made once for each place and zone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from codesmith_lab.prompt.blocks import Block, BlockKind, Zone
from codesmith_lab.sessions.reading.apis.drafts import Draft, Part, Reading, label
from codesmith_lab.sessions.reading.json_spans import Span
from codesmith_lab.sessions.reading.lines import ArraySpan, Member
from codesmith_lab.sessions.reading.recent import Recent
from codesmith_lab.sessions.reading.system_text import split_sections

__all__ = ["BlockMaker"]


@dataclass(slots=True)
class BlockMaker:
    """Makes blocks and keeps those of the last requests: what repeats in a log is made once."""

    _drafts: Recent[tuple[Span, str], Draft] = field(default_factory=Recent)
    _blocks: Recent[tuple[Any, ...], tuple[Block, ...]] = field(default_factory=Recent)
    _derived: Recent[tuple[Draft, str], Draft] = field(default_factory=Recent)
    _texts: Recent[str, str] = field(default_factory=Recent)
    _catalogs: Recent[ArraySpan, list[tuple[Draft, tuple[Block, ...]]]] = field(
        default_factory=Recent
    )

    def request(self) -> None:
        """Another request begins."""
        for known in (self._drafts, self._blocks, self._derived, self._texts, self._catalogs):
            known.request()

    def draft(self, span: Span, use: str, read: Callable[[Span], Draft]) -> Draft:
        """What a span says when read for `use`; read once."""
        known = self._drafts.get((span, use))
        if known is None:
            known = self._drafts.keep((span, use), read(span).finish())
            span.drop()
        return known

    def derived(self, draft: Draft, use: str, make: Callable[[], Draft]) -> Draft:
        """Another form of a draft; made once."""
        known = self._derived.get((draft, use))
        if known is None:
            known = self._derived.keep((draft, use), make().finish())
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
            blocks = []
            for i, part in enumerate(parts):
                # A response stands again in the history of the next request.
                part.text = self._text(part.text)
                name = label(f"tool {names[i]}") if names and names[i] else part.name
                blocks.append(
                    Block(
                        zone,
                        kind,
                        draft.role,
                        name,
                        part.text,
                        part.raw,
                        index,
                        i == 0,
                        i == last,
                        part.calls,
                    )
                )
            known = self._blocks.keep(key, tuple(blocks))
        return known

    def tool(self, draft: Draft) -> tuple[Block, ...]:
        """The block of a tool definition; several where one entry defines several."""
        known = self._blocks.get((draft,))
        if known is None:
            known = self._blocks.keep(
                (draft,),
                tuple(
                    Block("pinned", "tool", "", part.name, part.text, part.raw)
                    for part in draft.parts
                ),
            )
        return known

    def tools(
        self, member: Member | None, key: str, read: Callable[[Span], Draft], reading: Reading
    ) -> None:
        """Append the tools of a body; what is no list is a setting."""
        if isinstance(member, ArraySpan):
            known = self._catalogs.get(member)
            if known is None:
                drafts = [self.draft(item, "tool", read) for item in member.items]
                known = self._catalogs.keep(member, [(d, self.tool(d)) for d in drafts])
            for draft, blocks in known:
                reading.add(draft, blocks)
        elif isinstance(member, Span) and member.value is not None:
            reading.notes.append(f"{key} is not a list and was read as a setting")
            reading.ignored[key] = member.value

    def system(self, reading: Reading, prompts: Sequence[tuple[Draft, int]]) -> None:
        """Append the sections of a request's system prompts, their names distinct over all.

        prompts: each draft with the index of its message, or -1. An empty prompt is one empty
        section, for its message is still sent.
        """
        key = ("system", *prompts)
        known = self._blocks.get(key)
        if known is None:
            blocks = [block for draft, index in prompts for block in self._sections(draft, index)]
            known = self._blocks.keep(key, _distinct(blocks))
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
            found = tuple(
                Block("pinned", "section", "", meta.id, self._text(text), b"", section=meta)
                for meta, text in split_sections(part.text)
            )
            known = self._blocks.keep(
                key, found or (Block("pinned", "section", "", "system", "", b""),)
            )
        return known

    def _text(self, text: str) -> str:
        """An equal text that was seen lately, or this one from now on."""
        known = self._texts.get(text)
        return self._texts.keep(text, text) if known is None else known


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
