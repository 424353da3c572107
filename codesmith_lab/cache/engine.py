"""Which tokens of a request can be read from the cache, over all earlier requests.

A `PrefixIndex` holds everything still cached in one scope (provider, model and account), as paths
of a `PathTree`. A request is laid along them: what it shares with any earlier request, what of
that is still held, and what the rule lets the cache serve. This class is the rule of any common
prefix; the other kinds differ in `_serve` and `_keep`. `slow.py` is the same in plain words; the
tests hold the two equal for every rule.
"""

from __future__ import annotations

from math import inf

import numpy as np

from codesmith_lab.cache.match import EXPIRED, HIT, ROUNDING, UNMARKED, Entry, IntArray, Match
from codesmith_lab.cache.pieces import PieceTable, Prompt
from codesmith_lab.cache.plan import CachePlan
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.cache.tree import PathTree, Reach, Walk

__all__ = ["PrefixIndex"]

_EMPTY: IntArray = np.zeros(0, np.int32)


class PrefixIndex:
    """Everything still cached in one scope.

    paths_expire: a path is held until its lifetime ends; other kinds keep entries of their own.
    keeps_always: a request that reads nothing leaves its prompt all the same.
    """

    paths_expire = True
    keeps_always = False

    def __init__(self, table: PieceTable, rule: CacheRule) -> None:
        self.table = table
        self.rule = rule
        self.entries: dict[int, Entry] = {}
        self._tree = PathTree(table)

    def add(
        self,
        request: int,
        prompt: Prompt,
        output: IntArray = _EMPTY,
        time_s: float | None = None,
        plan: CachePlan | None = None,
    ) -> Match:
        """Match one request against all before it, then store what it leaves behind.

        Requests come in time order with rising numbers. `output` is empty when the response is
        unknown. time_s: the start in seconds, None when unknown: such a request finds everything
        alive and leaves what never expires, for what is not known is not blamed. Without a plan
        the rule's defaults hold.
        """
        if plan is None:
            lifetime_s = self.rule.lifetime("", {})
            plan = CachePlan(minimum_tokens=self.rule.minimum_tokens, lifetime_s=lifetime_s)
        tree = self._tree
        keys = tree.salt(prompt.pieces, plan.salts)
        body = keys[:-1]
        now = -inf if time_s is None else time_s
        walk = tree.walk(body, request)
        reach = tree.reach(walk, keys, prompt, now if self.paths_expire else -inf)
        if plan.refused or plan.off:
            match = _not_cached(walk, reach, plan, self.rule.match == "none")
            if plan.refused:
                return match
        else:
            match = self._serve(walk, reach, prompt, plan, now)
        tree.extend(walk, body, request)
        known_end = walk.depth == len(body)
        until = inf
        if self.paths_expire and time_s is not None and plan.lifetime_s is not None:
            until = time_s + plan.lifetime_s
        tree.touch_leaf(tree.stack[-1], int(keys[-1]), request, until)
        stores = self.rule.output_reuse and (not plan.off or self.keeps_always)
        stored = output if stores else _EMPTY
        self._store_output(body, stored, request, known_end)
        tree.touch(request, until)
        if not plan.off or self.keeps_always:
            self._keep(match, prompt, stored, plan, now)
        self.entries[request] = Entry(request, prompt, stored, time_s)
        return match

    def fork(self) -> PrefixIndex:
        """A copy that can go on differently; entries and pieces are shared, being immutable."""
        twin = type(self)(self.table, self.rule)
        twin.entries = self.entries.copy()
        twin._tree = self._tree.fork()
        return twin

    # -- what the kinds of rules differ in -------------------------------------------------

    def _serve(
        self, walk: Walk, reach: Reach, prompt: Prompt, plan: CachePlan, now: float
    ) -> Match:
        """What the cache gives a request that is laid along the tree."""
        return self._prefix_match(walk, reach, prompt, plan, reach.live_tokens)

    def _keep(
        self, match: Match, prompt: Prompt, output: IntArray, plan: CachePlan, now: float
    ) -> None:
        """What a request leaves behind besides its path, which is the tree's stack by now."""

    def _prefix_match(
        self, walk: Walk, reach: Reach, prompt: Prompt, plan: CachePlan, live_tokens: int
    ) -> Match:
        """A match of which `live_tokens` are held and whole steps of them hit."""
        most = min(live_tokens, prompt.total_tokens - self.rule.keep_last_tokens)
        return self._parts(walk, reach, self.rule.floor(most, plan.minimum_tokens), live_tokens)

    def _parts(self, walk: Walk, reach: Reach, hit_tokens: int, live_tokens: int) -> Match:
        alive = live_tokens == reach.tokens
        parent = reach.live_parent if alive else reach.parent
        segments = ((hit_tokens, HIT), (live_tokens, ROUNDING), (reach.tokens, EXPIRED))
        return Match(
            None if parent < 0 else parent,
            reach.tokens,
            live_tokens,
            hit_tokens,
            walk.depth,
            segments,
            (hit_tokens, hit_tokens),
        )

    def _store_output(
        self, body: IntArray, output: IntArray, request: int, known_end: bool
    ) -> None:
        """The output behind the prompt; an engine has not computed its last token."""
        if not len(output):
            return
        if self.rule.keep_last_tokens:
            output = output.copy()
            output[-1] = self.table.without_last_token(int(output[-1]))
        path = np.concatenate([body, output])
        # Behind a new end nothing can be known yet.
        walk = self._tree.walk(path, request) if known_end else Walk(len(body), -1, 0)
        self._tree.extend(walk, path, request)


def _not_cached(walk: Walk, reach: Reach, plan: CachePlan, never: bool) -> Match:
    """A request that is refused, or that keeps out of the cache."""
    if never:
        return Match(None, 0, 0, 0, 0)
    parent = None if reach.parent < 0 else reach.parent
    segments = ((reach.tokens, UNMARKED),)
    refused = plan.refused
    return Match(parent, reach.tokens, 0, 0, walk.depth, segments, refused=refused, marked_end=0)
