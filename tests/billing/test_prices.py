"""Prices by day and hour, and bills worked by hand."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, getcontext, localcontext

import pytest

from codesmith_lab.billing.models import known_models, resolve_model
from codesmith_lab.billing.price_tables import own_table
from codesmith_lab.billing.prices import (
    Rates,
    catalog_version,
    cost_usd,
    default_price_date,
    hit_to_miss_ratio,
    rates_for,
)
from codesmith_lab.errors import LabError

D = Decimal
DAY = date(2026, 11, 29)


def rates(name: str, *when: int) -> Rates:
    found = maybe(name, *when)
    assert found is not None
    return found


def maybe(name: str, *when: int) -> Rates | None:
    return rates_for(resolve_model(name), datetime(*when, tzinfo=UTC) if when else None, DAY)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("model", "when", "miss", "hit", "output", "period"),
    [
        # 03:00 UTC before there were peak hours: the catalog alone says 0.30.
        ("deepseek-v4-flash", (2026, 6, 1, 3), "0.14", "0.0028", "0.28", ""),
        ("deepseek-v4-flash", (2026, 8, 16, 15, 59), "0.14", "0.0028", "0.28", ""),
        ("deepseek-v4-flash", (2026, 8, 16, 16), "0.22", "0.007", "0.66", "off-peak"),
        ("deepseek-v4-flash", (2026, 8, 18, 7), "0.44", "0.014", "1.32", "peak"),
        ("deepseek-v4-flash", (2026, 9, 10, 3, 59), "0.44", "0.014", "1.32", "peak"),
        ("deepseek-v4-flash", (2026, 9, 10, 4), "0.15", "0.003", "0.60", "off-peak"),
        # A Sunday: the catalog alone says peak.
        ("deepseek-flash", (2026, 11, 29, 3), "0.15", "0.003", "0.60", "off-peak"),
        ("deepseek-flash", (2026, 11, 30, 0, 59), "0.15", "0.003", "0.60", "off-peak"),
        ("deepseek-flash", (2026, 11, 30, 1), "0.30", "0.006", "1.20", "peak"),
        ("deepseek-flash", (2026, 11, 30, 4), "0.15", "0.003", "0.60", "off-peak"),
        ("deepseek-flash", (2026, 11, 30, 7), "0.30", "0.006", "1.20", "peak"),
        ("deepseek-flash", (2026, 11, 30, 10), "0.15", "0.003", "0.60", "off-peak"),
        ("deepseek-v4-pro", (2026, 5, 4, 2), "0.435", "0.003625", "0.87", ""),
        ("deepseek-v4-pro", (2026, 11, 28, 2), "0.66", "0.022", "1.98", "off-peak"),
        ("deepseek-v4-pro", (2026, 11, 27, 2), "1.32", "0.044", "3.96", "peak"),
        ("deepseek-chat", (2026, 1, 5, 2), "0.28", "0.028", "0.42", ""),
        ("deepseek-reasoner", (2026, 6, 1, 2), "0.14", "0.0028", "0.28", ""),
        ("gpt-5.1", (2026, 11, 1), "1.25", "0.125", "10", ""),
        ("gpt-4.1", (2026, 11, 1), "2", "0.5", "8", ""),
        ("gpt-4o", (2026, 11, 1), "2.5", "1.25", "10", ""),
        ("gpt-5.6-sol", (2026, 8, 20), "5", "0.5", "30", ""),
        ("gpt-5.6-sol", (2026, 8, 21), "4", "0.4", "20", ""),
        ("claude-sonnet-5-5", (2026, 10, 6), "2", "0.20", "10", ""),
        ("claude-sonnet-5-5", (2026, 10, 7), "2", "0.1", "10", ""),
        ("kimi-k2.6", (2026, 11, 1), "0.95", "0.16", "4", ""),
    ],
)
def test_prices_by_time(
    model: str, when: tuple[int, ...], miss: str, hit: str, output: str, period: str
) -> None:
    found = rates(model, *when)
    assert (found.input, found.cache_read, found.output) == (D(miss), D(hit), D(output))
    assert found.period == period
    assert found.price_date == date(*when[:3])
    assert found.source


def test_the_utc_instant_decides() -> None:
    beijing = timezone(timedelta(hours=8))
    model = resolve_model("deepseek-flash")
    found = rates_for(model, datetime(2026, 11, 30, 9, tzinfo=beijing), DAY)
    assert found is not None and found.period == "peak"
    naive = rates_for(model, datetime(2026, 11, 30, 1), DAY)
    assert naive is found


def test_a_request_without_a_time_has_the_default_days_off_peak_price() -> None:
    monday = rates_for(resolve_model("deepseek-flash"), None, date(2026, 11, 30))
    assert monday is not None
    assert (monday.price_date, monday.period) == (date(2026, 11, 30), "off-peak")
    assert default_price_date() == date(2026, 11, 29)


def test_retired_names_have_no_price_after_their_end() -> None:
    assert maybe("deepseek-chat", 2026, 7, 24, 15, 58) is not None
    assert maybe("deepseek-chat", 2026, 7, 24, 16) is None
    last = rates("deepseek-chat")
    assert (last.input, last.price_date) == (D("0.14"), date(2026, 7, 24))


def test_an_unknown_price_is_none() -> None:
    assert maybe("deepseek-chat", 2025, 9, 12) is None  # V3.1, not confirmed
    assert maybe("qwen3-made-up", 2026, 11, 1) is None
    assert maybe("gpt-5.5-2099-01-01", 2026, 11, 1) is None
    assert maybe("deepseek-v3", 2026, 11, 1) is None


def test_the_catalog_alone_is_wrong_where_the_own_table_says_so() -> None:
    """When this fails the catalog has learnt it, and rows of the own table can go."""
    from genai_prices.data_snapshot import get_snapshot

    provider = next(p for p in get_snapshot().providers if p.id == "deepseek")
    flash = provider.find_model("deepseek-v4-flash")
    assert flash is not None
    for when in (datetime(2026, 6, 1, 3, tzinfo=UTC), datetime(2026, 11, 29, 3, tzinfo=UTC)):
        assert flash.get_prices(when).input_mtok == D("0.3")


def test_the_v32_bill() -> None:
    """A logged bill: 1716 miss, 320 hit, 77 output tokens of DeepSeek V3.2.

    1716 x 0.28 = 480.48; 320 x 0.028 = 8.96; 77 x 0.42 = 32.34; sum 521.78 millionths.
    """
    r = rates("deepseek-chat", 2026, 1, 15)
    total = cost_usd(1716, r.input) + cost_usd(320, r.cache_read) + cost_usd(77, r.output)
    assert total == D("0.00052178")


def test_the_gpt_56_bill() -> None:
    """A logged bill: 8 plain and 4012 written tokens of GPT-5.6 sol: 40 + 25075 millionths."""
    r = rates("gpt-5.6-sol", 2026, 8, 1)
    assert cost_usd(8, r.input) + cost_usd(4012, r.cache_write_5m) == D("0.025115")


def test_long_prompts_pay_the_tier_for_every_token() -> None:
    r = rates("gpt-5.4", 2026, 11, 1)
    assert r.at(272_000) is r
    long = r.at(272_001)
    assert (long.input, long.cache_read, long.output) == (D(5), D("0.5"), D("22.5"))
    assert "272,000" in long.source
    assert long.at(10) is long
    haiku = rates("claude-haiku-5-5", 2026, 11, 1)
    assert haiku.at(100_000).input == D("0.1")
    assert haiku.at(100_001).input == D("0.5")
    assert haiku.at(100_001).cache_write_1h == D(1)


@pytest.mark.parametrize(
    ("model", "short", "long"),
    [
        ("claude-opus-5-5", "5", "8"),
        ("claude-opus-5", "6.25", "10"),
        ("claude-sonnet-4-5", "3.75", "6"),
        ("claude-haiku-4-5", "1.25", "2"),
        ("claude-fable-5-1", "12.5", "20"),
        ("deepseek-flash", "0.15", "0.15"),  # no fee: a write is a plain miss
        ("gpt-5.1", "1.25", "1.25"),
    ],
)
def test_write_prices(model: str, short: str, long: str) -> None:
    r = rates(model, 2026, 11, 1)
    assert (r.cache_write_5m, r.cache_write_1h) == (D(short), D(long))


@pytest.mark.parametrize(
    ("model", "when", "ratio"),
    [
        ("deepseek-flash", (2026, 11, 29), 50),
        ("deepseek-v4-pro", (2026, 11, 29), 30),
        ("deepseek-v4-pro", (2026, 7, 1), 120),
        ("gpt-5.1", (2026, 11, 29), 10),
        ("gpt-4o", (2026, 11, 29), 2),
        ("claude-sonnet-5-5", (2026, 11, 29), 20),
        ("claude-fable-5-1", (2026, 11, 29), 40),
    ],
)
def test_hit_to_miss_ratio_comes_from_the_row(
    model: str, when: tuple[int, ...], ratio: int
) -> None:
    assert hit_to_miss_ratio(rates(model, *when)) == ratio


def test_money_is_exact() -> None:
    assert cost_usd(1, D("0.0028")) == D("0.0000000028")
    assert cost_usd(10**15 + 1, D("0.003625")) == D("3625000.000000003625")
    with localcontext() as context:
        context.prec = 3
        assert cost_usd(123_456_789, D("0.15")) == D("18.51851835")
    assert getcontext().prec == 28
    assert cost_usd(0, None) == 0
    with pytest.raises(LabError, match="5 tokens have no known price"):
        cost_usd(5, None)


def test_every_known_model_but_unpriced_old_ones_has_a_price() -> None:
    unpriced = [n for n in known_models() if maybe(n) is None]
    assert unpriced == ["deepseek-v3", "deepseek-v3.1", "claude-mythos-5"]


def test_own_rows_are_dated_and_sourced() -> None:
    table = own_table()
    for ref, rows in table.rows.items():
        for row in rows:
            assert "checked 2026" in row.source, ref
            assert row.starts is None or row.starts.tzinfo is not None
            assert row.until is None or row.until.tzinfo is not None
    assert catalog_version() == f"{catalog_version().split(' +')[0]} + own table checked {DAY}"
    assert catalog_version().startswith("genai-prices 0.2.")


def test_lookup_is_fast_after_the_first() -> None:
    model = resolve_model("deepseek-flash")
    moments = [datetime(2026, 11, 30, h, tzinfo=UTC) for h in range(24)] * 50
    for moment in moments[:24]:
        rates_for(model, moment, DAY)
    start = time.perf_counter()
    for moment in moments:
        rates_for(model, moment, DAY)
    assert (time.perf_counter() - start) / len(moments) < 200e-6  # a few us on an idle machine


def test_importing_prices_and_tokens_loads_no_data() -> None:
    code = (
        "import sys, codesmith_lab.billing.prices, codesmith_lab.billing.tokens;"
        "heavy = {'genai_prices', 'toktok', 'fastokens', 'gigatoken', 'pydantic'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == "[]"


def test_the_catalog_is_not_loaded_where_the_own_table_knows_the_price() -> None:
    code = (
        "import sys; from datetime import date; from codesmith_lab.billing.prices import rates_for;"
        "from codesmith_lab.billing.models import resolve_model;"
        "known = rates_for(resolve_model('deepseek-v4-flash'), None, date(2026, 11, 30));"
        "print(known.input, 'genai_prices' in sys.modules);"
        "print(rates_for(resolve_model('gpt-5.6-sol'), None, date(2026, 11, 30)).input)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.split() == ["0.15", "False", "4"]
