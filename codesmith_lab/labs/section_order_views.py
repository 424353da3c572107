"""What the section-order lab shows: figures as ready texts, proportions as integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from codesmith_lab.prompt.ordering.breakpoints import BreakpointPlan
from codesmith_lab.prompt.ordering.stats import SectionStats
from codesmith_lab.sessions.order.board import BoardState, OrderBoard, Weighed, month_usd
from codesmith_lab.sessions.order.replay import InputBill
from codesmith_lab.sessions.order.rewrites import GRAINS
from codesmith_lab.sessions.order.source import Laid
from codesmith_lab.sessions.reports.report_text import dollars

__all__ = [
    "COLUMNS",
    "RATE_WORDS",
    "board_view",
    "change_text",
    "detail_view",
    "figures_view",
    "plan_view",
    "rate_class",
    "rate_text",
    "row_view",
    "sections_view",
    "sentence",
]

Dict = dict[str, Any]
RATE_WORDS = ("never changes", "changes rarely", "changes sometimes", "changes often", "volatile")
COLUMNS = (
    "hit tokens, closed form",
    "hit tokens, replayed",
    "input a request, closed form",
    "input a request, replayed",
    "a month, closed form",
    "a month, replayed",
    "against today",
)


def rate_class(rate: float) -> int:
    """A block's shade and pattern: 0 never, 1 below 2 %, 2 below 10 %, 3 below 50 %, 4 the rest."""
    if rate <= 0:
        return 0
    return 1 if rate < 0.02 else 2 if rate < 0.1 else 3 if rate < 0.5 else 4


def rate_text(section: SectionStats) -> str:
    """A change rate with what stands behind it."""
    rate = section.change_probability
    if section.source == "measured":
        return (
            f"{section.changes} of {section.trials}, {section.low:.0%} to {section.high:.0%}"
            if section.changes
            else f"0 of {section.trials}, up to {section.high:.0%}"
        )
    if section.source == "by stability":
        return f"{rate:.1%}, assumed ({section.stability or 'static'})"
    return f"{rate:.1%}, by hand"


def sections_view(laid: Laid, known: Mapping[str, SectionStats]) -> Dict:
    """What does not change while blocks are moved, by section number."""
    sections = [known[s.name] for s in laid.sections]
    n = len(sections)
    classes = [rate_class(s.change_probability) for s in sections]
    return {
        "name": [s.name for s in sections],
        "tokens": [s.size_tokens for s in sections],
        "tokens_text": [f"{s.size_tokens:,}" for s in sections],
        "rate": classes,
        "rate_text": [rate_text(s) for s in sections],
        "badge": [s.stability for s in sections],
        "fixed": [not laid.fixed_first <= i < n - laid.fixed_last for i in range(n)],
        "label": [
            f"{s.size_tokens:,} tokens, {RATE_WORDS[k]}: {rate_text(s)}"
            for s, k in zip(sections, classes, strict=True)
        ],
    }


def board_view(
    laid: Laid, state: BoardState, now: Weighed, today: Weighed, moving: str = ""
) -> Dict:
    """The order on the board with locks, marks, boundary and both survival curves."""
    number = {s.name: i for i, s in enumerate(laid.sections)}
    n = len(laid.sections)
    front, back = [*range(laid.fixed_first)], [*range(n - laid.fixed_last, n)]
    order = [*front, *(number[name] for name in now.order), *back]
    marks = [""] * n
    for first, second in state.before:
        for name, text in ((first, f"before {second}"), (second, f"after {first}")):
            at = number[name]
            marks[at] = f"{marks[at]}, {text}" if marks[at] else text
    boundary = next(
        (at for at, i in enumerate(order) if laid.sections[i].stability in ("session", "dynamic")),
        None,
    )
    return {
        "order": order,
        "locked": [number[name] for name in state.locked],
        "marks": marks,
        "boundary": boundary,
        "survival": _mille(now),
        "today": {
            # Rewrites change which sections there are; then today's curve has blocks of its own.
            "tokens": list(today.sizes),
            "survival": _mille(today),
        },
        "moving": moving,
    }


def _mille(weighed: Weighed) -> list[int]:
    return [round(1000 * chance) for chance in weighed.cost.survival]


def figures_view(now: Weighed, today: Weighed, a_day: int) -> list[Dict]:
    """The figures at the top."""
    figures = []
    if now.replayed_usd is not None:
        figures.append(
            {
                "value": dollars(now.replayed_usd, 6),
                "label": "input a request, replayed",
                "tone": "",
            }
        )
    if now.expected_usd is not None:
        figures.append(
            {
                "value": dollars(now.expected_usd, 6),
                "label": "input a request, closed form",
                "tone": "",
            }
        )
        figures.append(
            {
                "value": dollars(now.month_usd(a_day), 2),
                "label": f"a month at {a_day:,} a day",
                "tone": "",
            }
        )
    text, tone = change_text(now, today)
    figures.append({"value": text, "label": "against today's prompt", "tone": tone})
    return figures


def change_text(now: Weighed, today: Weighed) -> tuple[str, str]:
    """The change of the bill against today in percent, and its tone.

    By the replay's dollars where there are any, then by the closed form's, then by full-price
    tokens.
    """
    pairs = (
        (now.replayed_usd, today.replayed_usd),
        (now.expected_usd, today.expected_usd),
        (Decimal(repr(now.cost.paid_tokens)), Decimal(repr(today.cost.paid_tokens))),
    )
    a, b = next((a, b) for a, b in pairs if a is not None and b is not None)
    change = float(a / b - 1) if b else 0.0
    if abs(change) < 0.0005:
        return "±0 %", ""
    sign = "−" if change < 0 else "+"
    return f"{sign}{abs(change):.1%}".replace("%", " %"), "good" if change < 0 else "lost"


def sentence(now: Weighed, today: Weighed) -> str:
    """The cost in words, for screen readers."""
    usd = now.expected_usd if now.replayed_usd is None else now.replayed_usd
    text, tone = change_text(now, today)
    cost = f"{now.cost.paid_tokens:,.0f} full-price tokens" if usd is None else dollars(usd, 6)
    if not tone:
        return f"{cost} a request, as today"
    return (
        f"{cost} a request, {text.lstrip('−+')} {'less' if tone == 'good' else 'more'} than today"
    )


def row_view(
    key: str, name: str, weighed: Weighed, today: Weighed, a_day: int, usable: bool, note: str = ""
) -> Dict:
    """One order in the comparison."""
    replay, usd = weighed.replay, (weighed.expected_usd, weighed.replayed_usd)
    months = [month_usd(one, a_day) for one in usd]
    text, tone = change_text(weighed, today)
    return {
        "key": key,
        "name": name,
        "note": note,
        "cells": [
            f"{weighed.cost.hit_tokens:,.0f}",
            "" if replay is None else f"{replay.mean_hit_tokens:,.0f}",
            *("" if one is None else dollars(one, 6) for one in usd),
            *("" if month is None else dollars(month, 2) for month in months),
            "" if key == "today" else text,
        ],
        "tone": "" if key == "today" else tone,
        "usable": usable,
    }


def detail_view(board: OrderBoard, name: str, clocks: Mapping[str, bool], turn: bool) -> Dict:
    """The chosen section: facts, rate, lock, constraints and what can be done beyond moving."""
    known = board.sections()
    if name not in known or name not in board.state.order:
        return {
            "name": "",
            "facts": [],
            "rate_text": "",
            "by_hand": False,
            "locked": False,
            "can_split": False,
            "can_turn": False,
            "grains": [],
            "before": [],
            "choices": [],
        }
    section, state = known[name], board.state
    facts = [
        f"{section.size_tokens:,} tokens",
        f"change rate {rate_text(section)}",
        "ratio ∞ (never changes)"
        if section.ratio == float("inf")
        else f"ratio size·(1−p)/p + head = {section.ratio:,.0f}",
    ]
    if section.head_tokens and section.change_probability:
        facts.append(f"keeps about {section.head_tokens:,} tokens before its change")
    has_history = board.laid.history is not None
    return {
        "name": name,
        "facts": facts,
        "rate_text": f"{100 * section.change_probability:.4g}",
        "by_hand": name in state.rates,
        "locked": name in state.locked,
        "can_split": has_history and section.change_probability > 0,
        "can_turn": has_history and turn,
        "grains": [{"value": g, "label": f"{g}: {t}"} for g, t in GRAINS.items()]
        if clocks.get(name)
        else [],
        "before": [
            {"first": a, "second": b, "text": f"{a} stands before {b}"}
            for a, b in state.before
            if name in (a, b)
        ],
        "choices": [other for other in state.order if other != name],
    }


def plan_view(
    models: Sequence[str], model: str, plan: BreakpointPlan | None, bill: InputBill | None
) -> Dict:
    """The explicit cache's plan in sentences; bill: the session with it, where there is one."""
    lines: list[str] = []
    title = ""
    if plan is not None:
        title = f"{dollars(plan.usd, 6)} a request expected, with these breakpoints:"
        lines = [f"after {mark.after}, life {mark.life}" for mark in plan.breakpoints] or [
            "none: nothing here is worth a write"
        ]
        lines.append("order: " + ", ".join(plan.names))
        lines.append(
            "proved the cheapest"
            if not plan.gap_usd
            else f"at most {dollars(plan.gap_usd, 6)} above the cheapest"
        )
    if bill is not None:
        lines.append(f"billed on this session: {dollars(bill.usd_per_request, 6)} a request")
    return {"models": list(models), "model": model, "title": title, "lines": lines}
