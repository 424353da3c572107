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
from codesmith_lab.cache.tree import Reach, Walk

__all__ = ["StoredUnitIndex"]


class StoredUnitIndex(PrefixIndex):
    """Marks behind nodes of the tree: the first token bytes of the piece that follows."""

    def __init__(self, table: PieceTable, rule: CacheRule) -> None:
        super().__init__(table, rule)
        self._inside: dict[tuple[int, str], dict[bytes, int]] = {}

    def fork(self) -> StoredUnitIndex:
        twin = super().fork()
        assert isinstance(twin, StoredUnitIndex)
        # Inner tables are replaced and never changed.
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
        prefix = self.table.key(number)[: 4 * max(0, tokens - start - joint)]
        place = (tree.boundary(at), tree.salt_of(int(keys[at])))
        self._inside[place] = {**self._inside.get(place, {}), prefix: tokens}

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
                inside = self._inside.get((node, tree.salt_of(key)))
                if inside:
                    own = self.table.key(tree.piece(key))
                    for prefix, tokens in inside.items():
                        if best < tokens <= most and own.startswith(prefix):
                            best = tokens
            if best:
                break
        return best
