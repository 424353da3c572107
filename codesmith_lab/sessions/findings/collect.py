"""Findings: what broke, where, since when, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.sessions.findings.classes import CLASSES
from codesmith_lab.sessions.findings.diagnosis import Break
from codesmith_lab.sessions.findings.reconcile import Reconciled, tolerance
from codesmith_lab.sessions.findings.sightings import (
    Sighting,
    on_break,
    on_breakpoints,
    on_output,
    on_rules,
    on_wire,
)
from codesmith_lab.sessions.findings.usage_sightings import (
    on_counters,
    on_scope,
    on_settings,
    unexplained,
    without_content,
)
from codesmith_lab.sessions.findings.volatile import clock_step_s, value_changes
from codesmith_lab.sessions.findings.wire import WireDifference
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.turns import Turn

__all__ = ["Finding", "collect_findings"]

_CERTAINTIES = ("certain", "likely", "possible")
_MOST_ALSO = 8
_DEFAULT_LIFE_S = 300.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause over the whole session.

    cls: a class of the published list (see the README). intended: a compaction or signed rebuild.
    first_request: 0-based; requests: how many show it.
    tokens: unchanged ones that were paid in full: repaid ones and the unchanged rest of the changed
        block, or expired ones, or missing reads.
    cost_usd: what these tokens cost above a cache read, None without a price.
    certainty: "certain" is seen in bytes, "likely" fits bytes, times or usage, "possible" could be.
    given_up_tokens, read_again_tokens: for intended ones, cached tokens that were dropped, and
        tokens that the provider had to read instead.
    at_risk_tokens: for possible ones, predicted hits that would be lost if it counts.
    also: what else changed on the same requests, behind it: "section: class".
    request_indices: every request that shows it.
    causes: (class, zone, block) of it and of all that was listed under it.
    changed_block_tokens: those of `tokens` that lie in the changed block itself, behind the change.
        The bill counts them as new, as it does the whole block, and the others as repaid.
    basis: where its tokens come from: "reported" counters, "simulated" by the rules from exact
        tokens, or "estimated" where the tokenizer is no exact one.
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
    read_again_tokens: int = 0
    also: tuple[str, ...] = ()
    request_indices: tuple[int, ...] = ()
    causes: tuple[tuple[str, str, str], ...] = ()
    basis: str = "simulated"
    changed_block_tokens: int = 0


def collect_findings(
    requests: Sequence[Request],
    turns: Sequence[Turn],
    breaks: Sequence[Break | None],
    wires: Sequence[WireDifference | None] = (),
    rows: Sequence[Reconciled | None] = (),
    rule: CacheRule | None = None,
    exact: bool = True,
) -> list[Finding]:
    """Findings of a run, faults before what is intended, the costliest first.

    wires, rows: differences on the wire and the reconciliation, one a request, or none at all.
    rule: the cache rule; without it only bytes and counters speak. exact: tokens are the model's.
    """
    seen: list[Sighting] = []
    for turn, broken in zip(turns, breaks, strict=True):
        request = requests[turn.index]
        found = on_counters(request)
        if request.blocks:
            found += _of_bytes(request, turn, broken, turns, requests)
            found += _of_rules(turn, turns, requests, wires, rows, rule)
        seen += found
    seen += without_content(requests, turns, _default_life_s(rule))
    groups: dict[tuple[str, str, str], list[Sighting]] = {}
    for sighting in seen:
        groups.setdefault((sighting.cls, sighting.zone, sighting.block), []).append(sighting)
    findings = [_finding(_refined(group, requests), turns, exact) for group in groups.values()]
    return sorted(
        findings,
        key=lambda f: (
            f.intended,
            -(f.cost_usd or 0),
            -f.tokens,
            _CERTAINTIES.index(f.certainty),
            -f.at_risk_tokens,
            f.first_request,
        ),
    )


def _default_life_s(rule: CacheRule | None) -> float:
    life_s = None if rule is None else rule.lifetime("", {})
    return _DEFAULT_LIFE_S if life_s is None else life_s


def _of_bytes(
    request: Request,
    turn: Turn,
    broken: Break | None,
    turns: Sequence[Turn],
    requests: Sequence[Request],
) -> list[Sighting]:
    if broken is not None:
        return on_break(request, turn, broken, turns)
    return on_output(request, turn, turns, requests)


def _of_rules(
    turn: Turn,
    turns: Sequence[Turn],
    requests: Sequence[Request],
    wires: Sequence[WireDifference | None],
    rows: Sequence[Reconciled | None],
    rule: CacheRule | None,
) -> list[Sighting]:
    if rule is None:
        return []
    request = requests[turn.index]
    slack = tolerance(rule.step_tokens, turn.prompt.total_tokens)
    # A refusal that the log itself records is no news of the cache.
    recorded = request.status is not None and request.status >= 400
    found = [] if recorded else on_breakpoints(turn, turns, rule)
    found += on_rules(request, turn, requests, turns)
    found += on_scope(turn, turns, requests, rule)
    found += on_settings(turn, requests, rule, slack)
    wire = wires[turn.index] if wires else None
    if wire is not None:
        found.append(on_wire(request, turn, wire, slack))
    known = sum(s.tokens for s in found if s.certainty == "likely" and s.cls != "expired")
    row = rows[turn.index] if rows else None
    return found + unexplained(turn, request, row, known, rule.provider)


def _refined(group: list[Sighting], requests: Sequence[Request]) -> list[Sighting]:
    """The class that only the series of values tells: a nonce, or a number that follows the time.

    An identifier that is new with every request is a nonce; a counter whose steps are those of the
    time between requests is a clock.
    """
    first = group[0]
    span = group[-1].request - first.request + 1
    each = len(group) == span and (span >= 3 or span == len(requests) - 1)
    if first.cls == "volatile_id" and each:
        return [replace(s, cls="volatile_nonce") for s in group]
    if first.cls in ("volatile_counter", "section_edited") and _follows_time(group, requests):
        return [replace(s, cls="volatile_timestamp") for s in group]
    return group


def _follows_time(group: Sequence[Sighting], requests: Sequence[Request]) -> bool:
    """Whether the one number that changed went on as the time did, three times or more."""
    points: list[tuple[float, int]] = []
    for sighting in group[:50]:
        event, time = sighting.event, requests[sighting.request].time
        if event is None or event.was is None or event.has is None or time is None:
            return False
        changes = value_changes(event.was.text, event.has.text)
        if len(changes) != 1 or not changes[0].after.isdecimal():
            return False
        points.append((time.timestamp(), int(changes[0].after[:18])))
    if len(points) < 3:
        return False
    start_s, start = points[0]
    for unit_s in (0.001, 1.0, 60.0, 3600.0):
        steps = [(at_s - start_s) / unit_s for at_s, _ in points]
        near = all(
            abs((value - start) - step) <= 1 for (_, value), step in zip(points, steps, strict=True)
        )
        # Three numbers that hardly move follow any clock.
        if near and steps[-1] >= 3:
            return True
    return False


def _finding(group: Sequence[Sighting], turns: Sequence[Turn], exact: bool) -> Finding:
    first = group[0]
    costs = [s.cost_usd for s in group if s.cost_usd is not None]
    tokens = sum(s.tokens for s in group)
    again = sum(
        turns[s.request].prompt.total_tokens - turns[s.request].match.hit_tokens
        for s in group
        if s.intended
    )
    harmless = [s for s in group if not s.tokens and s.certainty == "possible"]
    certainty = max((s.certainty for s in group), key=_CERTAINTIES.index)
    if len(harmless) < len(group):
        counted = [s.certainty for s in group if s not in harmless]
        certainty = max(counted, key=_CERTAINTIES.index)
    finding = Finding(
        first.cls,
        first.zone,
        first.block,
        first.request,
        len(group),
        tokens,
        sum(costs, Decimal(0)) if costs else None,
        certainty,
        first.intended,
        sum(s.given_up_tokens for s in group),
        "",
        sum(s.at_risk_tokens for s in group),
        again,
        tuple(dict.fromkeys(text for s in group for text in s.also))[:_MOST_ALSO],
        tuple(s.request for s in group),
        tuple(dict.fromkeys(cause for s in group for cause in _causes(s))),
        "reported" if first.measured else "simulated" if exact else "estimated",
        sum(s.in_block_tokens for s in group),
    )
    return replace(finding, message=_message(finding, group))


def _causes(sighting: Sighting) -> list[tuple[str, str, str]]:
    behind = [(e.cls, e.zone, e.block) for e in sighting.behind]
    return [(sighting.cls, sighting.zone, sighting.block), *behind]


def _message(finding: Finding, group: Sequence[Sighting]) -> str:
    first = group[0]
    place = f"{finding.block}: " if finding.block else ""
    count = finding.requests
    times = f"on {count} requests" if count > 1 else f"on request {finding.first_request + 1}"
    parts = [f"{place}{CLASSES.get(finding.cls, finding.cls)} {times}{_step(finding, group)}"]
    if finding.intended:
        unchanged = f", {finding.tokens:,} of them unchanged" if finding.tokens else ""
        parts.append(
            f"it gave up {finding.given_up_tokens:,} cached tokens and made the provider read "
            f"{finding.read_again_tokens:,} tokens{unchanged}"
        )
    elif finding.tokens:
        parts.append(
            f"{finding.tokens:,} {_KIND.get(finding.cls, 'unchanged')} tokens were paid "
            f"in full again{_in_block(finding)}"
        )
    if first.remark:
        parts.append(first.remark)
    if finding.at_risk_tokens:
        parts.append(f"{finding.at_risk_tokens:,} cached tokens are lost where it counts")
    return "; ".join(parts) + "."


def _in_block(finding: Finding) -> str:
    """Why the bill shows fewer repaid tokens than the finding, where it shows."""
    if finding.changed_block_tokens * 50 < finding.tokens or not finding.changed_block_tokens:
        return ""
    return (
        f" ({finding.changed_block_tokens:,} of them in the changed block itself, which the bill "
        "counts as new)"
    )


_KIND = {"reasoning_dropped": "generated", "below_minimum": "matching"}


def _step(finding: Finding, group: Sequence[Sighting]) -> str:
    """How fine a clock is, where its text shows it."""
    event = group[-1].event
    if finding.cls != "volatile_timestamp" or event is None or not event.was or not event.has:
        return ""
    clocks = [c for c in value_changes(event.was.text, event.has.text) if c.kind == "clock"]
    if not clocks:
        return ""
    return " (to the second)" if clock_step_s(clocks[0].after) == 1 else " (to the minute)"
