"""What is known of a section for ordering: its size, and how often it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from typing import Final, Literal

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.sections import STABILITIES

__all__ = [
    "STABILITY_CHANGE_PROBABILITY",
    "RateSource",
    "SectionStats",
    "by_stability",
    "check_sections",
    "measured",
    "wilson_interval",
]

RateSource = Literal["measured", "by stability", "by hand"]

STABILITY_CHANGE_PROBABILITY: Final = {
    "static": 0.001,
    "workspace": 0.01,
    "session": 0.05,
    "dynamic": 0.9,
}
"""Assumed probability that a section of a stability changes between two requests.

Assumptions for sections nobody has measured: static text changes with a release, workspace text
with an edit to the project's files, session text a few times in a session of some forty requests,
and dynamic text with nearly every request.
"""

_Z_95: Final = 1.959963984540054


@dataclass(frozen=True, slots=True)
class SectionStats:
    """One section, for ordering.

    name: unique among the sections that are ordered together.
    size_tokens: at least 1; the mean where the size varies.
    change_probability: that the section differs from what the request before sent, 0 to 1.
    source: where that probability comes from.
    changes, trials: the count behind a measured probability, None for an assumed one.
    low, high: 95 % Wilson interval of a measured probability; the probability itself otherwise.
    head_tokens: tokens before the change when it changes (they stay readable from the cache);
        0 takes the whole section as lost.
    stability: as declared or assumed; "" when unknown.

    Raises LabError for an empty name or section, a probability outside 0 to 1, or a head that is
    longer than the section.
    """

    name: str
    size_tokens: int
    change_probability: float
    source: RateSource = "by hand"
    changes: int | None = None
    trials: int | None = None
    low: float = -1.0
    high: float = -1.0
    head_tokens: int = 0
    stability: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise LabError("a section has the name '', and needs one to be ordered; name it")
        if self.size_tokens < 1:
            raise LabError(
                f"section {self.name!r} is empty ({self.size_tokens} tokens), and an empty section "
                "has no place in an order; leave it out"
            )
        p = self.change_probability
        if not (isfinite(p) and 0 <= p <= 1):
            raise LabError(
                f"section {self.name!r} has the change probability {p!r}, and a probability lies "
                "between 0 and 1; use changes divided by requests"
            )
        if not 0 <= self.head_tokens <= self.size_tokens:
            raise LabError(
                f"section {self.name!r} keeps {self.head_tokens} tokens before its change, and it "
                f"has {self.size_tokens}; choose a number from 0 to that"
            )
        for name in ("low", "high"):
            if getattr(self, name) < 0:
                object.__setattr__(self, name, p)

    @property
    def value_tokens(self) -> float:
        """Expected tokens of it that stay readable when all before it is unchanged."""
        p = self.change_probability
        return self.size_tokens * (1 - p) + self.head_tokens * p

    @property
    def ratio(self) -> float:
        """What sorts sections best, greatest first: size * (1 - p) / p, plus the kept head.

        Infinite for a section that never changes.
        """
        p = self.change_probability
        return self.value_tokens / p if p else float("inf")

    def by_hand(self, change_probability: float) -> SectionStats:
        """The same section with a probability that a person set."""
        return replace(
            self,
            change_probability=change_probability,
            source="by hand",
            changes=None,
            trials=None,
            low=-1.0,
            high=-1.0,
        )


def wilson_interval(changes: int, trials: int) -> tuple[float, float]:
    """95 % interval of a probability from a count (E. B. Wilson, 1927, without continuity term).

    (0, 1) without trials. Raises LabError for a count outside 0 to trials.
    """
    if not 0 <= changes <= trials:
        raise LabError(f"{changes} changes in {trials} pairs of requests cannot be; count again")
    if trials == 0:
        return 0.0, 1.0
    p, z2 = changes / trials, _Z_95**2
    middle = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _Z_95 / (1 + z2 / trials) * sqrt(p * (1 - p) / trials + z2 / (4 * trials**2))
    low = 0.0 if changes == 0 else max(0.0, middle - half)
    high = 1.0 if changes == trials else min(1.0, middle + half)
    return low, high


def measured(
    name: str,
    size_tokens: int,
    changes: int,
    trials: int,
    head_tokens: int = 0,
    stability: str = "",
) -> SectionStats:
    """A section whose changes were counted: `changes` in `trials` pairs of successive requests."""
    low, high = wilson_interval(changes, trials)
    if trials == 0:
        raise LabError(
            f"section {name!r} was seen in one request only, so its changes cannot be counted; "
            "set the probability by hand or by its stability"
        )
    return SectionStats(
        *(name, size_tokens, changes / trials, "measured", changes, trials),
        *(low, high, head_tokens, stability),
    )


def by_stability(name: str, size_tokens: int, stability: str) -> SectionStats:
    """A section nobody has measured, with the documented default of its stability."""
    if stability not in STABILITY_CHANGE_PROBABILITY:
        raise LabError(f"stability {stability!r} is unknown; use one of {', '.join(STABILITIES)}")
    p = STABILITY_CHANGE_PROBABILITY[stability]
    return SectionStats(name, size_tokens, p, "by stability", stability=stability)


def check_sections(sections: Sequence[SectionStats], window_tokens: int | None = None) -> None:
    """Refuse what cannot be one prompt: no section, equal names, more than the window holds."""
    if not sections:
        raise LabError("there are 0 sections, and an order needs at least one; add a section")
    seen: set[str] = set()
    for section in sections:
        if section.name in seen:
            raise LabError(
                f"two sections are named {section.name!r}, and an order tells sections apart by "
                "name; rename one"
            )
        seen.add(section.name)
    total = sum(section.size_tokens for section in sections)
    if window_tokens is not None and total > window_tokens:
        largest = max(sections, key=lambda section: section.size_tokens)
        raise LabError(
            f"the sections have {total:,} tokens, and the window holds {window_tokens:,}; "
            f"shorten {largest.name!r} ({largest.size_tokens:,} tokens) first"
        )
