"""The report as Markdown. Text from the log is escaped and stays text."""

from __future__ import annotations

import html
import re

from codesmith_lab.sessions.reports.report import Report
from codesmith_lab.sessions.reports.report_tables import Table, summary_lines, tables
from codesmith_lab.sessions.reports.report_text import visible

__all__ = ["report_markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~>$:@])")


def report_markdown(report: Report) -> str:
    """Summary, tables and notes as GitHub-flavoured Markdown."""
    parts = [f"# {escaped(report.runner.session.name)}", *map(escaped, summary_lines(report))]
    parts += [_table(table) for table in tables(report)]
    parts += ["## How exact", "\n".join(f"- {escaped(note)}" for note in report.notes())]
    skipped = report.runner.session.skipped
    if skipped:
        rows = "\n".join(f"- line {s.line}: {escaped(s.reason)}" for s in skipped[:20])
        parts += [f"## Skipped lines: {len(skipped)}", rows]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Text that Markdown and the HTML it becomes show as it is, on one line."""
    plain = html.escape(" ".join(visible(text).split()), quote=False)
    return _SPECIAL.sub(r"\\\1", plain)


def _table(table: Table) -> str:
    rule = ["---:" if i in table.numbers else "---" for i in range(len(table.columns))]
    rows = [list(map(escaped, table.columns)), rule]
    rows += [list(map(escaped, row)) for row in table.rows]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    note = f"\n\n{escaped(table.note)}" if table.note else ""
    return f"## {escaped(table.title)}\n\n{lines}{note}"
