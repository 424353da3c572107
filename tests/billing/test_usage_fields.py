"""The table of usage counters: one real shape of each API, to the token and the cent."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.billing.usage import (
    FLAGS,
    Usage,
    merge_usage,
    money,
    read_usage,
    usage_api,
    usage_delta,
)
from codesmith_lab.billing.usage_fields import FIELDS
from codesmith_lab.errors import InputError

# api, usage, (total input, output, read, written 5 m, written 1 h)
SHAPES: list[tuple[Any, dict[str, Any], tuple[int | None, ...]]] = [
    (
        "openai-responses",
        {
            "input_tokens": 4020,
            "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 4012},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 4},
        },
        (4020, 9, 8, 4012, None),
    ),
    (
        "codex",
        {"input_tokens": 500, "cached_input_tokens": 384, "output_tokens": 7},
        (500, 7, 384, None, None),
    ),
    (
        "anthropic-messages",
        {"input_tokens": 3, "cache_read_input_tokens": 97, "output_tokens": 5},
        (100, 5, 97, None, None),
    ),
    (
        "gemini",
        {
            "promptTokenCount": 1000,
            "cachedContentTokenCount": 183,
            "candidatesTokenCount": 10,
            "thoughtsTokenCount": 30,
            "toolUsePromptTokenCount": 50,
        },
        (1050, 40, 183, None, None),
    ),
    (
        "bedrock-converse",
        {
            "inputTokens": 4,
            "outputTokens": 6,
            "cacheReadInputTokens": 2492,
            "cacheReadInputTokenCount": 2492,
            "cacheWriteInputTokens": 100,
            "cacheDetails": [
                {"inputTokens": 60, "ttl": "1h"},
                {"inputTokens": 40, "ttl": "5m"},
            ],
        },
        (2596, 6, 2492, 40, 60),
    ),
    (
        "bedrock-log",
        {"inputTokenCount": 4, "cacheReadInputTokenCount": 90, "outputTokenCount": 1},
        (94, 1, 90, None, None),
    ),
    (
        "openai-chat",  # LiteLLM: both vendors' names over one meaning
        {
            "prompt_tokens": 17111,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 17102},
            "cache_read_input_tokens": 17102,
            "cache_creation_input_tokens": 0,
        },
        (17111, 4, 17102, 0, None),
    ),
    (
        "openai-chat",  # Moonshot
        {"prompt_tokens": 300, "completion_tokens": 4, "cached_tokens": 256},
        (300, 4, 256, None, None),
    ),
    (
        "deepseek-chat",
        {"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36, "prompt_tokens": 100},
        (100, None, 64, None, None),
    ),
    (
        "openrouter-generation",
        {"native_tokens_prompt": 90, "tokens_prompt": 80, "native_tokens_cached": 64},
        (90, None, 64, None, None),
    ),
    (
        "vercel",
        {"inputTokens": 90, "outputTokens": 3, "inputTokenDetails": {"cacheReadTokens": 64}},
        (90, 3, 64, None, None),
    ),
    (
        "langchain",
        {
            "input_tokens": 90,
            "output_tokens": 3,
            "input_token_details": {"cache_read": 64, "cache_creation": 6},
        },
        (90, 3, 64, 6, None),
    ),
    (
        "otel",
        {
            "gen_ai.usage.input_tokens": 90,
            "gen_ai.usage.output_tokens": 3,
            "gen_ai.usage.cache_read.input_tokens": 64,
        },
        (90, 3, 64, None, None),
    ),
    (
        "openinference",
        {"llm.token_count.prompt": 90, "llm.token_count.prompt_details.cache_read": 64},
        (90, None, 64, None, None),
    ),
]


@pytest.mark.parametrize(("api", "usage", "expected"), SHAPES)
def test_each_shape_to_the_token(
    api: Any, usage: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    found = read_usage(usage, api)
    assert found is not None
    assert (
        found.input_tokens,
        found.output_tokens,
        found.cache_read_tokens,
        found.cache_write_5m_tokens,
        found.cache_write_1h_tokens,
    ) == expected
    assert found.flags == ()


@pytest.mark.parametrize(("api", "usage", "expected"), SHAPES)
def test_whose_counters_they_are_is_told_by_their_names(
    api: Any, usage: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    told = usage_api(usage)
    assert told is not None
    assert read_usage(usage, told) == read_usage(usage, api)


def test_spans_whose_input_leaves_the_cache_out() -> None:
    """The convention counts it in; what exceeds the input cannot be a part of it."""
    usage = {"gen_ai.usage.input_tokens": 4, "gen_ai.usage.cache_read.input_tokens": 900}
    found = read_usage(usage, "otel")
    assert found is not None
    assert (found.input_tokens, found.cache_read_tokens, found.flags) == (904, 900, ())
    assert "taken for the rest" in found.notes[0]


def test_charges_that_the_gateway_names() -> None:
    usage = {"prompt_tokens": 2168, "cost": 0.00018008}
    found = read_usage(usage, "openai-chat")
    assert found is not None
    assert found.cost_usd == Decimal("0.00018008")
    for value in (None, True, "x", -1, float("nan"), float("inf"), [1]):
        assert money(value) is None
    assert money("0.5") == Decimal("0.5")


def test_later_counters_replace_earlier_ones() -> None:
    first = {"a": 1, "b": {"c": 2, "d": 3}, "e": None}
    assert merge_usage(first, {"a": 5, "b": {"c": None, "d": 4}, "e": 6}) == {
        "a": 5,
        "b": {"c": 2, "d": 4},
        "e": 6,
    }
    assert first == {"a": 1, "b": {"c": 2, "d": 3}, "e": None}


def test_cumulative_counters_are_differenced_or_refused() -> None:
    first, second = Usage(100, 5, 40), Usage(250, 9, 140)
    assert usage_delta(first, None) == first
    assert usage_delta(second, first) == Usage(150, 4, 100)
    assert usage_delta(first, second) is None


COUNTERS = st.none() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=3)


@given(st.sampled_from(list(FIELDS)), st.data())
def test_no_counters_break_the_reading(api: Any, data: st.DataObject) -> None:
    fields = FIELDS[api]
    names = [*fields.input, *fields.output, *fields.read, *fields.write, *fields.lifetimes]
    usage: dict[str, Any] = {}
    for name in names:
        value = data.draw(COUNTERS)
        if api.startswith(("otel", "openinf")):
            usage[name] = value
            continue
        *path, last = name.split(".")
        inner = usage
        for key in path:
            inner = inner.setdefault(key, {})
        inner[last] = value
    try:
        found = read_usage(usage, api)
    except InputError:
        return
    if found is not None:
        parts = (found.cache_read_tokens or 0) + (found.cache_write_5m_tokens or 0)
        parts += found.cache_write_1h_tokens or 0
        assert found.input_tokens >= 0
        assert parts <= found.input_tokens or "usage_overlap" in found.flags
        assert set(found.flags) <= set(FLAGS)
