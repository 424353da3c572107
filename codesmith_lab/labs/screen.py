"""The traits of the workbench, each made from the state behind it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from codesmith_lab.billing.models import ModelInfo, known_models, resolve_model
from codesmith_lab.labs import side_views, views
from codesmith_lab.sessions.analysis import rebuild_reason
from codesmith_lab.sessions.edits import SCOPES, RewriteEdit
from codesmith_lab.sessions.findings.wire import find_wire, wire_sentence
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.reports.report import Report, total
from codesmith_lab.sessions.turns import Turn
from codesmith_lab.sessions.what_if import WhatIf

__all__ = [
    "advice_trait",
    "blocks_trait",
    "head_trait",
    "side_trait",
    "timeline_trait",
    "worst_turn",
]

Dict = dict[str, Any]


def head_trait(state: WhatIf, at: int) -> Dict:
    """The line at the top: session, model, rules, totals and notes."""
    now, runner = state.current, state.runner
    report = Report(runner, tuple(now.turns), (), (), ())
    model, edited = runner.model.name, bool(state.edits)
    return {
        "name": state.session.name,
        "turns_text": f"{len(now.turns):,} turns",
        "model": model,
        "models": _models(runner.model),
        "rules_text": runner.rule.title,
        "drift_label": now.steps[at].label,
        "figures": views.figures_view(total(runner, now.turns)),
        "notes": report.notes(),
        "scope_options": [{"value": k, "label": v} for k, v in SCOPES.items()],
        "edited": edited,
        "can_undo": edited,
        "can_redo": state.can_redo,
    }


@cache
def _models(model: ModelInfo) -> list[Dict]:
    """Every model whose rules are known, by provider; the one in force is there in any case."""
    names = {name: resolve_model(name).provider for name in known_models()}
    names.setdefault(model.name, model.provider)
    ordered = sorted(names, key=lambda name: (names[name] != model.provider, names[name]))
    return [{"value": name, "label": name, "group": names[name]} for name in ordered]


def timeline_trait(state: WhatIf) -> Dict:
    """Every turn's tokens by cause, with marks."""
    now = state.current
    rebuilds = _rebuild_texts(state.session.requests)
    return views.timeline_view(now.turns, now.breaks, now.steps, rebuilds)


def blocks_trait(state: WhatIf, at: int) -> Dict:
    """One turn's blocks in their zones."""
    now = state.current
    return views.blocks_view(now.turns[at], now.breaks[at], now.steps[at])


def side_trait(state: WhatIf, at: int) -> Dict:
    """The cards: diagnosis, this turn's bill, the price of the byte, audit, comparison."""
    now, runner = state.current, state.runner
    turn, recorded = now.turns[at], state.recorded.turns
    rebuilds = _rebuild_texts(state.session.requests)
    notes = side_views.unit_notes(turn, runner.rule)
    wire = _wire_text(state, turn)
    return {
        "diagnosis": side_views.diagnosis_view(turn, now.breaks[at], now.steps[at], wire, notes),
        "lines": side_views.lines_view(turn),
        "multiple": side_views.multiple_view(now.turns, at),
        "audit": side_views.audit_view(now.turns, now.breaks, now.steps, rebuilds),
        "compare": side_views.compare_view(runner, now.turns, recorded, at)
        if state.edits
        else None,
        "reported": side_views.reported_view(runner, turn, state.session.requests[at]),
    }


def advice_trait(state: WhatIf, report: Report | None, shown: Dict) -> Dict:
    """Findings, remedies in force, then those on offer.

    report: None while it is being worked out; what is `shown` stays meanwhile.
    """
    rows: list[Dict] = [
        {"id": edit.id, "text": edit.title, "saves_text": "", "applied": True}
        for edit in state.edits
        if isinstance(edit, RewriteEdit)
    ]
    if report is None:
        rows += [row for row in shown["rows"] if not row["applied"]]
        return {"rows": rows, "note": "", "findings": shown["findings"]}
    rows += [
        {
            "id": remedy.id,
            "text": remedy.message.rstrip("."),
            "saves_text": side_views.signed(-remedy.saves_usd),
            "applied": False,
        }
        for remedy in report.remedies_list
    ]
    findings = [side_views.finding_view(finding) for finding in report.findings_list]
    return {"rows": rows, "note": "", "findings": findings}


def worst_turn(turns: Sequence[Turn]) -> int:
    """The turn whose drift cost most, or the last one: where a person wants to look first."""
    costs = [turn.repaid_usd or Decimal(turn.causes.tokens[2]) for turn in turns]
    worst = max(range(len(costs)), key=lambda i: (costs[i], i))
    return worst if costs[worst] else len(costs) - 1


def _wire_text(state: WhatIf, turn: Turn) -> str:
    """What differs in the bytes where the text is equal; an edited request was never sent."""
    edited = state.current.edited
    if turn.index in edited or turn.parent in edited:
        return ""
    wire = find_wire(turn, state.session.requests)
    return "" if wire is None else f"Possible: {wire_sentence(wire)}."


def _rebuild_texts(requests: Sequence[Request]) -> list[str]:
    texts = []
    for request in requests:
        reason, rebuild = rebuild_reason(request), request.rebuild or {}
        if reason is None:
            texts.append("")
            continue
        before, after = rebuild.get("before"), rebuild.get("after")
        counts = "" if None in (before, after) else f", {before} → {after} messages"
        texts.append(reason.replace("_", " ") + counts)
    return texts
