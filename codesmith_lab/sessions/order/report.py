"""The saving of an order as a Markdown report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from codesmith_lab.sessions.order.board import DAYS_A_MONTH, OrderBoard, Weighed
from codesmith_lab.sessions.order.replay import InputBill
from codesmith_lab.sessions.reports.report_text import dollars, visible

__all__ = ["ReportRow", "order_report"]


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One order of the report. exact: billed through the cache engine, None without a session."""

    name: str
    weighed: Weighed
    exact: InputBill | None


def order_report(
    title: str, model: str, board: OrderBoard, rows: Sequence[ReportRow], requests_a_day: int
) -> str:
    """Markdown: the saving, the orders side by side, the sections in order, and how exact it is.

    rows: today's order first, the proposed one second. Names from a log are escaped.
    """
    today, proposed = rows[0], rows[1]
    saving = _saving(today, proposed, requests_a_day)
    lines = [
        f"# Section order of {_cell(title)}",
        "",
        f"Model {_cell(model)}, {requests_a_day:,} requests a day. {saving}",
        "",
        "| order | expected hit tokens | replayed hit tokens | expected input a request "
        "| billed input a request | a month |",
        "|---|---:|---:|---:|---:|---:|",
        *(_row(row, requests_a_day) for row in rows),
        "",
        "## The proposed order",
        "",
        "| place | section | tokens | change probability | counted | reached unchanged |",
        "|---:|---|---:|---:|---|---:|",
    ]
    known = board.sections()
    order = [*proposed.weighed.order]
    first = board.laid.fixed_first
    for at, name in enumerate(order):
        section = known[name]
        counted: str = section.source
        if section.trials is not None:
            counted = f"{section.changes} of {section.trials}"
        survival = proposed.weighed.cost.survival[first + at]
        lines.append(
            f"| {at + 1} | {_cell(name)} | {section.size_tokens:,} "
            f"| {section.change_probability:.3f} | {counted} | {survival:.3f} |"
        )
    state = board.state
    demands = [f"{_cell(a)} before {_cell(b)}" for a, b in state.before]
    demands += [f"{_cell(name)} locked to place {at + 1}" for name, at in state.locked.items()]
    demands += [_cell(str(rewrite)) for rewrite in state.rewrites]
    if demands:
        lines += ["", "Demanded or changed: " + "; ".join(demands) + "."]
    lines += [
        "",
        "Expected figures take changes as independent. Replayed and billed ones use every request "
        "as it was sent. A month has "
        f"{DAYS_A_MONTH} days; output is not counted.",
    ]
    return "\n".join(lines) + "\n"


def _per_request(row: ReportRow) -> Decimal | None:
    if row.exact is not None and row.exact.usd_per_request is not None:
        return row.exact.usd_per_request
    return row.weighed.expected_usd


def _saving(today: ReportRow, proposed: ReportRow, requests_a_day: int) -> str:
    before, after = _per_request(today), _per_request(proposed)
    if before is None or after is None:
        tokens = today.weighed.cost.paid_tokens - proposed.weighed.cost.paid_tokens
        return f"The order saves {tokens:,.0f} full-price tokens a request; no price is known."
    month = (before - after) * requests_a_day * DAYS_A_MONTH
    share = f"{float((before - after) / before):.1%}" if before else "0 %"
    if month < 0:
        return f"The order costs {dollars(-month, 2)} a month more ({share})."
    return f"The order saves {dollars(month, 2)} a month, {share} of the input."


def _row(row: ReportRow, requests_a_day: int) -> str:
    weighed, exact = row.weighed, _per_request(row)
    replayed = "" if weighed.replay is None else f"{weighed.replay.mean_hit_tokens:,.0f}"
    month = None if exact is None else exact * requests_a_day * DAYS_A_MONTH
    cells = [
        row.name,
        f"{weighed.cost.hit_tokens:,.0f}",
        replayed,
        "" if weighed.expected_usd is None else dollars(weighed.expected_usd, 6),
        "" if row.exact is None else dollars(row.exact.usd_per_request, 6),
        "" if month is None else dollars(month, 2),
    ]
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Text from a log inside a Markdown table: no line, no cell and no markup of its own."""
    escaped = visible(text)
    for mark in "\\`*_{}[]<>()#|~":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped
