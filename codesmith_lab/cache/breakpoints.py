"""Caches that are written at breakpoints only: a hit ends exactly where one was written.

A breakpoint finds an entry at its own place or, as far as the rule looks back, at an earlier one;
the longest entry found is read. From there to the last breakpoint is written. Entries live from
the start of the request that last wrote or read them. Sources: see the rules.
"""

from __future__ import annotations

from math import inf

from codesmith_lab.cache.engine import PrefixIndex
from codesmith_lab.cache.match import EXPIRED, HIT, ROUNDING, UNMARKED, IntArray, Match
from codesmith_lab.cache.pieces import PieceTable, Prompt
from codesmith_lab.cache.plan import CachePlan
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.cache.tree import Reach, Walk

__all__ = ["BreakpointIndex", "marked_end"]


class BreakpointIndex(PrefixIndex):
    """Entries at nodes of the tree: (time until which it lives, its lifetime in seconds)."""

    paths_expire = False

    def __init__(self, table: PieceTable, rule: CacheRule) -> None:
        super().__init__(table, rule)
        self._written: dict[int, tuple[float, float]] = {}

    def fork(self) -> BreakpointIndex:
        twin = super().fork()
        assert isinstance(twin, BreakpointIndex)
        twin._written = self._written.copy()
        return twin

    def _serve(
        self, walk: Walk, reach: Reach, prompt: Prompt, plan: CachePlan, now: float
    ) -> Match:
        hit_pieces, dead_pieces = self._find(prompt, plan, now)
        hit, dead = prompt.tokens_before(hit_pieces), prompt.tokens_before(dead_pieces)
        whole = _whole_blocks(walk.depth, plan)
        covered = prompt.tokens_before(whole)
        if covered < plan.minimum_tokens:
            covered = 0
        if not plan.breakpoints and prompt.total_tokens >= plan.minimum_tokens:
            covered = reach.tokens
        segments = ((hit, HIT), (dead, EXPIRED), (covered, UNMARKED), (reach.tokens, ROUNDING))
        long_end, end, fresh = self._write_ends(prompt, plan, now, hit)
        paid = (long_end, end) if self.rule.charges_writes else (hit, hit)
        parent = None if reach.parent < 0 else reach.parent
        storage = self.rule.storage_usd_per_mtok_hour is not None and fresh is not None
        return Match(
            parent,
            reach.tokens,
            hit if dead > hit else reach.tokens,
            hit,
            walk.depth,
            segments,
            paid,
            end if storage else 0,
            (fresh or 0.0) if storage else 0.0,
            marked_end=marked_end(prompt, plan),
        )

    def _find(self, prompt: Prompt, plan: CachePlan, now: float) -> tuple[int, int]:
        """Pieces up to the longest living entry, and up to the longest one that has died."""
        tree, dead = self._tree, 0
        for node in reversed(tree.stack):
            entry = self._written.get(node)
            if entry is None or not _is_looked_up(tree.end[node], plan, self.rule):
                continue
            if entry[0] >= now:
                return tree.end[node], dead
            dead = max(dead, tree.end[node])
        return 0, dead

    def _write_ends(
        self, prompt: Prompt, plan: CachePlan, now: float, hit: int
    ) -> tuple[int, int, float | None]:
        """Ends of what is written with a long and with a short life, and the new entry's life."""
        long_end, end, fresh = hit, hit, None
        for point in plan.breakpoints:
            tokens = prompt.tokens_before(point.pieces)
            if tokens < plan.minimum_tokens or tokens <= hit:
                continue
            end = tokens
            fresh = point.lifetime_s
            if point.long:
                long_end = tokens
        return long_end, max(long_end, end), fresh

    def _keep(
        self, match: Match, prompt: Prompt, output: IntArray, plan: CachePlan, now: float
    ) -> None:
        refresh = self.rule.refreshes
        if match.hit_tokens and refresh:
            # The entry that was read is the longest living one on the path.
            node = next(
                n
                for n in reversed(self._tree.stack)
                if prompt.tokens_before(self._tree.end[n]) == match.hit_tokens
                and self._lives(n, now)
            )
            self._touch(node, now)
        for point in plan.breakpoints:
            if prompt.tokens_before(point.pieces) < plan.minimum_tokens:
                continue
            node = self._tree.boundary(point.pieces)
            if self._lives(node, now):
                if refresh:
                    self._touch(node, now)
                continue
            life = inf if point.lifetime_s is None else point.lifetime_s
            self._written[node] = (inf if now == -inf else now + life, life)

    def _lives(self, node: int, now: float) -> bool:
        entry = self._written.get(node)
        return entry is not None and entry[0] >= now

    def _touch(self, node: int, now: float) -> None:
        until, life = self._written[node]
        self._written[node] = (inf if now == -inf else max(until, now + life), life)


def marked_end(prompt: Prompt, plan: CachePlan) -> int:
    """Tokens up to the last breakpoint of a request that is long enough, 0 without one."""
    marked = (prompt.tokens_before(point.pieces) for point in plan.breakpoints)
    return max((tokens for tokens in marked if tokens >= plan.minimum_tokens), default=0)


def _is_looked_up(pieces: int, plan: CachePlan, rule: CacheRule) -> bool:
    """Whether a breakpoint of the request finds an entry behind that many pieces."""
    if plan.lookups is not None:
        return pieces in plan.lookups
    if rule.lookback_blocks is None:
        return any(point.pieces >= pieces for point in plan.breakpoints)
    numbers = plan.block_numbers
    if numbers is None or not pieces:
        return False
    here = numbers[pieces - 1]
    return any(
        point.pieces >= pieces and numbers[point.pieces - 1] - here <= rule.lookback_blocks
        for point in plan.breakpoints
    )


def _whole_blocks(pieces: int, plan: CachePlan) -> int:
    """Of so many pieces, those up to the end of a content block."""
    numbers = plan.block_numbers
    if numbers is None:
        return pieces
    while pieces > 1 and numbers[pieces - 1] == numbers[pieces - 2]:
        pieces -= 1
    return 0 if pieces == 1 and numbers[0] == 0 else pieces
