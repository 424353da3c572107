"""Spans are exact slices of what was read, and the limits hold wherever the value stands."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.sessions.reading.json_spans import (
    MAX_DEPTH,
    BadJson,
    decode_at,
    items_of,
    members_of,
    plain,
)
from codesmith_lab.sessions.reading.lines import (
    ArraySpan,
    LineWalker,
    ObjectSpan,
    Span,
    common_bytes,
)

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
KEYS = TEXTS | st.sampled_from(["messages", "tools", "system", "request", "model"])
STYLES = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\r ")])


def value_of(member: Any) -> Any:
    if isinstance(member, Span):
        assert json.loads(member.raw) == member.value
        return member.value
    if isinstance(member, ArraySpan):
        assert json.loads(member.raw) == [value_of(item) for item in member.items]
        return [item.value for item in member.items]
    return {key: value_of(inner) for key, inner in member.members.items()}


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=5), STYLES, st.booleans())
def test_spans_are_exact_slices(
    bodies: list[dict[str, Any]], style: tuple[str, str], ascii_only: bool
) -> None:
    """Through one walker, so that each line may share anything with those before it."""
    walker = LineWalker()
    for body in bodies:
        line = json.dumps(body, separators=style, ensure_ascii=ascii_only).encode()
        found = walker.walk(b" " + line + b"\t")
        assert isinstance(found, ObjectSpan)
        assert found.raw == line
        assert value_of(found) == body
        assert {k: s.value for k, s in members_of(line).items()} == body


@given(st.lists(st.lists(VALUES, max_size=8), max_size=6))
def test_arrays_that_share_items_stay_exact(histories: list[list[Any]]) -> None:
    walker = LineWalker()
    for i, history in enumerate(histories):
        # Neighbouring histories share their ends, in each of the ways a log may edit them.
        mixed = (histories[i - 1][:4] if i else []) + history[1:] + history[:1]
        line = json.dumps({"n": "x" * i, "messages": mixed}, ensure_ascii=False).encode()
        found = walker.walk(line)
        assert found.raw == line
        assert value_of(found)["messages"] == mixed


def test_a_number_is_not_shared_with_a_longer_one() -> None:
    walker = LineWalker()
    for numbers in ([1, 2], [1, 23], [12], [1], [1, 2, 3]):
        line = json.dumps({"messages": numbers, "n": numbers[-1]}).encode()
        found = walker.walk(line)
        assert value_of(found) == {"messages": numbers, "n": numbers[-1]}


def test_an_array_item_seen_before_is_the_same_object() -> None:
    walker = LineWalker()
    first = walker.walk(b'{"messages":[{"a":1},{"b":2},{"c":3}]}').members["messages"]
    second = walker.walk(b'{"k":9,"messages":[{"z":0},{"c":3},{"a":1}]}').members["messages"]
    assert isinstance(first, ArraySpan) and isinstance(second, ArraySpan)
    assert second.items[1] is first.items[2]
    assert second.items[2] is first.items[0]


@pytest.mark.parametrize("size", [10, 2047, 2048, 2049, 2050, 16384, 70_000])
@pytest.mark.parametrize("letter", ["a", "é", "語", "😀"])
def test_a_value_may_end_anywhere_in_the_window(size: int, letter: str) -> None:
    text = "-" * (size % 7) + letter * (size // len(letter.encode()))
    line = json.dumps([text, 12345678901234567890], ensure_ascii=False).encode()
    value, end = decode_at(line, 0)
    assert (value, end) == ([text, 12345678901234567890], len(line))
    number = b"7" * size if size < 4000 else b"7" * 4000
    assert decode_at(number + b" ", 0) == (int(number), len(number))


def test_depth_is_limited_by_a_number_and_not_by_the_stack() -> None:
    fine = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert decode_at(fine, 0)[1] == 2 * MAX_DEPTH
    for depth in (MAX_DEPTH + 1, 900, 10_000, 200_000):
        with pytest.raises(BadJson, match="nests deeper than 200 levels"):
            decode_at(b'[{"a":' * (depth // 2) + b"[" + b"1]" + b"}]" * (depth // 2), 0)
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(60_000)
        with pytest.raises(BadJson, match="nests deeper than 200 levels"):
            decode_at(b"[" * 10_000, 0)
    finally:
        sys.setrecursionlimit(limit)
    # Brackets in texts are no depth, and neither are many shallow values.
    for texts in (["[{" * 5000, '\\"[' * 5000], ['"[\\' * 3000]):
        assert decode_at(json.dumps(texts + [[]] * 500).encode(), 0)[0][: len(texts)] == texts


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a":NaN}', "NaN is not a JSON number"),
        (b'{"a":[-Infinity]}', "-Infinity is not a JSON number"),
        (b'{"a":1e999}', "the number 1e999 is too large"),
        (b'{"a":' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"a":1,"a":2}', "the key 'a' stands twice"),
        (b'{"x":[{"b":{"a":1,"a":1}}]}', "the key 'a' stands twice"),
        (b'{"messages":[{"role":"a","role":"b"}]}', "the key 'role' stands twice"),
        (b'{"\\ud800":1,"\\ud800":1}', "the key '\ufffd' stands twice"),
        (b'{"a":"\xff"}', "byte 7 of the line is not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "byte 7 of the line is not UTF-8"),
        (b'{"a":"' + "é".encode() * 2000 + b'\xff"}', "byte 4007 of the line is not UTF-8"),
        (b'{"a":"x', "cut off"),
        (b'{"a":', "cut off"),
        (b'{"a"', "cut off"),
        (b"{", "cut off"),
        (b'{"messages":[{"role":"user"}', "cut off"),
        (b'{"messages":[{"role":"us', "cut off"),
        (b'{"a":1 "b":2}', "not JSON at byte 8"),
        (b'{"a":1,}', "not JSON at byte 8"),
        (b'{"messages":[1,]}', "not JSON at byte 16"),
        (b'{"messages":[1 2]}', "not JSON at byte 16"),
        (b"{a:1}", "not JSON at byte 2"),
        (b'{"a";1}', "not JSON at byte 5"),
        (b'{"a":1} {"b":2}', "something follows the object at byte 9"),
        (b'["a"]', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"hello", "not JSON at byte 1"),
        (b'{"a":"\x01"}', "invalid control character"),
    ],
)
def test_what_cannot_be_used_says_why(line: bytes, reason: str) -> None:
    with pytest.raises(BadJson, match=reason.replace("(", "\\(")):
        LineWalker().walk(line)


@given(st.binary(max_size=700), st.binary(max_size=700), st.integers(0, 5), st.integers(0, 700))
def test_common_bytes_is_the_longest_common_prefix(
    a: bytes, b: bytes, b_at: int, most: int
) -> None:
    b = b[:b_at].ljust(b_at, b".") + a[: len(a) // 2] + b[b_at:]
    found = common_bytes(a, 0, b, b_at, most)
    assert a[:found] == b[b_at : b_at + found]
    end = min(most, len(a), len(b) - b_at)
    assert found == end or a[found] != b[b_at + found]


def test_arrays_of_two_texts() -> None:
    assert [span.raw for span in items_of(b' [ "a" , {"b": 1.0} ]')] == [b'"a"', b'{"b": 1.0}']


@given(st.text())
def test_plain_text_is_what_utf8_carries(text: str) -> None:
    cleaned = plain(text)
    cleaned.encode("utf-8")
    assert len(cleaned) <= len(text)
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert cleaned == text
