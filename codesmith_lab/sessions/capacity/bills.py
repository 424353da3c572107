"""What a session with capacity interventions costs, as a whole and each intervention by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from codesmith_lab.billing.prices import Rates, cost_usd
from codesmith_lab.capacity.break_even import BreakEven
from codesmith_lab.capacity.controller import Action
from codesmith_lab.capacity.simulation import Step
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.capacity.rewrites import (
    InterventionRules,
    Rewrite,
    RewrittenHistory,
)
from codesmith_lab.sessions.turns import Checkpoint, Turn, TurnRunner

__all__ = ["ControlledSession", "InterventionCost", "bill_history"]

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True, eq=False)
class InterventionCost:
    """One intervention, against the same session without it (simulated).

    request: index of the first request it changes. before_tokens, after_tokens: that request's
        input without and with it. repaid_tokens: tokens more that this request pays as misses.
    saved_tokens: input tokens fewer in it and all later requests. summary_usd: what the model that
        writes the summary costs. net_usd: what the session costs more (negative: less) for it.
    pays_back_after: requests until it has cost no more than none, counted from `request`; None is
        never in this session. Money is None without prices, and so is `pays_back_after`.
    formula: the same by the break-even formula, which knows prices and lengths and not what the
    session did later; None where nothing cached was given up.
    """

    request: int
    action: Action
    before_tokens: int
    after_tokens: int
    repaid_tokens: int
    saved_tokens: int
    summary_usd: Decimal | None
    net_usd: Decimal | None
    pays_back_after: int | None
    formula: BreakEven | None

    def sentence(self) -> str:
        """The answer in one sentence; turns count from 1."""
        verb = {
            "targeted_context_refresh": "compacting",
            "verify_and_replan": "replanning",
            "verify_with_tool_replay": "replaying a tool call",
        }[self.action]
        where = f"{verb} at turn {self.request + 1}"
        if self.net_usd is None:
            return f"Without prices, {where} saves {self.saved_tokens:,} tokens."
        if self.pays_back_after is None:
            return f"At these prices, {where} never pays back in this session."
        turns = "turn" if self.pays_back_after == 1 else "turns"
        return f"At these prices, {where} pays back after {self.pays_back_after} {turns}."


@dataclass(frozen=True, eq=False)
class ControlledSession:
    """A session with interventions.

    steps: every observation and what came of it. turns: every request as it would be sent, and
    its bill. cost_usd: of the turns and of the summaries; None without prices. off_usd: of the
    session as recorded. superseded: requests of whose history the recorded session had made
    something else, so that earlier interventions are void from there. count: of interventions.
    """

    steps: tuple[Step, ...]
    turns: tuple[Turn, ...]
    cost_usd: Decimal | None
    off_usd: Decimal | None
    superseded: tuple[int, ...]
    count: int
    _history: RewrittenHistory
    _off: tuple[Turn, ...]
    _summaries: tuple[Decimal | None, ...]

    @cached_property
    def interventions(self) -> tuple[InterventionCost, ...]:
        """Each intervention with its cost, against the session with the earlier ones only."""
        return tuple(self.each())

    @property
    def input_tokens(self) -> int:
        """Input tokens of all requests."""
        return sum(turn.prompt.total_tokens for turn in self.turns)

    def each(self) -> Iterator[InterventionCost]:
        """The same one by one, for callers that cannot wait: the first time each takes a replay,
        from its request on."""
        at = 0
        while at < self.count:
            if at == len(self._known):
                self._known.append(next(self._worker))
            yield self._known[at]
            at += 1

    @cached_property
    def _known(self) -> list[InterventionCost]:
        return []

    @cached_property
    def _worker(self) -> Iterator[InterventionCost]:
        return self._work()

    def _work(self) -> Iterator[InterventionCost]:
        runner, rewrites = self._history.runner, self._history.rewrites
        without: Sequence[Turn] = self._off
        start: Checkpoint | None = None
        blocks: dict[int, tuple[Block, ...]] = {}
        for k, rewrite in enumerate(rewrites):
            # Up to here the session went as without this intervention.
            start = runner.checkpoint(rewrite.request, start=start, blocks=blocks)
            blocks = self._history.upto(k + 1).changed(rewrites[0].request)
            last = k + 1 == len(rewrites)
            with_it = self.turns if last else runner.run(blocks, start, exact=True)
            yield _cost(rewrite, without, with_it, self._summaries[k])
            without = with_it


def bill_history(
    history: RewrittenHistory, steps: Sequence[Step], rules: InterventionRules
) -> ControlledSession:
    """The bill of a session with all its rewrites, and without any."""
    runner, rewrites = history.runner, history.rewrites
    off = turns = tuple(runner.run())
    superseded = tuple(history.superseded)
    if rewrites:
        whole = history.upto(len(rewrites))
        blocks = whole.changed(rewrites[0].request)
        start = runner.checkpoint(rewrites[0].request, off)
        turns = tuple(runner.run(blocks, start, exact=True))
    summaries = tuple(_summary_usd(runner, rewrite, rules) for rewrite in rewrites)
    total = _total(turns)
    if total is not None:
        total += sum((usd for usd in summaries if usd is not None), ZERO)
    return ControlledSession(
        tuple(steps),
        turns,
        total,
        _total(off),
        superseded,
        len(rewrites),
        history,
        off,
        summaries,
    )


def _total(turns: Sequence[Turn]) -> Decimal | None:
    costs = [turn.cost_usd for turn in turns if turn.cost_usd is not None]
    return sum(costs, ZERO) if len(costs) == len(turns) else None


def _cost(
    rewrite: Rewrite, without: Sequence[Turn], with_it: Sequence[Turn], summary: Decimal | None
) -> InterventionCost:
    first = rewrite.request
    pairs = list(zip(without[first:], with_it[first:], strict=True))
    before, after = pairs[0]
    missed = [t.prompt.total_tokens - t.match.hit_tokens for t in (before, after)]
    saved = sum(a.prompt.total_tokens - b.prompt.total_tokens for a, b in pairs)
    net, pays_back = summary, None
    for number, (a, b) in enumerate(pairs, start=1):
        if net is None or a.cost_usd is None or b.cost_usd is None:
            net, pays_back = None, None
            break
        net += b.cost_usd - a.cost_usd
        if net > 0:
            pays_back = None
        elif pays_back is None:
            pays_back = number
    return InterventionCost(
        first,
        rewrite.action,
        before.prompt.total_tokens,
        after.prompt.total_tokens,
        max(0, missed[1] - missed[0]),
        saved,
        summary,
        net,
        pays_back,
        _formula(before, after, summary),
    )


def _formula(before: Turn, after: Turn, summary: Decimal | None) -> BreakEven | None:
    """The break-even formula with a request's own tokens and prices.

    H is what was read from the cache before and is no more; what now stands for it is what the
    request misses beyond the tokens that are new either way.
    """
    history = before.match.hit_tokens - after.match.hit_tokens
    missed = [t.prompt.total_tokens - t.match.hit_tokens for t in (before, after)]
    remains = missed[1] - missed[0]
    rates = after.rates
    if summary is None or rates is None or not rates.cache_read or not 0 <= remains <= history:
        return None
    if history == 0:
        return None
    ratio = float(_miss_price(after, rates) / rates.cache_read)
    in_hits = float(summary / cost_usd(1, rates.cache_read))
    return BreakEven(history, remains / history, max(1.0, ratio), 0.0, in_hits)


def _miss_price(turn: Turn, rates: Rates) -> Decimal:
    """What a token that is not read from the cache costs on a turn, writes into the cache included
    (USD a million)."""
    prices = (rates.input, rates.cache_write_5m, rates.cache_write_1h)
    missed = sum(turn.lines[1:])
    if not missed:
        return rates.input
    pairs = zip(turn.lines[1:], prices, strict=True)
    return sum((n * (price or rates.input) for n, price in pairs), ZERO) / missed


def _summary_usd(runner: TurnRunner, rewrite: Rewrite, rules: InterventionRules) -> Decimal | None:
    """What the model that writes a summary costs at the request's prices."""
    read = _tokens(runner, [block for message in rewrite.replaced for block in message])
    written = _tokens(runner, rewrite.summary)
    rates = runner.rates_of(rewrite.request, read)
    if rates is None:
        return None
    if rules.summary_call == "none" or not rewrite.summary:
        return ZERO
    price = rates.cache_read if rules.summary_call == "cached" else rates.input
    return cost_usd(read, price) + cost_usd(written, rates.output)


def _tokens(runner: TurnRunner, blocks: Sequence[Block]) -> int:
    """Tokens of some messages, with their framing."""
    return sum(int(runner.table[n].tokens) for n in runner.table.output_numbers(blocks).tolist())
