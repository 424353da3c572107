"""Explicit caches: which order, and up to four breakpoints in it, cost least.

A breakpoint stores the prompt up to it. A request reads up to the last breakpoint before which
nothing has changed and whose entry still lives, writes from there to the last breakpoint, and pays
the plain price for the rest. With P(T) the probability that none of the sections T before a
breakpoint changed and a(t) that an entry of life t still lives, each token between the breakpoint
before T and T costs write(t) - a(t) * P(T) * (write(t) - read) in expectation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.ordering.breakpoint_search import exact_plan, plan_for_order
from codesmith_lab.prompt.ordering.constraints import OrderConstraints, ResolvedConstraints
from codesmith_lab.prompt.ordering.search import list_schedule
from codesmith_lab.prompt.ordering.stats import SectionStats, check_sections

__all__ = [
    "EXACT_BREAKPOINT_SECTIONS",
    "Breakpoint",
    "BreakpointPlan",
    "CacheLife",
    "ExplicitPrices",
    "best_breakpoints",
    "plan_usd",
]

EXACT_BREAKPOINT_SECTIONS = 12
"""Up to so many sections every order with every breakpoint is weighed: 3^sections pairs of sets."""


@dataclass(frozen=True, slots=True)
class CacheLife:
    """A life that an entry can be written with.

    name: as people call it, e.g. "5m". write: USD per 1M tokens written. alive: probability that
    the next request comes before it ends, 0 to 1.
    """

    name: str
    write: Decimal
    alive: float

    def __post_init__(self) -> None:
        if not 0 <= self.alive <= 1:
            raise LabError(
                f"entries of {self.name!r} are alive with the probability {self.alive!r}, and that "
                "lies between 0 and 1; use the share of requests that come in time"
            )


@dataclass(frozen=True, slots=True)
class ExplicitPrices:
    """Prices (USD per 1M tokens) and limits of an explicit cache.

    lives: the longest first; a longer one may not stand behind a shorter one.
    minimum_tokens: a breakpoint over fewer tokens is ignored by the provider.
    """

    input: Decimal
    cache_read: Decimal
    lives: tuple[CacheLife, ...]
    minimum_tokens: int = 0
    most_breakpoints: int = 4

    def __post_init__(self) -> None:
        if not self.lives:
            raise LabError("an explicit cache has 0 lives, and it needs one; name its write price")
        alive = [life.alive for life in self.lives]
        if alive != sorted(alive, reverse=True):
            raise LabError(
                f"the lives {', '.join(life.name for life in self.lives)} are alive with "
                f"{alive}, and a longer one cannot die first; put the longest first"
            )
        if not 1 <= self.most_breakpoints <= 8:
            raise LabError(
                f"{self.most_breakpoints} breakpoints cannot be planned; use 1 to 8 (Anthropic: 4)"
            )


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A breakpoint behind the section `after`, at `place` (0-based), with the life `life`."""

    after: str
    place: int
    life: str


@dataclass(frozen=True, slots=True)
class BreakpointPlan:
    """An order, its breakpoints, and the expected input cost of a request.

    method: "subsets" is exact; "orders" took the best breakpoints of several good orders.
    least_usd: no plan costs less; equal to `usd` for an exact one.
    """

    names: tuple[str, ...]
    breakpoints: tuple[Breakpoint, ...]
    usd: Decimal
    method: Literal["subsets", "orders"]
    least_usd: Decimal

    @property
    def gap_usd(self) -> Decimal:
        """By how much the plan may miss the cheapest; 0 is proved."""
        return max(Decimal(0), self.usd - self.least_usd)


def best_breakpoints(
    sections: Sequence[SectionStats],
    prices: ExplicitPrices,
    constraints: OrderConstraints | None = None,
    new_tokens: int = 0,
    window_tokens: int | None = None,
) -> BreakpointPlan:
    """The cheapest order and breakpoints together.

    new_tokens: tokens that each request appends behind the last section; they are written when
    the last breakpoint stands behind all sections. Locks are part of the exact search where they
    stand at the two ends.

    Raises LabError as `check_sections` and `OrderConstraints.resolve` do.
    """
    check_sections(sections, window_tokens)
    names = [section.name for section in sections]
    resolved = (constraints or OrderConstraints()).resolve(names)
    exact = len(sections) <= EXACT_BREAKPOINT_SECTIONS and _locks_at_ends(resolved)
    if exact:
        order, marks = exact_plan(sections, prices, resolved, new_tokens)
    else:
        plans = [
            (*plan_for_order(sections, order, prices, new_tokens), order)
            for order in _good_orders(sections, resolved)
        ]
        _, marks, order = min(plans, key=lambda plan: plan[0])
    breakpoints = tuple(
        Breakpoint(names[order[place]], place, prices.lives[life].name) for place, life in marks
    )
    ordered = [sections[i] for i in order]
    usd = plan_usd(ordered, breakpoints, prices, new_tokens)
    least = usd if exact else min(usd, _least_usd(sections, prices, new_tokens))
    return BreakpointPlan(
        tuple(s.name for s in ordered), breakpoints, usd, "subsets" if exact else "orders", least
    )


def plan_usd(
    order: Sequence[SectionStats],
    breakpoints: Sequence[Breakpoint],
    prices: ExplicitPrices,
    new_tokens: int = 0,
) -> Decimal:
    """Expected input cost (USD) of a request with these breakpoints in this order.

    Raises LabError for too many breakpoints, places out of order, or a longer life behind a
    shorter one.
    """
    lives = {life.name: (k, life) for k, life in enumerate(prices.lives)}
    _check_breakpoints(breakpoints, lives, len(order), prices.most_breakpoints)
    usd, start, chance, at = Decimal(0), 0, 1.0, 0
    tokens = 0
    for mark in breakpoints:
        for section in order[at : mark.place + 1]:
            tokens += section.size_tokens
            chance *= 1 - section.change_probability
        at = mark.place + 1
        if tokens < prices.minimum_tokens:
            continue
        life = lives[mark.life][1]
        read = Decimal(repr(life.alive * chance))
        usd += (tokens - start) * (life.write - read * (life.write - prices.cache_read))
        start = tokens
    rest = sum(section.size_tokens for section in order) - start
    usd += rest * prices.input
    written = breakpoints and breakpoints[-1].place == len(order) - 1 and rest == 0
    last = lives[breakpoints[-1].life][1].write if written else prices.input
    return (usd + new_tokens * last) / 1_000_000


def _check_breakpoints(
    breakpoints: Sequence[Breakpoint],
    lives: Mapping[str, tuple[int, CacheLife]],
    sections: int,
    most: int,
) -> None:
    if len(breakpoints) > most:
        raise LabError(
            f"there are {len(breakpoints)} breakpoints, and a request may have {most}; drop one"
        )
    places = [mark.place for mark in breakpoints]
    if places != sorted(set(places)) or any(not 0 <= place < sections for place in places):
        raise LabError(
            f"the breakpoints stand at {places}, and places rise from 0 to {sections - 1}; "
            "sort them and drop doubles"
        )
    for mark in breakpoints:
        if mark.life not in lives:
            raise LabError(f"no life is named {mark.life!r}; use one of {', '.join(lives)}")
    ranks = [lives[mark.life][0] for mark in breakpoints]
    if ranks != sorted(ranks):
        raise LabError(
            "a breakpoint with a longer life stands behind one with a shorter life, and providers "
            "refuse that; put the longer lives first"
        )


def _locks_at_ends(resolved: ResolvedConstraints) -> bool:
    """Every lock belongs to an unbroken row of locks at the front or at the back."""
    locked = sorted(at for at in resolved.place if at is not None)
    front = 0
    while front < len(locked) and locked[front] == front:
        front += 1
    back = locked[front:]
    return back == list(range(resolved.count - len(back), resolved.count))


def _good_orders(
    sections: Sequence[SectionStats], resolved: ResolvedConstraints
) -> list[tuple[int, ...]]:
    """By the ratio of an automatic cache, and by change probability alone, both made feasible."""
    flat = [
        SectionStats(section.name, 1, section.change_probability, stability=section.stability)
        for section in sections
    ]
    whole = [
        SectionStats(section.name, section.size_tokens, section.change_probability)
        for section in sections
    ]
    return list(dict.fromkeys(list_schedule(kind, resolved) for kind in (whole, flat)))


def _least_usd(
    sections: Sequence[SectionStats], prices: ExplicitPrices, new_tokens: int
) -> Decimal:
    """What the sections would cost if each had a breakpoint and its own first place."""
    total = Decimal(0)
    for section in sections:
        kept = 1 - section.change_probability
        options = [prices.input]
        for life in prices.lives:
            read = Decimal(repr(life.alive * kept))
            options.append(life.write - read * (life.write - prices.cache_read))
        total += section.size_tokens * min(options)
    cheapest = min([prices.input, *(life.write for life in prices.lives)])
    return (total + new_tokens * cheapest) / 1_000_000
