"""The capacity controller let loose on a session, and billed.

The loop is closed: what an intervention does to the history changes the tokens, the tool calls and
the references that the controller sees next. The messages that follow stay as they were recorded,
since nobody knows what the model would have said instead; figures are simulated, and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from codesmith_lab.billing.prices import cost_usd
from codesmith_lab.capacity.break_even import BreakEven
from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.controller import Action
from codesmith_lab.capacity.simulation import Step, Trial
from codesmith_lab.errors import LabError
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.capacity_observations import (
    Numbering,
    Point,
    SessionObserver,
    runner_of,
)
from codesmith_lab.sessions.capacity_rewrites import (
    InterventionRules,
    Rewrite,
    rewrite_history,
    rewritten,
)
from codesmith_lab.sessions.records import Session
from codesmith_lab.sessions.turns import Checkpoint, Turn, TurnRunner

__all__ = [
    "ControlledSession",
    "InterventionCost",
    "compact_at",
    "replay_controller",
]

Blocks = dict[int, tuple[Block, ...]]
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


@dataclass(frozen=True, slots=True, eq=False)
class ControlledSession:
    """A session with interventions.

    steps: every observation and what came of it. turns: every request as it would be sent, and
    its bill. interventions: each with its cost. cost_usd: of the turns and of the summaries; None
    without prices. off_usd: of the session as recorded. superseded: requests of whose history the
    recorded session had made something else, so that earlier interventions are void from there.
    """

    steps: tuple[Step, ...]
    turns: tuple[Turn, ...]
    interventions: tuple[InterventionCost, ...]
    cost_usd: Decimal | None
    off_usd: Decimal | None
    superseded: tuple[int, ...]

    @property
    def input_tokens(self) -> int:
        """Input tokens of all requests."""
        return sum(turn.prompt.total_tokens for turn in self.turns)


class _History:
    """The rewrites in force, request by request."""

    def __init__(self, runner: TurnRunner) -> None:
        self.runner = runner
        self.rewrites: list[Rewrite] = []
        self.superseded: list[int] = []
        self._void = 0

    def blocks(self, request: int, upto: int | None = None) -> tuple[Block, ...] | None:
        """A request as the newest fitting rewrite has it; None where it is as recorded."""
        recorded = self.runner.session.requests[request].blocks
        for rewrite in reversed(self.rewrites[self._void : upto]):
            if rewrite.request <= request:
                return rewritten(recorded, rewrite)
        return None

    def enter(self, request: int) -> None:
        """From here on, rewrites that this request no longer fits are void."""
        live = sum(rewrite.request <= request for rewrite in self.rewrites)
        if live > self._void and self.blocks(request) is None:
            self._void = live
            self.superseded.append(request)


def replay_controller(
    source: Session | TurnRunner,
    config: CapacityConfig,
    rules: InterventionRules | None = None,
    turns: Numbering = "request",
    context_window_tokens: int | None = None,
    model: str | None = None,
) -> ControlledSession:
    """Run a session under a controller, carry its interventions out, and bill what comes of it.

    source: a session, or one laid out already under a model, its cache rule and prices. config:
        off or on. turns, context_window_tokens: see `SessionObserver`. model: whose rules and
        prices to apply; None follows the session.
    """
    runner = runner_of(source, model)
    rules = rules or InterventionRules()
    observer = SessionObserver(runner, config.profile_window, turns, context_window_tokens)
    history, trial, steps = _History(runner), Trial(config), []
    for point in observer.points():
        history.enter(point.request)
        steps.append(_step(point, history, trial, rules, observer))
    return _billed(runner, history, tuple(steps), rules)


def compact_at(
    source: Session | TurnRunner,
    request: int,
    action: Action = "targeted_context_refresh",
    rules: InterventionRules | None = None,
    model: str | None = None,
) -> ControlledSession:
    """One intervention before a request (0-based), whatever a controller would say.

    Raises LabError for a request that the session does not have, and where there is nothing to
    make shorter.
    """
    runner = runner_of(source, model)
    requests = runner.session.requests
    whole = isinstance(request, int) and not isinstance(request, bool)
    if not whole or not 0 <= request < len(requests):
        raise LabError(f"request is {request!r}; pass a whole number from 0 to {len(requests) - 1}")
    rules = rules or InterventionRules()
    history = _History(runner)
    blocks = requests[request].blocks
    rewrite = rewrite_history(action, request, blocks, blocks, rules, SessionObserver(runner))
    if rewrite is None:
        raise LabError(
            f"turn {request + 1} has no history that would become shorter; choose a later turn"
        )
    history.rewrites.append(rewrite)
    for later in range(request, len(requests)):
        history.enter(later)
    return _billed(runner, history, (), rules)


def _step(
    point: Point,
    history: _History,
    trial: Trial,
    rules: InterventionRules,
    observer: SessionObserver,
) -> Step:
    runner = history.runner
    recorded = runner.session.requests[point.request].blocks
    blocks = history.blocks(point.request)
    tokens = runner.prompt_of(point.request, blocks).total_tokens
    now = recorded if blocks is None else blocks

    def carry_out(action: Action) -> bool:
        rewrite = rewrite_history(action, point.request, recorded, now, rules, observer)
        if rewrite is not None:
            history.rewrites.append(rewrite)
        return rewrite is not None

    return trial.step(observer.observe(point, now, tokens), point.phase, carry_out=carry_out)


def _billed(
    runner: TurnRunner, history: _History, steps: tuple[Step, ...], rules: InterventionRules
) -> ControlledSession:
    """The bill with every intervention, and each one's own by leaving it and the later ones out."""
    off = runner.run()
    runs: list[Sequence[Turn]] = [off]
    rewrites = history.rewrites
    for count in range(1, len(rewrites) + 1):
        blocks = _blocks_of(runner, rewrites[:count])
        start: Checkpoint | None = None
        if blocks:
            start = runner.checkpoint(min(blocks))
        runs.append(runner.run(blocks, start, exact=True))
    summaries = [_summary_usd(runner, rewrite, rules) for rewrite in rewrites]
    costs = [
        _cost(rewrite, runs[k], runs[k + 1], summaries[k]) for k, rewrite in enumerate(rewrites)
    ]
    total = _total(runs[-1])
    if total is not None:
        total += sum((usd for usd in summaries if usd is not None), ZERO)
    return ControlledSession(
        steps, tuple(runs[-1]), tuple(costs), total, _total(off), tuple(history.superseded)
    )


def _blocks_of(runner: TurnRunner, rewrites: Sequence[Rewrite]) -> Blocks:
    """What each request sends under some rewrites, from the first of them on."""
    history = _History(runner)
    history.rewrites = list(rewrites)
    found: Blocks = {}
    for request in range(rewrites[0].request, len(runner.session.requests)):
        history.enter(request)
        blocks = history.blocks(request)
        if blocks is not None:
            found[request] = blocks
    return found


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
    ratio = float(rates.input / rates.cache_read)
    in_hits = float(summary / cost_usd(1, rates.cache_read))
    return BreakEven(history, remains / history, max(1.0, ratio), 0.0, in_hits)


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
