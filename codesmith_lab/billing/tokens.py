"""Tokenizers by name: exact ones for DeepSeek and OpenAI, labelled estimates for the others."""

from __future__ import annotations

import threading
from typing import Final

import numpy as np

from codesmith_lab.billing.token_joints import (
    count_joined,
    joint_delta,
    run_counts,
    run_counts_fast,
)
from codesmith_lab.billing.tokenizers_base import IdArray, OffsetArray, Tokenizer, clean_text
from codesmith_lab.billing.tokenizers_deepseek import DeepSeekTokenizer
from codesmith_lab.billing.tokenizers_openai import OpenAITokenizer
from codesmith_lab.errors import LabError

__all__ = [
    "EstimateTokenizer",
    "IdArray",
    "OffsetArray",
    "Tokenizer",
    "clean_text",
    "count_joined",
    "get_tokenizer",
    "joint_delta",
    "run_counts",
    "run_counts_fast",
    "tokenizer_ids",
]


class EstimateTokenizer:
    """An exact tokenizer scaled by a factor, for vocabularies that are not public.

    Token i of the base becomes floor((i + 1) * f) - floor(i * f) tokens with the same id, so
    a longer text never has fewer tokens and two texts that share base tokens share these too.
    The factor is numerator / denominator, at least 1.
    """

    exact = False

    def __init__(
        self, base: Tokenizer, numerator: int, denominator: int, name: str, error_band: str
    ) -> None:
        if denominator < 1 or numerator < denominator:
            raise ValueError(
                f"factor {numerator}/{denominator} is below 1; an estimate keeps every base token"
            )
        self.base = base
        self.numerator = numerator
        self.denominator = denominator
        self.name = name
        self.error_band = error_band

    def scale(self, base_tokens: int) -> int:
        """Estimated tokens for a text of `base_tokens` tokens of the base."""
        return base_tokens * self.numerator // self.denominator

    def unscale(self, tokens: int) -> int:
        """The base tokens behind an estimate; inverse of `scale` as the factor is >= 1."""
        return -(-tokens * self.denominator // self.numerator)

    def count(self, text: str) -> int:
        return self.scale(self.base.count(text))

    def ids(self, text: str) -> IdArray:
        ids = self.base.ids(text)
        return np.repeat(ids, self._copies(len(ids)))

    def offsets(self, text: str) -> OffsetArray:
        """Only the last of the tokens that share a base token carries its bytes."""
        ends = self.base.offsets(text)
        copies = self._copies(len(ends))
        starts = np.concatenate((np.zeros(1, dtype=np.int64), ends[:-1]))[: len(ends)]
        spread = np.repeat(starts, copies)
        spread[np.cumsum(copies) - 1] = ends
        return spread

    def special(self, text: str) -> int | None:
        return self.base.special(text)

    def _copies(self, base_tokens: int) -> OffsetArray:
        bounds = np.arange(base_tokens + 1, dtype=np.int64) * self.numerator // self.denominator
        return np.diff(bounds)


# id: (numerator, denominator, error band). Source: counts of the unofficial counter ctok 1.3.0
# over o200k_base, English text, code and random Unicode; no count of the vendor's own API.
_ESTIMATES: Final = {
    "estimate-claude-4.6": (
        5,
        4,
        "about ±8 % on Latin text and code, up to 25 % too high elsewhere",
    ),
    "estimate-claude-4.7": (
        3,
        2,
        "about ±8 % on Latin text and code, up to 50 % too high elsewhere",
    ),
    "estimate": (1, 1, "unknown"),
}
_EXACT: Final = ("deepseek", "o200k_base", "cl100k_base")

_loaded: dict[str, Tokenizer] = {}
_locks = {name: threading.Lock() for name in (*_EXACT, *_ESTIMATES)}


def tokenizer_ids() -> tuple[str, ...]:
    """Every id that `get_tokenizer` takes."""
    return tuple(_locks)


def get_tokenizer(tokenizer_id: str) -> Tokenizer:
    """The tokenizer named `tokenizer_id`, loaded at its first use and kept. Thread-safe.

    Exact: "deepseek", "o200k_base", "cl100k_base". Estimates over o200k_base:
    "estimate-claude-4.6" (Claude up to 4.6), "estimate-claude-4.7" (Claude from 4.7 on),
    "estimate". Raises LabError for another name or a vocabulary that fails its check.
    """
    found = _loaded.get(tokenizer_id)
    if found is not None:
        return found
    if tokenizer_id not in _locks:
        raise LabError(f"tokenizer {tokenizer_id!r} is unknown; choose one of {', '.join(_locks)}")
    with _locks[tokenizer_id]:
        if tokenizer_id not in _loaded:
            _loaded[tokenizer_id] = _load(tokenizer_id)
        return _loaded[tokenizer_id]


def _load(tokenizer_id: str) -> Tokenizer:
    if tokenizer_id == "deepseek":
        return DeepSeekTokenizer()
    if tokenizer_id in _EXACT:
        return OpenAITokenizer(tokenizer_id)
    numerator, denominator, band = _ESTIMATES[tokenizer_id]
    name = f"o200k_base x {numerator / denominator:g} (estimate)"
    return EstimateTokenizer(get_tokenizer("o200k_base"), numerator, denominator, name, band)
