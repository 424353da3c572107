"""The report as text for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from codesmith_lab.cache.causes import CAUSES
from codesmith_lab.wording import counted

if TYPE_CHECKING:
    from codesmith_lab.sessions.reports.report import Report, Totals

__all__ = ["CAUSE_NAMES", "dollars", "report_text", "visible"]

CAUSE_NAMES = {
    "hit": "hit",
    "new": "new",
    "repaid": "paid again",
    "rounding": "rest of a unit",
    "expired": "expired",
    "unmarked": "unmarked",
}
"""What people call the causes."""


def visible(text: str) -> str:
    """Text from a log, safe on a terminal: control and direction characters are escaped."""
    return "".join(
        ch if unicodedata.category(ch) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else _escaped(ch)
        for ch in text
    )


def _escaped(ch: str) -> str:
    return ch.encode("unicode_escape").decode("ascii")


def dollars(value: Decimal | None, places: int = 4) -> str:
    """Dollars with a sign before the currency mark; "no price" for None.

    An amount too small for `places` keeps two digits that tell something instead of showing zero.
    """
    if value is None:
        return "no price"
    sign = "−" if value < 0 else ""
    if value and abs(value) < Decimal(1).scaleb(-places):
        places = 1 - value.adjusted()
    return f"{sign}${abs(value):.{places}f}"


def report_text(report: Report) -> str:
    """Totals, findings, remedies and how exact it all is."""
    totals, session = report.totals, report.runner.session
    lines = [
        f"{visible(session.name)}: {counted(totals.requests, 'request')}, {session.format}, "
        f"as {visible(report.runner.model.name)}",
        f"{report.runner.rule.title}",
        "",
        *_totals(totals),
    ]
    lines += _section("Findings", [_finding_line(report, i) for i in range(_count(report))])
    lines += _section(
        "What to change (simulated)",
        [f"saves {dollars(r.saves_usd)}: {visible(r.message)}" for r in report.remedies_list],
    )
    lines += _section("A plan, each on top of the ones before (simulated)", _plan(report))
    lines += _section("How exact", report.notes())
    skipped = session.skipped
    lines += _section(
        f"Skipped lines: {len(skipped)}" if skipped else "",
        [f"line {s.line}: {visible(s.reason)}" for s in skipped[:20]]
        + ([f"and {len(skipped) - 20} more"] if len(skipped) > 20 else []),
    )
    return "\n".join(lines) + "\n"


def _totals(totals: Totals) -> list[str]:
    """What is predicted, where there is content to predict from, and what is reported."""
    lines = []
    if totals.predicted:
        lines.append(
            f"input {totals.input_tokens:,} tokens, {totals.hit_share:.1%} of them hits; "
            f"output {totals.output_tokens:,}"
        )
        lines += [
            f"  {CAUSE_NAMES[cause]:<15}{tokens:>14,}"
            for cause, tokens in zip(CAUSES, totals.causes, strict=True)
            if tokens or cause in ("hit", "new", "repaid")
        ]
    if totals.without_content:
        lines.append(without_content_text(totals))
    if totals.predicted and (totals.cost_usd is not None or not totals.without_content):
        lines.append(f"cost {dollars(totals.cost_usd)} (predicted)")
        if totals.repaid_usd is not None:
            lines.append(f"of that paid again: {dollars(totals.repaid_usd)}")
    if totals.reported_cost_usd is not None:
        lines.append(f"cost {dollars(totals.reported_cost_usd)} (reported)")
    return lines


def without_content_text(totals: Totals) -> str:
    """What is known of requests whose content the log does not hold."""
    some = "all requests hold" if not totals.predicted else f"{totals.without_content:,} hold"
    return (
        f"{some} no content, so that nothing is predicted there; reported: input "
        f"{totals.reported_input_tokens:,} tokens, {totals.reported_read_tokens:,} of them read "
        f"from the cache; output {totals.output_tokens:,}"
    )


def _plan(report: Report) -> list[str]:
    """Only where it says more than the best remedy alone."""
    if len(report.plan_list) < 2:
        return []
    return [f"saves {dollars(r.saves_usd)} more: {visible(r.message)}" for r in report.plan_list]


def _count(report: Report) -> int:
    return len(report.findings_list)


def _finding_line(report: Report, at: int) -> str:
    finding = report.findings_list[at]
    cost = "" if finding.cost_usd is None else f" ({dollars(finding.cost_usd)})"
    where = next(
        (
            f", first at byte {b.byte:,}, line {b.line}, column {b.column}"
            for b in (report.breaks[finding.first_request],)
            if b is not None and b.block == finding.block
        ),
        "",
    )
    also = f"; behind it: {', '.join(map(visible, finding.also))}" if finding.also else ""
    sure = f"{finding.certainty}, {finding.basis}"
    return f"{finding.cls}{cost}: {visible(finding.message)} ({sure}{where}{also})"


def _section(title: str, rows: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {row}" for row in rows)] if rows and title else []
