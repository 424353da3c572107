"""The bill of the capacity lab: off, on, and on with these settings."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import Any

from codesmith_lab.billing.models import resolve_model
from codesmith_lab.billing.prices import Rates, default_price_date, hit_to_miss_ratio, rates_for
from codesmith_lab.capacity.break_even import BreakEven
from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.errors import LabError
from codesmith_lab.sessions.capacity.observations import Numbering
from codesmith_lab.sessions.capacity.replay import (
    ControlledSession,
    InterventionCost,
    compact_at,
    replay_controller,
)
from codesmith_lab.sessions.capacity.rewrites import InterventionRules
from codesmith_lab.sessions.turns import TurnRunner

__all__ = ["Bills", "bill_views", "formula_view", "price_bills"]

Dict = dict[str, Any]
Bills = dict[str, ControlledSession]

_ROWS = {
    "off": "controller off",
    "reference": "on, the reference's settings",
    "tuned": "on, these settings",
}
_SHOWN = 40
_ACTION_TEXT = {
    "targeted_context_refresh": "refresh",
    "verify_with_tool_replay": "tool replay",
    "verify_and_replan": "replan",
}


def price_bills(
    runner: TurnRunner,
    config: CapacityConfig,
    reference: CapacityConfig,
    rules: InterventionRules,
    turns: Numbering,
    known: Bills,
) -> Iterator[str]:
    """Replay the session under each setting that is not `known` yet; gives the name of each."""
    if "reference" not in known:
        known["reference"] = replay_controller(runner, reference, rules, turns)
        yield "reference"
    if "tuned" not in known:
        same = config == reference
        known["tuned"] = (
            known["reference"] if same else replay_controller(runner, config, rules, turns)
        )
        yield "tuned"


def bill_views(
    runner: TurnRunner,
    bills: Bills,
    pricing: Iterator[str],
    request: int,
    rules: InterventionRules,
    shown: Dict,
) -> Iterator[Dict]:
    """The bill as it is worked out, piece by piece, so that a caller can do other things between.

    pricing: from `price_bills`. request: the chosen turn, for its sentence. shown: what stands on
        the screen, and stays until something newer is known.
    """
    view = {**shown, "state": "working"}
    for _ in pricing:
        yield view
    tuned = bills["tuned"]
    view = {
        "state": "working",
        "rows": _rows(bills, runner),
        "items": [],
        "sentence": "",
        "notes": _notes(tuned),
    }
    yield view
    view = {**view, "sentence": turn_sentence(runner, request, rules)}
    yield view
    for cost in islice(tuned.each(), _SHOWN):
        view = {**view, "items": [*view["items"], _item(cost)]}
        yield view
    yield {**view, "state": "ready"}


def _rows(bills: Bills, runner: TurnRunner) -> list[Dict]:
    tuned = bills["tuned"]
    off = tuned.off_usd
    recorded = sum(runner.prompt_of(i, None).total_tokens for i in range(len(tuned.turns)))
    rows = [_row("off", off, off, recorded, 0)]
    for name in ("reference", "tuned"):
        bill = bills[name]
        rows.append(_row(name, bill.cost_usd, off, bill.input_tokens, bill.count))
    return rows


def _notes(tuned: ControlledSession) -> list[str]:
    notes = [
        "Simulated: the messages after an intervention are taken as recorded. The curves show the "
        "session as recorded; here each intervention changes what is seen after it."
    ]
    if tuned.superseded:
        turns = ", ".join(str(i + 1) for i in tuned.superseded[:5])
        notes.append(f"The session rewrote its own history at turn {turns}.")
    if tuned.count > _SHOWN:
        notes.append(f"The first {_SHOWN} of {tuned.count} interventions are shown.")
    return notes


def _row(
    name: str, cost: Decimal | None, off: Decimal | None, tokens: int, interventions: int
) -> Dict:
    change = "" if cost is None or off is None or name == "off" else signed_usd(cost - off)
    return {
        "name": _ROWS[name],
        "cost_text": "no price" if cost is None else f"${cost:.4f}",
        "change_text": change,
        "tone": _tone(None if cost is None or off is None else cost - off),
        "tokens_text": f"{tokens:,}",
        "count_text": f"{interventions}",
    }


def _tone(change: Decimal | None) -> str:
    return "" if not change else "lost" if change > 0 else "good"


def signed_usd(change: Decimal) -> str:
    """Dollars with their sign; small ones with more digits."""
    digits = 4 if abs(change) >= Decimal("0.001") or not change else 6
    return f"{'−' if change < 0 else '+'}${abs(change):.{digits}f}"


def _item(cost: InterventionCost) -> Dict:
    if cost.net_usd is None:
        pays = "no price"
    elif cost.pays_back_after is None:
        pays = "never here"
    else:
        pays = f"after {cost.pays_back_after}"
    return {
        "request": cost.request,
        "turn_text": f"turn {cost.request + 1}",
        "action_text": _ACTION_TEXT[cost.action],
        "repaid_text": f"{cost.repaid_tokens:,}",
        "saved_text": f"{cost.saved_tokens:,}".replace("-", "−"),
        "net_text": "" if cost.net_usd is None else signed_usd(cost.net_usd),
        "tone": _tone(cost.net_usd),
        "pays_text": pays,
    }


def turn_sentence(runner: TurnRunner, request: int, rules: InterventionRules) -> str:
    """The answer for one turn of a session."""
    try:
        cost = compact_at(runner, request, rules=rules).interventions[0]
    except LabError as error:
        text = str(error)
        return f"{text[0].upper()}{text[1:]}."
    sentence = cost.sentence()
    formula = cost.formula
    if cost.pays_back_after is None and formula is not None and formula.requests is not None:
        sentence += f" By the formula it would after {formula.requests}."
    return sentence


def formula_view(model: str, history_tokens: float, turn: int, rules: InterventionRules) -> Dict:
    """Without a session: the break-even by the formula alone, at a model's prices."""
    rates = _rates(model)
    ratio = None if rates is None else hit_to_miss_ratio(rates)
    if rates is None or ratio is None or history_tokens < 1:
        text = "" if history_tokens < 1 else f"No prices are known for {model}: choose another."
        return {"state": "formula", "rows": [], "items": [], "sentence": text, "notes": []}
    after = history_tokens * rules.compression_ratio
    summary = 0.0
    if rules.summary_call != "none":
        read = rates.input if rules.summary_call == "fresh" else rates.cache_read
        summary = (history_tokens * float(read) + after * float(rates.output)) / float(
            rates.cache_read
        )
    found = BreakEven(history_tokens, rules.compression_ratio, float(ratio), 0.0, summary)
    notes = [
        f"By the formula, for {history_tokens:,.0f} tokens of history with {model}, where a miss "
        f"costs {float(ratio):.1f} times a hit (prices of {rates.price_date}).",
        "Choose a session as source to have every intervention replayed on it.",
    ]
    return {
        "state": "formula",
        "rows": [],
        "items": [],
        "sentence": found.sentence(turn),
        "notes": notes,
    }


def _rates(model: str) -> Rates | None:
    try:
        return rates_for(resolve_model(model), None, default_price_date())
    except LabError:
        return None
