"""What an order costs in expectation, in closed form.

The model: between two requests each section changes or not, independently, with its probability.
The cache serves the prompt up to the first change, in whole units. The proof that follows from it
and its limits are in docs/section_order.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.ordering.stats import SectionStats

__all__ = ["ANY_LENGTH", "CacheUnits", "OrderCost", "order_cost"]

_Z_99 = 2.5758293035489004


@dataclass(frozen=True, slots=True)
class CacheUnits:
    """How a provider rounds a cached prefix: whole steps, and nothing below the minimum."""

    minimum_tokens: int = 0
    step_tokens: int = 1

    def __post_init__(self) -> None:
        if self.step_tokens < 1 or self.minimum_tokens < 0:
            raise LabError(
                f"units of {self.step_tokens} tokens from {self.minimum_tokens} on cannot be; "
                "use a step of at least 1 and a minimum of at least 0"
            )

    def floor(self, tokens: int) -> int:
        """The longest prefix of at most `tokens` tokens that can be served."""
        if tokens < self.minimum_tokens:
            return 0
        return tokens // self.step_tokens * self.step_tokens


ANY_LENGTH = CacheUnits()
"""A cache that serves every common prefix, to the token."""


@dataclass(frozen=True, slots=True)
class OrderCost:
    """Expected tokens of one request under an order; the four parts add up to `total_tokens`.

    hit_tokens: read from the cache.
    new_tokens: changed content, which no order saves.
    repaid_tokens: unchanged content behind a change, paid again: what the order decides.
    rounding_tokens: unchanged and before any change, but not a whole unit, or not stored yet.
    survival: for each section, the probability that it and all before it are unchanged.
    deviation_tokens: standard deviation of one request's hit tokens.
    rounding_doubt_tokens: by how much the hit may be off where sizes vary between requests, so
        that the place inside a unit is not known.
    """

    total_tokens: int
    hit_tokens: float
    new_tokens: float
    repaid_tokens: float
    rounding_tokens: float
    survival: tuple[float, ...]
    deviation_tokens: float
    rounding_doubt_tokens: float

    @property
    def paid_tokens(self) -> float:
        """Expected tokens at full price: all that are no hit."""
        return self.total_tokens - self.hit_tokens

    def error_tokens(self, requests: int) -> float:
        """By how much the mean of `requests` requests may differ from `hit_tokens`.

        99 % of the sampling error of a mean of independent requests, plus the rounding doubt.
        """
        if requests < 1:
            raise LabError(f"a mean over {requests} requests has no error; use at least 1")
        return _Z_99 * self.deviation_tokens / sqrt(requests) + self.rounding_doubt_tokens


def order_cost(
    order: Sequence[SectionStats], units: CacheUnits = ANY_LENGTH, stored_units: bool = False
) -> OrderCost:
    """Expected tokens of a request whose sections stand in this order, in O(sections).

    With P(k) the product of (1 - p) over the first k sections, the first change lies in section k
    with probability P(k - 1) * p(k); then the cache serves the whole units of what stands before
    that change. With probability P(n) nothing changed and the whole units of all are served.

    stored_units: the cache serves only what ends where an earlier request ended or parted from
    another. A parting at section k finds its place stored unless it is the first one behind this
    content of the sections before it, which has the probability (1 - c) / (1 - c * (1 - p)) with
    c = P(k - 1); then it falls back to the place before. That is the long-run mean; the first
    requests of a session find less.
    """
    start, reach = 0, 1.0
    hit = square = kept = new = unchanged = 0.0
    fallback = fallback_square = 0.0
    survival = []
    for section in order:
        p, size, head = section.change_probability, section.size_tokens, section.head_tokens
        served = float(units.floor(start + head))
        mean, mean_square = served, served * served
        if stored_units and reach < 1:
            first = (1 - reach) / (1 - reach * (1 - p))
            mean = (1 - first) * served + first * fallback
            mean_square = (1 - first) * served * served + first * fallback_square
        if p:
            fallback, fallback_square = mean, mean_square
        hit += reach * p * mean
        square += reach * p * mean_square
        kept += reach * section.value_tokens
        unchanged += section.value_tokens
        new += p * (size - head)
        reach *= 1 - p
        start += size
        survival.append(reach)
    served = float(units.floor(start))
    hit += reach * served
    square += reach * served * served
    return OrderCost(
        start,
        hit,
        new,
        max(0.0, unchanged - kept),
        max(0.0, kept - hit),
        tuple(survival),
        sqrt(max(0.0, square - hit * hit)),
        float(units.step_tokens - 1),
    )
