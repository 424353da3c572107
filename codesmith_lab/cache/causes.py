"""Why each input token cost what it cost.

The tokens of a request are cut into spans, each with one cause; the spans cover the prompt exactly,
so the causes add up to the input tokens by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from codesmith_lab.cache.match import (
    CAUSES,
    EXPIRED,
    HIT,
    NEW,
    REPAID,
    ROUNDING,
    UNMARKED,
    Entry,
    IntArray,
    Match,
)
from codesmith_lab.cache.pieces import PieceTable, Prompt, common_length

__all__ = [
    "CAUSES",
    "EXPIRED",
    "HIT",
    "NEW",
    "REPAID",
    "ROUNDING",
    "UNMARKED",
    "Causes",
    "Span",
    "split_causes",
    "split_lines",
]


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens [start, end) of a prompt, all with the cause `CAUSES[cause]`."""

    start: int
    end: int
    cause: int


@dataclass(frozen=True, slots=True)
class Causes:
    """The spans of one request, in prompt order, and the tokens of each cause.

    break_piece, break_tokens: piece and token at which the request leaves its parent's prompt; both
        None when it extends the parent or has none.
    """

    spans: tuple[Span, ...]
    tokens: tuple[int, ...]
    break_piece: int | None
    break_tokens: int | None


def split_causes(
    table: PieceTable,
    prompt: Prompt,
    match: Match,
    parent: Entry | None,
    parent_prompt: Prompt | None,
) -> Causes:
    """Cut one request's tokens by cause.

    Up to the break: what the match says. Behind it: content of the parent that stands there
    unchanged is paid again, or, where no breakpoint would have kept it, is unmarked; the rest is
    new.
    """
    total = prompt.total_tokens
    spans: list[Span] = []
    start = 0
    for end, cause in match.segments:
        if end > start:
            spans.append(Span(start, end, cause))
            start = end
    broken = parent is not None and match.pieces < parent.prompt_pieces
    if parent is None or not broken:
        if start < total:
            spans.append(Span(start, total, NEW))
    else:
        behind = _behind(table, prompt, match, parent, parent_prompt)
        if match.marked_end is not None:
            behind = _cut_at_mark(behind, match.marked_end)
        spans.extend(behind)
    kept = _merged(spans)
    tokens = [0] * len(CAUSES)
    for span in kept:
        tokens[span.cause] += span.end - span.start
    at = (match.pieces, match.matched_tokens) if broken else (None, None)
    return Causes(kept, tuple(tokens), *at)


def _cut_at_mark(spans: Sequence[Span], marked_end: int) -> list[Span]:
    """What no breakpoint covers was not lost by the break: it never was to be read."""
    cut: list[Span] = []
    for span in spans:
        if span.cause != REPAID:
            cut.append(span)
            continue
        edge = min(max(span.start, marked_end), span.end)
        cut += [Span(span.start, edge, REPAID), Span(edge, span.end, UNMARKED)]
    return cut


def split_lines(causes: Causes, match: Match) -> tuple[tuple[int, int, int, int], ...]:
    """Tokens of each cause (rows as in `CAUSES`) by price line: read, input, 5m and 1h write.

    The prompt is read up to the hit, written for an hour and then for 5 minutes up to
    `match.written`, and plain input from there.
    """
    rows = [[0, 0, 0, 0] for _ in CAUSES]
    edges = (match.hit_tokens, *match.written)
    for span in causes.spans:
        row, low = rows[span.cause], span.start
        for line, edge in ((0, edges[0]), (3, edges[1]), (2, edges[2]), (1, span.end)):
            high = min(span.end, edge)
            if high > low:
                row[line] += high - low
                low = high
    return tuple((a, b, c, d) for a, b, c, d in rows)


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    kept: list[Span] = []
    for span in spans:
        if span.start >= span.end:
            continue
        if kept and kept[-1].cause == span.cause:
            kept[-1] = Span(kept[-1].start, span.end, span.cause)
        else:
            kept.append(span)
    return tuple(kept)


def _behind(
    table: PieceTable, prompt: Prompt, match: Match, parent: Entry, parent_prompt: Prompt | None
) -> list[Span]:
    """Spans from the break to the end of the prompt."""
    at = match.pieces
    mine = prompt.pieces[at:-1]
    theirs = parent.pieces[at:]
    again = _unchanged(mine, theirs)
    starts = np.concatenate([[0], prompt.ends])[at:]
    spans: list[Span] = []
    lost = {} if parent_prompt is None else _unmatched(parent_prompt, at, again, mine)
    # Runs of equal verdict are one span: a long history behind the break costs one look.
    edges = [0, *(np.flatnonzero(np.diff(again)) + 1).tolist(), len(mine)] if len(mine) else [0]
    for low, high in pairwise(edges):
        if again[low]:
            spans.append(Span(int(starts[low]), int(starts[high]), REPAID))
            continue
        for i in range(low, high):
            start, end = int(starts[i]), int(starts[i + 1])
            shared = 0 if i == 0 else _shared(table, prompt, at + i, lost)
            middle = min(end, start + shared)
            spans += [Span(start, middle, REPAID), Span(middle, end, NEW)]
    spans.append(Span(int(starts[len(mine)]), prompt.total_tokens, NEW))
    low = match.matched_tokens
    return [Span(max(s.start, low), s.end, s.cause) for s in spans]


def _unchanged(mine: IntArray, theirs: IntArray) -> npt.NDArray[np.bool_]:
    """Which of my pieces the parent also has behind the break (each of its pieces counts once)."""
    n = min(len(mine), len(theirs))
    if n > 1 and mine[0] != theirs[0] and np.array_equal(mine[1:n], theirs[1:n]):
        again = np.zeros(len(mine), np.bool_)
        again[1:n] = True
        leftover = set(theirs[n:].tolist()) | {int(theirs[0])}
        if not leftover.intersection([int(mine[0]), *mine[n:].tolist()]):
            return again
    left: dict[int, int] = {}
    for piece in theirs.tolist():
        left[piece] = left.get(piece, 0) + 1
    again = np.zeros(len(mine), np.bool_)
    for i, piece in enumerate(mine.tolist()):
        if left.get(piece, 0):
            left[piece] -= 1
            again[i] = True
    return again


def _unmatched(
    parent: Prompt, at: int, again: npt.NDArray[np.bool_], mine: IntArray
) -> dict[tuple[str, str, str, str], int]:
    """The parent's changed blocks behind the break, by what a person would call the same block."""
    if bool(again[1:].all()):
        return {}
    kept = set(mine[again].tolist())
    lost: dict[tuple[str, str, str, str], int] = {}
    for block, piece in zip(
        parent.blocks[at + 1 :], parent.pieces[at + 1 : -1].tolist(), strict=True
    ):
        if piece not in kept:
            lost.setdefault((block.zone, block.kind, block.role, block.name), piece)
    return lost


def _shared(
    table: PieceTable, prompt: Prompt, at: int, lost: dict[tuple[str, str, str, str], int]
) -> int:
    """Leading tokens that a second edited block still shares with what it was."""
    block = prompt.blocks[at]
    was = lost.pop((block.zone, block.kind, block.role, block.name), None)
    if was is None:
        return 0
    return common_length(table.key(was), table.key(int(prompt.pieces[at])), 4)
