"""Layouts of requests that grow: what a request shares with the one before it is taken over.

An agent's request repeats the history of the one before, so that laying out only what is new keeps
the work in proportion to the new content.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codesmith_lab.cache.packed import PackedPrompt, Packer
from codesmith_lab.cache.pieces import PieceTable, Prompt
from codesmith_lab.prompt.blocks import Block

__all__ = ["GrowingLayout"]

# So many blocks at the end of a request may differ from the next one's in the same places.
_LOOK_BACK = 256


class GrowingLayout:
    """Lays out one request after another; `exact` counts every joined run of text as a whole."""

    def __init__(self, table: PieceTable, exact: bool = False) -> None:
        self._table = table
        self._exact = exact
        self._packer = Packer()
        self._given: tuple[Block, ...] = ()
        self._prompt: PackedPrompt | None = None

    def prompt(self, blocks: Sequence[Block]) -> PackedPrompt:
        """What `PieceTable.prompt` gives for these blocks, and `exact` of it where asked for."""
        given = blocks if isinstance(blocks, tuple) else tuple(blocks)
        last, shared = self._prompt, _shared(self._given, given)
        if last is None or shared <= last.pinned_pieces or not _messages(given[shared:]):
            prompt = self._table.prompt(given)
            if self._exact:
                prompt = self._table.exact(prompt)
            packed = self._packer.pack(prompt)
        else:
            packed = self._grown(last, given, shared)
        self._given, self._prompt = given, packed
        return packed

    def _grown(self, last: PackedPrompt, given: tuple[Block, ...], shared: int) -> PackedPrompt:
        table = self._table
        new = [table.number_of(block, opens=False) for block in given[shared:]]
        pieces = np.concatenate([last.pieces[:shared], np.array(new, np.int32), last.pieces[-1:]])
        # The run of text that ends or goes on here is joined again, as it was and as it is.
        runs = [table.run_around(numbers, shared - 1) for numbers in (last.pieces, pieces)]
        low = min(run[0] for run in runs)
        part = table.assemble((), pieces[low:])
        if self._exact:
            part = table.exact(part)
        tokens = np.concatenate([last.tokens[:low], part.tokens])
        ends = np.concatenate([last.ends[:low], last.tokens_before(low) + part.ends])
        ordered = (*last.blocks[:shared], *given[shared:])
        return self._packer.pack(Prompt(ordered, pieces, tokens, ends), last, low)


def _messages(blocks: Sequence[Block]) -> bool:
    return all(block.kind not in ("tool", "section") for block in blocks)


def _shared(a: tuple[Block, ...], b: tuple[Block, ...]) -> int:
    """How many blocks both start with, as far as a short look back finds it."""
    n = min(len(a), len(b))
    least = max(0, n - _LOOK_BACK)
    while n > least and a[n - 1] is not b[n - 1]:
        n -= 1
    return n if n > least and a[:n] == b[:n] else 0
