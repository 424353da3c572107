"""Which tokens of a request can be read from the cache, over all earlier requests.

A `PrefixIndex` is a trie over piece numbers: a path from the root is a prompt prefix that some
earlier request sent (or, where the provider stores outputs, received). What a request adds is one
run of nodes with consecutive numbers, kept as an array, so that a long history is stored and
walked at once. Where a node has several children they are kept sorted by their token ids: the
neighbour of a new child shares the longest prefix with it. A request is first laid along the
previous request's path, which an agent's request nearly always extends, so the work grows with
what is new. `slow_match` is the same in plain words, request by request; the tests hold the two
equal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codesmith_lab.cache.pieces import PieceTable, Prompt, common_length
from codesmith_lab.cache.rules import CacheRule

__all__ = ["Entry", "Match", "PrefixIndex", "slow_match"]

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What one request left in the cache: its prompt and, where stored, its output.

    pieces: the prompt without the reply markers, then the output's pieces.
    ends: running sum of tokens over `pieces`.
    prompt_pieces: how many of them are the prompt.
    prompt_tokens: tokens of the prompt with the reply markers.
    time_s: start of the request in seconds, None when unknown.
    """

    request: int
    pieces: IntArray
    ends: LongArray
    prompt_pieces: int
    prompt_tokens: int
    time_s: float | None


@dataclass(frozen=True, slots=True)
class Match:
    """How far a request follows earlier ones.

    parent: the earlier request with the longest common prefix (the newest of several; live ones
        first); None when there is none.
    matched_tokens: common prefix with any earlier request, live or not.
    live_tokens: common prefix with a live one, at most `matched_tokens`.
    hit_tokens: what the rule lets the cache serve, at most `live_tokens`.
    pieces: whole pieces in common with the parent.
    """

    parent: int | None
    matched_tokens: int
    live_tokens: int
    hit_tokens: int
    pieces: int


class PrefixIndex:
    """Everything still cached in one scope (one provider, model and account)."""

    def __init__(self, table: PieceTable, rule: CacheRule) -> None:
        self.table = table
        self.rule = rule
        self.entries: dict[int, Entry] = {}
        # Run i has the nodes from _starts[i] on; _runs[i][j] is the piece that leads into the j-th.
        self._starts: list[int] = [0]
        self._runs: list[IntArray] = [np.full(1, -1, np.int32)]
        # Children that begin a run of their own.
        self._child: dict[tuple[int, int], int] = {}
        self._order: dict[int, tuple[tuple[bytes, int], ...]] = {}
        self._last = np.full(1024, -1, np.int64)
        self._nodes = 1
        self._times = np.full(64, np.nan)
        self._stored_at: dict[int, int] = {}
        self._stored_inside: dict[int, dict[bytes, int]] = {}
        self._recent: tuple[IntArray, LongArray] = (np.zeros(0, np.int32), np.zeros(1, np.int64))

    def add(
        self,
        request: int,
        prompt: Prompt,
        output: IntArray,
        time_s: float | None,
        lifetime_s: float | None,
    ) -> Match:
        """Match one request against all before it, then store what it leaves behind.

        Requests come in time order with rising numbers. `output` is empty when the response is
        unknown or the provider does not store outputs.
        """
        pieces = prompt.pieces
        path = self._walk(pieces)
        match = self._match(prompt, path, time_s, lifetime_s)
        path = self._extend(path, pieces)
        self._remember_time(request, time_s)
        self._last[path] = request
        prompt_end = prompt.total_tokens
        if self.rule.match == "stored_units":
            for tokens in (match.live_tokens, prompt_end):
                self._store(path, pieces, prompt.ends, self.rule.floor(tokens))
        self._leave(request, prompt, output, path, time_s)
        return match

    def fork(self) -> PrefixIndex:
        """A copy that can go on differently; entries and pieces are shared, being immutable."""
        twin = PrefixIndex(self.table, self.rule)
        twin.entries = dict(self.entries)
        twin._starts = list(self._starts)
        twin._runs = list(self._runs)
        twin._child = dict(self._child)
        twin._order = dict(self._order)
        twin._last = self._last.copy()
        twin._nodes = self._nodes
        twin._times = self._times.copy()
        twin._stored_at = dict(self._stored_at)
        twin._stored_inside = {node: dict(held) for node, held in self._stored_inside.items()}
        twin._recent = self._recent
        return twin

    # -- finding ---------------------------------------------------------------------------

    def _walk(self, pieces: IntArray) -> LongArray:
        recent_pieces, recent_path = self._recent
        n = min(len(pieces), len(recent_pieces))
        differs = pieces[:n] != recent_pieces[:n]
        at = int(differs.argmax()) if n and differs.any() else n
        return self._walk_from(recent_path[: at + 1], pieces[at:])

    def _walk_from(self, nodes: LongArray, pieces: IntArray) -> LongArray:
        """The path `nodes`, continued along `pieces` for as long as it is known."""
        node, at, parts = int(nodes[-1]), 0, [nodes]
        while at < len(pieces):
            run = self._rest_of_run(node)
            n = min(len(run), len(pieces) - at)
            differs = run[:n] != pieces[at : at + n]
            same = int(differs.argmax()) if n and differs.any() else n
            if same:
                parts.append(np.arange(node + 1, node + 1 + same))
                node, at = node + same, at + same
                continue
            child = self._child.get((node, int(pieces[at])))
            if child is None:
                break
            parts.append(np.array([child], np.int64))
            node, at = child, at + 1
        return np.concatenate(parts) if len(parts) > 1 else nodes

    def _rest_of_run(self, node: int) -> IntArray:
        """The pieces that lead on from a node within its run."""
        i = bisect_right(self._starts, node) - 1
        return self._runs[i][node - self._starts[i] + 1 :]

    def _children(self, node: int) -> tuple[tuple[bytes, int], ...]:
        """Token ids and piece of every child of a node, sorted."""
        order = self._order.get(node)
        if order is None:
            run = self._rest_of_run(node)
            order = ((self.table[int(run[0])].key, int(run[0])),) if len(run) else ()
        return order

    def _child_at(self, node: int, piece: int) -> int:
        return self._child.get((node, piece), node + 1)

    def _match(
        self, prompt: Prompt, path: LongArray, time_s: float | None, lifetime_s: float | None
    ) -> Match:
        last = self._last[path]
        if last[0] < 0:
            return Match(None, 0, 0, 0, 0)
        depth = len(path) - 1
        parent, matched = self._at(prompt, path, depth, None)
        live, pieces = matched, depth
        oldest = None if lifetime_s is None or time_s is None else time_s - lifetime_s
        if oldest is not None:
            # Unknown start times count as live: what is not known is not blamed.
            alive = ~(self._times[last] < oldest)
            if alive[0]:
                reach = depth if alive.all() else int((~alive).argmax()) - 1
                live_parent, live = self._at(prompt, path, reach, oldest)
                if live == matched:
                    parent = live_parent
            else:
                live = 0
        hit = self.rule.floor(live)
        if self.rule.match == "stored_units":
            hit = self._best_stored(prompt, path, live)
        return Match(parent, matched, live, hit, pieces)

    def _at(
        self, prompt: Prompt, path: LongArray, depth: int, oldest: float | None
    ) -> tuple[int, int]:
        """Best request and common tokens, for a request that leaves known paths at `depth`."""
        node = int(path[depth])
        base = int(prompt.ends[depth - 1]) if depth else 0
        best, parent = 0, int(self._last[node])
        if depth < len(prompt.pieces):
            piece = self.table[int(prompt.pieces[depth])]
            best, newest = self._siblings(node, piece.key, oldest)
            parent = newest if best else parent
            # A joint's token lies in the right-hand piece: it is lost with the first of that.
            joint = int(prompt.tokens[depth]) - piece.tokens
            best = max(0, min(best + joint, int(prompt.tokens[depth]))) if best else 0
        return parent, base + best

    def _siblings(self, node: int, key: bytes, oldest: float | None) -> tuple[int, int]:
        """Most tokens shared with a child of `node`, and the newest request that has them."""
        order = self._children(node)
        here = bisect_left(order, (key, -1))
        best = 0
        for step, start in ((-1, here - 1), (1, here)):
            at = start
            # Sharing only shrinks with the distance, so the first live neighbour is the best.
            while 0 <= at < len(order) and not self._alive(node, order[at][1], oldest):
                at += step
            if 0 <= at < len(order):
                best = max(best, common_length(key, order[at][0], 4))
        if not best:
            return 0, -1
        prefix, newest = key[: 4 * best], -1
        at = bisect_left(order, (prefix, -1))
        while at < len(order) and order[at][0].startswith(prefix):
            if self._alive(node, order[at][1], oldest):
                newest = max(newest, int(self._last[self._child_at(node, order[at][1])]))
            at += 1
        return best, newest

    def _alive(self, node: int, piece: int, oldest: float | None) -> bool:
        if oldest is None:
            return True
        return not self._times[self._last[self._child_at(node, piece)]] < oldest

    def _best_stored(self, prompt: Prompt, path: LongArray, live_tokens: int) -> int:
        best = 0
        for depth in range(len(path) - 1, -1, -1):
            node = int(path[depth])
            inside = self._stored_inside.get(node)
            if inside and depth < len(prompt.pieces):
                key = self.table[int(prompt.pieces[depth])].key
                for prefix, tokens in inside.items():
                    if best < tokens <= live_tokens and key.startswith(prefix):
                        best = tokens
            tokens = self._stored_at.get(node, 0)
            if tokens <= live_tokens:
                best = max(best, tokens)
            if best:
                break
        return best

    # -- storing ---------------------------------------------------------------------------

    def _extend(self, path: LongArray, pieces: IntArray) -> LongArray:
        tail = pieces[len(path) - 1 :]
        if not len(tail):
            return path
        node, first = int(path[-1]), int(tail[0])
        order, item = self._children(node), (self.table[first].key, first)
        at = bisect_left(order, item)
        self._order[node] = (*order[:at], item, *order[at:])
        start = self._nodes
        self._child[(node, first)] = start
        self._starts.append(start)
        self._runs.append(tail)
        self._nodes += len(tail)
        while self._nodes > len(self._last):
            self._last = np.concatenate([self._last, np.full(len(self._last), -1, np.int64)])
        return np.concatenate([path, np.arange(start, self._nodes)])

    def _remember_time(self, request: int, time_s: float | None) -> None:
        while request >= len(self._times):
            self._times = np.concatenate([self._times, np.full(len(self._times), np.nan)])
        self._times[request] = np.nan if time_s is None else time_s

    def _store(self, path: LongArray, pieces: IntArray, ends: LongArray, tokens: int) -> None:
        if tokens <= 0:
            return
        at = int(np.searchsorted(ends, tokens, "left"))
        if at >= len(ends):
            return
        if int(ends[at]) == tokens:
            self._stored_at[int(path[at + 1])] = tokens
            return
        piece = self.table[int(pieces[at])]
        start = int(ends[at - 1]) if at else 0
        joint = int(ends[at]) - start - piece.tokens
        prefix = piece.key[: 4 * max(0, tokens - start - joint)]
        self._stored_inside.setdefault(int(path[at]), {})[prefix] = tokens

    def _leave(
        self, request: int, prompt: Prompt, output: IntArray, path: LongArray, time_s: float | None
    ) -> None:
        n = len(prompt.pieces) - 1
        pieces, ends, nodes = prompt.pieces[:n], prompt.ends[:n], path[: n + 1]
        if self.rule.output_reuse and len(output):
            pieces, ends = self.table.extended(pieces, ends, output)
            nodes = self._extend(self._walk_from(nodes, output), pieces)
            self._last[nodes] = request
            if self.rule.match == "stored_units":
                self._store(nodes, pieces, ends, self.rule.floor(int(ends[-1])))
        self._recent = (pieces, nodes)
        self.entries[request] = Entry(request, pieces, ends, n, prompt.total_tokens, time_s)


def slow_match(
    table: PieceTable,
    rule: CacheRule,
    earlier: list[tuple[Prompt, IntArray, float | None]],
    prompt: Prompt,
    time_s: float | None,
    lifetime_s: float | None,
) -> Match:
    """The same answer from scratch: compare token by token with every earlier request.

    `earlier` holds prompt, stored output and start of each earlier request of the scope. For
    "any_prefix" rules only; joints are taken as zero (the caller's table must have none).
    """
    own = b"".join(table[int(p)].key for p in prompt.pieces)
    best: tuple[int, int] | None = None
    best_live: tuple[int, int] | None = None
    for number, (other, output, start) in enumerate(earlier):
        paths = [b"".join(table[int(p)].key for p in other.pieces)]
        if rule.output_reuse and len(output):
            stored = [*other.pieces[:-1].tolist(), *output.tolist()]
            paths.append(b"".join(table[p].key for p in stored))
        shared = max(common_length(own, path, 4) for path in paths)
        best = max(best or (-1, -1), (shared, number))
        gone = lifetime_s is not None and time_s is not None and start is not None
        if not (gone and start < time_s - lifetime_s):  # type: ignore[operator]
            best_live = max(best_live or (-1, -1), (shared, number))
    if best is None:
        return Match(None, 0, 0, 0, 0)
    live = best_live[0] if best_live else 0
    parent = best_live[1] if best_live and live == best[0] else best[1]
    return Match(parent, best[0], live, rule.floor(live), 0)
