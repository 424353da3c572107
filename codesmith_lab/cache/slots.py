"""Slots of an engine: what a llama.cpp server keeps of its requests.

The rules, from llama.cpp's server (get_available_slot and its README): each slot holds one
sequence of tokens, the latest prompt and what was generated but for the last token; a request
takes the slot whose tokens share most with it, if that is more than a share of its length, else
the one unused for longest; it keeps the common prefix, all but one token at most, and the rest of
the slot is gone.
"""

from __future__ import annotations

from decimal import Decimal

from codesmith_lab.cache.engine import PrefixIndex
from codesmith_lab.cache.match import IntArray, Match
from codesmith_lab.cache.pieces import PieceTable, Prompt, common_length
from codesmith_lab.cache.plan import CachePlan
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.cache.tree import Reach, Walk

__all__ = ["SlotIndex", "Slots"]

_WIDTH = 4  # bytes of a token id


class Slots:
    """`count` slots, empty at first; requests come one after another."""

    def __init__(self, count: int, similarity: Decimal) -> None:
        self.similarity = similarity
        self._held: list[bytes] = [b""] * count
        self._used: list[int] = [-1] * count
        self._tick = 0

    def copy(self) -> Slots:
        """Slots that can go on differently."""
        twin = Slots(len(self._held), self.similarity)
        twin._held, twin._used = self._held.copy(), self._used.copy()
        twin._tick = self._tick
        return twin

    def choose(self, tokens: bytes) -> int:
        """The slot that a prompt takes."""
        best, most = -1, 0
        for at, held in enumerate(self._held):
            same = common_length(held, tokens, _WIDTH)
            alike = same * _WIDTH > self.similarity * len(tokens)
            if alike and same > most:
                best, most = at, same
        if best < 0:
            best = min(range(len(self._used)), key=self._used.__getitem__)
        return best

    def serve(self, tokens: bytes) -> int:
        """Tokens of the common prefix with the slot that a prompt takes."""
        return common_length(self._held[self.choose(tokens)], tokens, _WIDTH)

    def keep(self, tokens: bytes, computed: bytes) -> None:
        """The prompt's slot holds what was computed, and nothing else."""
        at = self.choose(tokens)
        self._tick += 1
        self._held[at], self._used[at] = computed, self._tick


class SlotIndex(PrefixIndex):
    """What stands in no slot any more counts as evicted."""

    keeps_always = True

    def __init__(self, table: PieceTable, rule: CacheRule) -> None:
        super().__init__(table, rule)
        table.keep_keys()
        self._slots = Slots(rule.slots, rule.slot_similarity)

    def fork(self) -> SlotIndex:
        twin = super().fork()
        assert isinstance(twin, SlotIndex)
        twin._slots = self._slots.copy()
        return twin

    def _serve(
        self, walk: Walk, reach: Reach, prompt: Prompt, plan: CachePlan, now: float
    ) -> Match:
        held = self._slots.serve(self.table.token_bytes(prompt.pieces))
        return self._prefix_match(walk, reach, prompt, plan, min(held, reach.live_tokens))

    def _keep(
        self, match: Match, prompt: Prompt, output: IntArray, plan: CachePlan, now: float
    ) -> None:
        tokens = self.table.token_bytes(prompt.pieces)
        self._slots.keep(tokens, self.table.computed_bytes(prompt.pieces, output))
