"""When does a compaction pay for itself?

A history of H tokens stands in the cache. Every request reads it at the price of a hit, h.
Compacting replaces it by rH + k tokens: r of it remains, and k tokens come with every summary. The
provider has never seen them at this place, so the first request after it pays them as a miss, m;
every later one reads them as hits. Making the summary may cost S once. What is appended later, and
the prompt before the history, cost the same with and without, and so cancel. Over n requests:

    without   n h H
    with      S + m (rH + k) + (n - 1) h (rH + k)

With rho = m / h, the miss-to-hit price ratio, A = rH + k and s = S / h, "with" costs no more when

    n (H - A) >= (rho - 1) A + s        n* = ceil( ((rho - 1) A + s) / (H - A) )

and never when A >= H. A cached history is cheap to keep and dear to replace: at rho = 50 a
compaction to a tenth takes 6 requests to pay back, at rho = 1 (no cache) it pays at once.

If the summary is written by a model that must read the history as new, S = m H + o A for an output
price o, and n* grows by about rho / (1 - r).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from codesmith_lab.errors import LabError

__all__ = ["BreakEven", "break_even_requests", "break_even_table"]


@dataclass(frozen=True, slots=True)
class BreakEven:
    """One compaction, in tokens and prices.

    history_tokens: H, what is replaced, more than 0. ratio: r, the share that remains, 0 to 1.
    miss_to_hit: rho, price of a missed token over that of a cached one, 1 or more.
    fixed_tokens: k, tokens that come with every summary.
    summary_cost: s, the price of making the summary, in cached tokens (S / h).

    Raises LabError for a value out of its range.
    """

    history_tokens: float
    ratio: float
    miss_to_hit: float
    fixed_tokens: float = 0.0
    summary_cost: float = 0.0

    def __post_init__(self) -> None:
        for name, low, high, span in (
            ("history_tokens", math.ulp(0.0), math.inf, "more than 0"),
            ("ratio", 0.0, 1.0, "0 to 1"),
            ("miss_to_hit", 1.0, math.inf, "1 or more"),
            ("fixed_tokens", 0.0, math.inf, "0 or more"),
            ("summary_cost", 0.0, math.inf, "0 or more"),
        ):
            value = getattr(self, name)
            if not (math.isfinite(value) and low <= value <= high):
                raise LabError(f"{name} is {value!r}, but it must be {span}; pass such a number")

    @property
    def after_tokens(self) -> float:
        """A, the tokens that stand for the history afterwards."""
        return self.ratio * self.history_tokens + self.fixed_tokens

    @property
    def exact(self) -> float:
        """The break-even as a real number of requests; infinite when it never comes."""
        saved = self.history_tokens - self.after_tokens
        if saved <= 0:
            return math.inf
        return ((self.miss_to_hit - 1.0) * self.after_tokens + self.summary_cost) / saved

    @property
    def requests(self) -> int | None:
        """Requests after which the compaction has cost no more than none; None for never.

        The first request that sends the short history is number 1.
        """
        return None if math.isinf(self.exact) else max(1, math.ceil(self.exact - 1e-9))

    def cost_difference(self, requests: int) -> float:
        """ "with" minus "without" after so many requests, in cached tokens."""
        after = self.after_tokens
        with_it = self.summary_cost + self.miss_to_hit * after + (requests - 1) * after
        return with_it - requests * self.history_tokens

    def sentence(self, turn: int) -> str:
        """The answer in words for a compaction before turn `turn` (1-based)."""
        start = f"At these prices, compacting at turn {turn}"
        if self.requests is None:
            return f"{start} never pays back."
        turns = "turn" if self.requests == 1 else "turns"
        return f"{start} pays back after {self.requests} {turns}."


def break_even_requests(
    history_tokens: float,
    ratio: float,
    miss_to_hit: float,
    fixed_tokens: float = 0.0,
    summary_cost: float = 0.0,
) -> int | None:
    """Requests until a compaction pays back, None for never; see `BreakEven` for the numbers."""
    return BreakEven(history_tokens, ratio, miss_to_hit, fixed_tokens, summary_cost).requests


def break_even_table(
    history_tokens: Any,
    ratio: Any,
    miss_to_hit: Any,
    fixed_tokens: Any = 0.0,
    summary_cost: Any = 0.0,
) -> npt.NDArray[np.float64]:
    """The exact break-even for arrays that broadcast; infinite where it never comes."""
    history = np.asarray(history_tokens, np.float64)
    after = np.asarray(ratio) * history + np.asarray(fixed_tokens)
    saved = history - after
    cost = (np.asarray(miss_to_hit) - 1.0) * after + np.asarray(summary_cost)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: npt.NDArray[np.float64] = np.where(saved > 0, cost / saved, np.inf)
    return found
