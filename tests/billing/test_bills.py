"""Bills from counters, to the last digit: logged ones, and faults seen in the field."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal as D
from typing import Any

import pytest

from codesmith_lab.billing.bill import bill_input, bill_usage, rates_under, storage_usd
from codesmith_lab.billing.models import resolve_model
from codesmith_lab.billing.prices import Rates, rates_for
from codesmith_lab.billing.usage import Usage, read_usage
from codesmith_lab.cache.rule_files import get_rule


def rates(model: str, *when: int) -> Rates:
    found = rates_for(
        resolve_model(model),
        datetime(*when, tzinfo=UTC) if when else None,  # type: ignore[arg-type, misc]
        date(2026, 11, 29),
    )
    assert found is not None
    return found


def usage(counters: dict[str, Any], api: str = "openai-chat") -> Usage:
    found = read_usage(counters, api)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_deepseek_v32() -> None:
    """1716 x 0.28 + 320 x 0.028 + 77 x 0.42 millionths of a dollar, as logged."""
    counters = {
        "prompt_tokens": 2036,
        "completion_tokens": 77,
        "prompt_cache_hit_tokens": 320,
        "prompt_cache_miss_tokens": 1716,
    }
    assert bill_usage(usage(counters), rates("deepseek-chat", 2026, 1, 15)) == D("0.00052178")


def test_gpt_56_sol_writes() -> None:
    """8 x 5 + 4012 x 6.25 millionths, as logged; the answer's own tokens aside."""
    counters = {
        "prompt_tokens": 4020,
        "completion_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 4012},
    }
    assert bill_usage(usage(counters), rates("gpt-5.6-sol", 2026, 8, 1)) == D("0.025115")


def test_the_same_tokens_read_and_written() -> None:
    """Gemini through OpenRouter: 2161 of 2168 tokens read, and stored for 5 minutes more.

    7 x 0.30 + 2161 x 0.03 + 2161 x 1.00 / 12 millionths: 0.00024701 USD.
    """
    found = usage(
        {
            "prompt_tokens": 2168,
            "completion_tokens": 0,
            "prompt_tokens_details": {"cached_tokens": 2161, "cache_write_tokens": 2161},
        }
    )
    assert any("overlap" in note for note in found.notes)
    bill = bill_usage(found, rates("openrouter/google/gemini-2.5-flash", 2026, 11, 1))
    assert bill is not None
    assert bill.quantize(D("1e-8")) == D("0.00024701")


def test_storage_of_a_gemini_cache() -> None:
    """2161 tokens for 5 minutes at 1.00 USD per million token-hours, as billed: 0.00018008."""
    price = get_rule("gemini-explicit").storage_usd_per_mtok_hour
    assert price is not None
    assert storage_usd(2161, 300, price).quantize(D("1e-8")) == D("0.00018008")


def test_an_overlap_elsewhere_bills_the_rest_once() -> None:
    """Reads and writes that exceed the input: what is neither is what both leave at least."""
    counters = {
        "prompt_tokens": 1000,
        "completion_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 900, "cache_write_tokens": 900},
    }
    r = rates("gpt-5.6-sol", 2026, 8, 1)
    assert bill_usage(usage(counters), r) == (900 * D("0.5") + 900 * D("6.25") + 100 * D(5)) / 10**6


def test_cached_tokens_are_not_charged_twice() -> None:
    """20,212 in, 16,298 of them cached, 931 out at 0.50 / 0.05 / 3.00: not 0.0137."""
    made_up = replace(
        rates("gpt-5", 2026, 11, 1), input=D("0.50"), cache_read=D("0.05"), output=D("3.00")
    )
    counters = {
        "prompt_tokens": 20_212,
        "completion_tokens": 931,
        "prompt_tokens_details": {"cached_tokens": 16_298},
    }
    bill = bill_usage(usage(counters), made_up)
    assert bill == D("0.0055649")
    assert bill.quantize(D("1e-6")) == D("0.005565")


def test_written_tokens_are_not_charged_twice() -> None:
    """1200 plain, 500 read, 300 written: 0.004875 and not 0.005775."""
    counters = {
        "input_tokens": 1200,
        "cache_read_input_tokens": 500,
        "cache_creation_input_tokens": 300,
        "output_tokens": 0,
    }
    found = usage(counters, "anthropic-messages")
    assert found.input_tokens == 2000
    assert bill_usage(found, rates("claude-sonnet-4-6", 2026, 11, 1)) == D("0.004875")


def test_one_hour_writes_have_their_own_price() -> None:
    """600k x 6.25 + 400k x 10 = 7.75, beside 3 plain tokens; not 6.25."""
    counters = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 1_000_000,
        "cache_read_input_tokens": 0,
        "output_tokens": 0,
        "cache_creation": {
            "ephemeral_5m_input_tokens": 600_000,
            "ephemeral_1h_input_tokens": 400_000,
        },
    }
    bill = bill_usage(usage(counters, "anthropic-messages"), rates("claude-opus-4-8", 2026, 11, 1))
    assert bill == D("7.75") + 3 * D(5) / 10**6


def test_no_counter_of_the_cache_is_no_bill() -> None:
    r = rates("gpt-5", 2026, 11, 1)
    assert bill_usage(usage({"prompt_tokens": 5, "completion_tokens": 1}), r) is None


def test_a_line_without_a_price_is_no_bill() -> None:
    r = replace(rates("gemini-2.5-flash", 2026, 11, 1), cache_write_5m=None)
    rows = [(0, 0, 0, 0)] * 6
    assert bill_input(rows, r) is not None
    assert bill_input([(0, 0, 1, 0), *rows[1:]], r) is None
    assert bill_usage(Usage(10, 1, 0, 5), r) is None


def test_cause_costs_and_what_repaid_tokens_cost_above_a_read() -> None:
    r = rates("claude-sonnet-4-6", 2026, 11, 1)
    rows = [(100, 0, 0, 0), (0, 10, 20, 30), (0, 0, 40, 0), *[(0, 0, 0, 0)] * 3]
    bill = bill_input(rows, r)
    assert bill is not None
    assert bill.cause_costs_usd[:3] == (
        D("0.00003"),
        (10 * D(3) + 20 * D("3.75") + 30 * D(6)) / 10**6,
        D("0.00015"),
    )
    assert bill.repaid_usd == 40 * (D("3.75") - D("0.30")) / 10**6


@pytest.mark.parametrize(
    ("rule", "read", "write"),
    [("qwen", "0.015", "0.1875"), ("qwen-implicit", "0.030", None), ("deepseek-v4", "0.15", None)],
)
def test_shares_of_the_input_price(rule: str, read: str, write: str | None) -> None:
    """Qwen: 10 % explicit, 20 % implicit, writes 125 % of 0.15."""
    r = rates_under(rates("qwen3.8-flash", 2026, 11, 1), get_rule(rule))
    assert r.cache_read == D(read)
    assert r.cache_write_5m == (None if write is None else D(write))
