"""What every tokenizer here offers, and the clean-up all of them share."""

from __future__ import annotations

import re
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["IdArray", "OffsetArray", "Tokenizer", "clean_text", "utf8_length_bytes"]

IdArray: TypeAlias = npt.NDArray[np.int32]
OffsetArray: TypeAlias = npt.NDArray[np.int64]

_SURROGATES = re.compile("[\ud800-\udfff]")


@runtime_checkable
class Tokenizer(Protocol):
    """Turns content text into tokens. Content is never parsed for special tokens.

    name: for people, e.g. "o200k_base" or "o200k_base x 1.25".
    exact: true when ids equal those of the reference implementation.
    error_band: "±0", or how far an estimate may be off and where.

    In every method lone surrogates, which have no UTF-8 form, count as U+FFFD.
    """

    @property
    def name(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    @property
    def error_band(self) -> str: ...

    def count(self, text: str) -> int:
        """Number of tokens of `text`; equals `len(ids(text))`."""
        ...

    def ids(self, text: str) -> IdArray:
        """Token ids of `text`, special-token text encoded as ordinary text."""
        ...

    def offsets(self, text: str) -> OffsetArray:
        """UTF-8 byte at which each token ends; one entry a token, never decreasing."""
        ...

    def special(self, text: str) -> int | None:
        """Id of the special token spelled `text` (for framing), or None if there is none."""
        ...


def clean_text(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD, so that it has a UTF-8 form."""
    if text.isascii():
        return text
    return _SURROGATES.sub("\ufffd", text)


def utf8_length_bytes(text: str) -> int:
    """UTF-8 length of `text` in bytes (a surrogate counts 3, as U+FFFD does)."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
