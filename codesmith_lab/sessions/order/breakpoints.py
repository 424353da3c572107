"""What an explicit cache would ask for a session's sections: prices, lives, and the best plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from codesmith_lab.billing.models import resolve_model
from codesmith_lab.billing.prices import Rates, default_price_date, rates_for
from codesmith_lab.errors import LabError
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.ordering.breakpoints import BreakpointPlan, CacheLife, ExplicitPrices
from codesmith_lab.sessions.order.history import HISTORY, TOOLS
from codesmith_lab.sessions.order.replay import InputBill, bill_turns, order_blocks
from codesmith_lab.sessions.turns import TurnRunner

__all__ = ["LIVES_S", "explicit_prices", "model_prices", "pauses_s", "replay_plan"]

LIVES_S = {"1h": 3600.0, "5m": 300.0}
"""Lives of entries in seconds, the longest first (Anthropic's prompt caching documentation)."""


def pauses_s(runner: TurnRunner) -> list[float | None]:
    """Seconds between each request and the one before it in its cache, start to start.

    None where a time is unknown. The first request of a cache has no pause.
    """
    newest: dict[str, float | None] = {}
    pauses: list[float | None] = []
    for request in runner.session.requests:
        scope = runner.cache_of(request.index)[1]
        now = None if request.time is None else request.time.timestamp()
        if scope in newest:
            was = newest[scope]
            pauses.append(None if now is None or was is None else now - was)
        newest[scope] = now
    return pauses


def explicit_prices(
    rates: Rates, pauses: Sequence[float | None], minimum_tokens: int = 1024
) -> ExplicitPrices:
    """Prices with the share of requests that come within each life; unknown pauses count as live.

    Raises LabError where no write price is known.
    """
    lives = []
    for name, write in (("1h", rates.cache_write_1h), ("5m", rates.cache_write_5m)):
        if write is None:
            continue
        alive = sum(pause is None or pause <= LIVES_S[name] for pause in pauses)
        lives.append(CacheLife(name, Decimal(write), alive / len(pauses) if pauses else 1.0))
    if not lives:
        raise LabError(
            f"no price of cache writes is known for {rates.model!r}, so breakpoints cannot be "
            "weighed; choose a model with explicit caching"
        )
    return ExplicitPrices(
        Decimal(rates.input), Decimal(rates.cache_read), tuple(lives), minimum_tokens
    )


def model_prices(
    model: str, pauses: Sequence[float | None], minimum_tokens: int = 1024
) -> ExplicitPrices:
    """The same for a model by name, on the day of the price table.

    Raises UnknownModelError for an unknown name, LabError for a model without prices.
    """
    rates = rates_for(resolve_model(model), None, default_price_date())
    if rates is None:
        raise LabError(f"model {model!r} has no known price; choose one that has")
    return explicit_prices(rates, pauses, minimum_tokens)


def replay_plan(
    runner: TurnRunner, plan: BreakpointPlan, blocks: Mapping[int, Sequence[Block]] | None = None
) -> InputBill:
    """The session with the plan's order and breakpoints, through the cache engine.

    The runner's model must be one with explicit caching. Every section is sent as a content block
    of its own, as a marker needs one; markers that the log had are replaced.
    """
    ordered = order_blocks(runner, plan.names, blocks)
    settings = {}
    for request in runner.session.requests:
        own = ordered.get(request.index, request.blocks)
        markers = [
            (at, mark.life)
            for mark in plan.breakpoints
            if (at := _marked_block(own, mark.after)) is not None
        ]
        settings[request.index] = {**request.settings, "_markers": tuple(markers)}
    return bill_turns(runner.run(ordered, exact=True, settings=settings))


def _marked_block(blocks: Sequence[Block], after: str) -> int | None:
    """The block that carries the marker behind a section, the tools or everything."""
    if after == HISTORY:
        return len(blocks) - 1
    at = [
        i
        for i, block in enumerate(blocks)
        if (block.kind == "tool" if after == TOOLS else block.name == after)
        and block.kind in ("tool", "section")
    ]
    return at[-1] if at else None
