"""The block: the unit of a prompt that a person thinks in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, overload

__all__ = [
    "Block",
    "BlockKind",
    "LazyBlocks",
    "SectionMeta",
    "SwappedBlocks",
    "Zone",
    "same_places",
]

Zone = Literal["pinned", "log", "scratch"]
BlockKind = Literal[
    "section",  # one part of the system prompt
    "tool",  # one tool definition
    "message",  # a whole message, or its only part
    "part",  # one of several content parts of a message
]


@dataclass(frozen=True, slots=True)
class SectionMeta:
    """What is declared, or assumed, of a system-prompt section.

    `declared` is true when the text carries a rendered section header; otherwise
    the stability is an assumption and is the user's to adjust.
    """

    id: str
    title: str
    stability: str  # static, workspace, session, dynamic
    cache_policy: str  # cacheable, uncached, cache_breaker
    source: str
    declared: bool


@dataclass(frozen=True, slots=True)
class Block:
    """One section, tool definition, message or content part, as a request sent it.

    zone: "pinned" (system prompt and tool catalog), "log" (history) or "scratch"
        (what follows the last assistant message: this turn's own).
    kind: see `BlockKind`.
    role: "system", "developer", "tool", "user", "assistant"; "" for tool definitions.
    name: short label for people, e.g. "environment", "read_file", "assistant, 2 tool calls".
    text: what a provider reads for this block, framing excluded. JSON string escapes are
        decoded; tool definitions are one JSON object in the sender's key order. Sections own
        their trailing blank line, so that the texts of a system prompt's sections
        joined with "" are that system prompt. Never holds lone surrogates.
    raw: the exact slice of the request body that this block came from (UTF-8, JSON).
        Sections of one system prompt share the slice of the whole system value.
    message: index of the message in the body's `messages` (or equivalent); -1 for
        tools and for a system prompt outside `messages`.
    first, last: this block is the first / last block of its message (both true for a
        message that is one block). Always true for tool definitions.
    calls: number of tool calls in this block.
    section: set for kind "section".
    """

    zone: Zone
    kind: BlockKind
    role: str
    name: str
    text: str
    raw: bytes
    message: int = -1
    first: bool = True
    last: bool = True
    calls: int = 0
    section: SectionMeta | None = None


class LazyBlocks(Sequence[Block]):
    """Blocks that are not kept as a tuple and read like one: `block` finds one by its place."""

    __slots__ = ()

    def block(self, at: int) -> Block:
        """The block in place `at`, 0 or more. Raises IndexError behind the last."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Block, ...]: ...
    def __getitem__(self, index: int | slice) -> Block | tuple[Block, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        return self.block(index if index >= 0 else range(len(self))[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as a list: it is compared, and no key

    def __repr__(self) -> str:
        return repr(tuple(self))


class SwappedBlocks(LazyBlocks):
    """A request's blocks of which a few were replaced in their places; the rest is not copied.

    base: the request's own blocks. swaps: the new block by its place in `base`; never changed.
    """

    __slots__ = ("base", "swaps")

    def __init__(self, base: Sequence[Block], swaps: Mapping[int, Block]) -> None:
        self.base = base
        self.swaps = swaps

    @classmethod
    def over(cls, blocks: Sequence[Block], at: int, block: Block) -> SwappedBlocks:
        """`blocks`, which nobody changes any more, with another block at `at`."""
        if isinstance(blocks, SwappedBlocks):
            return cls(blocks.base, {**blocks.swaps, at: block})
        return cls(blocks, {at: block})

    def __len__(self) -> int:
        return len(self.base)

    def block(self, at: int) -> Block:
        return self.swaps.get(at, self.base[at])

    def __iter__(self) -> Iterator[Block]:
        whole = list(self.base)
        for at, block in self.swaps.items():
            whole[at] = block
        return iter(whole)


def same_places(blocks: Sequence[Block], own: Sequence[Block]) -> bool:
    """Whether as many blocks stand in `blocks` as in a request's own."""
    if isinstance(blocks, SwappedBlocks):
        return blocks.base is own
    return len(blocks) == len(own)
