"""The engine again, slow and plain: every request is compared with all before it, from scratch.

Nothing is shared with the fast engine but the data it reads. Prompts are lists of token ids, in
which a salt is an item of no length. Meant for tests; quadratic in everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from codesmith_lab.cache.match import IntArray
from codesmith_lab.cache.pieces import PieceTable, Prompt
from codesmith_lab.cache.plan import CachePlan
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.cache.slow_engines import SlowMemory

__all__ = ["SlowAnswer", "SlowCache"]

Items = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SlowAnswer:
    """Tokens shared with any earlier request, with a living one, read, and written by line.

    parents: the earlier requests that share most, living ones alone where they do.
    """

    matched: int
    live: int
    hit: int
    written_1h: int
    written_5m: int
    parents: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Earlier:
    """paths: what a request left: its prompt with the reply markers, and its prompt and output."""

    number: int
    paths: tuple[Items, ...]
    until: float


@dataclass(slots=True)
class _Entry:
    until: float
    life: float


class SlowCache:
    """One scope under one rule."""

    def __init__(self, table: PieceTable, rule: CacheRule) -> None:
        self.table = table
        self.rule = rule
        self.earlier: list[_Earlier] = []
        self.units: set[Items] = set()
        self.entries: dict[Items, _Entry] = {}
        limited = rule.match == "slots" or rule.capacity_tokens is not None
        self.memory = SlowMemory(rule) if limited else None

    def add(
        self,
        number: int,
        prompt: Prompt,
        output: IntArray,
        time_s: float | None,
        plan: CachePlan,
    ) -> SlowAnswer:
        """The answer for one request; afterwards it is one of the earlier ones."""
        whole = self.items(prompt.pieces.tolist(), plan)
        body = self.items(prompt.pieces[:-1].tolist(), plan)
        expire = self.rule.match != "breakpoints"
        now = -inf if time_s is None or not expire else time_s
        shared = [(max(common(whole, path) for path in e.paths), e) for e in self.earlier]
        matched = max((n for n, _ in shared), default=0)
        live = max((n for n, e in shared if e.until >= now), default=0)
        best = [e for n, e in shared if n == matched and (live < matched or e.until >= now)]
        parents = frozenset(e.number for e in best)
        hit, written = 0, (0, 0)
        if plan.refused or plan.off:
            live = 0
        elif self.memory is not None:
            live, hit = self._limited(whole, live, plan)
            written = (hit, hit)
        elif self.rule.match == "breakpoints":
            hit, written, live = self._breakpoints(prompt, body, matched, time_s, plan)
        else:
            most = min(live, length(whole) - self.rule.keep_last_tokens)
            hit = self.rule.floor(most, plan.minimum_tokens)
            if self.rule.match == "stored_units":
                hit = max(
                    (length(u) for u in self.units if length(u) <= most and u == whole[: len(u)]),
                    default=0,
                )
            written = (hit, hit)
        answer = SlowAnswer(matched, live, hit, written[0], written[1], parents)
        if not plan.refused:
            self._remember(number, whole, body, output, time_s, plan, live)
        return answer

    def _limited(self, whole: Items, live: int, plan: CachePlan) -> tuple[int, int]:
        """What an engine's memory still holds of `live` tokens, and what of that hits."""
        assert self.memory is not None
        there = self.memory.serve(_tokens(whole), repr(plan.salts))
        most = min(live, length(whole) - self.rule.keep_last_tokens)
        if self.rule.match == "slots" or there < self.rule.floor(most):
            live = min(live, there)
        most = min(live, length(whole) - self.rule.keep_last_tokens)
        return live, self.rule.floor(most, plan.minimum_tokens)

    def items(self, pieces: list[int], plan: CachePlan) -> Items:
        """Token ids of pieces, with the salts where they belong."""
        salts = dict(plan.salts)
        found: list[Any] = []
        for at, piece in enumerate(pieces):
            if at in salts:
                found.append(("salt", salts[at]))
            key = self.table.key(piece)
            found += [int.from_bytes(key[i : i + 4], signed=True) for i in range(0, len(key), 4)]
        return tuple(found)

    def _remember(
        self,
        number: int,
        whole: Items,
        body: Items,
        output: IntArray,
        time_s: float | None,
        plan: CachePlan,
        live: int,
    ) -> None:
        paths = [whole]
        stores = not plan.off or self.rule.match == "slots"
        if self.rule.output_reuse and stores and len(output):
            answer = self.items(output.tolist(), CachePlan())
            drop = bool(self.rule.keep_last_tokens)
            paths.append(body + (answer[:-1] if drop else answer))
        if self.memory is not None and stores:
            computed = max((_tokens(path) for path in paths), key=len)
            self.memory.run(_tokens(whole), computed, repr(plan.salts))
        until = inf
        if self.rule.match != "breakpoints" and None not in (time_s, plan.lifetime_s):
            until = (time_s or 0.0) + (plan.lifetime_s or 0.0)
        self.earlier.append(_Earlier(number, tuple(paths), until))
        if self.rule.match == "stored_units" and not plan.off:
            for path, tokens in [
                (whole, live),
                (whole, length(whole)),
                *((p, length(p)) for p in paths[1:]),
            ]:
                unit = head(path, self.rule.floor(tokens, plan.minimum_tokens))
                if length(unit):
                    self.units.add(unit)

    # -- breakpoints -----------------------------------------------------------------------

    def _breakpoints(
        self, prompt: Prompt, body: Items, matched: int, time_s: float | None, plan: CachePlan
    ) -> tuple[int, tuple[int, int], int]:
        now = -inf if time_s is None else time_s
        n = len(prompt.pieces) - 1
        prefixes = {p: self.items(prompt.pieces[:p].tolist(), plan) for p in range(n + 1)}
        hit = dead = 0
        read: _Entry | None = None
        for p in range(n, 0, -1):
            entry = self.entries.get(prefixes[p])
            if entry is None or not self._looked_up(p, plan):
                continue
            if entry.until >= now:
                hit, read = length(prefixes[p]), entry
                break
            dead = max(dead, length(prefixes[p]))
        if read is not None and self.rule.refreshes:
            self._refresh(read, now)
        long_end = end = hit
        for point in plan.breakpoints:
            tokens = length(prefixes[point.pieces])
            if tokens < plan.minimum_tokens:
                continue
            end = max(end, tokens)
            if point.long:
                long_end = max(long_end, tokens)
            entry = self.entries.get(prefixes[point.pieces])
            if entry is not None and entry.until >= now:
                if self.rule.refreshes:
                    self._refresh(entry, now)
            else:
                life = inf if point.lifetime_s is None else point.lifetime_s
                until = inf if time_s is None else now + life
                self.entries[prefixes[point.pieces]] = _Entry(until, life)
        written = (long_end, end) if self.rule.charges_writes else (hit, hit)
        return hit, written, hit if dead > hit else matched

    def _refresh(self, entry: _Entry, now: float) -> None:
        entry.until = inf if now == -inf else max(entry.until, now + entry.life)

    def _looked_up(self, pieces: int, plan: CachePlan) -> bool:
        if plan.lookups is not None:
            return pieces in plan.lookups
        for point in plan.breakpoints:
            if point.pieces < pieces:
                continue
            if self.rule.lookback_blocks is None:
                return True
            assert plan.block_numbers is not None
            back = plan.block_numbers[point.pieces - 1] - plan.block_numbers[pieces - 1]
            if back <= self.rule.lookback_blocks:
                return True
        return False


def _tokens(items: Items) -> tuple[int, ...]:
    return tuple(item for item in items if not isinstance(item, tuple))


def length(items: Items) -> int:
    """Tokens of items: salts have none."""
    return sum(1 for item in items if not isinstance(item, tuple))


def common(a: Items, b: Items) -> int:
    """Tokens of the common prefix."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return length(a[:n])


def head(items: Items, tokens: int) -> Items:
    """The shortest prefix with so many tokens."""
    for n in range(len(items) + 1):
        if length(items[:n]) == tokens:
            return items[:n]
    return items
