from __future__ import annotations

import pytest

from codesmith_lab.billing.models import known_models, resolve_model
from codesmith_lab.billing.tokens import tokenizer_ids
from codesmith_lab.cache.rule_files import known_rules
from codesmith_lab.errors import UnknownModelError

# name, provider, tokenizer, cache rule, price reference ("-" is none), chat format
NAMES = """
deepseek-flash deepseek deepseek deepseek-v4 deepseek:deepseek-flash deepseek
deepseek-ai/DeepSeek-V4-Pro deepseek deepseek deepseek-v4 deepseek:deepseek-v4-pro deepseek
deepseek-v4-flash-0731 deepseek deepseek deepseek-v4 deepseek:deepseek-v4-flash deepseek
deepseek/deepseek-chat deepseek deepseek deepseek-v3 deepseek:deepseek-chat deepseek
DeepSeek-V3.2 deepseek deepseek deepseek-v3 deepseek:deepseek-v3.2 deepseek
gpt-4o-2024-08-06 openai o200k_base openai-128 openai:gpt-4o-2024-08-06 openai
gpt-4o-2024-05-13 openai o200k_base openai-uncached openai:gpt-4o-2024-05-13 openai
openai/gpt-5.5 openai o200k_base openai-128 openai:gpt-5.5 openai
gpt-5.2-20251211 openai o200k_base openai-128 openai:gpt-5.2-20251211 openai
o4-mini openai o200k_base openai-128 openai:o4-mini openai
gpt-5.6-sol openai o200k_base openai-breakpoints openai:gpt-5.6-sol openai
gpt-6-sol openai estimate openai-breakpoints openai:gpt-6-sol openai
gpt-4-0613 openai cl100k_base openai-uncached openai:gpt-4-0613 openai
claude-sonnet-4-5-20250929 anthropic estimate-claude-4.6 anthropic \
    anthropic:claude-sonnet-4-5 anthropic
anthropic/claude-sonnet-4.5 anthropic estimate-claude-4.6 anthropic \
    anthropic:claude-sonnet-4-5 anthropic
claude-opus-5-5 anthropic estimate-claude-4.7 anthropic anthropic:claude-opus-5-5 anthropic
models/gemini-2.5-pro google estimate gemini-implicit google:gemini-2.5-pro plain
gemma-3-27b google estimate - google:gemma-3-27b plain
kimi-k3 moonshotai estimate kimi moonshotai:kimi-k3 plain
glm-5.1 zai estimate glm zai:glm-5.1 plain
grok-4-fast x-ai estimate grok x-ai:grok-4-fast plain
codestral-2508 mistral estimate mistral mistral:codestral-2508 plain
MiniMax-M2 minimax estimate minimax minimax:minimax-m2 plain-system-first
qwen3.8-max alibaba estimate qwen alibaba:qwen3.8-max plain
amazon.nova-pro-v1:0 aws estimate bedrock-nova aws:amazon.nova-pro-v1:0 plain
anthropic.claude-opus-4-7-v1:0 aws estimate-claude-4.7 bedrock-claude \
    aws:anthropic.claude-opus-4-7-v1:0 anthropic
us.anthropic.claude-sonnet-4-5-20250929-v1:0 aws estimate-claude-4.6 bedrock-claude \
    aws:us.anthropic.claude-sonnet-4-5-20250929-v1:0 anthropic
openrouter/anthropic/claude-sonnet-4.5 openrouter estimate-claude-4.6 openrouter-claude \
    openrouter:anthropic/claude-sonnet-4.5 anthropic
openrouter/google/gemini-2.5-flash openrouter estimate openrouter-gemini \
    openrouter:google/gemini-2.5-flash plain
openrouter/openai/gpt-5.1 openrouter o200k_base openai-128 openrouter:openai/gpt-5.1 openai
openrouter/made-up/model-1 openrouter estimate openrouter openrouter:made-up/model-1 plain
vllm/deepseek-ai/DeepSeek-V3 vllm deepseek vllm - deepseek
sglang/my-model sglang estimate sglang - plain
llama.cpp/tiny llama-cpp estimate llama-cpp - plain
"""


@pytest.mark.parametrize("row", NAMES.strip().splitlines())
def test_names(row: str) -> None:
    name, *known = [None if word == "-" else word for word in row.split()]
    assert name is not None
    info = resolve_model(name)
    found = [info.provider, info.tokenizer_id, info.rules_id, info.price_ref, info.chat_format]
    assert info.name == name
    assert found == known


def test_every_known_model_resolves_with_rules_and_a_tokenizer() -> None:
    assert known_models()[0] == "deepseek-flash"
    for name in known_models():
        info = resolve_model(name)
        assert info.rules_id in {rule.id for rule in known_rules()}
        assert info.tokenizer_id in tokenizer_ids()


@pytest.mark.parametrize(
    "name", ["", "gpt-7", "deepseek-v5", "llama-4", "<b>x</b>", "gpt-5.1-2", "o5"]
)
def test_an_unknown_name_is_never_guessed(name: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        resolve_model(name)
    assert caught.value.model == name
    assert set(caught.value.choices) <= set(known_models())


def test_a_name_and_the_rule_that_claims_it_agree() -> None:
    """The patterns of the rules are documentation of what the names resolve to."""
    for name in known_models():
        info = resolve_model(name)
        claiming = [rule.id for rule in known_rules() if rule.claims(name)]
        assert claiming == [info.rules_id], name


def test_the_nearest_names_are_offered() -> None:
    with pytest.raises(UnknownModelError) as caught:
        resolve_model("deepseek-v4-flsh")
    assert caught.value.choices[0] == "deepseek-v4-flash"
