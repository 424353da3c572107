"""A session laid out as prompts and run through a cache, request by request.

`TurnRunner` holds what does not change while a person edits: tokenized pieces, prompts, prices.
`run` plays the whole session, or replays it from one turn on with other blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from codesmith_lab.billing.bill import bill_usage, rates_under
from codesmith_lab.billing.models import ModelInfo
from codesmith_lab.billing.prices import Rates, rates_for, why_no_price
from codesmith_lab.billing.tokens import Tokenizer, get_tokenizer, joint_delta, run_counts
from codesmith_lab.cache.causes import Causes, split_causes
from codesmith_lab.cache.engine import PrefixIndex
from codesmith_lab.cache.growing import GrowingLayout
from codesmith_lab.cache.indexes import make_index
from codesmith_lab.cache.match import Entry, Match
from codesmith_lab.cache.pieces import PieceTable, Prompt
from codesmith_lab.cache.plan import CachePlan, carry_markers, kept_blocks, make_plan
from codesmith_lab.cache.rule_files import get_rule
from codesmith_lab.cache.rules import CacheRule, setting_at
from codesmith_lab.cache.swaps import Swap, SwappedPrompt, swapped
from codesmith_lab.prompt.blocks import Block, SwappedBlocks, same_places
from codesmith_lab.prompt.chat_format import CHAT_FORMATS
from codesmith_lab.sessions.records import Request, Session
from codesmith_lab.sessions.shifting import Chain, can_shift, one_life, shift
from codesmith_lab.sessions.turn import LINES, Turn, bill_turn, setting_change

__all__ = ["LINES", "Checkpoint", "Turn", "TurnRunner"]


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
        # Joined texts are counted whole here; while a person types, joint by joint.
        layout = GrowingLayout(self.table, exact=True)
        self._prompts: list[Prompt] = [
            layout.prompt(self._kept(i, r.blocks)) for i, r in enumerate(requests)
        ]
        self._outputs: list[npt.NDArray[np.int32]] = [
            self.table.output_numbers(r.output or ()) for r in requests
        ]
        self.table.forget_blocks()
        self._output_tokens = [self._count_output(r, i) for i, r in enumerate(requests)]
        self._plans: dict[int, tuple[CacheRule, str, CachePlan]] = {}
        # Equal plans and names of caches, kept once: most requests ask for the same.
        self._shared: dict[Any, Any] = {}
        self._output_ends = [self._output_size(i) for i in range(len(requests))]
        self._base_rates: dict[int, Rates | None] = {}
        # The session as recorded, once it was played, and how many pieces there were by then.
        self._recorded: list[Turn] = []
        self._pieces_recorded = 0

    def prompt_of(self, index: int, blocks: Sequence[Block] | None, exact: bool = False) -> Prompt:
        """The prompt of a request, with other blocks where given."""
        if blocks is None:
            return self._prompts[index]
        over = self._swapped(index, blocks, exact, None)
        if over is not None:
            return over
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
        exact = blocks is not None
        self._play(state, at, blocks or {}, exact, settings={}, whole=True)
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
        edited = bool(blocks) or bool(settings)
        end = len(self.session.requests)
        self._play(state, end, blocks or {}, exact, settings or {}, whole=not edited)
        if not edited:
            self._recorded = state.turns
            self._pieces_recorded = len(self.table.pieces)
            # A copy, so that the caller may do with its list what it likes.
            return list(state.turns)
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
        info, rule = self._own[index]
        rates = rates_for(info, self.session.requests[index].time, self._price_date)
        return None if rates is None else rates_under(rates.at(total_tokens), rule)

    def why_no_price_of(self, index: int) -> str:
        """Why a request has no prices, in words; "" where it has some."""
        info, request = self._own[index][0], self.session.requests[index]
        return why_no_price(info, request.time, self._price_date)

    def reported_usd(self, index: int) -> Decimal | None:
        """The bill from a request's reported counters; None without counters or prices."""
        request = self.session.requests[index]
        if request.usage is None:
            return None
        rates = self.rates_of(index, request.usage.input_tokens)
        return None if rates is None else bill_usage(request.usage, rates)

    def _play(
        self,
        state: Checkpoint,
        end: int,
        blocks: Mapping[int, Sequence[Block]],
        exact: bool,
        settings: Mapping[int, Mapping[str, Any]],
        whole: bool = False,
    ) -> None:
        """Play turns up to `end`; `whole`: all of them through the cache, which then goes on."""
        recorded = [] if whole else self._recorded
        chains: dict[str, Chain] = {}
        swap: Swap | None = None
        for i in range(state.at, end):
            request = self.session.requests[i]
            if i in settings:
                request = replace(request, body=b"", settings=settings[i])
            changed = blocks.get(i)
            prompt = self._swapped(i, changed, exact, swap) or self.prompt_of(i, changed, exact)
            swap = prompt.swap if isinstance(prompt, SwappedPrompt) else None
            rule, scope, plan = self._plan(request, changed, prompt)
            turn = None
            if recorded and can_shift(rule):
                chain = chains.setdefault(scope, Chain())
                known = i not in settings and (changed is None or swap is not None)
                if chain.carries(i, swap, known and self._is_fresh(swap)):
                    turn = self._shifted(recorded[i], prompt, rule, plan, chain, state.turns)
                if turn is None:
                    self._catch_up(chain, scope, rule, state)
                else:
                    chain.waiting.append(i)
            if turn is None:
                match, parent = self._ask(i, prompt, scope, rule, plan, state)
                turn = self._turn(i, prompt, match, plan, rule, parent, state.turns)
            state.turns.append(turn)

    def _ask(
        self,
        at: int,
        prompt: Prompt,
        scope: str,
        rule: CacheRule,
        plan: CachePlan,
        state: Checkpoint,
    ) -> tuple[Match, Entry | None]:
        """Put one turn through the cache."""
        index = state.indexes.get(scope)
        if index is None:
            index = state.indexes[scope] = make_index(self.table, rule)
        time = self.session.requests[at].time
        time_s = None if time is None else time.timestamp()
        match = index.add(at, prompt, self._outputs[at], time_s, plan)
        return match, None if match.parent is None else index.entries[match.parent]

    def _catch_up(self, chain: Chain, scope: str, rule: CacheRule, state: Checkpoint) -> None:
        """Show the cache the turns that were shifted past it."""
        for i in chain.waiting:
            turn = state.turns[i]
            self._ask(i, turn.prompt, scope, rule, turn.plan, state)
        chain.waiting.clear()

    def _is_fresh(self, swap: Swap | None) -> bool:
        """Whether no recorded turn holds what the edit puts in: then it can lead nowhere new."""
        return swap is None or all(number >= self._pieces_recorded for number in swap.news)

    def _swapped(
        self, index: int, blocks: Sequence[Block] | None, exact: bool, like: Swap | None
    ) -> SwappedPrompt | None:
        """The prompt of swapped blocks; None where it has to be laid out anew."""
        request = self.session.requests[index]
        if not isinstance(blocks, SwappedBlocks) or blocks.base is not request.blocks:
            return None
        info, rule = self._own[index]
        if rule.strips_thinking and rule.strips(info.name):
            return None
        return swapped(self.table, self._prompts[index], blocks, exact, like)

    def _shifted(
        self,
        recorded: Turn,
        prompt: Prompt,
        rule: CacheRule,
        plan: CachePlan,
        chain: Chain,
        turns: Sequence[Turn],
    ) -> Turn | None:
        """The recorded turn with its places moved, where it followed one of the same chain."""
        if recorded.parent is None or not chain.leads(recorded.parent, recorded.match.pieces):
            return None
        parent = turns[recorded.parent]
        marked = 0
        plans = (plan, parent.plan, self._recorded[0].plan)
        if rule.match == "breakpoints" and one_life(*plans):
            marked = parent.plan.breakpoints[-1].pieces if parent.plan.breakpoints else 0
        total = parent.prompt.total_tokens
        stored = total + self._output_ends[recorded.parent]
        found = shift(
            recorded.prompt,
            recorded.match,
            recorded.causes,
            prompt,
            rule,
            plan,
            (total, stored),
            marked,
        )
        if found is None:
            return None
        if chain.swap is None:
            return recorded
        match, causes = found
        change = recorded.setting_change
        return self._bill(recorded.index, prompt, match, causes, plan, rule, parent, change)

    def _output_size(self, index: int) -> int:
        """Tokens that a stored output adds to its prompt, whose reply marks it repeats."""
        output, (_, rule) = self._outputs[index], self._own[index]
        if not len(output):
            return 0
        size = int(self.table.assemble((), output).tokens.sum())
        return size - self.table.reply_tokens - min(1, rule.keep_last_tokens)

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
            or (not known[2].salts and same_places(blocks, request.blocks))
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
        if plan.block_numbers is None:
            plan = self._shared.setdefault(plan, plan)
        scope = self._shared.setdefault(scope, scope)
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
        entry: Entry | None,
        turns: Sequence[Turn],
    ) -> Turn:
        parent = None if match.parent is None else turns[match.parent]
        parent_prompt = None if parent is None else parent.prompt
        causes = split_causes(self.table, prompt, match, entry, parent_prompt)
        change = setting_change(causes, prompt, plan, parent)
        return self._bill(at, prompt, match, causes, plan, rule, parent, change)

    def _bill(
        self,
        at: int,
        prompt: Prompt,
        match: Match,
        causes: Causes,
        plan: CachePlan,
        rule: CacheRule,
        parent: Turn | None,
        setting_change: tuple[str, str] | None,
    ) -> Turn:
        return bill_turn(
            self.session.requests[at],
            prompt,
            match,
            causes,
            parent,
            self._output_tokens[at],
            self._rates_at(at, prompt.total_tokens),
            plan,
            rule,
            setting_change,
        )

    def _rates_at(self, index: int, total_tokens: int) -> Rates | None:
        """The prices of a request as it was sent."""
        if index not in self._base_rates:
            request, (info, rule) = self.session.requests[index], self._own[index]
            base = rates_for(info, request.time, self._price_date)
            self._base_rates[index] = None if base is None else rates_under(base, rule)
        rates = self._base_rates[index]
        return rates if rates is None or not rates.tiers else self.rates_of(index, total_tokens)

    def _count_output(self, request: Request, index: int) -> int | None:
        """Output tokens: reported where the log has them, else counted from the response."""
        if request.usage is not None and request.usage.output_tokens is not None:
            return request.usage.output_tokens
        if request.output is None:
            return None
        numbers = self._outputs[index].tolist()
        opening = len(CHAT_FORMATS[self.model.chat_format].reply)
        return max(0, sum(self.table[n].tokens for n in numbers) - opening)
