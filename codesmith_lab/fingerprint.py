"""Deterministic JSON and SHA-256: what the reference hashes and sends, byte for byte.

The reference serialises with serde_json (compact, non-ASCII raw, keys in insertion order, ryu
floats); Python's `json` differs only in how it writes some floats.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codesmith_lab.errors import LabError

__all__ = ["compact_json", "float32_text", "float_text", "sha256_hex"]


def sha256_hex(text: str) -> str:
    """SHA-256 of the UTF-8 bytes, 64 lower-case hex digits."""
    try:
        return hashlib.sha256(text.encode("utf-8")).hexdigest()
    except UnicodeEncodeError:
        raise LabError(
            "text with a lone surrogate has no UTF-8 bytes, so it cannot be hashed or sent; "
            "replace it first"
        ) from None


def float_text(value: float) -> str:
    """A 64-bit float as serde_json writes it: shortest round trip, exponent without "+0"."""
    return _ryu(repr(value), value)


def float32_text(value: float) -> str:
    """The nearest 32-bit float as serde_json writes it (1 is "1.0", 1/3 is "0.33333334")."""
    narrow = np.float32(value)
    return _ryu(np.format_float_scientific(narrow, unique=True, trim="0"), float(narrow))


def _ryu(digits: str, value: float) -> str:
    if not math.isfinite(value):
        raise LabError(f"JSON has no number {value!r}; use a finite one")
    sign = "-" if digits.startswith("-") else ""
    mantissa, _, exponent = digits.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    power = int(exponent or 0) + len(whole)
    figures = (whole + fraction).lstrip("0")
    power -= len(whole + fraction) - len((whole + fraction).lstrip("0"))
    if not figures:
        return sign + "0.0"
    figures = figures.rstrip("0") or "0"
    # ryu's pretty printer: plain between 1e-5 (exclusive) and 1e16, scientific outside.
    if 0 < power <= 16:
        padded = figures.ljust(power, "0")
        return f"{sign}{padded[:power]}.{padded[power:] or '0'}"
    if -5 < power <= 0:
        return f"{sign}0.{'0' * -power}{figures}"
    tail = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{sign}{figures[0]}{tail}e{power - 1}"


def compact_json(value: Any) -> str:
    """Compact JSON of a JSON-like value: keys in order, non-ASCII raw, no white space.

    Raises LabError for anything JSON or the reference cannot hold: other types, keys that are not
    text, non-finite floats, integers outside 64 bits.
    """
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise LabError(f"the integer {value} does not fit in 64 bits; send it as text")
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_key(k)}:{compact_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return "[" + ",".join(compact_json(item) for item in value) + "]"
    raise LabError(f"{type(value).__name__} is no JSON value; use text, numbers, lists, mappings")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise LabError(f"a JSON key is text, not {key!r}")
    return json.dumps(key, ensure_ascii=False)
