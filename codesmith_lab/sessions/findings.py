"""Findings: what broke, where, since when, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from codesmith_lab.billing.prices import cost_usd
from codesmith_lab.sessions.diagnosis import Break
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.turns import Turn
from codesmith_lab.sessions.wire import WireDifference, wire_sentence

__all__ = ["Finding", "collect_findings"]

_WHAT = {
    "volatile_timestamp": "a clock in it moved",
    "volatile_date": "a date in it changed",
    "volatile_id": "an identifier in it changed",
    "section_edited": "its text changed",
    "section_moved": "the sections came in another order",
    "tool_added": "a tool was added",
    "tool_removed": "a tool was removed",
    "tool_order": "the same tools came in another order",
    "tool_changed": "the tool's definition changed",
    "json_key_order": "the same JSON came with its keys in another order",
    "json_array_order": "the same JSON came with a list in another order",
    "whitespace": "only white space changed",
    "unicode_escape": "the same characters came escaped another way",
    "number_format": "the same number was written another way",
    "shape_change": "the same text came in another shape",
    "message_edited": "an earlier message was edited",
    "message_removed": "earlier messages were removed",
    "message_inserted": "a message was inserted into the history",
    "block_moved": "a block moved to another place",
    "image_changed": "an image was replaced",
    "rebuild": "the history was rebuilt on purpose",
    "compaction": "the history was compacted on purpose",
    "expired": "the cache entry's lifetime had run out",
    "model_change": "the model changed, and each model has its own cache",
    "below_minimum": "the prompt is shorter than the provider caches",
}
_CERTAINTIES = ("certain", "likely", "possible")


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause over the whole session.

    cls: a class of the published list (see the README). intended: a compaction or signed rebuild.
    first_request: 0-based; requests: how many show it; tokens: repaid or expired tokens.
    cost_usd: what these tokens cost above a cache read, None without a price.
    given_up_tokens: for intended ones, cached tokens of the parent that were dropped.
    at_risk_tokens: for possible ones, predicted hits that would be lost if it counts.
    """

    cls: str
    zone: str
    block: str
    first_request: int
    requests: int
    tokens: int
    cost_usd: Decimal | None
    certainty: str
    intended: bool
    given_up_tokens: int
    message: str
    at_risk_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Sighting:
    cls: str
    zone: str
    block: str
    request: int
    tokens: int
    cost_usd: Decimal | None
    certainty: str = "certain"
    intended: bool = False
    given_up_tokens: int = 0
    at_risk_tokens: int = 0
    remark: str = ""


def collect_findings(
    requests: Sequence[Request],
    turns: Sequence[Turn],
    breaks: Sequence[Break | None],
    wires: Sequence[WireDifference | None] = (),
) -> list[Finding]:
    """Findings of a run, the costliest first; each break counts under its first cause."""
    seen: dict[tuple[str, str, str], list[_Sighting]] = {}
    for request, turn, broken in zip(requests, turns, breaks, strict=True):
        wire = wires[turn.index] if wires else None
        found = _sightings(request, turn, broken, turns, requests)
        if wire is not None:
            found.append(_on_the_wire(request, turn, wire))
        for sighting in found:
            seen.setdefault((sighting.cls, sighting.zone, sighting.block), []).append(sighting)
    findings = [_finding(sightings) for sightings in seen.values()]
    return sorted(
        findings,
        key=lambda f: (f.intended, -(f.cost_usd or 0), -f.tokens, -f.at_risk_tokens),
    )


def _on_the_wire(request: Request, turn: Turn, wire: WireDifference) -> _Sighting:
    """Equal text in other bytes: usage, where there is any, says whether it counted."""
    cls, place = wire.classes[0], (wire.zone, wire.block)
    remark = wire_sentence(wire)
    read = None if request.usage is None else request.usage.cache_read_tokens
    missing = 0 if read is None else turn.match.hit_tokens - read
    if read is not None and wire.at_risk_tokens and missing > max(256, wire.at_risk_tokens // 2):
        lost = min(missing, wire.at_risk_tokens)
        rates = turn.rates
        cost = None if rates is None else cost_usd(lost, rates.input - rates.cache_read)
        remark += f"; usage reports {missing:,} fewer cached tokens than the text allows"
        return _Sighting(cls, *place, turn.index, lost, cost, "likely", remark=remark)
    if read is not None:
        remark += "; usage shows no loss"
    return _Sighting(
        cls,
        *place,
        turn.index,
        0,
        None,
        "possible",
        at_risk_tokens=0 if read is not None else wire.at_risk_tokens,
        remark=remark,
    )


def _sightings(
    request: Request,
    turn: Turn,
    broken: Break | None,
    turns: Sequence[Turn],
    requests: Sequence[Request],
) -> list[_Sighting]:
    found = []
    if broken is not None and turn.parent is not None:
        parent = turns[turn.parent]
        gone = max(0, parent.prompt.total_tokens - turn.match.matched_tokens)
        given_up = gone - turn.causes.tokens[2] if broken.intended else 0
        guess = broken.intended and request.rebuild is None
        found.append(
            _Sighting(
                broken.classes[0],
                broken.zone,
                broken.block,
                turn.index,
                turn.causes.tokens[2],
                turn.repaid_usd,
                "likely" if guess else "certain",
                broken.intended,
                max(0, given_up),
            )
        )
        for cls in broken.classes[1:]:
            found.append(_Sighting(cls, broken.zone, broken.block, turn.index, 0, None))
    if broken is not None and not broken.intended and request.rebuild is not None:
        # The clock broke the prefix first; the rebuild behind it is still told.
        reason = str(request.rebuild.get("reason", ""))
        cls = "compaction" if "compaction" in reason else "rebuild"
        gone = max(0, _dropped_tokens(turn, turns))
        found.append(_Sighting(cls, "log", "history", turn.index, 0, None, "certain", True, gone))
    if turn.causes.tokens[4]:
        found.append(
            _Sighting("expired", "", "", turn.index, turn.causes.tokens[4], None, "likely")
        )
    if turn.parent is None and turn.index and requests[turn.index - 1].model != request.model:
        found.append(_Sighting("model_change", "", request.model, turn.index, 0, None))
    return found


def _dropped_tokens(turn: Turn, turns: Sequence[Turn]) -> int:
    """Tokens of the parent's prompt that this request sends no more."""
    if turn.parent is None:
        return 0
    parent = turns[turn.parent].prompt.total_tokens
    return parent - turn.match.matched_tokens - turn.causes.tokens[2]


def _finding(sightings: Sequence[_Sighting]) -> Finding:
    first = sightings[0]
    costs = [s.cost_usd for s in sightings if s.cost_usd is not None]
    tokens = sum(s.tokens for s in sightings)
    given_up = sum(s.given_up_tokens for s in sightings)
    count = len(sightings)
    certainty = max((s.certainty for s in sightings), key=_CERTAINTIES.index)
    at_risk = sum(s.at_risk_tokens for s in sightings)
    place = f"{first.block}: " if first.block else ""
    times = f"on {count} requests" if count > 1 else f"on request {first.request + 1}"
    message = f"{place}{_WHAT.get(first.cls, first.cls)} {times}"
    if first.intended:
        message += f"; it gave up {given_up:,} cached tokens and {tokens:,} were paid again"
    elif tokens:
        message += f"; {tokens:,} unchanged tokens were paid in full again"
    if first.remark:
        message += f"; {first.remark}"
    if at_risk:
        message += f"; {at_risk:,} cached tokens are lost where the provider compares bytes"
    return Finding(
        first.cls,
        first.zone,
        first.block,
        first.request,
        count,
        tokens,
        sum(costs, Decimal(0)) if costs else None,
        certainty,
        first.intended,
        given_up,
        message + ".",
        at_risk,
    )
