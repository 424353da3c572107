"""The result of an analysis: as tables, as the JSON contract and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from codesmith_lab.cache.causes import CAUSES
from codesmith_lab.sessions.findings.collect import Finding
from codesmith_lab.sessions.findings.diagnosis import Break
from codesmith_lab.sessions.findings.reconcile import (
    UNCALIBRATED_SHARE,
    Reconciled,
    calibration_gap,
)
from codesmith_lab.sessions.findings.wire import WireDifference
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.remedies.remedy import Remedy, find_plan, find_remedies
from codesmith_lab.sessions.turns import LINES, Turn, TurnRunner

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Report", "Totals"]


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over a session. Money is None where any request has no price or no content.

    repaid_usd: what drift cost: the repaid tokens' price above a cache read.
    reported_cost_usd: the bill from reported counters, None unless every request has them.
    without_content: requests of which the log holds counters at most; nothing is predicted there.
    reported_input_tokens, reported_read_tokens: what counters say, of the requests that have them.
    """

    requests: int
    input_tokens: int
    output_tokens: int
    causes: tuple[int, ...]
    lines: tuple[int, ...]
    cost_usd: Decimal | None
    repaid_usd: Decimal | None
    reported_cost_usd: Decimal | None
    without_content: int = 0
    reported_input_tokens: int = 0
    reported_read_tokens: int = 0

    @property
    def predicted(self) -> bool:
        """Whether any request holds content that a prediction could be made from."""
        return self.without_content < self.requests

    @property
    def hit_share(self) -> float:
        """Share of the input tokens that were cache hits, 0 to 1."""
        return self.causes[0] / self.input_tokens if self.input_tokens else 0.0


def _sum(values: Sequence[Decimal | None]) -> Decimal | None:
    known = [value for value in values if value is not None]
    return sum(known, Decimal(0)) if len(known) == len(values) else None


def total(runner: TurnRunner, turns: Sequence[Turn]) -> Totals:
    """Sums over the turns of a run."""
    requests = [runner.session.requests[turn.index] for turn in turns]
    usages = [request.usage for request in requests if request.usage is not None]
    return Totals(
        len(turns),
        sum(t.prompt.total_tokens for t in turns),
        sum(t.output_tokens or 0 for t in turns),
        tuple(sum(t.causes.tokens[i] for t in turns) for i in range(len(CAUSES))),
        tuple(sum(t.lines[i] for t in turns) for i in range(len(LINES))),
        _sum([t.cost_usd for t in turns]),
        _sum([t.repaid_usd for t in turns]),
        _sum([runner.reported_usd(t.index) for t in turns]),
        sum(request.content == "none" for request in requests),
        sum(usage.input_tokens for usage in usages),
        sum(usage.cache_read_tokens or 0 for usage in usages),
    )


@dataclass(frozen=True)
class Report:
    """What `analyze` found. All figures are predicted (simulated) unless they say reported.

    offered: remedies that are worked out already, None to work them out when asked.
    wires, reconciled: one a request, or none at all. requests: as they are sent, where edits
    changed the session's own.
    """

    runner: TurnRunner
    turns: tuple[Turn, ...]
    breaks: tuple[Break | None, ...]
    findings_list: tuple[Finding, ...]
    offered: tuple[Remedy, ...] | None = None
    wires: tuple[WireDifference | None, ...] = ()
    reconciled: tuple[Reconciled | None, ...] = ()
    requests: tuple[Request, ...] | None = None

    @cached_property
    def totals(self) -> Totals:
        """Sums over the session."""
        return total(self.runner, self.turns)

    @property
    def bill(self) -> pd.DataFrame:
        """One row a request: tokens by cause and by price line, and dollars."""
        return bill_frame(self.runner, self.turns)

    @property
    def findings(self) -> pd.DataFrame:
        """One row a finding, the costliest first."""
        import pandas as pd

        rows = [_finding_row(finding) for finding in self.findings_list]
        return pd.DataFrame(rows, columns=[*_FINDING_KEYS])

    @cached_property
    def remedies_list(self) -> tuple[Remedy, ...]:
        """Remedies, the greatest saving first; each costs a replay, made when first asked for."""
        if self.offered is not None:
            return self.offered
        return tuple(
            find_remedies(
                self.runner, self.turns, self.findings_list, self.requests, self.calibrated
            )
        )

    @cached_property
    def plan_list(self) -> tuple[Remedy, ...]:
        """Remedies one on top of the other, each time the one that saves most."""
        return tuple(
            find_plan(
                self.runner,
                self.turns,
                self.findings_list,
                self.remedies_list,
                self.requests,
                self.calibrated,
            )
        )

    @property
    def plan(self) -> pd.DataFrame:
        """One row a step of the plan; savings are simulated, each on top of the steps before it."""
        import pandas as pd

        rows = [_remedy_row(remedy) for remedy in self.plan_list]
        return pd.DataFrame(rows, columns=["action", "block", "saves_usd", "message"])

    @property
    def remedies(self) -> pd.DataFrame:
        """One row a remedy, the greatest saving first; savings are simulated by replay."""
        import pandas as pd

        rows = [_remedy_row(remedy) for remedy in self.remedies_list]
        return pd.DataFrame(rows, columns=["action", "block", "saves_usd", "message"])

    @property
    def price_date(self) -> date | None:
        """Day of the newest prices used, None without a price."""
        days = [t.rates.price_date for t in self.turns if t.rates is not None]
        return max(days) if days else None

    @property
    def tokens_exact(self) -> bool:
        """The tokenizer is the model's own; framing may still be approximate (see `notes`)."""
        return self.runner.tokenizer.exact

    def notes(self) -> list[str]:
        """How exact the figures are, in sentences."""
        from codesmith_lab.sessions.reports.report_notes import report_notes

        return report_notes(self)

    @property
    def calibration_gap(self) -> Fraction | None:
        """Cache reads that are not as predicted, as a share of the reported input, or None."""
        return calibration_gap(self.reconciled)

    @property
    def calibrated(self) -> bool:
        """Whether predicted and reported reads differ by no more than 5 %, or nothing is known."""
        gap = self.calibration_gap
        return gap is None or gap <= UNCALIBRATED_SHARE

    @property
    def reconciliation(self) -> pd.DataFrame:
        """One row a request with counters: predicted and reported reads, and what is unexplained.

        All in tokens; `unexplained` is positive where the provider read less than predicted.
        """
        import pandas as pd

        columns = [field.name for field in fields(Reconciled)]
        rows = [astuple(row) for row in self.reconciled if row is not None]
        return pd.DataFrame(rows, columns=columns).set_index("request")

    def to_json(self) -> dict[str, Any]:
        """The JSON contract (see the README): plain values, money as decimal strings."""
        from codesmith_lab.sessions.reports.report_json import report_json

        return report_json(self)

    def to_markdown(self) -> str:
        """The same as Markdown; text from the log is escaped."""
        from codesmith_lab.sessions.reports.report_markdown import report_markdown

        return report_markdown(self)

    def to_html(self) -> str:
        """The same as one page that fetches and runs nothing; text from the log is escaped."""
        from codesmith_lab.sessions.reports.report_html import report_html

        return report_html([self])

    def to_text(self) -> str:
        """The same for people; text from the log is escaped."""
        from codesmith_lab.sessions.reports.report_text import report_text

        return report_text(self)


_FINDING_KEYS = (
    "class",
    "zone",
    "block",
    "first_request",
    "requests",
    "tokens",
    "changed_block_tokens",
    "cost_usd",
    "certainty",
    "basis",
    "intended",
    "given_up_tokens",
    "read_again_tokens",
    "at_risk_tokens",
    "also",
    "message",
)


def _finding_row(f: Finding) -> dict[str, Any]:
    return dict(
        zip(
            _FINDING_KEYS,
            (
                f.cls,
                f.zone,
                f.block,
                f.first_request,
                f.requests,
                f.tokens,
                f.changed_block_tokens,
                f.cost_usd,
                f.certainty,
                f.basis,
                f.intended,
                f.given_up_tokens,
                f.read_again_tokens,
                f.at_risk_tokens,
                f.also,
                f.message,
            ),
            strict=True,
        )
    )


def _remedy_row(r: Remedy) -> dict[str, Any]:
    return {
        "action": r.action,
        "block": r.block,
        "saves_usd": r.saves_usd,
        "message": r.message,
    }


def bill_frame(runner: TurnRunner, turns: Sequence[Turn]) -> pd.DataFrame:
    """One row a turn. Tokens are whole numbers, money is Decimal (USD), unknown is None."""
    import pandas as pd

    rows = []
    for turn in turns:
        usage = runner.session.requests[turn.index].usage
        rows.append(
            {
                "request": turn.index,
                "model": turn.model,
                "input_tokens": turn.prompt.total_tokens,
                **dict(zip(CAUSES, turn.causes.tokens, strict=True)),
                **dict(zip(LINES, turn.lines, strict=True)),
                "output_tokens": turn.output_tokens,
                "cost_usd": turn.cost_usd,
                "repaid_usd": turn.repaid_usd,
                "parent": turn.parent,
                "reported_cache_read": None if usage is None else usage.cache_read_tokens,
                "reported_cost_usd": runner.reported_usd(turn.index),
            }
        )
    frame = pd.DataFrame(rows)
    for column in ("output_tokens", "parent", "reported_cache_read"):
        frame[column] = frame[column].astype("Int64")
    return frame.set_index("request")
