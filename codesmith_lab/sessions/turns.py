"""A session laid out as prompts and run through a cache, request by request.

`TurnRunner` holds what does not change while a person edits: tokenized pieces, prompts, prices.
`run` plays the whole session, or replays it from one turn on with other blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from codesmith_lab.billing.bill import bill_input, bill_usage, rates_under, storage_usd
from codesmith_lab.billing.models import ModelInfo
from codesmith_lab.billing.prices import Rates, cost_usd, rates_for
from codesmith_lab.billing.tokens import Tokenizer, get_tokenizer, joint_delta, run_counts
from codesmith_lab.cache.causes import Causes, split_causes, split_lines
from codesmith_lab.cache.engine import PrefixIndex
from codesmith_lab.cache.indexes import make_index
from codesmith_lab.cache.match import Entry, Match
from codesmith_lab.cache.pieces import PieceTable, Prompt
from codesmith_lab.cache.plan import CachePlan, carry_markers, kept_blocks, make_plan
from codesmith_lab.cache.rule_files import get_rule
from codesmith_lab.cache.rules import CacheRule, setting_at
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.chat_format import CHAT_FORMATS
from codesmith_lab.sessions.records import Request, Session

__all__ = ["LINES", "Checkpoint", "Turn", "TurnRunner"]

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


@dataclass(slots=True)
class Checkpoint:
    """Cache state and turns before turn `at`: where a replay starts."""

    at: int
    indexes: dict[str, PrefixIndex]
    turns: list[Turn]


def _forked(start: Checkpoint | None) -> Checkpoint:
    if start is None:
        return Checkpoint(0, {}, [])
    forks = {scope: index.fork() for scope, index in start.indexes.items()}
    return Checkpoint(start.at, forks, list(start.turns))


class TurnRunner:
    """Plays a session under one model's tokenizer, cache rule and prices.

    Parameters
    ----------
    session: the requests, in time order.
    model: tokenizer, chat format and price of every request.
    rule: the cache rule.
    scope: names the cache a request belongs to (its model as sent, as a rule).
    price_date: day whose prices hold for requests without a time.
    own: a request's own model and rule, for prices and rules by request; None = those above.
    """

    def __init__(
        self,
        session: Session,
        model: ModelInfo,
        rule: CacheRule,
        scope: Callable[[Request], str],
        price_date: date,
        own: Callable[[Request], tuple[ModelInfo, CacheRule]] | None = None,
    ) -> None:
        self.session = session
        self.model = model
        self.rule = rule
        requests = session.requests
        self._own = [(model, rule) if own is None else own(request) for request in requests]
        self.tokenizer: Tokenizer = get_tokenizer(model.tokenizer_id)
        tokenizer = self.tokenizer
        self.table = PieceTable(
            CHAT_FORMATS[model.chat_format],
            tokenizer.ids,
            lambda left, right: joint_delta(left, right, tokenizer),
            lambda texts: run_counts(texts, tokenizer),
        )
        self._scope = scope
        self._price_date = price_date
        self._prompts: list[Prompt] = [
            self.table.prompt(self._kept(i, r.blocks)) for i, r in enumerate(requests)
        ]
        self._outputs: list[npt.NDArray[np.int32]] = [
            self.table.output_numbers(r.output or ()) for r in requests
        ]
        self._output_tokens = [self._count_output(r, i) for i, r in enumerate(requests)]
        self._plans: dict[int, tuple[CacheRule, str, CachePlan]] = {}

    def recount(self) -> None:
        """Count every joined run of text whole, instead of block by block with joints.

        Afterwards token counts are those of the joined text, exactly, and stay so for these texts.
        """
        self._prompts = [self.table.exact(prompt) for prompt in self._prompts]

    def prompt_of(self, index: int, blocks: Sequence[Block] | None, exact: bool = False) -> Prompt:
        """The prompt of a request, with other blocks where given."""
        if blocks is None:
            return self._prompts[index]
        prompt = self.table.vary(self._prompts[index], self._kept(index, blocks))
        return self.table.exact(prompt) if exact else prompt

    def checkpoint(
        self,
        at: int,
        known: Sequence[Turn] = (),
        start: Checkpoint | None = None,
        blocks: Mapping[int, Sequence[Block]] | None = None,
    ) -> Checkpoint:
        """Play the session as it is up to turn `at` (exclusive).

        `known` are turns of the unedited session, kept as they are: what was worked out for them
        stays good. `start` is an earlier checkpoint to go on from, left as it was; turns named in
        `blocks` send those instead.
        """
        state = _forked(start)
        self._play(state, at, blocks or {}, exact=blocks is not None, settings={})
        state.at = at
        state.turns[: len(known)] = known[:at]
        return state

    def run(
        self,
        blocks: Mapping[int, Sequence[Block]] | None = None,
        start: Checkpoint | None = None,
        exact: bool = False,
        settings: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> list[Turn]:
        """Every turn; turns named in `blocks` or `settings` send those instead.

        `start` is a checkpoint at or before the first changed turn and is left as it was.
        """
        state = _forked(start)
        self._play(state, len(self.session.requests), blocks or {}, exact, settings or {})
        return state.turns

    def cache_of(self, index: int) -> tuple[CacheRule, str, CachePlan]:
        """A recorded request's rule, the name of its cache, and what it asks of it."""
        return self._plan(self.session.requests[index], None, self._prompts[index])

    def model_of(self, index: int) -> str:
        """The model that a request is counted and billed as."""
        return self._own[index][0].name

    def output_of(self, index: int) -> npt.NDArray[np.int32]:
        """Piece numbers of a request's response; empty where the log holds none."""
        return self._outputs[index]

    def rates_of(self, index: int, total_tokens: int) -> Rates | None:
        """The prices of a request with that many input tokens, or None."""
        return self._rates(index, self.session.requests[index].time, total_tokens)

    def reported_usd(self, index: int) -> Decimal | None:
        """The bill from a request's reported counters; None without counters or prices."""
        request = self.session.requests[index]
        if request.usage is None:
            return None
        rates = self._rates(index, request.time, request.usage.input_tokens)
        return None if rates is None else bill_usage(request.usage, rates)

    def _play(
        self,
        state: Checkpoint,
        end: int,
        blocks: Mapping[int, Sequence[Block]],
        exact: bool,
        settings: Mapping[int, Mapping[str, Any]],
    ) -> None:
        for i in range(state.at, end):
            request = self.session.requests[i]
            if i in settings:
                request = replace(request, body=b"", settings=settings[i])
            changed = blocks.get(i)
            prompt = self.prompt_of(i, changed, exact)
            rule, scope, plan = self._plan(request, changed, prompt)
            index = state.indexes.get(scope)
            if index is None:
                index = state.indexes[scope] = make_index(self.table, rule)
            time_s = None if request.time is None else request.time.timestamp()
            match = index.add(i, prompt, self._outputs[i], time_s, plan)
            parent = None if match.parent is None else index.entries[match.parent]
            state.turns.append(self._turn(i, prompt, match, plan, rule, parent, state.turns))

    def _kept(self, index: int, blocks: Sequence[Block]) -> Sequence[Block]:
        info, rule = self._own[index]
        return kept_blocks(rule, info.name, blocks)

    def _plan(
        self, request: Request, blocks: Sequence[Block] | None, prompt: Prompt
    ) -> tuple[CacheRule, str, CachePlan]:
        """Rule, scope and plan of a request; an edit that moves no block keeps them."""
        as_recorded = request is self.session.requests[request.index]
        known = self._plans.get(request.index) if as_recorded else None
        if known is not None and (
            blocks is None
            or (not known[2].salts and len(blocks) == len(request.blocks))
            or (known[0].match != "breakpoints" and not known[0].invalidates)
        ):
            return known
        info, rule = self._own[request.index]
        markers = request.settings.get("_markers", ())
        if rule.without_markers and not markers:
            rule = get_rule(rule.without_markers)
        values = [setting_at(request.settings, name) for name in rule.scope_fields]
        scope = "\0".join([rule.id, self._scope(request), *map(repr, values)])
        now = request.blocks if blocks is None else blocks
        plan = make_plan(
            rule,
            info.name,
            request.settings,
            self.table,
            prompt,
            now,
            # Settings that were changed count the blocks as they are sent.
            carry_markers(markers, request.blocks, now) if as_recorded else markers,
        )
        if request.status is not None and request.status >= 400:
            plan = replace(plan, refused=f"HTTP {request.status}, as the log says")
        found = (rule, scope, plan)
        if blocks is None and as_recorded:
            self._plans[request.index] = found
        return found

    def _turn(
        self,
        at: int,
        prompt: Prompt,
        match: Match,
        plan: CachePlan,
        rule: CacheRule,
        parent: Entry | None,
        turns: Sequence[Turn],
    ) -> Turn:
        request = self.session.requests[at]
        parent_turn = None if match.parent is None else turns[match.parent]
        parent_prompt = None if parent_turn is None else parent_turn.prompt
        causes = split_causes(self.table, prompt, match, parent, parent_prompt)
        rows = split_lines(causes, match)
        lines = tuple(map(sum, zip(*rows, strict=True)))
        output_tokens = self._output_tokens[at]
        rates = self._rates(at, request.time, prompt.total_tokens)
        bill = None if rates is None else bill_input(rows, rates)
        cost = output = by_cause = repaid = None
        storage = ZERO
        if match.refused:
            cost = output = repaid = ZERO
            by_cause = (ZERO,) * len(rows)
        elif rates is not None and bill is not None:
            output = cost_usd(output_tokens or 0, rates.output)
            if match.stored_tokens and rule.storage_usd_per_mtok_hour is not None:
                storage = storage_usd(
                    match.stored_tokens, match.stored_s, rule.storage_usd_per_mtok_hour
                )
            by_cause, repaid = bill.cause_costs_usd, bill.repaid_usd
            cost = sum(by_cause, output + storage)
        return Turn(
            request.index,
            request.model,
            prompt,
            match,
            causes,
            match.parent,
            parent_prompt,
            (lines[0], lines[1], lines[2], lines[3]),
            output_tokens,
            rates,
            cost,
            output,
            by_cause,
            repaid,
            plan,
            _setting_change(causes, prompt, plan, parent_turn),
            storage,
        )

    def _rates(self, index: int, when: datetime | None, total_tokens: int) -> Rates | None:
        info, rule = self._own[index]
        rates = rates_for(info, when, self._price_date)
        return None if rates is None else rates_under(rates.at(total_tokens), rule)

    def _count_output(self, request: Request, index: int) -> int | None:
        """Output tokens: reported where the log has them, else counted from the response."""
        if request.usage is not None and request.usage.output_tokens is not None:
            return request.usage.output_tokens
        if request.output is None:
            return None
        numbers = self._outputs[index].tolist()
        opening = len(CHAT_FORMATS[self.model.chat_format].reply)
        return max(0, sum(self.table[n].tokens for n in numbers) - opening)


def _setting_change(
    causes: Causes, prompt: Prompt, plan: CachePlan, parent: Turn | None
) -> tuple[str, str] | None:
    """The fields that parted a request from its parent where the text is the same."""
    at = causes.break_piece
    if at is None or parent is None or prompt.pieces[at] != parent.prompt.pieces[at]:
        return None
    return dict(parent.plan.salts).get(at, ""), dict(plan.salts).get(at, "")
