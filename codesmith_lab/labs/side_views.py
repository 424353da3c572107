"""The cards beside the editor as plain values: diagnosis, this turn's bill, audit, comparison."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from codesmith_lab.cache.causes import CAUSES
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.sessions.findings.classes import CLASSES
from codesmith_lab.sessions.findings.collect import Finding
from codesmith_lab.sessions.findings.diagnosis import Break
from codesmith_lab.sessions.findings.drift import DriftStep
from codesmith_lab.sessions.findings.reconcile import reconcile
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.reports.report import total
from codesmith_lab.sessions.reports.report_text import CAUSE_NAMES, dollars
from codesmith_lab.sessions.turns import Turn, TurnRunner

__all__ = [
    "audit_view",
    "breaks_history",
    "compare_view",
    "diagnosis_view",
    "finding_view",
    "lines_view",
    "multiple_view",
    "reported_view",
    "signed",
    "unit_notes",
]

Dict = dict[str, Any]


def signed(value: Decimal | None, places: int = 4) -> str:
    """A difference in dollars with its sign, "no price" for None."""
    if value is None:
        return "no price"
    return ("+" if value > 0 else "") + dollars(value, places)


def diagnosis_view(
    turn: Turn, broken: Break | None, step: DriftStep, wire: str, more: Sequence[str] = ()
) -> Dict:
    """Why this turn's prefix held or broke, in words.

    wire: what differs in the bytes where the text is equal. more: further sentences.
    """
    repaid = turn.causes.tokens[2]
    if broken is None:
        title = "first request: nothing is cached yet" if turn.parent is None else "prefix kept"
        how = "in its text, but not on the wire" if wire else "byte for byte"
        body = "" if turn.parent is None else f"It extends turn {turn.parent + 1}, {how}."
        if turn.causes.tokens[4]:
            title = "cache entry expired"
            body = f"{turn.causes.tokens[4]:,} tokens matched an entry whose lifetime had run out."
        return {
            "title": title,
            "body": body,
            "tone": "good" if turn.parent is not None else "",
            "also": [*([wire] if wire else []), *more],
        }
    if step.label:
        title = step.description
    elif broken.intended:
        title = f"history rebuilt on purpose: {broken.cause}"
    else:
        title = f"fingerprint stable, wire broken at byte {broken.byte:,}: {broken.cause}"
    causes = "; ".join(CLASSES[cls] for cls in broken.classes)
    body = (
        f"{_place(turn, broken)}, line {broken.line}, column {broken.column}: "
        f"{causes}. {repaid:,} tokens after it are paid again."
    )
    also = [*(text + "." for text in broken.also), *([wire] if wire else []), *more]
    return {"title": title, "body": body, "tone": "" if broken.intended else "lost", "also": also}


def _place(turn: Turn, broken: Break) -> str:
    if broken.block == "history":
        return "history"
    blocks = turn.prompt.blocks
    kind: str = {"log": "history", "scratch": "this turn"}.get(broken.zone, "section")
    if broken.zone == "pinned" and broken.piece < len(blocks):
        kind = blocks[broken.piece].kind
    return f"{kind} {broken.block}"


def lines_view(turn: Turn) -> list[Dict]:
    """This turn's tokens and dollars by cause, then output and total."""
    costs = turn.cause_costs_usd
    rows = [
        {
            "name": CAUSE_NAMES[cause],
            "cause": cause,
            "tokens_text": f"{tokens:,}",
            "cost_text": "" if costs is None else dollars(costs[i], 5),
            "total": False,
        }
        for i, (cause, tokens) in enumerate(zip(CAUSES, turn.causes.tokens, strict=True))
        if tokens or cause in ("hit", "new", "repaid", "rounding")
    ]
    output = turn.output_tokens
    rows.append(
        {
            "name": "output",
            "cause": "",
            "tokens_text": "unknown" if output is None else f"{output:,}",
            "cost_text": ""
            if turn.output_usd is None or output is None
            else dollars(turn.output_usd, 5),
            "total": False,
        }
    )
    rows.append(
        {
            "name": "total",
            "cause": "",
            "tokens_text": f"{turn.prompt.total_tokens + (output or 0):,}",
            "cost_text": dollars(turn.cost_usd, 5),
            "total": True,
        }
    )
    return rows


def multiple_view(turns: Sequence[Turn], at: int) -> Dict | None:
    """The price of the byte that broke this turn: a multiple of the turn with no drift."""
    turn = turns[at]
    if turn.cost_usd is None or turn.output_usd is None or not turn.repaid_usd:
        return None
    paid = turn.cost_usd - turn.output_usd
    kept = paid - turn.repaid_usd
    later = [t.repaid_usd for t in turns[at + 1 :] if t.repaid_usd]
    more = ""
    if later:
        total = dollars(sum(later, Decimal(0)))
        more = f"Left as it is, the {len(turns) - at - 1} turns to come pay {total} more."
    ratio = paid / kept if kept > 0 else None
    value = "∞" if ratio is None else f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"
    return {
        "value": value,
        "text": "this turn's input, against the turn with no drift.",
        "more": more,
    }


def breaks_history(turn: Turn) -> bool:
    """Whether a turn leaves its parent behind the pinned prefix; asked before the cause is."""
    at, blocks = turn.causes.break_piece, turn.prompt.blocks
    return at is not None and (at >= len(blocks) or blocks[at].zone != "pinned")


def audit_view(
    turns: Sequence[Turn],
    breaks: Sequence[Break | None],
    drift: Sequence[DriftStep],
    rebuilds: Sequence[str],
) -> list[Dict]:
    """Runs of drift and every rebuild, in the order of turns."""
    rows: list[Dict] = []
    start: int | None = None
    count = 0
    for i in range(len(turns) + 1):
        label = drift[i].label if i < len(turns) else ""
        if start is not None and (not label or label != drift[start].label):
            end = f"–{i}" if i - 1 > start else ""
            rows.append(
                {
                    "turn_text": f"turn {start + 1}{end}",
                    "turn": start,
                    "text": f"drift {drift[start].label} ×{count}",
                }
            )
            start = None
        if label:
            start, count = (i, 1) if start is None else (start, count + 1)
        if i < len(turns) and rebuilds[i]:
            rows.append({"turn_text": f"turn {i + 1}", "turn": i, "text": rebuilds[i]})
        elif i < len(turns) and breaks_history(turns[i]) and (broken := breaks[i]) is not None:
            rows.append(
                {
                    "turn_text": f"turn {i + 1}",
                    "turn": i,
                    "text": f"{broken.cause} in {broken.block}",
                }
            )
    return sorted(rows, key=lambda row: int(row["turn"]))


def unit_notes(turn: Turn, rule: CacheRule) -> list[str]:
    """Why much of a prefix can match and still not hit, where a provider stores whole units."""
    rest = turn.causes.tokens[CAUSES.index("rounding")]
    if rule.match != "stored_units" or rest <= rule.step_tokens or turn.parent is None:
        return []
    return [
        f"{rest:,} tokens before the break matched, but no stored unit ends there: this "
        "provider keeps whole prompts, outputs, and beginnings that two requests have shared."
    ]


def compare_view(
    runner: TurnRunner, turns: Sequence[Turn], recorded: Sequence[Turn], at: int
) -> Dict:
    """The edited session against the recorded one: this turn's money and tokens, and all."""
    rows = []
    for name, part in (("this turn", slice(at, at + 1)), ("whole session", slice(None))):
        now, was = total(runner, turns[part]), total(runner, recorded[part])
        money = None
        if now.cost_usd is not None and was.cost_usd is not None:
            money = now.cost_usd - was.cost_usd
        tokens = now.causes[2] - was.causes[2]
        rows.append({"name": name, "value": signed(money, 5)})
        rows.append({"name": f"{name}, tokens paid again", "value": f"{tokens:+,}"})
    return {"title": "Against the unedited session", "rows": rows}


def finding_view(finding: Finding) -> Dict:
    """One line of the findings, with the turn where it first shows."""
    cost = finding.cost_usd
    return {
        "turn": finding.first_request,
        "turn_text": f"turn {finding.first_request + 1}",
        "text": finding.message.rstrip("."),
        "cost_text": dollars(cost) if cost else "",
        "certainty": "intended" if finding.intended else finding.certainty,
        "tone": "" if finding.intended or not finding.tokens else "lost",
    }


def reported_view(runner: TurnRunner, turn: Turn, request: Request) -> Dict | None:
    """What the provider reported for this turn beside what is predicted; None without counters."""
    usage = request.usage
    if usage is None or usage.cache_read_tokens is None:
        return None
    written = sum(filter(None, (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens)))
    rows = [
        ["input", f"{turn.prompt.total_tokens:,}", f"{usage.input_tokens:,}"],
        ["cache read", f"{turn.match.hit_tokens:,}", f"{usage.cache_read_tokens:,}"],
    ]
    if written or sum(turn.lines[2:]):
        rows.append(["cache write", f"{sum(turn.lines[2:]):,}", f"{written:,}"])
    cost = runner.reported_usd(turn.index)
    rows.append(["cost", dollars(turn.cost_usd, 5), dollars(cost, 5)])
    exact = runner.tokenizer.exact
    row = reconcile([turn], [request], runner.rule.step_tokens, exact)[0]
    note = ""
    if row is not None and row.unexplained:
        way = "fewer" if row.unexplained > 0 else "more"
        note = (
            f"{abs(row.unexplained):,} {way} tokens were read than the bytes allow for: "
            "the prompt does not explain them."
        )
    return {
        "title": "Predicted and reported",
        "heads": ["", "predicted", "reported"],
        "rows": rows,
        "note": note,
    }
