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

from codesmith_lab.billing.models import ModelInfo
from codesmith_lab.billing.prices import Rates, cost_usd, rates_for
from codesmith_lab.billing.tokens import Tokenizer, get_tokenizer, joint_delta, run_counts
from codesmith_lab.cache.causes import Causes, split_causes
from codesmith_lab.cache.engine import Entry, Match, PrefixIndex
from codesmith_lab.cache.pieces import PieceTable, Prompt
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.chat_format import CHAT_FORMATS
from codesmith_lab.sessions.records import Request, Session

__all__ = ["LINES", "Checkpoint", "Turn", "TurnRunner"]

LINES = ("cache_read", "input", "cache_write_5m", "cache_write_1h")
"""Price lines of the input, in the order in which tables show them."""

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One request of a run: its prompt, what the cache did with it, and its bill.

    lines: input tokens by price line, summing to the prompt's tokens exactly.
    cost_usd: input and output; cause_costs_usd: the input's cost by cause. None without a price.
    repaid_usd: what the repaid tokens cost above a cache read.
    parent: index of the best earlier request in the session, or None.
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


@dataclass(slots=True)
class Checkpoint:
    """Cache state and turns before turn `at`: where a replay starts."""

    at: int
    indexes: dict[str, PrefixIndex]
    turns: list[Turn]


class TurnRunner:
    """Plays a session under one model's tokenizer, cache rule and prices.

    Parameters
    ----------
    session: the requests, in time order.
    model: tokenizer, chat format and price of every request.
    rule: the cache rule.
    scope: names the cache a request belongs to (its model as sent, as a rule).
    price_date: day whose prices hold for requests without a time.
    """

    def __init__(
        self,
        session: Session,
        model: ModelInfo,
        rule: CacheRule,
        scope: Callable[[Request], str],
        price_date: date,
    ) -> None:
        self.session = session
        self.model = model
        self.rule = rule
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
        self._prompts: list[Prompt] = [self.table.prompt(r.blocks) for r in session.requests]
        self._outputs: list[npt.NDArray[np.int32]] = [
            self.table.output_numbers(r.output or ()) for r in session.requests
        ]
        self._output_tokens = [self._count_output(r, i) for i, r in enumerate(session.requests)]

    def recount(self) -> None:
        """Count every joined run of text whole, instead of block by block with joints.

        Afterwards token counts are those of the joined text, exactly, and stay so for these texts.
        """
        self._prompts = [self.table.exact(prompt) for prompt in self._prompts]

    def prompt_of(self, index: int, blocks: Sequence[Block] | None, exact: bool = False) -> Prompt:
        """The prompt of a request, with other blocks where given."""
        if blocks is None:
            return self._prompts[index]
        prompt = self.table.vary(self._prompts[index], blocks)
        return self.table.exact(prompt) if exact else prompt

    def checkpoint(self, at: int, known: Sequence[Turn] = ()) -> Checkpoint:
        """Play the session as it is up to turn `at` (exclusive).

        `known` are turns of the unedited session, kept as they are: what was worked out for them
        stays good.
        """
        start = Checkpoint(0, {}, [])
        self._play(start, at, {}, exact=False, settings={})
        start.at = at
        start.turns[: len(known)] = known[:at]
        return start

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
        state = Checkpoint(0, {}, [])
        if start is not None:
            forks = {scope: index.fork() for scope, index in start.indexes.items()}
            state = Checkpoint(start.at, forks, list(start.turns))
        self._play(state, len(self.session.requests), blocks or {}, exact, settings or {})
        return state.turns

    def scope_of(self, request: Request) -> str:
        """The cache a request belongs to."""
        return self._scope(request)

    def output_of(self, index: int) -> npt.NDArray[np.int32]:
        """Piece numbers of a request's response; empty where the log holds none."""
        return self._outputs[index]

    def rates_of(self, index: int, total_tokens: int) -> Rates | None:
        """The prices of a request with that many input tokens, or None."""
        return self._rates(self.session.requests[index].time, total_tokens)

    def reported_usd(self, index: int) -> Decimal | None:
        """The bill from a request's reported counters; None without counters or prices."""
        request = self.session.requests[index]
        usage = request.usage
        if usage is None or usage.cache_read_tokens is None:
            return None
        rates = self._rates(request.time, usage.input_tokens)
        if rates is None:
            return None
        written = (usage.cache_write_5m_tokens or 0, usage.cache_write_1h_tokens or 0)
        plain = usage.input_tokens - usage.cache_read_tokens - sum(written)
        return (
            cost_usd(usage.cache_read_tokens, rates.cache_read)
            + cost_usd(plain, rates.input)
            + cost_usd(written[0], rates.cache_write_5m)
            + cost_usd(written[1], rates.cache_write_1h)
            + cost_usd(usage.output_tokens or 0, rates.output)
        )

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
            scope = self._scope(request)
            index = state.indexes.get(scope)
            if index is None:
                index = state.indexes[scope] = PrefixIndex(self.table, self.rule)
            prompt = self.prompt_of(i, blocks.get(i), exact)
            time_s = None if request.time is None else request.time.timestamp()
            lifetime_s = self.rule.lifetime(self.model.name, request.settings)
            match = index.add(i, prompt, self._outputs[i], time_s, lifetime_s)
            parent = None if match.parent is None else index.entries[match.parent]
            state.turns.append(self._turn(request, prompt, match, parent, state.turns))

    def _turn(
        self,
        request: Request,
        prompt: Prompt,
        match: Match,
        parent: Entry | None,
        turns: Sequence[Turn],
    ) -> Turn:
        parent_prompt = None if match.parent is None else turns[match.parent].prompt
        causes = split_causes(self.table, prompt, match, parent, parent_prompt)
        lines = (match.hit_tokens, prompt.total_tokens - match.hit_tokens, 0, 0)
        output_tokens = self._output_tokens[request.index]
        rates = self._rates(request.time, prompt.total_tokens)
        if rates is None:
            money: tuple[Decimal | None, ...] = (None, None, None)
            by_cause = None
        else:
            read = cost_usd(1, rates.cache_read)
            full = cost_usd(1, rates.input)
            by_cause = (causes.tokens[0] * read, *(t * full for t in causes.tokens[1:]))
            output = cost_usd(output_tokens or 0, rates.output)
            money = (sum(by_cause, output), output, causes.tokens[2] * (full - read))
        return Turn(
            request.index,
            request.model,
            prompt,
            match,
            causes,
            match.parent,
            parent_prompt,
            lines,
            output_tokens,
            rates,
            money[0],
            money[1],
            by_cause,
            money[2],
        )

    def _rates(self, when: datetime | None, total_tokens: int) -> Rates | None:
        rates = rates_for(self.model, when, self._price_date)
        return None if rates is None else rates.at(total_tokens)

    def _count_output(self, request: Request, index: int) -> int | None:
        """Output tokens: reported where the log has them, else counted from the response."""
        if request.usage is not None and request.usage.output_tokens is not None:
            return request.usage.output_tokens
        if request.output is None:
            return None
        numbers = self._outputs[index].tolist()
        opening = len(CHAT_FORMATS[self.model.chat_format].reply)
        return max(0, sum(self.table[n].tokens for n in numbers) - opening)
