"""What the Markdown and the HTML report both show: headings, tables, notes, all as plain texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codesmith_lab.cache.causes import CAUSES
from codesmith_lab.sessions.remedies.remedy import Remedy
from codesmith_lab.sessions.reports.report import Report
from codesmith_lab.sessions.reports.report_text import (
    CAUSE_NAMES,
    dollars,
    visible,
    without_content_text,
)
from codesmith_lab.wording import counted

__all__ = ["MOST_ROWS", "Table", "summary_lines", "tables"]

MOST_ROWS = 2000
"""Requests shown one by one; a longer log says how many more there are."""


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table of plain texts. numbers: the columns to set right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int]
    note: str = ""


def summary_lines(report: Report) -> list[str]:
    """The session in a few sentences."""
    totals, runner = report.totals, report.runner
    lines = [
        f"{counted(totals.requests, 'request')}, {visible(runner.session.format)}, "
        f"as {visible(runner.model.name)}: {runner.rule.title}.",
    ]
    if totals.predicted:
        lines += [
            f"Input {totals.input_tokens:,} tokens, {totals.hit_share:.1%} of them hits; output "
            f"{totals.output_tokens:,}.",
            f"Cost {dollars(totals.cost_usd)} (predicted), of that paid again "
            f"{dollars(totals.repaid_usd)}.",
        ]
    if totals.without_content:
        text = without_content_text(totals)
        lines.append(text[0].upper() + text[1:] + ".")
    if totals.reported_cost_usd is not None:
        lines.append(f"Cost {dollars(totals.reported_cost_usd)} (reported).")
    return lines


def tables(report: Report) -> list[Table]:
    """Causes, findings, remedies, plan, reconciliation and requests; empty ones are left out."""
    # One step is the best remedy, which stands above already.
    plan = report.plan_list if len(report.plan_list) > 1 else ()
    found = [
        _causes(report),
        _findings(report),
        _remedies("What to change (simulated)", report.remedies_list),
        _remedies("A plan, each step on top of the ones before (simulated)", plan),
        _reconciliation(report),
        _requests(report),
    ]
    return [table for table in found if table.rows]


def _causes(report: Report) -> Table:
    totals = report.totals
    rows = tuple(
        (CAUSE_NAMES[cause], f"{tokens:,}", _share(tokens, totals.input_tokens))
        for cause, tokens in zip(CAUSES, totals.causes, strict=True)
        if tokens
    )
    return Table(
        "Where the input tokens went", ("cause", "tokens", "share"), rows, frozenset({1, 2})
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _findings(report: Report) -> Table:
    rows = tuple(
        (
            f.cls,
            f"{f.tokens:,}",
            "" if f.cost_usd is None else dollars(f.cost_usd, 5),
            f"{f.certainty}, {f.basis}" + (", intended" if f.intended else ""),
            visible(f.message),
            visible("; ".join(f.also)),
        )
        for f in report.findings_list
    )
    columns = ("class", "tokens", "cost", "certainty", "what", "behind it")
    return Table("Findings", columns, rows, frozenset({1, 2}))


def _remedies(title: str, remedies: Sequence[Remedy]) -> Table:
    rows = tuple((dollars(r.saves_usd, 5), visible(r.message)) for r in remedies)
    return Table(title, ("saves", "change"), rows, frozenset({0}))


def _reconciliation(report: Report) -> Table:
    rows = tuple(
        (
            str(row.request + 1),
            f"{row.predicted_read:,}",
            f"{row.reported_read:,}",
            f"{row.unexplained:+,}" if row.unexplained else "",
        )
        for row in report.reconciled
        if row is not None and row.unexplained
    )
    return Table(
        "Predicted and reported cache reads that differ",
        ("request", "predicted", "reported", "unexplained"),
        rows[:MOST_ROWS],
        frozenset({0, 1, 2, 3}),
    )


def _requests(report: Report) -> Table:
    rows = []
    for turn, broken in zip(report.turns[:MOST_ROWS], report.breaks, strict=False):
        causes = turn.causes.tokens
        what = "" if broken is None else f"{', '.join(broken.classes)} in {broken.block}"
        rows.append(
            (
                str(turn.index + 1),
                f"{turn.prompt.total_tokens:,}",
                f"{causes[0]:,}",
                f"{causes[2]:,}",
                dollars(turn.cost_usd, 5),
                visible(what),
            )
        )
    more = len(report.turns) - len(rows)
    return Table(
        "Requests",
        ("request", "input", "hit", "paid again", "cost", "break"),
        tuple(rows),
        frozenset({0, 1, 2, 3, 4}),
        f"{more:,} more requests are not shown." if more else "",
    )
