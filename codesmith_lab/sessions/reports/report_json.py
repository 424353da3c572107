"""The report as the JSON object that `analyze --json` prints. Its keys are a contract."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codesmith_lab.cache.causes import CAUSES
from codesmith_lab.sessions.findings.diagnosis import Break
from codesmith_lab.sessions.findings.wire import WireDifference
from codesmith_lab.sessions.remedies.remedy import Remedy
from codesmith_lab.sessions.turns import LINES, Turn

if TYPE_CHECKING:
    from codesmith_lab.sessions.reports.report import Report

__all__ = ["break_json", "money", "report_json", "wire_json"]


def money(value: Decimal | None) -> str | None:
    """A decimal string in USD without an exponent, None where there is no price."""
    return None if value is None else f"{value:f}"


def report_json(report: Report) -> dict[str, Any]:
    """The whole report; indices are 0-based, lines and columns 1-based, money in USD."""
    runner, totals = report.runner, report.totals
    saved = None
    if totals.cost_usd is not None and totals.repaid_usd is not None:
        saved = totals.cost_usd - totals.repaid_usd
    return {
        "format": runner.session.format,
        "model": runner.model.name,
        "provider": runner.model.provider,
        "rules": runner.rule.id,
        "price_date": None if report.price_date is None else report.price_date.isoformat(),
        "tokenizer": runner.tokenizer.name,
        "tokens_exact": report.tokens_exact,
        "totals": {
            "requests": totals.requests,
            "input_tokens": totals.input_tokens,
            "output_tokens": totals.output_tokens,
            "causes": dict(zip(CAUSES, totals.causes, strict=True)),
            "lines": dict(zip(LINES, totals.lines, strict=True)),
            "cost_usd": money(totals.cost_usd),
            "cost_without_repaid_usd": money(saved),
            "reported_cost_usd": money(totals.reported_cost_usd),
        },
        "requests": [
            _request(report, turn, broken, report.wires[turn.index] if report.wires else None)
            for turn, broken in zip(report.turns, report.breaks, strict=True)
        ],
        "findings": [
            {
                "class": f.cls,
                "zone": f.zone,
                "block": f.block,
                "first_request": f.first_request,
                "requests": f.requests,
                "tokens": f.tokens,
                "changed_block_tokens": f.changed_block_tokens,
                "cost_usd": money(f.cost_usd),
                "certainty": f.certainty,
                "basis": f.basis,
                "intended": f.intended,
                "given_up_tokens": f.given_up_tokens,
                "read_again_tokens": f.read_again_tokens,
                "at_risk_tokens": f.at_risk_tokens,
                "also": list(f.also),
                "request_indices": list(f.request_indices),
                "message": f.message,
            }
            for f in report.findings_list
        ],
        "remedies": [_remedy(r) for r in report.remedies_list],
        "plan": [_remedy(r) for r in report.plan_list],
        "calibrated": report.calibrated,
        "skipped": [
            {"line": s.line, "reason": s.reason, "file": s.file} for s in runner.session.skipped
        ],
        "notes": report.notes(),
    }


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        "action": remedy.action,
        "block": remedy.block,
        "saves_usd": money(remedy.saves_usd),
        "message": remedy.message,
        "calibrated": remedy.calibrated,
    }


def _request(
    report: Report, turn: Turn, broken: Break | None, wire: WireDifference | None
) -> dict[str, Any]:
    request = report.runner.session.requests[turn.index]
    usage = request.usage
    reported = None
    if usage is not None:
        writes = (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens)
        reported = {
            "cache_read": usage.cache_read_tokens,
            "cache_write": None if writes == (None, None) else sum(w or 0 for w in writes),
            "input_total": usage.input_tokens,
        }
    row = report.reconciled[turn.index] if report.reconciled else None
    return {
        "index": turn.index,
        "line": request.line,
        "input_tokens": turn.prompt.total_tokens,
        "output_tokens": turn.output_tokens,
        "causes": dict(zip(CAUSES, turn.causes.tokens, strict=True)),
        "lines": dict(zip(LINES, turn.lines, strict=True)),
        "cost_usd": money(turn.cost_usd),
        "reported": reported,
        "unexplained_tokens": None if row is None else row.unexplained,
        "parent": turn.parent,
        "break": None if broken is None else break_json(broken),
        "wire": None if wire is None else wire_json(wire),
        "notes": list(request.notes),
    }


def break_json(broken: Break) -> dict[str, Any]:
    """A break; `byte` and `token` count in the prompt as the provider reads it."""
    return {
        "byte": broken.byte,
        "token": broken.token,
        "zone": broken.zone,
        "block": broken.block,
        "line": broken.line,
        "column": broken.column,
        "class": broken.classes[0],
        "classes": list(broken.classes),
        "before": broken.before,
        "after": broken.after,
        "intended": broken.intended,
        "also": list(broken.also),
    }


def wire_json(wire: WireDifference) -> dict[str, Any]:
    """Equal text in other bytes; `byte` counts in the request's body."""
    return {
        "byte": wire.byte,
        "path": wire.path,
        "zone": wire.zone,
        "block": wire.block,
        "classes": list(wire.classes),
        "before": wire.before,
        "after": wire.after,
        "tokens": wire.tokens,
        "at_risk_tokens": wire.at_risk_tokens,
    }
