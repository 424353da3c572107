"""From token counts to dollars: a predicted bill by cause and line, a reported one by counter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from codesmith_lab.billing.prices import Rates, cost_usd
from codesmith_lab.billing.usage import Usage
from codesmith_lab.cache.match import HIT, REPAID
from codesmith_lab.cache.rules import CacheRule

__all__ = [
    "InputBill",
    "bill_input",
    "bill_plain",
    "bill_usage",
    "rates_under",
    "storage_usd",
]

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class InputBill:
    """The input of one request in USD, by cause.

    repaid_usd: what the repaid tokens cost above a cache read.
    """

    cause_costs_usd: tuple[Decimal, ...]
    repaid_usd: Decimal


def bill_input(rows: Sequence[tuple[int, int, int, int]], rates: Rates) -> InputBill | None:
    """Cost of tokens by cause (rows) and price line (read, input, 5-minute and 1-hour write).

    None when tokens stand in a line that has no price.
    """
    prices = (rates.cache_read, rates.input, rates.cache_write_5m, rates.cache_write_1h)
    costs: list[Decimal] = []
    for row in rows:
        cost = _ZERO
        for tokens, price in zip(row, prices, strict=True):
            if tokens:
                if price is None:
                    return None
                cost += cost_usd(tokens, price)
        costs.append(cost)
    repaid = costs[REPAID]
    if repaid:
        repaid -= cost_usd(sum(rows[REPAID]), rates.cache_read)
    return InputBill(tuple(costs), repaid)


def bill_plain(tokens: Sequence[int], rates: Rates) -> InputBill:
    """The same for a request that writes nothing: its hits are read, all else is plain input."""
    read, plain = rates.cache_read, rates.input
    costs = [cost_usd(n, plain) if n else _ZERO for n in tokens]
    costs[HIT] = cost_usd(tokens[HIT], read) if tokens[HIT] else _ZERO
    repaid = costs[REPAID]
    if repaid:
        repaid -= cost_usd(tokens[REPAID], read)
    return InputBill(tuple(costs), repaid)


def bill_usage(usage: Usage, rates: Rates) -> Decimal | None:
    """The bill from reported counters, output included; None without counters of the cache.

    Where reads and writes together exceed the input, some tokens are counted as both: what is
    neither is then the input without the greater of the two, and both lines are billed. With
    `rates.writes_on_top` a write is a fee for storage, and its tokens are billed as input too.
    """
    read = usage.cache_read_tokens
    short, long = usage.cache_write_5m_tokens or 0, usage.cache_write_1h_tokens or 0
    if read is None:
        if not short and not long:
            return None
        read = 0
    taken = read if rates.writes_on_top else read + short + long
    if taken > usage.input_tokens:
        taken = max(read, short + long)
    if (short and rates.cache_write_5m is None) or (long and rates.cache_write_1h is None):
        return None
    return (
        cost_usd(read, rates.cache_read)
        + cost_usd(max(0, usage.input_tokens - taken), rates.input)
        + cost_usd(short, rates.cache_write_5m)
        + cost_usd(long, rates.cache_write_1h)
        + cost_usd(usage.output_tokens or 0, rates.output)
    )


def storage_usd(tokens: int, seconds: float, usd_per_mtok_hour: Decimal) -> Decimal:
    """Price of keeping that many tokens in a cache for so many seconds.

    Rounded to 12 decimal places: an hour has no finite decimal share of a second.
    """
    exact = Decimal(tokens) * usd_per_mtok_hour * Decimal(str(seconds)) / Decimal(3_600_000_000)
    return exact.quantize(Decimal("1e-12"))


@lru_cache(maxsize=1024)
def rates_under(rates: Rates, rule: CacheRule) -> Rates:
    """The prices as a rule has them: some providers' reads and writes are shares of the input."""
    read, write = rule.read_factor, rule.write_factor
    if read is None and write is None:
        return rates
    changed = rates
    if read is not None:
        changed = replace(changed, cache_read=rates.input * read)
    if write is not None:
        priced = rates.input * write
        changed = replace(changed, cache_write_5m=priced, cache_write_1h=priced)
    return changed
