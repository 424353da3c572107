"""Predicted against reported cache reads, request by request.

What the payload cannot explain (eviction, routing, a server's own changes) is shown as such and
never blamed on the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.turns import Turn

__all__ = ["UNCALIBRATED_SHARE", "Reconciled", "calibration_gap", "reconcile", "tolerance"]

UNCALIBRATED_SHARE = Fraction(5, 100)
"""From this share of the input on, predicted and reported disagree and savings are uncalibrated."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """One request with counters, in tokens.

    predicted_read: on the scale of the reported input where tokens are only estimated, else as
        predicted. unexplained: predicted less reported reads, 0 within the tolerance; positive
        where the provider read less than the bytes allow.
    """

    request: int
    predicted_input: int
    reported_input: int
    predicted_read: int
    reported_read: int
    unexplained: int


def tolerance(step_tokens: int, input_tokens: int) -> int:
    """Tokens by which an honest prediction may miss: two steps of the rule, 2 % of the input."""
    return max(2 * step_tokens, input_tokens // 50)


def reconcile(
    turns: Sequence[Turn], requests: Sequence[Request], step_tokens: int, exact: bool
) -> list[Reconciled | None]:
    """One row a request, None where the log holds no content or no counter of cached tokens.

    exact: predicted tokens are the model's own; else only their proportion is compared.
    """
    rows: list[Reconciled | None] = []
    for turn, request in zip(turns, requests, strict=True):
        usage, total = request.usage, turn.prompt.total_tokens
        whole = request.content == "whole" and total
        if usage is None or usage.cache_read_tokens is None or not whole:
            rows.append(None)
            continue
        read = turn.match.hit_tokens
        if not exact:
            read = round(Fraction(read * usage.input_tokens, total))
        missing = read - usage.cache_read_tokens
        small = abs(missing) <= tolerance(step_tokens, usage.input_tokens)
        rows.append(
            Reconciled(
                turn.index,
                total,
                usage.input_tokens,
                read,
                usage.cache_read_tokens,
                0 if small else missing,
            )
        )
    return rows


def calibration_gap(rows: Sequence[Reconciled | None]) -> Fraction | None:
    """Unexplained reads in either direction as a share of the reported input; None without any."""
    known = [row for row in rows if row is not None]
    whole = sum(row.reported_input for row in known)
    return Fraction(sum(abs(row.unexplained) for row in known), whole) if whole else None
