"""Beyond moving: splitting a section, sending it with the turn, making its clock coarser.

Each rewrite is applied to every request and gives the blocks that would have been sent, so that it
can be replayed and billed like any order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.blocks import Block, SectionMeta
from codesmith_lab.prompt.sections import PromptSection
from codesmith_lab.sessions.edits import split_separator
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.remedies.remedy import move_section_to_turn

__all__ = [
    "GRAINS",
    "Grain",
    "Rewrite",
    "apply_rewrites",
    "coarser_clock",
    "has_clock",
    "send_with_turn",
    "split_section",
    "volatile_name",
]

Blocks = dict[int, tuple[Block, ...]]
Grain = Literal["minute", "hour", "day", "session"]
GRAINS: dict[str, str] = {
    "minute": "seconds become 00",
    "hour": "minutes become 00",
    "day": "the time of day becomes 00:00",
    "session": "every clock shows the session's first time",
}
"""How coarse a clock can be made, with what happens to it."""

# Our own pattern; text from a log is only ever matched against it.
_TIME = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})?(?P<gap>(?<=\d)[T ])?"
    r"(?<![\d:.])(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)(?P<second>:[0-5]\d)?(?![\d:])"
)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rewrite: kind is "split", "turn" or "clock"; `grain` comes with the clock."""

    kind: Literal["split", "turn", "clock"]
    name: str
    grain: Grain | None = None

    def __str__(self) -> str:
        if self.kind == "split":
            return f"split {self.name} at its changing lines"
        if self.kind == "turn":
            return f"send {self.name} with the turn's own message"
        return f"make the clock in {self.name} coarser ({self.grain})"


def apply_rewrites(requests: Sequence[Request], rewrites: Sequence[Rewrite]) -> Blocks:
    """The blocks of every request after all rewrites, in their order."""
    blocks: Blocks = {}
    for rewrite in rewrites:
        current = _with_blocks(requests, blocks)
        if rewrite.kind == "split":
            blocks = split_section(current, rewrite.name)
        elif rewrite.kind == "turn":
            blocks = send_with_turn(current, rewrite.name)
        else:
            blocks = coarser_clock(current, rewrite.name, rewrite.grain or "minute")
    return blocks


def _with_blocks(
    requests: Sequence[Request], blocks: Mapping[int, tuple[Block, ...]]
) -> list[Request]:
    return [replace(r, blocks=blocks[r.index]) if r.index in blocks else r for r in requests]


def volatile_name(name: str) -> str:
    """What the changing part of a split section is called."""
    return f"{name} (changing)"


def split_section(requests: Sequence[Request], name: str) -> Blocks:
    """The lines that every version of a section has stay; the others become a section behind it.

    The changing part is dynamic and is called `volatile_name(name)`; a declared section gives it
    a header of its own. Raises LabError when no line changes, or every one does.
    """
    texts = list(dict.fromkeys(split_separator(b.text)[0] for b in _all_of(requests, name)))
    stable = _stable_lines(texts)
    if len(texts) == 1:
        raise LabError(
            f"section {name!r} is the same in every request, so nothing can be split off; "
            "choose a section that changes"
        )
    if not any(line.strip() and not line.startswith("<!--") for line in stable):
        raise LabError(
            f"every line of section {name!r} changes, so that no stable part is left; "
            "move the whole section instead"
        )
    parts = {text: _parted(text, stable) for text in texts}

    def parted(block: Block) -> tuple[Block, ...]:
        text, separator = split_separator(block.text)
        kept, changing = parts[text]
        if not changing.strip():
            return (replace(block, text=kept + separator),)
        meta = _changing_meta(block)
        head = f"{_header(meta)}\n" if block.section is not None and block.section.declared else ""
        between = separator or "\n\n"
        return (
            replace(block, text=kept + between, last=False),
            replace(
                block,
                name=meta.id,
                section=meta,
                text=head + changing + separator,
                first=False,
            ),
        )

    return _replaced(requests, name, parted)


def _stable_lines(texts: Sequence[str]) -> list[str]:
    """The longest lines in common, version after version: a subsequence of each of them."""
    stable = texts[0].split("\n")
    for text in texts[1:]:
        other = text.split("\n")
        matcher = SequenceMatcher(None, stable, other, autojunk=False)
        stable = [
            line for at, _, size in matcher.get_matching_blocks() for line in stable[at : at + size]
        ]
    return stable


def _parted(text: str, stable: Sequence[str]) -> tuple[str, str]:
    kept: list[str] = []
    changing: list[str] = []
    for line in text.split("\n"):
        if len(kept) < len(stable) and line == stable[len(kept)]:
            kept.append(line)
        else:
            changing.append(line)
    return "\n".join(kept), "\n".join(changing)


def _changing_meta(block: Block) -> SectionMeta:
    name = volatile_name(block.name)
    if block.section is None:
        return SectionMeta(name, name, "dynamic", "cacheable", "unknown", False)
    title = volatile_name(block.section.title)
    return replace(block.section, id=name, title=title, stability="dynamic")


def _header(meta: SectionMeta) -> str:
    source = "builtin" if meta.source == "unknown" else meta.source
    return PromptSection(
        meta.id, meta.title, "", meta.stability, meta.cache_policy, source
    ).header()


def send_with_turn(requests: Sequence[Request], name: str) -> Blocks:
    """The section in front of the user's message of its turn, and out of the system prompt.

    Raises LabError when no request has the section, or none has a message of the user's to carry
    it.
    """
    _all_of(requests, name)
    if not any(b.zone == "scratch" and b.role == "user" for r in requests for b in r.blocks):
        raise LabError(
            f"no request ends with a user's message, so that nothing can carry section {name!r}; "
            "leave it in the system prompt"
        )
    return move_section_to_turn(requests, name)


def has_clock(text: str) -> bool:
    """Whether a text shows a time of day."""
    return _TIME.search(text) is not None


def coarser_clock(requests: Sequence[Request], name: str, grain: Grain) -> Blocks:
    """Every time of day in a section rounded down: see `GRAINS`.

    Raises LabError for an unknown grain, or when the section shows no time of day.
    """
    if grain not in GRAINS:
        raise LabError(f"a clock has no grain {grain!r}; use one of {', '.join(GRAINS)}")
    found = [block for block in _all_of(requests, name) if has_clock(block.text)]
    if not found:
        raise LabError(
            f"section {name!r} shows no time of day, so that no clock can be made coarser; "
            "choose a section with a clock in it"
        )
    first = [match.group() for match in _TIME.finditer(found[0].text)]

    def coarser(block: Block) -> tuple[Block, ...]:
        if grain == "session":
            times = iter(first)
            text = _TIME.sub(lambda match: next(times, match.group()), block.text)
        else:
            text = _TIME.sub(lambda match: _rounded(match, grain), block.text)
        return (block if text == block.text else replace(block, text=text),)

    return _replaced(requests, name, coarser)


def _rounded(match: re.Match[str], grain: str) -> str:
    hour, minute, second = match["hour"], match["minute"], match["second"]
    hour = "00" if grain == "day" else hour
    minute = minute if grain == "minute" else "00"
    return f"{match['date'] or ''}{match['gap'] or ''}{hour}:{minute}{':00' if second else ''}"


def _all_of(requests: Sequence[Request], name: str) -> list[Block]:
    found = [
        block
        for request in requests
        for block in request.blocks
        if block.kind == "section" and block.name == name
    ]
    if not found:
        raise LabError(f"no request has a section named {name!r}; choose one of the board's")
    return found


def _replaced(
    requests: Sequence[Request], name: str, parts: Callable[[Block], tuple[Block, ...]]
) -> Blocks:
    """Every request with the section's block replaced; equal blocks stay one object."""
    memo: dict[int, tuple[Block, tuple[Block, ...]]] = {}
    interned: dict[Block, Block] = {}
    changed: Blocks = {}
    for request in requests:
        blocks: list[Block] = []
        for block in request.blocks:
            if block.kind == "section" and block.name == name:
                if id(block) not in memo:
                    made = tuple(interned.setdefault(part, part) for part in parts(block))
                    memo[id(block)] = (block, made)
                blocks += memo[id(block)][1]
            else:
                blocks.append(block)
        changed[request.index] = tuple(blocks)
    return changed
