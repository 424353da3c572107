"""Caches that store whole units: a hit ends where an earlier request stored one.

Stored are the end of each prompt, the end of its output, and the common prefix with an earlier
request, each rounded down to whole units. Source: api-docs.deepseek.com/guides/kv_cache.
"""

from __future__ import annotations

import numpy as np

from codesmith_lab.cache.engine import PrefixIndex
from codesmith_lab.cache.match import IntArray, LongArray, Match
from codesmith_lab.cache.pieces import PieceTable, Prompt
from codesmith_lab.cache.plan import CachePlan
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.cache.tree import Place, Reach, Walk, place_of

__all__ = ["StoredUnitIndex"]


class StoredUnitIndex(PrefixIndex):
    """Marks behind nodes of the tree: so many first tokens of the piece that follows."""

    def __init__(self, table: PieceTable, rule: CacheRule) -> None:
        super().__init__(table, rule)
        # Behind a node, under one salt: (piece, how many of its tokens, tokens up to there).
        self._inside: dict[Place, tuple[tuple[int, int, int], ...]] = {}

    def fork(self) -> StoredUnitIndex:
        twin = super().fork()
        assert isinstance(twin, StoredUnitIndex)
        twin._inside = self._inside.copy()
        return twin

    def _serve(
        self, walk: Walk, reach: Reach, prompt: Prompt, plan: CachePlan, now: float
    ) -> Match:
        most = min(reach.live_tokens, prompt.total_tokens - self.rule.keep_last_tokens)
        hit = self._best_stored(walk, prompt, plan, most)
        return self._parts(walk, reach, hit, reach.live_tokens)

    def _keep(
        self, match: Match, prompt: Prompt, output: IntArray, plan: CachePlan, now: float
    ) -> None:
        keys = self._tree.salt(prompt.pieces, plan.salts)
        floor = self.rule.floor
        for tokens in {
            floor(match.live_tokens, plan.minimum_tokens),
            floor(prompt.total_tokens, plan.minimum_tokens),
        }:
            self._store(keys, prompt.ends, tokens)
        if len(output):
            pieces, ends = self.table.extended(prompt.pieces[:-1], prompt.ends[:-1], output)
            if self.rule.keep_last_tokens:
                ends = ends.copy()
                ends[-1] -= 1
            keys = self._tree.salt(pieces, plan.salts)
            self._store(keys, ends, floor(int(ends[-1]), plan.minimum_tokens))

    def _store(self, keys: IntArray, ends: LongArray, tokens: int) -> None:
        """Mark the first `tokens` tokens of a path that is on the stack as stored."""
        if tokens <= 0:
            return
        at = int(np.searchsorted(ends, tokens, "left"))
        if at >= len(ends):
            return
        tree = self._tree
        number = tree.piece(int(keys[at]))
        start = int(ends[at - 1]) if at else 0
        joint = int(ends[at]) - start - self.table[number].tokens
        mark = (number, max(0, tokens - start - joint), tokens)
        place = place_of(tree.boundary(at), tree.salt_of(int(keys[at])))
        known = self._inside.get(place, ())
        if mark not in known:
            self._inside[place] = (*known, mark)

    def _best_stored(self, walk: Walk, prompt: Prompt, plan: CachePlan, most: int) -> int:
        """The longest stored prefix of the walked path, of at most `most` tokens."""
        tree = self._tree
        keys = tree.salt(prompt.pieces, plan.salts)
        best = 0
        for level in range(len(tree.stack) - 1, -1, -1):
            node = tree.stack[level]
            depth = tree.end[node]
            if depth < len(keys):
                key = int(keys[depth])
                piece = tree.piece(key)
                for number, leading, tokens in self._inside.get(
                    place_of(node, tree.salt_of(key)), ()
                ):
                    if best < tokens <= most and self._begin_alike(number, piece, leading):
                        best = tokens
            if best:
                break
        return best

    def _begin_alike(self, a: int, b: int, tokens: int) -> bool:
        """Whether two pieces have their first tokens in common."""
        if a == b or not tokens:
            return True
        size = 4 * tokens
        return self.table.key(a)[:size] == self.table.key(b)[:size]
