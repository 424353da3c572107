"""What a run of requests really sent of each section, and what an order would have kept of it.

No independence is assumed here: the versions of the sections are those of the history, so changes
that come together stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.ordering.cost import CacheUnits

__all__ = ["ContentHistory", "OrderReplay", "Surroundings", "least_between"]

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What stands around the sections of N requests, the same whatever their order.

    lead_tokens: int64[N], before the first section.
    tail_tokens: int64[N], behind the last section, the reply's markers included.
    shared_prompt: int64[N, N], tokens that tail i shares with the tail of request j's prompt.
    shared_output: the same with request j's prompt and the output stored behind it.
    output_tokens: int64[N], by how much that output makes the stored prompt longer.
    live: bool[N, N], request j is earlier than i, in the same cache and not expired.
    earlier: bool[N, N], the same without expiry.
    """

    lead_tokens: Longs
    tail_tokens: Longs
    shared_prompt: Longs
    shared_output: Longs
    output_tokens: Longs
    live: Bools
    earlier: Bools


@dataclass(frozen=True, slots=True, eq=False)
class OrderReplay:
    """What an order would have kept, request by request (int64[N], tokens).

    hit_tokens: read from the cache, in whole units. matched_tokens: common with the best live
    earlier request. total_tokens: the whole input.
    """

    hit_tokens: Longs
    matched_tokens: Longs
    total_tokens: Longs

    @property
    def mean_hit_tokens(self) -> float:
        """Mean hit tokens of the requests after the first, which finds the cache empty."""
        return float(self.hit_tokens[1:].mean()) if len(self.hit_tokens) > 1 else 0.0


@dataclass(frozen=True, eq=False)
class ContentHistory:
    """The sections of N requests, as numbered versions.

    names: the sections, in today's order.
    fixed_first: so many of them (tool definitions a provider reads first) never move.
    versions: int32[N, sections], equal numbers in a column are equal texts.
    tokens: int64[N, sections], 0 where the request has no such section.
    heads: per section, int32[versions, versions]: leading tokens two versions share.
    around: what stands before and behind.
    previous: for each request the one before it in its cache, or -1: between these changes
        are counted.
    """

    names: tuple[str, ...]
    fixed_first: int
    versions: Ints
    tokens: Longs
    heads: tuple[Ints, ...]
    around: Surroundings
    previous: Longs

    @property
    def requests(self) -> int:
        """How many requests there are."""
        return len(self.versions)

    @cached_property
    def total_tokens(self) -> Longs:
        """Input tokens of each request; no order changes them."""
        around = self.around
        return np.asarray(around.lead_tokens + self.tokens.sum(axis=1) + around.tail_tokens)

    @cached_property
    def changed(self) -> Bools:
        """bool[pairs, sections]: the section differs from the request before (see `previous`)."""
        now = np.flatnonzero(self.previous >= 0)
        return np.asarray(self.versions[now] != self.versions[self.previous[now]])

    def positions(self, names: Sequence[str]) -> tuple[int, ...]:
        """An order by name as positions; LabError unless it names each section once."""
        number = {name: i for i, name in enumerate(self.names)}
        for name in names:
            if name not in number:
                raise LabError(f"the history has no section {name!r}; order {self.names!r}")
        if len(set(names)) < len(names) or len(names) < len(self.names):
            missing = [name for name in self.names if name not in names]
            raise LabError(
                f"an order of {len(self.names)} sections names each of them once; "
                f"{'missing are ' + repr(missing) if missing else 'one stands twice'}"
            )
        return tuple(number[name] for name in names)

    def replay(
        self, order: Sequence[int], units: CacheUnits, stored_units: bool = False
    ) -> OrderReplay:
        """Every request against all live earlier ones, with the sections in this order.

        order: positions of all sections. stored_units: a hit ends only where an earlier request
        left the end of its prompt, of its output, or of what it shared with others (each in
        whole units); otherwise any whole unit of the common prefix is a hit.
        """
        shared_prompt, shared_output = self._shared(order)
        around = self.around
        shared = np.where(around.live, np.maximum(shared_prompt, shared_output), 0)
        matched = shared.max(axis=1, initial=0)
        if not stored_units:
            return OrderReplay(_floor(units, matched), matched, self.total_tokens)
        total = self.total_tokens
        best = np.zeros_like(matched)
        for ends, reach in (
            (_floor(units, matched), shared_prompt),
            (_floor(units, total), shared_prompt),
            (_floor(units, total + around.output_tokens), shared_output),
        ):
            most = np.minimum(reach, matched[:, None])
            usable = around.earlier & (ends[None, :] <= most)
            best = np.maximum(best, np.where(usable, ends[None, :], 0).max(axis=1, initial=0))
        return OrderReplay(best, matched, total)

    def _shared(self, order: Sequence[int]) -> tuple[Longs, Longs]:
        """int64[N, N] twice: tokens that i shares with j's prompt, and with j's stored output."""
        order = list(order)
        n, width = self.requests, len(order)
        versions = self.versions[:, order]
        moving = np.flatnonzero((versions != versions[:1]).any(axis=0))
        # Columns that never change cannot part two requests: they are left out of the search.
        place = np.append(moving, width)[_first_difference(versions[:, moving])]
        start = np.zeros((n, width + 1), np.int64)
        np.cumsum(self.tokens[:, order], axis=1, out=start[:, 1:])
        start += self.around.lead_tokens[:, None]
        shared = np.take_along_axis(start, place, axis=1)
        inside = place < width
        i, j = np.nonzero(inside)
        section = np.array(order, np.int64)[place[inside]]
        offset, count, flat = self._flat_heads
        mine, theirs = self.versions[i, section], self.versions[j, section]
        shared[inside] += flat[offset[section] + mine * count[section] + theirs]
        with_prompt = shared + np.where(inside, 0, self.around.shared_prompt)
        return with_prompt, shared + np.where(inside, 0, self.around.shared_output)

    @cached_property
    def _flat_heads(self) -> tuple[Longs, Longs, Ints]:
        count = np.array([len(head) for head in self.heads], np.int64)
        offset = np.concatenate([[0], np.cumsum(count * count)[:-1]]).astype(np.int64)
        flat = np.concatenate([head.ravel() for head in self.heads] or [np.zeros(0, np.int32)])
        return offset, count, flat.astype(np.int32)


def _floor(units: CacheUnits, tokens: Longs) -> Longs:
    whole = tokens // units.step_tokens * units.step_tokens
    return np.asarray(np.where(tokens < units.minimum_tokens, 0, whole))


def _first_difference(rows: Ints) -> Longs:
    """int64[N, N]: the first column in which two rows differ; the width where none does.

    Rows are sorted; between two of them the first difference is the least of those between
    neighbours on the way.
    """
    n, width = rows.shape
    found = np.full((n, n), width, np.int64)
    if not width or n < 2:
        return found
    keys = np.ascontiguousarray(rows.astype(">i4")).view(f"S{4 * width}").ravel()
    order = np.argsort(keys, kind="stable")
    ordered = rows[order]
    differs = ordered[1:] != ordered[:-1]
    steps = np.where(differs.any(axis=1), differs.argmax(axis=1), width)
    return least_between(order, steps, np.full(n, width, np.int64))


def least_between(order: Longs, steps: Longs, own: Longs) -> Longs:
    """int64[n, n]: what two of n sorted items share, from what neighbours share.

    order: the items' numbers in sorted order. steps[k]: what the sorted items k and k + 1 share;
    two items share the least of the steps between them. own: what an item shares with itself.
    """
    n = len(order)
    in_order = np.zeros((n, n), np.int64)
    for at in range(n - 1):
        in_order[at, at + 1 :] = np.minimum.accumulate(steps[at:])
    in_order += in_order.T
    found = np.empty_like(in_order)
    found[np.ix_(order, order)] = in_order
    found[np.arange(n), np.arange(n)] = own
    return found
