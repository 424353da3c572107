"""How exact a report is: tokens, rules, prices and what the reading had to assume."""

from __future__ import annotations

from collections import Counter
from datetime import timezone
from itertools import pairwise

from codesmith_lab.billing.prices import (
    Rates,
    catalog_version,
    hit_to_miss_ratio,
)
from codesmith_lab.sessions.reports.report import Report
from codesmith_lab.wording import counted

__all__ = ["report_notes"]

_MOST_RATES = 6


def report_notes(report: Report) -> list[str]:
    """The notes of a report, one sentence or two each."""
    rule, tokenizer = report.runner.rule, report.runner.tokenizer
    band = tokenizer.error_band
    rough = "an estimate of unknown error" if band == "unknown" else f"an estimate ({band})"
    kind = "exact for text" if tokenizer.exact else rough
    notes = [
        f"Tokens: {tokenizer.name}, {kind}; {report.runner.table.chat_format.doubts}.",
        f"Rules: {rule.id}, {rule.title}, checked {rule.checked}; {rule.doubts}.",
        *_prices(report),
        *_times(report),
    ]
    read = Counter(n for r in report.runner.session.requests for n in dict.fromkeys(r.notes))
    notes += [f"Reading: {text} ({counted(n, 'request')})." for text, n in read.items()]
    gap = report.calibration_gap
    if gap is not None and not report.calibrated:
        notes.append(
            f"Predicted and reported cache reads differ by {float(gap):.1%} of the input that "
            "nothing in the log explains: savings are uncalibrated."
        )
    return notes


def _prices(report: Report) -> list[str]:
    """What a million tokens cost, for every set of prices in use, and why some have none."""
    notes = []
    used = Counter(_rates(turn.rates) for turn in report.turns if turn.rates is not None)
    if used:
        notes.append(f"Prices: of {report.price_date}, {catalog_version()}; USD per 1M tokens.")
        notes += [
            f"Prices: {text} ({counted(n, 'request')})."
            for text, n in used.most_common(_MOST_RATES)
        ]
        if len(used) > _MOST_RATES:
            notes.append(f"Prices: {len(used) - _MOST_RATES:,} further sets of prices were used.")
    without: Counter[str] = Counter()
    for turn in report.turns:
        if turn.rates is None:
            without[report.runner.why_no_price_of(turn.index)] += 1
    notes += [f"Prices: {why} ({counted(n, 'request')})." for why, n in without.items()]
    return notes


def _rates(rates: Rates) -> str:
    parts = [f"input ${rates.input:f}", f"cache read ${rates.cache_read:f}"]
    short, long = rates.cache_write_5m, rates.cache_write_1h
    if rates.writes_on_top or any(price not in (None, rates.input) for price in (short, long)):
        lives = {"": short} if short == long else {" for 5 minutes": short, " for 1 hour": long}
        parts += [f"write{life} ${price:f}" for life, price in lives.items() if price is not None]
    parts.append(f"output ${rates.output:f}")
    ratio = hit_to_miss_ratio(rates)
    times = "" if ratio is None else f"; a miss costs {ratio:.1f} times a hit"
    period = f", {rates.period}" if rates.period else ""
    return f"{rates.model}{period}: {', '.join(parts)}{times}"


def _times(report: Report) -> list[str]:
    """A log that is not in the order of its times says what was made of that."""
    requests = report.runner.session.requests
    if all(request.time is not None for request in requests):
        moved = sum(now.file == was.file and now.line < was.line for was, now in pairwise(requests))
        if moved:
            return [f"Times: {counted(moved, 'request')} stood later in the log than in time."]
        return []
    times = [r.time for r in requests if r.time is not None]
    utc = [t if t.tzinfo else t.replace(tzinfo=timezone.utc) for t in times]
    back = sum(now < was for was, now in pairwise(utc))
    if not back:
        return []
    return [
        f"Times: they run backwards {counted(back, 'time')} and some requests have none, so the "
        "order of the log is kept."
    ]
