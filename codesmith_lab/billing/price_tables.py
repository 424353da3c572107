"""Price rows as plain frozen records, from the catalog and from the own table."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["PriceRow", "Prices", "RateTier", "catalog_rows", "own_rows", "own_table"]

Hours = tuple[tuple[time, time], ...]


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per 1M tokens; see `Rates` for the fields."""

    input: Decimal
    cache_read: Decimal
    cache_write_5m: Decimal | None
    cache_write_1h: Decimal | None
    output: Decimal


@dataclass(frozen=True, slots=True)
class RateTier:
    """USD per 1M tokens for all tokens of a request of more than `above_tokens` input tokens."""

    above_tokens: int
    input: Decimal
    cache_read: Decimal
    cache_write_5m: Decimal | None
    cache_write_1h: Decimal | None
    output: Decimal


@dataclass(frozen=True, slots=True)
class PriceRow:
    """Prices, and when they hold.

    starts, until: UTC; the end is exclusive, None is open.
    hours: UTC hours of the day, end exclusive, over midnight where end < start; () is all day.
    weekdays: 0 is Monday; None is every day.
    prices: None says that no price is known for this time.
    """

    prices: Prices | None
    source: str
    starts: datetime | None = None
    until: datetime | None = None
    hours: Hours = ()
    weekdays: frozenset[int] | None = None
    doubts: str = ""
    period: str = ""
    tiers: tuple[RateTier, ...] = ()

    def holds(self, moment: datetime) -> bool:
        """Whether this row holds at `moment` (UTC)."""
        if self.starts is not None and moment < self.starts:
            return False
        if self.until is not None and moment >= self.until:
            return False
        if self.weekdays is not None and moment.weekday() not in self.weekdays:
            return False
        if not self.hours:
            return True
        clock = moment.time()
        return any(
            start <= clock < end if start <= end else clock >= start or clock < end
            for start, end in self.hours
        )


@dataclass(frozen=True, slots=True)
class OwnTable:
    """The override table: when it was checked, and its rows by price reference."""

    checked: date
    rows: Mapping[str, tuple[PriceRow, ...]]


@cache
def own_table() -> OwnTable:
    """`price_overrides.toml`, read once."""
    text = resources.files("codesmith_lab.billing").joinpath("price_overrides.toml")
    data = tomllib.loads(text.read_text("utf-8"))
    weekdays = frozenset(data["peak"]["weekdays"])
    hours = tuple((time(start), time(end)) for start, end in data["peak"]["hours_utc"])
    rows: dict[str, list[PriceRow]] = {}
    for entry in data["row"]:
        for ref in entry["models"]:
            rows.setdefault(ref, []).extend(_own(entry, ref, weekdays, hours))
    return OwnTable(data["checked"], {ref: tuple(found) for ref, found in rows.items()})


def own_rows(price_ref: str) -> tuple[PriceRow, ...]:
    """Rows of the own table for a "provider:model" reference."""
    return own_table().rows.get(price_ref, ())


def _own(
    entry: Mapping[str, Any], ref: str, weekdays: frozenset[int], hours: Hours
) -> Iterable[PriceRow]:
    provider = ref.partition(":")[0]
    peak = entry.get("peak")
    starts, until = entry.get("from"), entry.get("until")
    source = f"{entry['source']}, checked {entry['checked']}"
    doubts = entry.get("doubts", "")
    base = _decimals(entry)
    yield PriceRow(
        _complete(provider, base) if base else None,
        source,
        starts,
        until,
        doubts=doubts,
        period="off-peak" if peak else "",
    )
    if peak:
        prices = _complete(provider, _decimals(peak))
        yield PriceRow(prices, source, starts, until, hours, weekdays, doubts, "peak")


def _decimals(entry: Mapping[str, Any]) -> dict[str, Decimal]:
    return {key: Decimal(entry[key]) for key in Prices.__slots__ if key in entry}


def _complete(provider: str, known: Mapping[str, Decimal]) -> Prices | None:
    """Prices from what is listed, completed by the provider's own rules; None if not enough.

    OpenAI and DeepSeek charge nothing extra for writes, and OpenAI bills cached tokens of a
    model without a cached price as input. Anthropic's 1-hour write costs twice the input.
    """
    plain, output = known.get("input"), known.get("output")
    read = known.get("cache_read")
    short, long = known.get("cache_write_5m"), known.get("cache_write_1h")
    if plain is None or output is None:
        return None
    if provider in ("openai", "alibaba", "mistral"):
        # For the last two the cache rule says which share of the input a read costs.
        read = plain if read is None else read
    if provider in ("openai", "deepseek"):
        short = plain if short is None else short
        long = short if long is None else long
    if provider == "anthropic" and short is not None and long is None:
        long = 2 * plain
    return None if read is None else Prices(plain, read, short, long, output)


# Catalog attribute of each price.
_CATALOG_KEYS = {
    "input": "input_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_5m": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
}


@cache
def catalog_rows(provider: str, model: str) -> tuple[PriceRow, ...]:
    """The catalog's rows for a model, later ones winning; () if it knows none.

    Imports genai-prices at the first call (a fifth of a second).
    """
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import ModelPrice

    found = next((p for p in get_snapshot().providers if p.id == provider), None)
    entry = None if found is None else found.find_model(model)
    if entry is None:
        return ()
    # The snapshot declares no types for these attributes.
    rows: Any = entry.prices
    if isinstance(rows, ModelPrice):
        return (_catalog_row(provider, entry.id, rows, None),)
    return tuple(_catalog_row(provider, entry.id, row.prices, row.constraint) for row in rows)


def _catalog_row(provider: str, model: str, listed: Any, constraint: Any) -> PriceRow:
    values = {
        name: value
        for name, key in _CATALOG_KEYS.items()
        if (value := listed.__dict__.get(key)) is not None
    }
    base = {name: getattr(value, "base", value) for name, value in values.items()}
    edges = sorted({tier.start for v in values.values() for tier in getattr(v, "tiers", ())})
    tiers = []
    for edge in edges:
        prices = _complete(provider, {name: _above(v, edge) for name, v in values.items()})
        if prices is not None:
            tiers.append(RateTier(edge, *(getattr(prices, name) for name in Prices.__slots__)))
    starts: datetime | None = None
    hours: Hours = ()
    day = getattr(constraint, "start_date", None)
    if day is not None:
        starts = datetime.combine(day, time(0), UTC)
    elif constraint is not None:
        hours = ((_utc(constraint.start_time), _utc(constraint.end_time)),)
    return PriceRow(
        _complete(provider, base),
        f"genai-prices, {provider} {model}",
        starts,
        hours=hours,
        tiers=tuple(tiers),
    )


def _above(value: Any, edge: int) -> Decimal:
    """The price of a request just above `edge` input tokens."""
    price: Decimal = getattr(value, "base", value)
    for tier in getattr(value, "tiers", ()):
        if tier.start <= edge:
            price = tier.price
    return price


def _utc(clock: time) -> time:
    """A catalog's time of day as naive UTC; naive ones are UTC already."""
    if clock.tzinfo is None:
        return clock
    return datetime.combine(date(1970, 1, 1), clock).astimezone(UTC).time()
