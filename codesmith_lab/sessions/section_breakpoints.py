"""What an explicit cache would ask for a session's sections: prices, lives, and the best plan."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from codesmith_lab.billing.models import resolve_model
from codesmith_lab.billing.prices import Rates, default_price_date, rates_for
from codesmith_lab.errors import LabError
from codesmith_lab.prompt.ordering.breakpoints import CacheLife, ExplicitPrices
from codesmith_lab.sessions.turns import TurnRunner

__all__ = ["LIVES_S", "explicit_prices", "model_prices", "pauses_s"]

LIVES_S = {"1h": 3600.0, "5m": 300.0}
"""Lives of entries in seconds, the longest first (Anthropic's prompt caching documentation)."""


def pauses_s(runner: TurnRunner) -> list[float | None]:
    """Seconds between each request and the one before it in its cache, start to start.

    None where a time is unknown. The first request of a cache has no pause.
    """
    newest: dict[str, float | None] = {}
    pauses: list[float | None] = []
    for request in runner.session.requests:
        scope = runner.scope_of(request)
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
