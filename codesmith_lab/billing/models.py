"""Model names: which provider, tokenizer, cache rule, price and chat format each one has.

A name that is not known is an error with the nearest known names; nothing is guessed.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from codesmith_lab.errors import UnknownModelError

__all__ = ["ModelInfo", "known_models", "resolve_model"]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of one model.

    name: as asked for.
    provider: "deepseek", "openai", "anthropic", "google", ...
    tokenizer_id: for `get_tokenizer`; ids that start with "estimate" are estimates.
    rules_id: cache rule, or None where there is none here for this model.
    price_ref: "provider:model" for `rates_for`, or None where nothing is priced.
    chat_format: the name of a layout in `CHAT_FORMATS`.
    """

    name: str
    provider: str
    tokenizer_id: str
    rules_id: str | None
    price_ref: str | None
    chat_format: str


# DeepSeek names and what they are. Sources: api-docs.deepseek.com quick_start/pricing and
# updates. V4 and later hit in 128-token units, earlier ones in 64 (see the cache rules).
_DEEPSEEK_V4: Final = (
    "deepseek-flash",
    "deepseek-v4-flash",
    "deepseek-v4-flash-vision-exp",
    "deepseek-v4-pro",
    "deepseek-v4.1-flash",
)
_DEEPSEEK_V3: Final = (
    "deepseek-chat",
    "deepseek-reasoner",
    "deepseek-r1",
    "deepseek-v3",
    "deepseek-v3.1",
    "deepseek-v3.1-terminus",
    "deepseek-v3.2",
    "deepseek-v3.2-exp",
)

# OpenAI models before 5.6: prefixes from 1,024 tokens in steps of 128. Encodings after
# tiktoken 0.14.0, tiktoken/model.py.
_OPENAI_128: Final = (
    "gpt-4.1",
    "gpt-4.1-mini",
    "gpt-4.1-nano",
    "gpt-4.5-preview",
    "gpt-4o",
    "gpt-4o-mini",
    "gpt-5",
    "gpt-5-chat",
    "gpt-5-codex",
    "gpt-5-mini",
    "gpt-5-nano",
    "gpt-5-pro",
    "gpt-5.1",
    "gpt-5.1-chat",
    "gpt-5.1-codex",
    "gpt-5.1-codex-max",
    "gpt-5.1-codex-mini",
    "gpt-5.2",
    "gpt-5.2-chat",
    "gpt-5.2-codex",
    "gpt-5.2-pro",
    "gpt-5.3",
    "gpt-5.3-chat",
    "gpt-5.3-codex",
    "gpt-5.4",
    "gpt-5.4-mini",
    "gpt-5.4-nano",
    "gpt-5.4-pro",
    "gpt-5.5",
    "gpt-5.5-chat",
    "gpt-5.5-codex",
    "gpt-5.5-pro",
    "o1",
    "o1-mini",
    "o1-preview",
    "o1-pro",
    "o3",
    "o3-mini",
    "o3-pro",
    "o4-mini",
)
_OPENAI_56: Final = ("gpt-5.6", "gpt-5.6-luna", "gpt-5.6-sol", "gpt-5.6-terra")
# tiktoken 0.14.0 names no encoding for these.
_OPENAI_6: Final = ("gpt-6-astra", "gpt-6-luna", "gpt-6-sol", "gpt-6.1-sol", "gpt-6.1-terra")
# No prompt caching (OpenAI's announcement of October 2024 excludes both by name).
_OPENAI_4O_UNCACHED: Final = ("chatgpt-4o-latest", "gpt-4o-2024-05-13")
# No prompt caching.
_OPENAI_OLD: Final = ("gpt-3.5-turbo", "gpt-4", "gpt-4-32k", "gpt-4-turbo")

_CLAUDE_TO_46: Final = (
    "claude-3-5-haiku",
    "claude-3-5-sonnet",
    "claude-3-7-sonnet",
    "claude-3-haiku",
    "claude-3-opus",
    "claude-3-sonnet",
    "claude-haiku-4-5",
    "claude-opus-4",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-5",
    "claude-opus-4-6",
    "claude-sonnet-4",
    "claude-sonnet-4-0",
    "claude-sonnet-4-5",
    "claude-sonnet-4-6",
)
_CLAUDE_FROM_47: Final = (
    "claude-fable-5",
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-haiku-5-5",
    "claude-mythos-5",
    "claude-mythos-5-1",
    "claude-mythos-5-2",
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-sonnet-5",
    "claude-sonnet-5-5",
)

# Models of other makers that a picker names; their families below take any name.
_OTHERS: Final = (
    *("gemini-2.5-flash", "gemini-2.5-pro", "gemini-3.1-pro-preview", "gemini-3.8-flash"),
    *("gemini-4-argon", "kimi-k2.6", "kimi-k3", "glm-5", "glm-5.1", "grok-4", "mistral-large"),
    *("minimax-m2", "qwen3.8-flash", "qwen3.8-max"),
)


@dataclass(frozen=True, slots=True)
class _Family:
    """Models known by how their names start. catalog: provider in the price catalog."""

    provider: str
    catalog: str | None
    rules_id: str | None
    chat_format: str = "plain"


_FAMILIES: Final = {
    "gemini-": _Family("google", "google", "gemini-implicit"),
    "gemma-": _Family("google", "google", None),
    "glm-": _Family("zai", "zai", "glm"),
    "grok-": _Family("x-ai", "x-ai", "grok"),
    "kimi-": _Family("moonshotai", "moonshotai", "kimi"),
    "minimax-": _Family("minimax", "minimax", "minimax", "plain-system-first"),
    "codestral": _Family("mistral", "mistral", "mistral"),
    "devstral": _Family("mistral", "mistral", "mistral"),
    "magistral": _Family("mistral", "mistral", "mistral"),
    "ministral": _Family("mistral", "mistral", "mistral"),
    "mistral": _Family("mistral", "mistral", "mistral"),
    "qwen": _Family("alibaba", "alibaba", "qwen"),
    "amazon.nova-": _Family("aws", "aws", "bedrock-nova"),
    "us.amazon.nova-": _Family("aws", "aws", "bedrock-nova"),
    "eu.amazon.nova-": _Family("aws", "aws", "bedrock-nova"),
    "apac.amazon.nova-": _Family("aws", "aws", "bedrock-nova"),
}

# Where a model runs, written before its name: engines of one's own, and their rules.
_ENGINES: Final = {
    "vllm/": "vllm",
    "sglang/": "sglang",
    "llama.cpp/": "llama-cpp",
    "llama-cpp/": "llama-cpp",
}
_OPENROUTER: Final = "openrouter/"
_OPENROUTER_RULES: Final = {
    "anthropic": "openrouter-claude",
    "gemini-implicit": "openrouter-gemini",
}
_BEDROCK_CLAUDE: Final = re.compile(
    r"(?:[a-z]+\.)?anthropic\.(claude-[a-z0-9.-]+?)(?:-v\d+(?::\d+)?)?$"
)

# What catalogs and gateways write before a vendor's own model name.
_PREFIXES: Final = (
    "models/",
    "deepseek-ai/",
    "deepseek/",
    "openai/",
    "anthropic/",
    "google/",
    "moonshotai/",
    "mistralai/",
    "mistral/",
    "minimax/",
    "qwen/",
    "x-ai/",
    "xai/",
    "z-ai/",
    "zai-org/",
    "zai/",
)

_ALIASES: Final = {
    "gpt-35-turbo": "gpt-3.5-turbo",
    "gpt-5.1-mini": "gpt-5.1-codex-mini",
    "gpt-4-1106-preview": "gpt-4-turbo",
    "gpt-4-0125-preview": "gpt-4-turbo",
    "gpt-4-turbo-preview": "gpt-4-turbo",
}

_DATE = re.compile(r"[-@](?:20\d\d-\d\d-\d\d|20\d{6})$")
_SHORT_DATE = re.compile(r"-\d{4}$")  # deepseek-v4-flash-0731, gpt-4-0613
_CLAUDE_DOT = re.compile(r"(?<=\d)\.(?=\d)")


@cache
def _table() -> dict[str, ModelInfo]:
    rows: dict[str, ModelInfo] = {}

    def add(
        names: tuple[str, ...], provider: str, tokenizer: str, rules: str | None, chat: str
    ) -> None:
        for name in names:
            rows[name] = ModelInfo(name, provider, tokenizer, rules, f"{provider}:{name}", chat)

    add(_DEEPSEEK_V4, "deepseek", "deepseek", "deepseek-v4", "deepseek")
    add(_DEEPSEEK_V3, "deepseek", "deepseek", "deepseek-v3", "deepseek")
    add(_OPENAI_128, "openai", "o200k_base", "openai-128", "openai")
    add(_OPENAI_56, "openai", "o200k_base", "openai-breakpoints", "openai")
    add(_OPENAI_6, "openai", "estimate", "openai-breakpoints", "openai")
    add(_CLAUDE_TO_46, "anthropic", "estimate-claude-4.6", "anthropic", "anthropic")
    add(_CLAUDE_FROM_47, "anthropic", "estimate-claude-4.7", "anthropic", "anthropic")
    for name in _OTHERS:
        rows[name] = _of_family(name, name)
    add(_OPENAI_4O_UNCACHED, "openai", "o200k_base", "openai-uncached", "openai")
    add(_OPENAI_OLD, "openai", "cl100k_base", "openai-uncached", "openai")
    return rows


def _of_family(name: str, plain: str) -> ModelInfo:
    """A model known by how its name starts; KeyError for another."""
    for start, family in _FAMILIES.items():
        if plain.startswith(start):
            ref = None if family.catalog is None else f"{family.catalog}:{plain}"
            return ModelInfo(
                name, family.provider, "estimate", family.rules_id, ref, family.chat_format
            )
    raise KeyError(name)


def known_models() -> tuple[str, ...]:
    """Names of the models that cache and whose rules are known, for a picker."""
    uncached = ("openai-uncached", None)
    return tuple(name for name, info in _table().items() if info.rules_id not in uncached)


def resolve_model(name: str) -> ModelInfo:
    """What is known of the model called `name`.

    Vendor prefixes ("deepseek-ai/", "openai/"), case, date suffixes ("-2024-08-06",
    "-20250929"), "-latest" and common aliases are understood; so are Bedrock's ids, "openrouter/"
    before a model, and an engine ("vllm/", "sglang/", "llama.cpp/") before any name. Raises
    UnknownModelError with the nearest known names otherwise.
    """
    plain = name.strip().lower()
    for start, rules in _ENGINES.items():
        if plain.startswith(start):
            return _self_hosted(name.strip(), plain.removeprefix(start), rules)
    if plain.startswith(_OPENROUTER):
        return _through_openrouter(name.strip(), plain.removeprefix(_OPENROUTER))
    bedrock = _BEDROCK_CLAUDE.match(plain)
    if bedrock is not None:
        info = resolve_model(bedrock[1])
        return replace(
            info,
            name=name.strip(),
            provider="aws",
            rules_id="bedrock-claude",
            price_ref=f"aws:{plain}",
        )
    plain = _strip_prefixes(plain)
    for candidate in _candidates(plain):
        known = _table().get(_ALIASES.get(candidate, candidate))
        if known is not None:
            return replace(known, name=name.strip(), price_ref=_price_ref(known, plain))
    try:
        return _of_family(name.strip(), plain)
    except KeyError:
        raise UnknownModelError(name, _nearest(plain)) from None


def _self_hosted(name: str, inner: str, rules: str) -> ModelInfo:
    """A model on an engine of one's own: the engine's rule and no price."""
    try:
        info = resolve_model(inner)
    except UnknownModelError:
        return ModelInfo(name, rules, "estimate", rules, None, "plain")
    return replace(info, name=name, provider=rules, rules_id=rules, price_ref=None)


def _through_openrouter(name: str, inner: str) -> ModelInfo:
    """A model behind OpenRouter: the upstream's rule as far as OpenRouter keeps it."""
    ref = f"openrouter:{inner.partition(':')[0]}"
    try:
        info = resolve_model(inner.partition(":")[0])
    except UnknownModelError:
        return ModelInfo(name, "openrouter", "estimate", "openrouter", ref, "plain")
    rules = _OPENROUTER_RULES.get(info.rules_id or "", info.rules_id or "openrouter")
    return replace(info, name=name, provider="openrouter", rules_id=rules, price_ref=ref)


def _price_ref(info: ModelInfo, plain: str) -> str | None:
    """OpenAI prices some dated names apart, so a dated name keeps its date there."""
    return f"openai:{plain}" if info.provider == "openai" else info.price_ref


def _strip_prefixes(name: str) -> str:
    stripped = True
    while stripped:
        stripped = False
        for prefix in _PREFIXES:
            if name.startswith(prefix):
                name, stripped = name[len(prefix) :], True
    return name


def _candidates(name: str) -> list[str]:
    """The name, and the name without date or "-latest"; most exact first."""
    found = [name, _DATE.sub("", name), name.removesuffix("-latest")]
    if name.startswith(("deepseek-", "gpt-4-", "gpt-3.5-")):
        found.append(_SHORT_DATE.sub("", name))
    if name.startswith("claude-"):
        found += [_CLAUDE_DOT.sub("-", candidate) for candidate in found]
    return found


def _nearest(name: str) -> list[str]:
    """Up to three names with complete rules that look most alike."""
    return difflib.get_close_matches(name, known_models(), n=3, cutoff=0.3)
