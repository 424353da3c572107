"""Deterministic JSON and SHA-256: what the reference hashes and sends, byte for byte.

The reference serialises with serde_json (compact, non-ASCII raw, keys in insertion order, floats
by ryu's pretty printer). Python's `json` differs in how it writes some floats, and it lets through
what has no JSON: NaN, lone surrogates, integers of any size, keys that are not text.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from codesmith_lab.errors import LabError

__all__ = [
    "MAX_JSON_DEPTH",
    "check_text",
    "compact_json",
    "float32_text",
    "float_text",
    "sha256_hex",
]

MAX_JSON_DEPTH = 127
"""Nested lists and mappings, the outermost counted; serde_json reads no deeper."""

_MAX_FLOAT32_DIGITS = 9  # enough to tell any two 32-bit floats apart (IEEE 754)


def check_text(text: str) -> str:
    """The text itself, as a plain `str`; a lone surrogate raises LabError."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise LabError(
                f"the text has a lone surrogate (U+{ord(text[error.start]):04X}) at character "
                f"{error.start}, which has no UTF-8 bytes; replace it before it is hashed or sent"
            ) from None
    return text if type(text) is str else str.__str__(text)


def sha256_hex(text: str) -> str:
    """SHA-256 of the UTF-8 bytes, 64 lower-case hex digits."""
    return hashlib.sha256(check_text(text).encode("utf-8")).hexdigest()


def float_text(value: float) -> str:
    """A 64-bit float as ryu writes it: shortest round trip, 1e16 and not 1e+16."""
    if not math.isfinite(value):
        raise _no_number(value)
    # repr is the shortest round trip as well; float() sheds subclasses with a repr of their own.
    return _pretty(repr(float(value)), 16, -5)


def float32_text(value: float) -> str:
    """The nearest 32-bit float as ryu writes it (1 is "1.0", 1/3 is "0.33333334").

    Raises LabError for what is no number and for numbers beyond the range of 32 bits.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LabError(f"{value!r} is no number; use an int or a float")
    try:
        wide = float(value)
        narrow: float = struct.unpack("<f", struct.pack("<f", wide))[0]
    except OverflowError:
        raise LabError(
            f"{value!r} is beyond a 32-bit float (3.4028235e38); use a smaller number"
        ) from None
    if not math.isfinite(wide):
        raise _no_number(wide)
    return _pretty(_shortest_float32(narrow), 13, -6)


def _no_number(value: float) -> LabError:
    return LabError(f"JSON has no number {value!r}; use a finite one")


def _shortest_float32(value: float) -> str:
    """The fewest digits that read back as this 32-bit float, the nearest of them."""
    if value == 0:
        return repr(value)
    low, high, closed = _float32_interval(abs(value))
    exact, sign = Fraction(abs(value)), "-" if value < 0 else ""
    for digits in range(1, _MAX_FLOAT32_DIGITS):
        nearest = f"{abs(value):.{digits - 1}e}"
        mantissa, exponent = nearest.split("e")
        step = Fraction(10) ** (int(exponent) - digits + 1)
        # At a power of two the upper half of the interval is wider, so that a neighbour of the
        # nearest decimal may lie inside where that one does not.
        counts = [int(mantissa.replace(".", "")) + shift for shift in (0, 1, -1)]
        inside = [
            count
            for count in counts
            if low < count * step < high or (closed and count * step in (low, high))
        ]
        if inside:
            best = min(inside, key=lambda count: abs(count * step - exact))
            return f"{sign}{best}e{int(exponent) - digits + 1}"
    return f"{sign}{abs(value):.{_MAX_FLOAT32_DIGITS - 1}e}"


def _float32_interval(value: float) -> tuple[Fraction, Fraction, bool]:
    """The numbers that round to this positive 32-bit float, and whether the ends do too."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    below = _float32(bits - 1)
    # Behind the greatest float the next step is the one that would overflow.
    above = _float32(bits + 1) if bits + 1 < 0x7F800000 else 2 * Fraction(value) - below
    exact = Fraction(value)
    return (below + exact) / 2, (exact + above) / 2, bits % 2 == 0


def _float32(bits: int) -> Fraction:
    return Fraction(struct.unpack("<f", struct.pack("<I", bits))[0])


def _pretty(shortest: str, plain_to: int, plain_from: int) -> str:
    """ryu's layout: plain while `plain_from` < place of the point <= `plain_to`, else 1.5e-7.

    The limits are ryu 1.0's, `format64` (16, -5) and `format32` (13, -6) in `pretty/mod.rs`.
    """
    sign = "-" if shortest.startswith("-") else ""
    mantissa, _, exponent = shortest.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    written = whole + fraction
    digits = written.lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(written) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return f"{sign}0.0"
    if 0 < point <= plain_to:
        padded = digits.ljust(point, "0")
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    if plain_from < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1}"


def compact_json(value: Any, _depth: int = 0) -> str:
    """Compact JSON of a JSON-like value: keys in order, non-ASCII raw, no white space.

    Raises LabError for anything JSON or the reference cannot hold: other types, keys that are not
    text, non-finite floats, integers outside i64 and u64, lone surrogates, nesting beyond
    `MAX_JSON_DEPTH`.
    """
    if isinstance(value, str):
        return json.dumps(check_text(value), ensure_ascii=False)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise LabError(
                f"an integer of {value.bit_length()} bits does not fit in 64 bits; send it as text"
            )
        return int.__repr__(value)
    if isinstance(value, float):
        return float_text(value)
    if _depth >= MAX_JSON_DEPTH:
        raise LabError(f"the JSON is nested deeper than {MAX_JSON_DEPTH} levels; flatten it")
    if isinstance(value, Mapping):
        fields = (f"{_key(k)}:{compact_json(v, _depth + 1)}" for k, v in value.items())
        return "{" + ",".join(fields) + "}"
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return "[" + ",".join(compact_json(item, _depth + 1) for item in value) + "]"
    raise LabError(f"{type(value).__name__} is no JSON value; use text, numbers, lists, mappings")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise LabError(f"a JSON key is text, not {key!r}; write it as text")
    return json.dumps(check_text(key), ensure_ascii=False)
