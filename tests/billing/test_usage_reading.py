from __future__ import annotations

from typing import Any

import pytest

from codesmith_lab.billing.usage import Usage, read_usage
from codesmith_lab.errors import InputError


def test_openai_chat_includes_the_cache_in_its_input() -> None:
    usage = {
        "prompt_tokens": 2006,
        "completion_tokens": 300,
        "total_tokens": 2306,
        "prompt_tokens_details": {"cached_tokens": 1920},
    }
    assert read_usage(usage, "openai-chat") == Usage(2006, 300, 1920)
    wrote = {
        "prompt_tokens": 4020,
        "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 4012},
    }
    assert read_usage(wrote, "openai-chat") == Usage(4020, None, 0, 4012)


@pytest.mark.parametrize("api", ["deepseek-chat", "openai-chat"])
def test_deepseek(api: Any) -> None:
    usage = {
        "prompt_tokens": 2036,
        "completion_tokens": 77,
        "prompt_cache_hit_tokens": 320,
        "prompt_cache_miss_tokens": 1716,
        "prompt_tokens_details": {"cached_tokens": 320},
    }
    assert read_usage(usage, api) == Usage(2036, 77, 320)
    odd = read_usage({**usage, "prompt_cache_miss_tokens": 1700}, api)
    assert odd is not None
    assert odd.notes == ("hits and misses (320 + 1700) are not the input of 2036",)
    odd = read_usage({**usage, "prompt_tokens_details": {"cached_tokens": 7}}, api)
    assert odd is not None
    assert odd.notes == ("counters of cached tokens disagree (320 and 7)",)


def test_anthropic_sums_three_counters() -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
    }
    assert read_usage(usage, "anthropic-messages") == Usage(1310, 5, 1000, 100, 200)
    del usage["cache_creation"]
    found = read_usage(usage, "anthropic-messages")
    assert found is not None
    assert (found.input_tokens, found.cache_write_5m_tokens) == (1310, 300)
    assert found.cache_write_1h_tokens is None
    assert "5 minutes are taken" in found.notes[0]
    usage["cache_creation"] = {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2}
    found = read_usage(usage, "anthropic-messages")
    assert found is not None
    assert found.input_tokens == 1310
    assert found.notes == ("cache writes by lifetime (1 + 2) are not their total 300",)


def test_what_was_not_sent_is_none() -> None:
    assert read_usage({"prompt_tokens": 5}, "openai-chat") == Usage(5)
    assert read_usage({"input_tokens": 5}, "anthropic-messages") == Usage(5)
    assert read_usage({}, "openai-chat") is None
    assert read_usage({"prompt_tokens": None}, "openai-chat") is None
    empty = {"prompt_tokens": 5, "prompt_tokens_details": None}
    assert read_usage(empty, "openai-chat") == Usage(5)


def test_overlapping_counters_are_kept_and_flagged() -> None:
    usage = {
        "prompt_tokens": 2168,
        "prompt_tokens_details": {"cached_tokens": 2161, "cache_write_tokens": 2161},
    }
    found = read_usage(usage, "openai-chat")
    assert found is not None
    assert (found.cache_read_tokens, found.cache_write_5m_tokens) == (2161, 2161)
    assert found.notes == (
        "usage overlap: 2161 tokens read and 2161 written exceed the input of 2168, "
        "so some are counted twice",
    )


@pytest.mark.parametrize("bad", [-1, True, 1.5, "12", [1], {}, 2**53 + 1])
def test_bad_counters_are_refused_or_flagged(bad: Any) -> None:
    with pytest.raises(InputError, match="usage.prompt_tokens is .* has no bill"):
        read_usage({"prompt_tokens": bad}, "openai-chat")
    found = read_usage({"prompt_tokens": 9, "completion_tokens": bad}, "openai-chat")
    assert found is not None
    assert found.output_tokens is None
    assert "usage.completion_tokens is" in found.notes[0]
    found = read_usage({"input_tokens": 9, "cache_read_input_tokens": bad}, "anthropic-messages")
    assert found is not None
    assert (found.input_tokens, found.cache_read_tokens) == (9, None)
    assert "cache_read_input_tokens" in found.notes[0]
