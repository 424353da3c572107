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
from itertools import chain

import numpy as np
import numpy.typing as npt

from codesmith_lab.cache.match import IntArray, LongArray
from codesmith_lab.cache.pieces import Prompt
from codesmith_lab.prompt.blocks import Block

__all__ = ["PackedPrompt", "Packer"]

_USUAL_PIECES = 32
"""A power of two: one piece in so many ends a part."""
_MOST_PIECES = 256
_FRESH_PROMPTS = 16
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
        """Keep what was just put together of a prompt until it was done for others."""
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
    """A prompt of shared parts; see `Packer`.

    What is put together of them may be dropped at any time, by another thread too.
    """

    __slots__ = ("_arrays", "_made", "_packer", "_pinned", "_size", "_tokens", "_total", "parts")

    parts: tuple[_Part, ...]
    _packer: Packer
    _made: tuple[Block, ...] | None
    _arrays: tuple[IntArray, LongArray] | None
    _tokens: LongArray | None
    _total: int
    _size: int
    _pinned: int

    def __init__(self, packer: Packer, parts: tuple[_Part, ...], prompt: Prompt) -> None:
        # The base class is frozen; this one fills itself on demand.
        self._put("parts", parts)
        self._put("_packer", packer)
        self._put("_made", prompt.blocks)
        self._put("_arrays", (prompt.pieces, prompt.ends))
        self._put("_tokens", prompt.tokens)
        self._put("_total", prompt.total_tokens)
        self._put("_size", prompt.size)
        self._put("_pinned", prompt.pinned_pieces)

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def drop(self) -> None:
        """Let go of what was put together; it is made again when somebody looks at it."""
        self._put("_made", None)
        self._put("_arrays", None)
        self._put("_tokens", None)

    def _both(self) -> tuple[IntArray, LongArray]:
        """Piece numbers and the running sum of their tokens."""
        arrays = self._arrays
        if arrays is None:
            parts = self.parts
            numbers = b"".join([part.rows[: 4 * part.size] for part in parts])
            sums = b"".join([part.rows[4 * part.size : 8 * part.size] for part in parts])
            totals = np.array([0, *(part.total_tokens for part in parts[:-1])]).cumsum()
            starts = totals.repeat([part.size for part in parts])
            arrays = np.frombuffer(numbers, np.int32), np.frombuffer(sums, np.int32) + starts
            self._put("_arrays", arrays)
            self._packer.hold(self)
        return arrays

    @property
    def blocks(self) -> tuple[Block, ...]:
        """In prompt order."""
        made = self._made
        if made is None:
            made = tuple(chain.from_iterable([part.blocks for part in self.parts]))
            self._put("_made", made)
            self._packer.hold(self)
        return made

    @property
    def pieces(self) -> IntArray:
        """Piece numbers, the reply's marks last."""
        return self._both()[0]

    @property
    def tokens(self) -> LongArray:
        """Tokens of each piece in its place."""
        tokens = self._tokens
        if tokens is None:
            tokens = self._both()[1].copy()
            tokens[1:] -= tokens[:-1].copy()
            self._put("_tokens", tokens)
        return tokens

    @property
    def ends(self) -> LongArray:
        """Running sum of the tokens."""
        return self._both()[1]

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
        made = self._made
        if made is not None:
            return made[at]
        for part in self.parts:
            if at < part.size:
                return part.blocks[at]
            at -= part.size
        raise IndexError(at)

    def numbers(self, low: int, high: int) -> IntArray:
        """Pieces `low` to `high` (exclusive)."""
        arrays = self._arrays
        if arrays is not None:
            return arrays[0][low:high]
        found = [part.pieces[a:b] for part, a, b in self._between(low, high)]
        return found[0] if len(found) == 1 else np.concatenate([_NONE, *found])

    @property
    def pinned_blocks(self) -> tuple[Block, ...]:
        """Tools and system prompt, in prompt order."""
        return self.blocks_between(0, self._pinned)

    def blocks_between(self, low: int, high: int) -> tuple[Block, ...]:
        """Blocks `low` to `high` (exclusive)."""
        made = self._made
        if made is not None:
            return made[low:high]
        parts = self._between(low, high)
        return tuple(chain.from_iterable([part.blocks[a:b] for part, a, b in parts]))

    def same_start(self, other: Prompt) -> int:
        """Pieces of the parts that both begin with: at least so many blocks are the same."""
        same = 0
        for mine, theirs in zip(self.parts, getattr(other, "parts", ()), strict=False):
            if mine is not theirs:
                break
            same += mine.size
        return same

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
        arrays = self._arrays
        if arrays is not None:
            return int(arrays[1][pieces - 1]) if pieces else 0
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
        return tuple(part for part, _, _ in self._between(0, pieces))
