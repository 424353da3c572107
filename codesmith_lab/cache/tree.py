"""A compressed trie over piece numbers: every prefix that earlier requests sent, and until when.

An edge holds a run of pieces, so a request adds one or two nodes, however long it is. Each node
knows the best *touch* of its prefix: (when it is gone, request) of the request that keeps it
longest. Requests come one after another and mostly extend the one before, so the latest path
stays on a stack whose touches are written down only when a request leaves it: the work grows
with what is new.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import NamedTuple

import numpy as np

from codesmith_lab.cache.match import IntArray
from codesmith_lab.cache.pieces import PieceTable, Prompt, common_length

__all__ = ["NEVER", "PathTree", "Place", "Reach", "Touch", "Walk", "place_of"]

Touch = tuple[float, int]
"""(time in seconds until which it holds, request number); greater is better."""

NEVER: Touch = (-inf, -1)

Place = int | tuple[int, str]
"""A node, or its children under one salt."""


def place_of(node: int, salt: str) -> Place:
    """Where children of a node stand that share a salt, "" as a rule."""
    return (node, salt) if salt else node


class Walk(NamedTuple):
    """Where a path leaves the tree: `depth` whole pieces are known.

    inside: the node in whose edge it ends, -1 when it ends at a node; `offset` pieces into it.
    """

    depth: int
    inside: int
    offset: int


class Reach(NamedTuple):
    """Longest common prefix in tokens with any path, and with one that is still held."""

    tokens: int
    parent: int
    live_tokens: int
    live_parent: int


class PathTree:
    """Paths of one scope. `keys` are piece numbers; salted pieces have numbers below zero."""

    def __init__(self, table: PieceTable) -> None:
        self.table = table
        empty: IntArray = np.zeros(0, np.int32)
        self.end = [0]
        self.stack = [0]
        self._edge = [empty]
        self._best: list[Touch] = [NEVER]
        self._child: dict[tuple[int, int], int] = {}
        # Keys of the children of a node under one salt, in the order of their token ids.
        self._order: dict[Place, tuple[int, ...]] = {}
        self._pushed = [0]
        self._peaks: list[Touch] = []
        self._recent = empty
        # Shared by all forks: numbers are only ever added.
        self._salted: dict[tuple[int, str], int] = {}
        self._salts: list[tuple[int, str]] = []

    def fork(self) -> PathTree:
        """A copy that can go on differently; what is inside is never changed in place."""
        twin = PathTree.__new__(PathTree)
        twin.table, twin._recent = self.table, self._recent
        twin._salted, twin._salts = self._salted, self._salts
        twin.end, twin.stack = self.end.copy(), self.stack.copy()
        twin._edge, twin._best = self._edge.copy(), self._best.copy()
        twin._child, twin._order = self._child.copy(), self._order.copy()
        twin._pushed, twin._peaks = self._pushed.copy(), self._peaks.copy()
        return twin

    def salt(self, pieces: IntArray, salts: tuple[tuple[int, str], ...]) -> IntArray:
        """The keys of a path in which the pieces at some places are parted by a salt."""
        if not salts:
            return pieces
        keys = pieces.copy()
        for at, text in salts:
            if at < len(keys):
                name = (int(pieces[at]), text)
                number = self._salted.get(name)
                if number is None:
                    number = self._salted[name] = -2 - len(self._salts)
                    self._salts.append(name)
                keys[at] = number
        return keys

    def piece(self, key: int) -> int:
        """The piece number behind a key."""
        return key if key >= 0 else self._salts[-2 - key][0]

    # -- finding ---------------------------------------------------------------------------

    def walk(self, keys: IntArray, request: int) -> Walk:
        """Follow a path as far as it is known and put its nodes on the stack."""
        n = min(len(keys), len(self._recent))
        at = n
        if n:
            differs = keys[:n] != self._recent[:n]
            first = int(differs.argmax())
            at = first if differs[first] else n
        stack, pushed, end = self.stack, self._pushed, self.end
        inside = -1
        while end[stack[-1]] > at:
            inside = stack.pop()
            self._settle(inside, pushed.pop())
        depth = end[stack[-1]]
        if at > depth:
            self._recent = self._recent[:depth]
            return Walk(at, inside, at - depth)
        while depth < len(keys):
            child = self._child.get((stack[-1], int(keys[depth])))
            if child is None:
                break
            edge = self._edge[child]
            m = min(len(edge), len(keys) - depth)
            differs = edge[:m] != keys[depth : depth + m]
            first = int(differs.argmax())
            shared = first if differs[first] else m
            if shared < len(edge):
                self._recent = keys[:depth]
                return Walk(depth + shared, child, shared)
            stack.append(child)
            pushed.append(request)
            depth += shared
        self._recent = keys[:depth]
        return Walk(depth, -1, 0)

    def reach(self, walk: Walk, keys: IntArray, prompt: Prompt, now: float) -> Reach:
        """How far the walked path is common with earlier ones, in tokens.

        now: paths whose touch ended before it are held no more; -inf for no such limit.
        """
        top = len(self.stack) - 1
        touch = self._best[walk.inside] if walk.inside >= 0 else self.touch_of(top)
        if touch == NEVER:
            return Reach(0, -1, 0, -1)
        tokens, parent = self._at(walk, top, keys, prompt, -inf)
        if now == -inf:
            return Reach(tokens, parent, tokens, parent)
        if touch[0] >= now:
            return Reach(tokens, parent, *self._at(walk, top, keys, prompt, now))
        # An ancestor is held at least as long as what hangs below it.
        low, high = 0, top + 1
        while low < high:
            middle = (low + high) // 2
            if self.touch_of(middle)[0] >= now:
                low = middle + 1
            else:
                high = middle
        if not low:
            return Reach(tokens, parent, 0, -1)
        here = Walk(self.end[self.stack[low - 1]], -1, 0)
        live, live_parent = self._at(here, low - 1, keys, prompt, now)
        return Reach(tokens, parent, live, live_parent)

    def touch_of(self, level: int) -> Touch:
        """The best touch of the stack's node at `level`."""
        return max(self._best[self.stack[level]], self._held_since(self._pushed[level]))

    def _held_since(self, pushed: int) -> Touch:
        peaks = self._peaks
        if not peaks or peaks[-1][1] < pushed:
            return NEVER
        if len(peaks) == 1:
            return peaks[0]
        return peaks[bisect_left(peaks, pushed, key=lambda peak: peak[1])]

    def _at(
        self, walk: Walk, level: int, keys: IntArray, prompt: Prompt, now: float
    ) -> tuple[int, int]:
        """Tokens and parent of a path that leaves the held ones at `walk`.

        The stack's node at `level` is the last one that it passes.
        """
        depth = walk.depth
        touch = self._best[walk.inside] if walk.inside >= 0 else self.touch_of(level)
        base = int(prompt.ends[depth - 1]) if depth else 0
        if depth >= len(keys):
            return base, touch[1]
        key = int(keys[depth])
        if walk.inside >= 0:
            best, holder = self._along_edge(walk, key, now)
        else:
            best, holder = self._siblings(level, key, now)
        if not best:
            return base, touch[1]
        # A joint's token lies in the right-hand piece: it is lost with the first of that.
        own = int(prompt.tokens[depth])
        shared = max(0, min(best + own - self.table[self.piece(key)].tokens, own))
        return base + shared, holder if shared else touch[1]

    def _ids_of(self, key: int) -> bytes:
        return self.table.key(self.piece(key))

    def _along_edge(self, walk: Walk, key: int, now: float) -> tuple[int, int]:
        touch = self._best[walk.inside]
        other = int(self._edge[walk.inside][walk.offset])
        if touch[0] < now or self.salt_of(other) != self.salt_of(key):
            return 0, -1
        return common_length(self._ids_of(key), self._ids_of(other), 4), touch[1]

    def _siblings(self, level: int, key: int, now: float) -> tuple[int, int]:
        """Most tokens shared with a held child of the stack's node, and who holds it."""
        node = self.stack[level]
        order = self._order.get(place_of(node, self.salt_of(key)))
        if not order:
            return 0, -1
        mine = self._ids_of(key)
        here = bisect_left(order, mine, key=self._ids_of)
        best = 0
        for step, start in ((-1, here - 1), (1, here)):
            at = start
            # Sharing only shrinks with the distance, so the first held neighbour is the best.
            while 0 <= at < len(order) and self._child_touch(level, order[at])[0] < now:
                at += step
            if 0 <= at < len(order):
                best = max(best, common_length(mine, self._ids_of(order[at]), 4))
        if not best:
            return 0, -1
        prefix, holder = mine[: 4 * best], NEVER
        at = bisect_left(order, prefix, key=self._ids_of)
        while at < len(order) and self._ids_of(order[at]).startswith(prefix):
            touch = self._child_touch(level, order[at])
            if touch[0] >= now:
                holder = max(holder, touch)
            at += 1
        return best, holder[1]

    def _child_touch(self, level: int, key: int) -> Touch:
        child = self._child[(self.stack[level], key)]
        if level + 1 < len(self.stack) and self.stack[level + 1] == child:
            return self.touch_of(level + 1)
        return self._best[child]

    def salt_of(self, key: int) -> str:
        """What parts a key from the same piece elsewhere, "" as a rule."""
        return "" if key >= 0 else self._salts[-2 - key][1]

    # -- storing ---------------------------------------------------------------------------

    def extend(self, walk: Walk, keys: IntArray, request: int) -> None:
        """Make the walked path known in full: the stack then ends at its last node."""
        if walk.inside >= 0:
            self.stack.append(self._split(self.stack[-1], walk.inside, walk.offset))
            self._pushed.append(request)
        if walk.depth < len(keys):
            # A copy: a slice would keep the whole array.
            self.stack.append(self._grow(self.stack[-1], keys[walk.depth :].copy()))
            self._pushed.append(request)
        self._recent = keys

    def boundary(self, depth: int) -> int:
        """The node of the latest path that ends behind `depth` pieces; its edge is cut there."""
        at = bisect_left(self.stack, depth, key=self.end.__getitem__)
        node = self.stack[at]
        if self.end[node] == depth:
            return node
        above = self.stack[at - 1]
        upper = self._split(above, node, depth - self.end[above])
        self.stack.insert(at, upper)
        self._pushed.insert(at, self._pushed[at])
        return upper

    def touch(self, request: int, until: float) -> None:
        """The latest path is held until `until` (inf: no lifetime) by `request`."""
        while self._peaks and self._peaks[-1][0] <= until:
            self._peaks.pop()
        self._peaks.append((until, request))

    def touch_leaf(self, node: int, key: int, request: int, until: float) -> None:
        """A single piece behind a node, held on its own: the markers that open a reply."""
        child = self._child.get((node, key))
        if child is None:
            child = self._grow(node, np.array([key], np.int32))
        self._best[child] = max(self._best[child], (until, request))

    def _settle(self, node: int, pushed: int) -> None:
        held = self._held_since(pushed)
        if held > self._best[node]:
            self._best[node] = held

    def _grow(self, node: int, edge: IntArray) -> int:
        child = len(self.end)
        self.end.append(self.end[node] + len(edge))
        self._edge.append(edge)
        self._best.append(NEVER)
        self._link(node, int(edge[0]), child)
        return child

    def _split(self, above: int, node: int, offset: int) -> int:
        """Cut a node's edge: the new upper part is held as the whole was."""
        edge = self._edge[node]
        upper = len(self.end)
        self.end.append(self.end[above] + offset)
        self._edge.append(edge[:offset])
        self._best.append(self._best[node])
        self._edge[node] = edge[offset:]
        self._child[(above, int(edge[0]))] = upper
        self._link(upper, int(edge[offset]), node)
        return upper

    def _link(self, node: int, key: int, child: int) -> None:
        self._child[(node, key)] = child
        place = place_of(node, self.salt_of(key))
        order = self._order.get(place)
        if order is None:
            # Ids are looked at only where there is something to compare them with.
            self._order[place] = (key,)
            return
        at = bisect_left(order, self._ids_of(key), key=self._ids_of)
        self._order[place] = (*order[:at], key, *order[at:])
