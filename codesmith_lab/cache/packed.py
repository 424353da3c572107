"""Prompts of one session, made of parts that they share.

An agent's request repeats its history, so that a thousand prompts of a thousand blocks are mostly
the same rows again. Each prompt is cut into parts at places that its content decides; equal parts
are kept once, wherever and in whichever prompt they stand. Arrays are put together when somebody
looks at them, and those of the prompts looked at last stay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codesmith_lab.cache.match import IntArray, LongArray
from codesmith_lab.cache.pieces import Prompt
from codesmith_lab.prompt.blocks import Block

__all__ = ["PackedPrompt", "Packer"]

_USUAL_PIECES = 32
"""A power of two: one piece in so many ends a part."""
_MOST_PIECES = 256
_FRESH_PROMPTS = 8
_NONE: IntArray = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A stretch of a prompt; the last one of a prompt has a piece more than blocks.

    size: how many pieces. rows: their numbers, then the running sum of their tokens from the start
    of the part, 32 bits each; bytes are smaller than arrays.
    """

    blocks: tuple[Block, ...]
    size: int
    rows: bytes
    total_tokens: int

    @property
    def pieces(self) -> IntArray:
        return np.frombuffer(self.rows, np.int32, self.size)

    @property
    def ends(self) -> IntArray:
        return np.frombuffer(self.rows, np.int32, self.size, 4 * self.size)


class Packer:
    """Keeps the parts of all prompts that it packed, each once."""

    def __init__(self) -> None:
        self._parts: dict[bytes, _Part] = {}
        self._fresh: deque[PackedPrompt] = deque()

    def pack(
        self, prompt: Prompt, before: PackedPrompt | None = None, same: int = 0
    ) -> PackedPrompt:
        """The same prompt, packed.

        before: a packed prompt whose first `same` blocks, pieces and tokens are this one's too.
        """
        parts: list[_Part] = []
        start = 0
        for part in before.parts if before is not None else ():
            if start + part.size > same:
                break
            parts.append(part)
            start += part.size
        numbers, tokens = prompt.pieces[start:], prompt.tokens[start:]
        edges = _edges(numbers)
        low = 0
        for high in edges:
            blocks = prompt.blocks[start + low : start + high]
            whole = high < len(numbers)
            parts.append(self._part(blocks, numbers[low:high], tokens[low:high], whole))
            low = high
        packed = PackedPrompt(self, tuple(parts), prompt)
        self.hold(packed)
        return packed

    def _part(
        self, blocks: tuple[Block, ...], pieces: IntArray, tokens: LongArray, whole: bool
    ) -> _Part:
        """whole: it ends where its content says, and so may stand in another prompt."""
        ends = np.cumsum(tokens, dtype=np.int32)
        rows = [pieces.tobytes(), ends.tobytes()]
        if whole:
            # Parts keep their blocks alive, so that an id is never given to another one.
            rows.append(np.fromiter(map(id, blocks), np.int64, len(blocks)).tobytes())
        key = b"".join(rows)
        known = self._parts.get(key) if whole else None
        if known is None:
            known = _Part(blocks, len(pieces), key, int(ends[-1]))
            if whole:
                self._parts[key] = known
        return known

    def hold(self, prompt: PackedPrompt) -> None:
        """Keep a prompt's arrays until others were looked at."""
        self._fresh.append(prompt)
        while len(self._fresh) > _FRESH_PROMPTS:
            self._fresh.popleft().drop()


def _edges(numbers: IntArray) -> list[int]:
    """Where the parts of a stretch of pieces end, the last one at its end."""
    mixed = (numbers.astype(np.uint32) * np.uint32(2654435761)) >> np.uint32(16)
    ends: npt.NDArray[np.bool_] = (mixed & np.uint32(_USUAL_PIECES - 1)) == 0
    edges: list[int] = []
    low = 0
    for high in [*(np.flatnonzero(ends[:-1]) + 1).tolist(), len(numbers)]:
        while high - low > _MOST_PIECES:
            low += _MOST_PIECES
            edges.append(low)
        if high > low:
            edges.append(high)
            low = high
    return edges


class PackedPrompt(Prompt):
    """A prompt of shared parts; see `Packer`."""

    __slots__ = ("_made", "_packer", "_pinned", "_size", "_total", "parts")

    parts: tuple[_Part, ...]
    _packer: Packer
    _made: Prompt | None
    _total: int
    _size: int
    _pinned: int

    def __init__(self, packer: Packer, parts: tuple[_Part, ...], prompt: Prompt) -> None:
        # The base class is frozen; this one fills itself on demand.
        put = object.__setattr__
        put(self, "parts", parts)
        put(self, "_packer", packer)
        put(self, "_made", prompt)
        put(self, "_total", prompt.total_tokens)
        put(self, "_size", prompt.size)
        put(self, "_pinned", prompt.pinned_pieces)

    def drop(self) -> None:
        """Let go of the arrays; they are made again when somebody looks at them."""
        object.__setattr__(self, "_made", None)

    def _whole(self) -> Prompt:
        made = self._made
        if made is None:
            blocks: list[Block] = []
            for part in self.parts:
                blocks += part.blocks
            pieces = np.concatenate([part.pieces for part in self.parts])
            totals = np.cumsum([0, *(part.total_tokens for part in self.parts[:-1])])
            starts = np.repeat(totals, [part.size for part in self.parts])
            ends = np.concatenate([part.ends for part in self.parts]) + starts
            made = Prompt(tuple(blocks), pieces, np.diff(ends, prepend=0), ends)
            object.__setattr__(self, "_made", made)
            self._packer.hold(self)
        return made

    @property
    def blocks(self) -> tuple[Block, ...]:
        """In prompt order."""
        return self._whole().blocks

    @property
    def pieces(self) -> IntArray:
        """Piece numbers, the reply's marks last."""
        return self._whole().pieces

    @property
    def tokens(self) -> LongArray:
        """Tokens of each piece in its place."""
        return self._whole().tokens

    @property
    def ends(self) -> LongArray:
        """Running sum of the tokens."""
        return self._whole().ends

    @property
    def size(self) -> int:
        """How many pieces, the reply's marks included."""
        return self._size

    @property
    def total_tokens(self) -> int:
        """Input tokens of the request."""
        return self._total

    @property
    def pinned_pieces(self) -> int:
        """How many pieces at the front are tools and system prompt."""
        return self._pinned

    def block_at(self, at: int) -> Block:
        """The block in place `at`, 0 <= at < size - 1."""
        if self._made is not None:
            return self._made.blocks[at]
        for part in self.parts:
            if at < part.size:
                return part.blocks[at]
            at -= part.size
        raise IndexError(at)

    def numbers(self, low: int, high: int) -> IntArray:
        """Pieces `low` to `high` (exclusive)."""
        if self._made is not None:
            return self._made.pieces[low:high]
        found = [part.pieces[a:b] for part, a, b in self._between(low, high)]
        return found[0] if len(found) == 1 else np.concatenate([_NONE, *found])

    @property
    def pinned_blocks(self) -> tuple[Block, ...]:
        """Tools and system prompt, in prompt order."""
        blocks: list[Block] = []
        for part, low, high in self._between(0, self._pinned):
            blocks += part.blocks[low:high]
        return tuple(blocks)

    def _between(self, low: int, high: int) -> Iterator[tuple[_Part, int, int]]:
        """The parts that pieces `low` to `high` lie in, and where in them."""
        start = 0
        for part in self.parts:
            if start >= high:
                return
            end = start + part.size
            if end > low:
                yield part, max(low - start, 0), min(high, end) - start
            start = end

    def tokens_before(self, pieces: int) -> int:
        """Tokens of the first `pieces` pieces."""
        if self._made is not None:
            return self._made.tokens_before(pieces)
        if 2 * pieces > self._size:
            tokens, end = self._total, self._size
            for part in reversed(self.parts):
                tokens -= part.total_tokens
                end -= part.size
                if pieces > end:
                    return tokens + int(part.ends[pieces - end - 1])
        tokens = 0
        for part in self.parts:
            if pieces <= part.size:
                return tokens + int(part.ends[pieces - 1]) if pieces else tokens
            pieces -= part.size
            tokens += part.total_tokens
        return tokens

    def parts_up_to(self, pieces: int) -> tuple[object, ...]:
        """The parts that the first `pieces` pieces lie in."""
        found = 0
        for part in self.parts:
            if pieces <= 0:
                break
            pieces -= part.size
            found += 1
        return self.parts[:found]
