from __future__ import annotations

import pytest

from codesmith_lab.billing.models import known_models, resolve_model
from codesmith_lab.billing.tokens import tokenizer_ids
from codesmith_lab.errors import UnknownModelError

# name, provider, tokenizer, cache rule, price reference ("-" is none), chat format
NAMES = """
deepseek-flash deepseek deepseek deepseek-v4 deepseek:deepseek-flash deepseek
deepseek-ai/DeepSeek-V4-Pro deepseek deepseek deepseek-v4 deepseek:deepseek-v4-pro deepseek
deepseek-v4-flash-0731 deepseek deepseek deepseek-v4 deepseek:deepseek-v4-flash deepseek
deepseek/deepseek-chat deepseek deepseek deepseek-v3 deepseek:deepseek-chat deepseek
DeepSeek-V3.2 deepseek deepseek deepseek-v3 deepseek:deepseek-v3.2 deepseek
gpt-4o-2024-08-06 openai o200k_base openai-128 openai:gpt-4o-2024-08-06 openai
gpt-4o-2024-05-13 openai o200k_base - openai:gpt-4o-2024-05-13 openai
openai/gpt-5.5 openai o200k_base openai-128 openai:gpt-5.5 openai
gpt-5.2-20251211 openai o200k_base openai-128 openai:gpt-5.2-20251211 openai
o4-mini openai o200k_base openai-128 openai:o4-mini openai
gpt-5.6-sol openai o200k_base - openai:gpt-5.6-sol openai
gpt-6-sol openai estimate - openai:gpt-6-sol openai
gpt-4-0613 openai cl100k_base - openai:gpt-4-0613 openai
claude-sonnet-4-5-20250929 anthropic estimate-claude-4.6 - anthropic:claude-sonnet-4-5 anthropic
anthropic/claude-sonnet-4.5 anthropic estimate-claude-4.6 - anthropic:claude-sonnet-4-5 anthropic
claude-opus-5-5 anthropic estimate-claude-4.7 - anthropic:claude-opus-5-5 anthropic
models/gemini-2.5-pro google estimate - google:gemini-2.5-pro plain
kimi-k3 moonshotai estimate - moonshotai:kimi-k3 plain
qwen3.8-max alibaba estimate - - plain
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
        assert info.rules_id in ("deepseek-v3", "deepseek-v4", "openai-128")
        assert info.tokenizer_id in tokenizer_ids()


@pytest.mark.parametrize(
    "name", ["", "gpt-7", "deepseek-v5", "llama-4", "<b>x</b>", "gpt-5.1-2", "o5"]
)
def test_an_unknown_name_is_never_guessed(name: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        resolve_model(name)
    assert caught.value.model == name
    assert set(caught.value.choices) <= set(known_models())


def test_the_nearest_names_are_offered() -> None:
    with pytest.raises(UnknownModelError) as caught:
        resolve_model("deepseek-v4-flsh")
    assert caught.value.choices[0] == "deepseek-v4-flash"
