"""Token prices: a kept catalog, read once, with an own dated table over it.

The catalog is genai-prices' bundled snapshot; nothing is fetched. Where it is known to be wrong
or cannot express a rule (DeepSeek's peak hours by weekday), `price_overrides.toml` wins. All
money is Decimal and exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from functools import cache, lru_cache

from codesmith_lab.billing.models import ModelInfo
from codesmith_lab.billing.price_tables import PriceRow, RateTier, catalog_rows, own_rows, own_table
from codesmith_lab.errors import LabError

__all__ = [
    "RateTier",
    "Rates",
    "catalog_version",
    "cost_usd",
    "default_price_date",
    "hit_to_miss_ratio",
    "rates_for",
    "why_no_price",
]

# Wide enough for any token count times any price without rounding.
_EXACT = Context(prec=60)
# Midday: outside DeepSeek's peak hours, inside the standard hours of its V3 prices.
_NO_TIME = time(12, 0)


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices in USD per 1M tokens of one model on one day.

    price_date: the UTC day whose prices these are.
    source: where the prices come from, with known doubts.
    cache_write_5m, cache_write_1h: equal `input` where the provider asks nothing extra for a
        write (a written token is a plain miss); None where no price is known.
    period: "peak" or "off-peak" where prices depend on the hour, else "".
    tiers: dearer prices for long prompts; see `at`.
    writes_on_top: a write is a fee for storage beside the input's price, not in its place.
    """

    model: str
    provider: str
    price_date: date
    source: str
    input: Decimal
    cache_read: Decimal
    cache_write_5m: Decimal | None
    cache_write_1h: Decimal | None
    output: Decimal
    period: str = ""
    tiers: tuple[RateTier, ...] = ()
    writes_on_top: bool = False

    def at(self, input_tokens: int) -> Rates:
        """Prices for a request with that many input tokens, cached ones included.

        Above a tier's threshold every token of the request has the tier's price.
        """
        found = None
        for tier in self.tiers:
            if input_tokens > tier.above_tokens:
                found = tier
        return self if found is None else _apply_tier(self, found)


@lru_cache(maxsize=1024)
def _apply_tier(rates: Rates, tier: RateTier) -> Rates:
    return replace(
        rates,
        input=tier.input,
        cache_read=tier.cache_read,
        cache_write_5m=tier.cache_write_5m,
        cache_write_1h=tier.cache_write_1h,
        output=tier.output,
        source=f"{rates.source}; prompt above {tier.above_tokens:,} tokens",
        tiers=(),
    )


def rates_for(model: ModelInfo, when: datetime | None, default_date: date) -> Rates | None:
    """Prices of `model` at `when`, or None where no complete price is known.

    when: start of the request; a naive time counts as UTC. None takes `default_date`, off-peak;
        for a model that was retired by then, the last price it had and that price's last day.
    """
    if model.price_ref is None:
        return None
    moment = _moment(when, default_date)
    row = _row_at(model.price_ref, moment)
    if when is None and row is not None and row.prices is None:
        row = _last_priced(model.price_ref)
    if row is None:
        return None
    day = moment.date() if row.until is None or moment < row.until else row.until.date()
    return _rates(model.price_ref, row, day)


def why_no_price(model: ModelInfo, when: datetime | None, default_date: date) -> str:
    """Why `rates_for` gives None for the same arguments, in words; "" where it gives prices."""
    if rates_for(model, when, default_date) is not None:
        return ""
    ref = model.price_ref
    if ref is None or not (own_rows(ref) or _catalog(ref)):
        return f"no price of {model.name} is known"
    moment = _moment(when, default_date)
    row = _row_at(ref, moment)
    reason = f": {row.source}" if row is not None and row.prices is None else ""
    return f"no price of {model.name} is known for {moment.date()}{reason}"


def _moment(when: datetime | None, default_date: date) -> datetime:
    if when is None:
        return datetime.combine(default_date, _NO_TIME, UTC)
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def _row_at(price_ref: str, moment: datetime) -> PriceRow | None:
    """The last row that holds at `moment`, the own table's before the catalog's.

    Only where the own table has none is the catalog looked at: it takes 25 MB and a fifth of a
    second to load.
    """
    own = _last_holding(own_rows(price_ref), moment)
    return own if own is not None else _last_holding(_catalog(price_ref), moment)


def _last_holding(rows: tuple[PriceRow, ...], moment: datetime) -> PriceRow | None:
    return next((row for row in reversed(rows) if row.holds(moment)), None)


def _last_priced(price_ref: str) -> PriceRow | None:
    priced = [row for row in own_rows(price_ref) if row.prices is not None]
    priced = priced or [row for row in _catalog(price_ref) if row.prices is not None]
    return priced[-1] if priced else None


def _catalog(price_ref: str) -> tuple[PriceRow, ...]:
    provider, _, name = price_ref.partition(":")
    return catalog_rows(provider, name)


@lru_cache(maxsize=4096)
def _rates(price_ref: str, row: PriceRow, day: date) -> Rates | None:
    prices = row.prices
    if prices is None:
        return None
    provider, _, name = price_ref.partition(":")
    source = f"{row.source} ({row.doubts})" if row.doubts else row.source
    return Rates(
        name,
        provider,
        day,
        source,
        prices.input,
        prices.cache_read,
        prices.cache_write_5m,
        prices.cache_write_1h,
        prices.output,
        row.period,
        row.tiers,
        # Gemini's cache is written at the input's price and then stored for a fee.
        "google" in (provider, name.partition("/")[0]),
    )


def cost_usd(tokens: int, price: Decimal | None) -> Decimal:
    """Exact cost in USD of `tokens` at `price` USD per 1M tokens.

    Zero tokens cost nothing at any price. Raises LabError for tokens without a price.
    """
    if price is None:
        if tokens == 0:
            return Decimal(0)
        raise LabError(f"{tokens} tokens have no known price; leave them out of the bill")
    return _EXACT.multiply(tokens, _per_token(price))


@lru_cache(maxsize=1024)
def _per_token(price: Decimal) -> Decimal:
    return _EXACT.scaleb(price, -6)


def hit_to_miss_ratio(rates: Rates) -> Decimal | None:
    """How many times a missed input token costs a cached one; None when hits are free."""
    return rates.input / rates.cache_read if rates.cache_read else None


def default_price_date() -> date:
    """The day whose prices hold for requests without a time: when the own table was checked."""
    return own_table().checked


@cache
def catalog_version() -> str:
    """The price data in use, e.g. "genai-prices 0.2.3 + own table checked 2026-11-29"."""
    from importlib.metadata import version

    return f"genai-prices {version('genai-prices')} + own table checked {own_table().checked}"
