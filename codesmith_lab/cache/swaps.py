"""Prompts of which a few pieces were replaced in their places: an edit, without copying the rest.

A `Swap` says which pieces changed and what that did to the tokens around them; it is the same
object's worth of work for one turn or for a thousand that carry the same edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from codesmith_lab.cache.match import IntArray, LongArray
from codesmith_lab.cache.packed import PackedPrompt
from codesmith_lab.cache.pieces import PieceTable, Prompt
from codesmith_lab.prompt.blocks import Block, SwappedBlocks

__all__ = ["Swap", "SwappedPrompt", "swapped"]


@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    """What an edit did to a prompt.

    keys: places of the replaced blocks in the request, and at: of their pieces in the prompt, in
        the order of the edit; given: the new blocks.
    places: of the replaced pieces, rising; olds, news: their numbers before and after.
    low, high: range of pieces whose tokens may differ; run: their numbers before.
    tokens: tokens of these pieces now; delta_tokens: how many more they are together.
    exact: joined texts in the range were counted as one.
    parts: what the packed prompt that fitted last holds up to `high`; one that begins with the same
        fits, too.
    """

    keys: tuple[int, ...]
    at: tuple[int, ...]
    given: tuple[Block, ...]
    places: tuple[int, ...]
    olds: tuple[int, ...]
    news: tuple[int, ...]
    low: int
    high: int
    run: bytes
    old_tokens: int
    tokens: LongArray
    delta_tokens: int
    exact: bool
    parts: list[object] = field(default_factory=list)

    def same_change(self, other: Swap) -> bool:
        """Whether both replace the same pieces by the same in the same places."""
        return self.places == other.places and self.news == other.news and self.olds == other.olds


class SwappedPrompt(Prompt):
    """A prompt over another; arrays are made when somebody looks at them."""

    _blocks: tuple[Block, ...] | None = None
    _pieces: IntArray | None = None
    _tokens: LongArray | None = None
    _ends: LongArray | None = None

    def __init__(self, base: Prompt, swap: Swap) -> None:
        total = base.total_tokens + swap.delta_tokens
        # The base class is frozen; this one fills itself on demand.
        self.__dict__.update(base=base, swap=swap, total=total)

    base: Prompt
    swap: Swap
    total: int

    @property
    def blocks(self) -> tuple[Block, ...]:
        """In prompt order."""
        if self._blocks is None:
            whole = list(self.base.blocks)
            for at, block in zip(self.swap.at, self.swap.given, strict=True):
                whole[at] = block
            self.__dict__["_blocks"] = tuple(whole)
        assert self._blocks is not None
        return self._blocks

    @property
    def pieces(self) -> IntArray:
        """Piece numbers, the reply's marks last."""
        if self._pieces is None:
            whole = self.base.pieces.copy()
            whole[list(self.swap.places)] = self.swap.news
            self.__dict__["_pieces"] = whole
        assert self._pieces is not None
        return self._pieces

    @property
    def tokens(self) -> LongArray:
        """Tokens of each piece in its place."""
        if self._tokens is None:
            whole = self.base.tokens.copy()
            whole[self.swap.low : self.swap.high] = self.swap.tokens
            self.__dict__["_tokens"] = whole
        assert self._tokens is not None
        return self._tokens

    @property
    def ends(self) -> LongArray:
        """Running sum of the tokens."""
        if self._ends is None:
            self.__dict__["_ends"] = np.cumsum(self.tokens)
        assert self._ends is not None
        return self._ends

    @property
    def size(self) -> int:
        """How many pieces, the reply's marks included."""
        return self.base.size

    @property
    def total_tokens(self) -> int:
        """Input tokens of the request."""
        return self.total

    @property
    def pinned_blocks(self) -> tuple[Block, ...]:
        """Tools and system prompt, in prompt order."""
        if self._blocks is not None:
            return self._blocks[: self.pinned_pieces]
        front = list(self.base.pinned_blocks)
        for at, block in zip(self.swap.at, self.swap.given, strict=True):
            if at < len(front):
                front[at] = block
        return tuple(front)

    @property
    def pinned_pieces(self) -> int:
        """How many pieces at the front are tools and system prompt."""
        return self.base.pinned_pieces

    def tokens_before(self, pieces: int) -> int:
        """Tokens of the first `pieces` pieces."""
        if pieces >= self.swap.high:
            return self.base.tokens_before(pieces) + self.swap.delta_tokens
        if pieces <= self.swap.low:
            return self.base.tokens_before(pieces)
        return int(self.ends[pieces - 1])


def swapped(
    table: PieceTable,
    base: Prompt,
    blocks: SwappedBlocks,
    exact: bool,
    like: Swap | None = None,
) -> SwappedPrompt | None:
    """The prompt of a request whose `blocks` were swapped; None where only a new layout will do.

    base: the prompt of `blocks.base`. like: the swap of another turn, taken over where it fits.
    """
    if like is not None and like.exact == exact and _fits(like, base, blocks):
        return SwappedPrompt(base, like)
    at = _places(base.blocks, blocks)
    if at is None:
        return None
    return SwappedPrompt(base, _swap(table, base, blocks, at, exact))


def _fits(like: Swap, base: Prompt, blocks: SwappedBlocks) -> bool:
    """Whether another turn's swap says what this edit does to this prompt, too."""
    swaps, own = blocks.swaps, blocks.base
    if len(swaps) != len(like.keys) or base.size < like.high:
        return False
    for key, place, block in zip(like.keys, like.at, like.given, strict=True):
        if swaps.get(key) is not block or key >= len(own) or base.block_at(place) is not own[key]:
            return False
    packed = base if isinstance(base, PackedPrompt) else None
    if packed and like.parts and packed.parts[: len(like.parts)] == tuple(like.parts):
        return True
    fits = (
        base.numbers(like.low, like.high).tobytes() == like.run
        and base.tokens_before(like.high) - base.tokens_before(like.low) == like.old_tokens
    )
    if fits and packed:
        like.parts[:] = packed.parts_up_to(like.high)
    return fits


def _places(ordered: Sequence[Block], blocks: SwappedBlocks) -> list[int] | None:
    """Where the swapped blocks stand in prompt order; None for tools and for what moved away."""
    found = []
    tools = -1
    for at, block in blocks.swaps.items():
        old = blocks.base[at]
        if "tool" in (old.kind, block.kind) or old.kind != block.kind:
            return None
        if not (at < len(ordered) and ordered[at] is old):
            # A provider that reads the system prompt before the tools.
            if tools < 0:
                tools = next(
                    (i for i, b in enumerate(blocks.base) if b.kind != "tool"), len(blocks.base)
                )
            at -= tools
            if not (0 <= at < len(ordered) and ordered[at] is old):
                return None
        found.append(at)
    return found


def _swap(
    table: PieceTable, base: Prompt, blocks: SwappedBlocks, at: list[int], exact: bool
) -> Swap:
    given = tuple(blocks.swaps.values())
    number = {
        place: table.number_of(block, opens=place == 0)
        for place, block in zip(at, given, strict=True)
    }
    places = sorted(number)
    numbers = base.pieces.copy()
    numbers[places] = [number[place] for place in places]
    # A change may cut or join runs: what was one run, and what is one now.
    runs = [table.run_around(pieces, i) for pieces in (base.pieces, numbers) for i in places]
    low, high = min(run[0] for run in runs), max(run[1] for run in runs)
    part = table.assemble((), numbers[low:high])
    if exact:
        part = table.exact(part)
    old_tokens = base.tokens_before(high) - base.tokens_before(low)
    return Swap(
        tuple(blocks.swaps),
        tuple(at),
        given,
        tuple(places),
        tuple(int(base.pieces[place]) for place in places),
        tuple(number[place] for place in places),
        low,
        high,
        base.pieces[low:high].tobytes(),
        old_tokens,
        part.tokens,
        int(part.tokens.sum()) - old_tokens,
        exact,
    )
