"""The report as one HTML page: nothing is fetched, nothing runs, text from the log is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

from codesmith_lab.cache.causes import CAUSES
from codesmith_lab.sessions.reports.report import Report
from codesmith_lab.sessions.reports.report_tables import MOST_ROWS, Table, summary_lines, tables
from codesmith_lab.sessions.reports.report_text import CAUSE_NAMES, visible

__all__ = ["report_html"]

# The policy holds even if an escape were forgotten: no script, no request, only this style.
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #8886; --soft: #8882; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem;
  padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left;
  vertical-align: top; overflow-wrap: break-word; }}
th {{ background: var(--soft); }}
.n {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
main {{ overflow-x: auto; }}
figure {{ margin: 1rem 0; overflow-x: auto; }}
.hit {{ fill: #2a9d8f; }} .new {{ fill: #4a6fa5; }} .repaid {{ fill: url(#stripes); }}
.rounding {{ fill: #9aa0a6; }} .expired {{ fill: #b08900; }} .unmarked {{ fill: #8e6bbf; }}
</style>
</head>
<body>
<main>
"""
_STRIPES = (
    '<defs><pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#d1495b"/>'
    '<rect width="2" height="6" fill="#fff"/></pattern></defs>'
)
_HEIGHT = 160


def report_html(reports: Sequence[Report]) -> str:
    """One page for one report or several."""
    title = reports[0].runner.session.name if len(reports) == 1 else f"{len(reports)} logs"
    parts = [_HEAD.format(title=_text(title))]
    for number, report in enumerate(reports):
        parts += _one(report, number)
    return "".join([*parts, "</main>\n</body>\n</html>\n"])


def _text(text: str) -> str:
    return html.escape(visible(text), quote=True)


def _one(report: Report, number: int) -> list[str]:
    parts = [f"<h1>{_text(report.runner.session.name)}</h1>\n"]
    parts += [f"<p>{_text(line)}</p>\n" for line in summary_lines(report)]
    parts.append(_picture(report, number))
    parts += [_table(table) for table in tables(report)]
    notes = "".join(f"<li>{_text(note)}</li>\n" for note in report.notes())
    parts.append(f"<h2>How exact</h2>\n<ul>\n{notes}</ul>\n")
    skipped = report.runner.session.skipped
    if skipped:
        rows = "".join(f"<li>line {s.line}: {_text(s.reason)}</li>\n" for s in skipped[:20])
        parts.append(f"<h2>Skipped lines: {len(skipped)}</h2>\n<ul>\n{rows}</ul>\n")
    return parts


def _table(table: Table) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        marks = [' class="n"' if i in table.numbers else "" for i in range(len(cells))]
        inner = "".join(
            f"<{tag}{mark}>{_text(cell)}</{tag}>" for mark, cell in zip(marks, cells, strict=True)
        )
        return f"<tr>{inner}</tr>\n"

    body = "".join(row(cells, "td") for cells in table.rows)
    note = f"<p>{_text(table.note)}</p>\n" if table.note else ""
    return (
        f"<h2>{_text(table.title)}</h2>\n<table>\n<thead>{row(table.columns, 'th')}</thead>\n"
        f"<tbody>\n{body}</tbody>\n</table>\n{note}"
    )


def _picture(report: Report, number: int) -> str:
    """Input tokens of each request by cause, as stacked bars; the table below has the figures."""
    turns = report.turns[:MOST_ROWS]
    most = max((turn.prompt.total_tokens for turn in turns), default=0)
    if not most:
        return ""
    width = max(4, min(24, 900 // len(turns)))
    bars = []
    for turn in turns:
        y = float(_HEIGHT)
        for cause, tokens in zip(CAUSES, turn.causes.tokens, strict=True):
            if tokens:
                height = tokens * _HEIGHT / most
                y -= height
                bars.append(
                    f'<rect class="{cause}" x="{turn.index * width}" y="{y:.1f}" '
                    f'width="{width - 1}" height="{height:.1f}"/>'
                )
    used = [c for c, tokens in zip(CAUSES, report.totals.causes, strict=True) if tokens]
    legend = ", ".join(CAUSE_NAMES[cause] for cause in used)
    label = f"Input tokens by request, from the bottom: {legend}; at most {most:,}"
    keys = "".join(
        f'<svg width="12" height="12" aria-hidden="true"><rect class="{cause}" width="12" '
        f'height="12"/></svg> {_text(CAUSE_NAMES[cause])} '
        for cause in used
    )
    stripes = _STRIPES if number == 0 else ""
    return (
        f'<figure><svg role="img" aria-label="{_text(label)}" width="{width * len(turns)}" '
        f'height="{_HEIGHT}">{stripes}{"".join(bars)}</svg><figcaption>{keys}</figcaption>'
        "</figure>\n"
    )
