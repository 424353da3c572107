"""One request of a run: its prompt, what the cache did with it, and its bill."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from codesmith_lab.billing.bill import bill_input, bill_plain, storage_usd
from codesmith_lab.billing.prices import Rates, cost_usd
from codesmith_lab.cache.causes import Causes, split_lines
from codesmith_lab.cache.match import Match
from codesmith_lab.cache.pieces import Prompt
from codesmith_lab.cache.plan import CachePlan
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.sessions.records import Request

__all__ = ["LINES", "Turn", "bill_turn", "setting_change"]

LINES = ("cache_read", "input", "cache_write_5m", "cache_write_1h")
"""Price lines of the input, in the order in which tables show them."""

ZERO = Decimal(0)
_NO_PLAN = CachePlan()


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One request of a run: its prompt, what the cache did with it, and its bill.

    lines: input tokens by price line, summing to the prompt's tokens exactly.
    cost_usd: input and output; cause_costs_usd: the input's cost by cause. None without a price.
    repaid_usd: what the repaid tokens cost above a cache read.
    parent: index of the best earlier request in the session, or None.
    plan: what the rule made of the request's fields: breakpoints, lifetime, refusal.
    setting_change: where a body field and no text parted it from its parent: the parent's fields
        of that level and its own, as text.
    storage_usd: what keeping a written cache costs; part of `cost_usd`.
    A refused request (`match.refused`) costs nothing.
    """

    index: int
    model: str
    prompt: Prompt
    match: Match
    causes: Causes
    parent: int | None
    parent_prompt: Prompt | None
    lines: tuple[int, int, int, int]
    output_tokens: int | None
    rates: Rates | None
    cost_usd: Decimal | None
    output_usd: Decimal | None
    cause_costs_usd: tuple[Decimal, ...] | None
    repaid_usd: Decimal | None
    plan: CachePlan = _NO_PLAN
    setting_change: tuple[str, str] | None = None
    storage_usd: Decimal = ZERO


def bill_turn(
    request: Request,
    prompt: Prompt,
    match: Match,
    causes: Causes,
    parent: Turn | None,
    output_tokens: int | None,
    rates: Rates | None,
    plan: CachePlan,
    rule: CacheRule,
    setting_change: tuple[str, str] | None,
) -> Turn:
    """A turn with its bill at `rates`; without prices, or content to predict from, it has none."""
    total = prompt.total_tokens
    hit, (long_end, end) = match.hit_tokens, match.written
    bill = None
    if rates is not None:
        bill = (
            bill_plain(causes.tokens, rates)
            if end == hit
            else bill_input(split_lines(causes, match), rates)
        )
    cost = output = by_cause = repaid = None
    storage = ZERO
    if match.refused:
        cost = output = repaid = ZERO
        by_cause = (ZERO,) * len(causes.tokens)
    elif rates is not None and bill is not None and request.content != "none":
        output = cost_usd(output_tokens, rates.output) if output_tokens else ZERO
        if match.stored_tokens and rule.storage_usd_per_mtok_hour is not None:
            price = rule.storage_usd_per_mtok_hour
            storage = storage_usd(match.stored_tokens, match.stored_s, price)
        by_cause, repaid = bill.cause_costs_usd, bill.repaid_usd
        cost = sum(by_cause, output + storage)
    return Turn(
        request.index,
        request.model,
        prompt,
        match,
        causes,
        match.parent,
        None if parent is None else parent.prompt,
        (hit, total - max(hit, end), max(0, end - long_end), max(0, long_end - hit)),
        output_tokens,
        rates,
        cost,
        output,
        by_cause,
        repaid,
        plan,
        setting_change,
        storage,
    )


def setting_change(
    causes: Causes, prompt: Prompt, plan: CachePlan, parent: Turn | None
) -> tuple[str, str] | None:
    """The fields that parted a request from its parent where the text is the same."""
    at = causes.break_piece
    if at is None or parent is None or prompt.pieces[at] != parent.prompt.pieces[at]:
        return None
    return dict(parent.plan.salts).get(at, ""), dict(plan.salts).get(at, "")
