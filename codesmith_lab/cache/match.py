"""What one request found in the cache, as every kind of cache says it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codesmith_lab.cache.pieces import Prompt

__all__ = [
    "CAUSES",
    "EXPIRED",
    "HIT",
    "NEW",
    "REPAID",
    "ROUNDING",
    "UNMARKED",
    "Entry",
    "IntArray",
    "LongArray",
    "Match",
]

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]

CAUSES = ("hit", "new", "repaid", "rounding", "expired", "unmarked")
"""The causes in the order in which tables and pictures show them."""

HIT, NEW, REPAID, ROUNDING, EXPIRED, UNMARKED = range(6)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What one request left behind: its prompt and, where stored, its output.

    output: pieces of the stored output.
    time_s: start of the request in seconds, None when unknown.
    """

    request: int
    prompt: Prompt
    output: IntArray
    time_s: float | None

    @property
    def prompt_pieces(self) -> int:
        """How many pieces are the prompt, without the reply's marks."""
        return self.prompt.size - 1

    @property
    def pieces(self) -> IntArray:
        """The prompt's pieces and the output's."""
        prompt = self.prompt.pieces[:-1]
        return np.concatenate([prompt, self.output]) if len(self.output) else prompt


@dataclass(frozen=True, slots=True)
class Match:
    """How far a request follows earlier ones, and what the rule makes of it.

    parent: the earlier request with the longest common prefix (live ones first, then the one
        that lives longest, then the newest); None when there is none.
    matched_tokens: common prefix with any earlier request, live or not.
    live_tokens: common prefix with what is still cached, at most `matched_tokens`.
    hit_tokens: what the rule lets the cache serve, at most `live_tokens`.
    pieces: whole pieces in common with the parent.
    segments: (end in tokens, cause) of the matched part, in prompt order.
    written: ends in tokens of what is written with a 1-hour and with a 5-minute life; each at
        least the one before it and `hit_tokens`. Equal to `hit_tokens` where writes have no price
        line of their own.
    stored_tokens: tokens put into a cache that is billed for storage; stored_s: for how long.
    refused: why the provider refuses the request, "" when it does not.
    marked_end: tokens that a breakpoint of the request covers: what lies behind could not have been
        a hit even on an unbroken prefix. None where a cache needs no breakpoints.
    """

    parent: int | None
    matched_tokens: int
    live_tokens: int
    hit_tokens: int
    pieces: int
    segments: tuple[tuple[int, int], ...] = ()
    written: tuple[int, int] = (0, 0)
    stored_tokens: int = 0
    stored_s: float = 0.0
    refused: str = ""
    marked_end: int | None = None
