"""o200k_base and cl100k_base, offline and equal to tiktoken.

The fast engine is toktok, whose vocabulary is compiled in. Its full surface is private, so
every use of it is in this module and a contract test holds it.

toktok classifies characters by Unicode 17, tiktoken 0.14 by Unicode 16. Texts that hold a code
point new in Unicode 17 go to a second engine (fastokens, which agrees with tiktoken on every code
point), fed with the ranks that toktok exports; the exported ranks are checked against the SHA-256
that tiktoken demands of OpenAI's own files.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from codesmith_lab.billing.tokenizers_base import IdArray, OffsetArray, clean_text
from codesmith_lab.billing.unicode_17 import has_unicode_17
from codesmith_lab.errors import LabError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["OpenAITokenizer", "export_ranks"]

# SHA-256 of the rank files, from tiktoken 0.14.0, tiktoken_ext/openai_public.py.
RANKS_SHA256: Final = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}

# Framing tokens of ChatML as community tools number them; OpenAI does not publish them. Only
# that each differs from all content tokens matters: no count depends on the numbers.
_CHATML: Final = {
    "cl100k_base": {"<|im_start|>": 100264, "<|im_end|>": 100265, "<|im_sep|>": 100266},
    "o200k_base": {"<|im_start|>": 200264, "<|im_end|>": 200265, "<|im_sep|>": 200266},
}


def export_ranks(encoding: str) -> bytes:
    """The `.tiktoken` rank file of `encoding`, rebuilt from toktok's compiled vocabulary.

    Raises LabError when its SHA-256 is not the one OpenAI's file has.
    """
    values = _load_toktok(encoding).token_byte_values()
    data = b"".join(base64.b64encode(v) + b" %d\n" % rank for rank, v in enumerate(values))
    digest = hashlib.sha256(data).hexdigest()
    if digest != RANKS_SHA256[encoding]:
        raise LabError(
            f"the installed toktok vocabulary of {encoding} has SHA-256 {digest}, "
            f"but OpenAI's is {RANKS_SHA256[encoding]}; install toktok-rs 0.3"
        )
    return data


def _load_toktok(encoding: str) -> Any:
    import toktok  # type: ignore[import-untyped, unused-ignore]

    return toktok._encoding(encoding)


class OpenAITokenizer:
    """One OpenAI encoding. Thread-safe; ids equal tiktoken's `encode_ordinary`."""

    exact = True
    error_band = "±0"

    def __init__(self, encoding: str) -> None:
        """Load `encoding`: "o200k_base" or "cl100k_base" (about half a second, once)."""
        self.name = encoding
        self._fast = _load_toktok(encoding)
        self._special: dict[str, int] = {**_CHATML[encoding], **dict(self._fast.special_tokens())}
        self._lock = threading.Lock()
        self._lengths: npt.NDArray[np.int64] | None = None
        self._slow: Any = None

    def count(self, text: str) -> int:
        text = clean_text(text)
        if has_unicode_17(text):
            return len(self._reference().encode_ordinary(text))
        return int(self._fast.count(text))

    def ids(self, text: str) -> IdArray:
        text = clean_text(text)
        if has_unicode_17(text):
            return np.array(self._reference().encode_ordinary(text).ids, dtype=np.int32)
        flat, _ = self._fast.encode_batch_to_numpy([text], 1)
        found: IdArray = flat.astype(np.int32)
        return found

    def offsets(self, text: str) -> OffsetArray:
        return np.cumsum(self._byte_lengths()[self.ids(text)], dtype=np.int64)

    def special(self, text: str) -> int | None:
        return self._special.get(text)

    def _byte_lengths(self) -> npt.NDArray[np.int64]:
        """UTF-8 bytes of each token, by id."""
        with self._lock:
            if self._lengths is None:
                values = self._fast.token_byte_values()
                self._lengths = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
            return self._lengths

    def _reference(self) -> Any:
        """The engine that classifies characters as tiktoken does (one to two seconds, once)."""
        with self._lock:
            if self._slow is None:
                from fastokens import (  # type: ignore[import-untyped, unused-ignore]
                    Tokenizer as Engine,
                )

                # The engine reads ranks from a file only.
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder, f"{self.name}.tiktoken")
                    path.write_bytes(export_ranks(self.name))
                    self._slow = Engine.from_tiktoken(str(path), encoding=self.name)
            return self._slow
