"""Numbers and text as serde_json writes them, and what it has no bytes for."""

from __future__ import annotations

import json
import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codesmith_lab.errors import LabError
from codesmith_lab.fingerprint import compact_json, float32_text, float_text, sha256_hex

FLOATS_64 = {
    1e-5: "0.00001",
    1.5e-5: "0.000015",
    1e-6: "1e-6",
    1.25e-7: "1.25e-7",
    1e15: "1000000000000000.0",
    1e16: "1e16",
    123456789012345680.0: "1.2345678901234568e17",
    1e22: "1e22",
    5e-324: "5e-324",
    1.7976931348623157e308: "1.7976931348623157e308",
    0.1: "0.1",
    -0.0: "-0.0",
    100.0: "100.0",
}
"""By hand from the limits in ryu 1.0's `pretty::format64`: plain from 1e-5 to below 1e16."""

FLOATS_32 = {
    1e-6: "0.000001",
    1e-7: "1e-7",
    1e12: "1000000000000.0",
    1e13: "1e13",
    16777216.0: "16777216.0",
    3.4028234663852886e38: "3.4028235e38",
    1e-45: "1e-45",
    1 / 3: "0.33333334",
    0.7: "0.7",
    1: "1.0",
    0: "0.0",
    -2.5: "-2.5",
}
"""By hand from `pretty::format32`: plain from 1e-6 to below 1e13."""


@pytest.mark.parametrize(("value", "text"), FLOATS_64.items())
def test_floats_are_written_as_ryu_does(value: float, text: str) -> None:
    assert float_text(value) == text == compact_json(value)


@pytest.mark.parametrize(("value", "text"), FLOATS_32.items())
def test_32_bit_floats_are_written_as_ryu_does(value: float, text: str) -> None:
    assert float32_text(value) == text


def same_decimal(one: str, two: str) -> bool:
    return Fraction(one) == Fraction(two)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_read_back_and_have_no_digit_more_than_repr(value: float) -> None:
    text = float_text(value)
    assert struct.pack("<d", json.loads(text)) == struct.pack("<d", value)
    assert same_decimal(text, repr(value))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(2.0**-126)  # the smallest normal number
@example(2.0**-149)  # the smallest of all
@example(2.0**24)
@example(2.0**90)
def test_32_bit_floats_equal_an_independent_shortest_search(value: float) -> None:
    text = float32_text(value)
    assert struct.pack("<f", float(text)) == struct.pack("<f", value)
    oracle = np.format_float_scientific(np.float32(value), unique=True, trim="0")
    assert same_decimal(text, oracle)


@given(st.floats(-1e38, 1e38))
def test_64_bit_values_are_rounded_to_32_bits_first(value: float) -> None:
    assert float32_text(value) == float32_text(float(np.float32(value)))


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(json_values)
def test_without_floats_it_is_pythons_compact_json(value: Any) -> None:
    assert compact_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_non_finite_numbers_are_refused(value: float) -> None:
    for write in (float_text, float32_text, compact_json):
        with pytest.raises(LabError, match="JSON has no number"):
            write(value)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 1 << 20_000], ids=["u64", "i64", "huge"])
def test_integers_beyond_64_bits_are_refused(value: int) -> None:
    assert compact_json([2**64 - 1, -(2**63)]) == "[18446744073709551615,-9223372036854775808]"
    with pytest.raises(LabError, match="does not fit in 64 bits; send it as text"):
        compact_json({"x": value})


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udfff", "\udc00\ud800"], ids=["high", "low", "swapped"]
)
def test_lone_surrogates_are_refused(text: str) -> None:
    for write in (sha256_hex, compact_json, lambda key: compact_json({key: 1})):
        with pytest.raises(LabError, match="lone surrogate"):
            write(text)


@pytest.mark.parametrize("value", [{1}, b"x", bytearray(b"x"), memoryview(b"x"), object(), 1j])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(LabError, match="is no JSON value"):
        compact_json([value])


def test_numpy_floats_are_floats() -> None:
    assert compact_json([np.float64(0.1)]) == "[0.1]"
