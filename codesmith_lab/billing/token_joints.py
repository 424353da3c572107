"""Token counts where texts meet.

Tokens of a joined text are not the tokens of its parts: "hello wor" + "ld" has fewer. What a
joint changes stays near it, since both vocabularies split text into words before they merge,
so counting a window on each side is enough. The slow exact functions stand beside the fast
ones, and tests hold them equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeGuard

import numpy as np

from codesmith_lab.billing.tokenizers_base import Tokenizer, utf8_length_bytes

__all__ = ["count_joined", "joint_delta", "run_counts", "run_counts_fast"]

WINDOW_CHARS = 128

# A joint's window costs about as much as encoding this many characters (measured, factor 2).
_CHARS_PER_JOINT = 2500

# A place inside a window where both vocabularies surely start a new word, whatever is around.
_WORD_STARTS = re.compile(r"\S\s+\S")


class _Scaled(Protocol):
    """An estimate: its counts are floors of a multiple, so joints are counted in its base."""

    base: Tokenizer

    def scale(self, base_tokens: int) -> int: ...
    def unscale(self, tokens: int) -> int: ...


def _is_scaled(tokenizer: object) -> TypeGuard[_Scaled]:
    return hasattr(tokenizer, "unscale")


def joint_delta(
    left_tail: str, right_head: str, tokenizer: Tokenizer, window_chars: int = WINDOW_CHARS
) -> int:
    """Tokens that joining adds (usually 0 or negative): n(tail + head) - n(tail) - n(head).

    Looks at `window_chars` characters on each side, more where a run without a word start
    is longer, so whole texts may be given. For an estimate the result is off by 1 at most,
    as each of its counts is rounded down.
    """
    tail, head = _tail(left_tail, window_chars), _head(right_head, window_chars)
    if not tail or not head:
        return 0
    return tokenizer.count(tail + head) - tokenizer.count(tail) - tokenizer.count(head)


def count_joined(left: str, right: str, tokenizer: Tokenizer) -> int:
    """Tokens of `left + right`, from the counts of both and of the joint."""
    if _is_scaled(tokenizer):
        return tokenizer.scale(count_joined(left, right, tokenizer.base))
    return tokenizer.count(left) + tokenizer.count(right) + joint_delta(left, right, tokenizer)


def run_counts(texts: Sequence[str], tokenizer: Tokenizer) -> list[int]:
    """Tokens of each text inside the joined text; their sum is the joined text's count.

    A token belongs to the text in which its first byte lies. Encodes the whole text.
    """
    ends = tokenizer.offsets("".join(texts))
    starts = np.concatenate((np.zeros(1, dtype=np.int64), ends[:-1]))[: len(ends)]
    bounds = np.cumsum([utf8_length_bytes(text) for text in texts], dtype=np.int64)
    upto = np.searchsorted(starts, bounds, side="left")
    return [int(n) for n in np.diff(upto, prepend=0)]


def run_counts_fast(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    counts: Sequence[int] | None = None,
    window_chars: int = WINDOW_CHARS,
) -> list[int]:
    """The same as `run_counts`, from each text's own count and windows around the joints.

    counts: `tokenizer.count(text)` of every text where the caller has kept them; only texts
    near their neighbours' joints are encoded then. Many small texts are joined and encoded
    whole, which costs less than a window for each.
    """
    if counts is not None and len(counts) != len(texts):
        raise ValueError(f"{len(counts)} counts for {len(texts)} texts; give one a text")
    if _is_scaled(tokenizer):
        base = None if counts is None else [tokenizer.unscale(n) for n in counts]
        upto = np.cumsum(run_counts_fast(texts, tokenizer.base, base, window_chars), dtype=int)
        scaled = [tokenizer.scale(int(n)) for n in upto]
        return [b - a for a, b in zip([0, *scaled], scaled, strict=False)]
    if sum(map(len, texts)) < len(texts) * _CHARS_PER_JOINT:
        return run_counts(texts, tokenizer)
    own = list(counts) if counts is not None else [tokenizer.count(text) for text in texts]
    return _counts_by_windows(texts, tokenizer, own, window_chars)


def _counts_by_windows(
    texts: Sequence[str], tokenizer: Tokenizer, own: Sequence[int], window_chars: int
) -> list[int]:
    result = [0] * len(texts)
    window: list[tuple[int, str, bool]] = []
    for index, text in enumerate(texts):
        head, tail = _head(text, window_chars), _tail(text, window_chars)
        if len(head) + len(tail) >= len(text):
            window.append((index, text, True))
            continue
        result[index] = own[index]
        window.append((index, head, False))
        _settle(window, tokenizer, own, result)
        window = [(index, tail, False)]
    _settle(window, tokenizer, own, result)
    return result


def _settle(
    window: list[tuple[int, str, bool]],
    tokenizer: Tokenizer,
    own: Sequence[int],
    result: list[int],
) -> None:
    """Add one window's counts: all of a short text, only the change of a long one's end."""
    if len(window) == 1:
        index, _, whole = window[0]
        if whole:
            result[index] += own[index]
        return
    inside = run_counts([piece for _, piece, _ in window], tokenizer)
    for (index, piece, whole), tokens in zip(window, inside, strict=True):
        result[index] += tokens if whole else tokens - tokenizer.count(piece)


def _tail(text: str, window_chars: int) -> str:
    """The end of `text`, long enough to hold a word start in the half next to the joint."""
    width = window_chars
    while width < len(text):
        if _WORD_STARTS.search(text, len(text) - width // 2):
            return text[-width:]
        width *= 2
    return text


def _head(text: str, window_chars: int) -> str:
    """The start of `text`, long enough to hold a word start in the half next to the joint."""
    width = window_chars
    while width < len(text):
        if _WORD_STARTS.search(text, 0, width // 2):
            return text[:width]
        width *= 2
    return text
