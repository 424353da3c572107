"""What each API calls its usage counters, and what they mean: the one table of it.

Sources: the vendors' API references and recorded responses, checked 2026-11-29. `signs` are the
names by which the counters of an unknown API are told; the first row with one of them wins, so the
order of the rows counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["FIELDS", "UsageApi", "UsageFields"]

UsageApi = Literal[
    "openai-chat",
    "deepseek-chat",
    "openai-responses",
    "codex",
    "anthropic-messages",
    "gemini",
    "bedrock-converse",
    "bedrock-log",
    "openrouter-generation",
    "otel",
    "otel-before-1.27",
    "openinference",
    "vercel",
    "langchain",
]


@dataclass(frozen=True, slots=True)
class UsageFields:
    """Where one API puts its counters, as dotted paths.

    input: counters whose sum is the input; output: the same for the output.
    read, write, reasoning: names of one counter; the first that is sent wins, others must agree.
    input_includes_cache: whether `input` already holds reads and writes; None where the rule says
        so and not every sender keeps it: then it holds them unless they exceed it.
    lifetimes: writes that live 5 minutes and 1 hour; details: a list of {inputTokens, ttl}.
    miss: input that was not cached, to check the others with. cost: the charge, USD.
    """

    signs: tuple[str, ...]
    input: tuple[str, ...]
    output: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...] = ()
    input_includes_cache: bool | None = True
    lifetimes: tuple[str, ...] = ()
    details: str = ""
    reasoning: tuple[str, ...] = ()
    miss: str = ""
    cost: str = ""


# DeepSeek's real responses carry OpenAI's counter beside its own, LiteLLM's both OpenAI's and
# Anthropic's names over OpenAI's meaning (measured: 17,111 input with 17,102 of them read),
# Moonshot's `cached_tokens` at the top: one row reads them all. OpenAI's writes (GPT-5.6 and
# later) have a single price and are kept as 5-minute writes.
_CHAT: Final = UsageFields(
    signs=("prompt_tokens", "prompt_cache_hit_tokens"),
    input=("prompt_tokens",),
    output=("completion_tokens",),
    read=(
        "prompt_cache_hit_tokens",
        "prompt_tokens_details.cached_tokens",
        "cache_read_input_tokens",
        "cached_tokens",
    ),
    write=(
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_creation_tokens",
        "cache_creation_input_tokens",
    ),
    reasoning=("completion_tokens_details.reasoning_tokens",),
    miss="prompt_cache_miss_tokens",
    cost="cost",
)

FIELDS: Final[dict[UsageApi, UsageFields]] = {
    "openai-chat": _CHAT,
    "deepseek-chat": _CHAT,
    "gemini": UsageFields(
        signs=("promptTokenCount",),
        # Results of server-side tools are read as input and counted apart.
        input=("promptTokenCount", "toolUsePromptTokenCount"),
        output=("candidatesTokenCount", "thoughtsTokenCount"),
        read=("cachedContentTokenCount",),
        reasoning=("thoughtsTokenCount",),
    ),
    "bedrock-log": UsageFields(
        signs=("inputTokenCount",),
        input=("inputTokenCount",),
        output=("outputTokenCount",),
        read=("cacheReadInputTokenCount",),
        write=("cacheWriteInputTokenCount",),
        input_includes_cache=False,
    ),
    "openrouter-generation": UsageFields(
        signs=("native_tokens_prompt",),
        input=("native_tokens_prompt",),
        output=("native_tokens_completion",),
        read=("native_tokens_cached",),
        reasoning=("native_tokens_reasoning",),
        cost="total_cost",
    ),
    "otel": UsageFields(
        signs=("gen_ai.usage.input_tokens",),
        input=("gen_ai.usage.input_tokens",),
        output=("gen_ai.usage.output_tokens",),
        read=(
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "gen_ai.usage.input_tokens.cached",
            "gen_ai.usage.details.cache_read_input_tokens",
            "gen_ai.usage.details.cache_read_tokens",
        ),
        write=(
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "gen_ai.usage.input_tokens.cache_write",
            "gen_ai.usage.details.cache_creation_input_tokens",
            "gen_ai.usage.details.cache_write_tokens",
        ),
        # The convention: both should be included. Older instrumentations pass the provider's on.
        input_includes_cache=None,
        reasoning=(
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.output_tokens.reasoning",
            "gen_ai.usage.details.reasoning_tokens",
        ),
        cost="gen_ai.usage.cost",
    ),
    "otel-before-1.27": UsageFields(
        signs=("gen_ai.usage.prompt_tokens",),
        input=("gen_ai.usage.prompt_tokens",),
        output=("gen_ai.usage.completion_tokens",),
        read=("gen_ai.usage.cache_read_input_tokens",),
        write=("gen_ai.usage.cache_creation_input_tokens",),
        input_includes_cache=None,
    ),
    "openinference": UsageFields(
        signs=("llm.token_count.prompt",),
        input=("llm.token_count.prompt",),
        output=("llm.token_count.completion",),
        read=("llm.token_count.prompt_details.cache_read",),
        write=("llm.token_count.prompt_details.cache_write",),
        input_includes_cache=None,
        reasoning=("llm.token_count.completion_details.reasoning",),
        cost="llm.cost.total",
    ),
    "vercel": UsageFields(
        signs=("inputTokenDetails", "inputTokenDetails.cacheReadTokens", "cachedInputTokens"),
        input=("inputTokens",),
        output=("outputTokens",),
        read=("inputTokenDetails.cacheReadTokens", "cachedInputTokens"),
        write=("inputTokenDetails.cacheWriteTokens",),
        reasoning=("outputTokenDetails.reasoningTokens", "reasoningTokens"),
    ),
    "bedrock-converse": UsageFields(
        signs=("inputTokens",),
        input=("inputTokens",),
        output=("outputTokens",),
        read=("cacheReadInputTokens", "cacheReadInputTokenCount"),
        write=("cacheWriteInputTokens", "cacheWriteInputTokenCount"),
        input_includes_cache=False,
        details="cacheDetails",
    ),
    "langchain": UsageFields(
        signs=("input_token_details",),
        input=("input_tokens",),
        output=("output_tokens",),
        read=("input_token_details.cache_read",),
        write=("input_token_details.cache_creation",),
        lifetimes=(
            "input_token_details.ephemeral_5m_input_tokens",
            "input_token_details.ephemeral_1h_input_tokens",
        ),
        reasoning=("output_token_details.reasoning",),
    ),
    "openai-responses": UsageFields(
        signs=("input_tokens_details", "output_tokens_details"),
        input=("input_tokens",),
        output=("output_tokens",),
        read=("input_tokens_details.cached_tokens",),
        write=("input_tokens_details.cache_write_tokens",),
        reasoning=("output_tokens_details.reasoning_tokens",),
        cost="cost",
    ),
    "codex": UsageFields(
        signs=("cached_input_tokens", "reasoning_output_tokens"),
        input=("input_tokens",),
        output=("output_tokens",),
        read=("cached_input_tokens",),
        write=("cache_write_input_tokens", "cache_creation_input_tokens"),
        reasoning=("reasoning_output_tokens",),
    ),
    "anthropic-messages": UsageFields(
        signs=("input_tokens",),
        input=("input_tokens",),
        output=("output_tokens",),
        read=("cache_read_input_tokens",),
        write=("cache_creation_input_tokens",),
        input_includes_cache=False,
        lifetimes=(
            "cache_creation.ephemeral_5m_input_tokens",
            "cache_creation.ephemeral_1h_input_tokens",
        ),
        cost="cost",
    ),
}
