"""The boundary stone, and that a request is one snapshot of its zones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.errors import LabError
from codesmith_lab.zones import (
    AppendLog,
    PinnedPrefix,
    PromptNondeterminismError,
    RebuildReason,
    ThreeZoneRequest,
    TurnScratch,
    check_deterministic,
    hand_assembly,
)

TOOLS: list[dict[str, Any]] = [
    {"name": "write", "description": "Write", "input_schema": {"b": 1, "a": 2}},
    {"input_schema": {}, "name": "read", "description": "Read"},
]
SYSTEM = [{"text": "hello é", "type": "text", "cache_control": {"type": "ephemeral"}}]


def message(text: str, role: str = "user") -> dict[str, Any]:
    return {"content": [{"text": text, "type": "text"}], "role": role}


def plain_body() -> dict[str, Any]:
    """What a person writes without zones, in wire order, for `json.dumps` alone."""
    return {
        "model": "deepseek-chat",
        "messages": [
            {"role": role, "content": [{"type": "text", "text": text}]}
            for role, text in (("user", "q"), ("assistant", "a"), ("user", "next"))
        ],
        "max_tokens": 8192,
        "system": [{"type": "text", "text": "hello é", "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": "write", "description": "Write", "input_schema": {"b": 1, "a": 2}},
            {"name": "read", "description": "Read", "input_schema": {}},
        ],
        "reasoning_effort": "low",
        "stream": True,
        "temperature": 0.25,
    }


def by_hand(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def request(log: AppendLog, scratch: TurnScratch, **changes: Any) -> ThreeZoneRequest:
    fields: dict[str, Any] = {"reasoning_effort": "low", "stream": True, "temperature": 0.25}
    return ThreeZoneRequest(
        "deepseek-chat", 8192, PinnedPrefix(SYSTEM, TOOLS), log, scratch, **(fields | changes)
    )


def zones() -> tuple[AppendLog, TurnScratch]:
    return AppendLog([message("q"), message("a", "assistant")]), TurnScratch(message("next"))


def test_boundary_stone_zoned_and_hand_assembly_are_the_same_bytes() -> None:
    zoned = request(*zones()).wire_bytes()
    check_deterministic(zoned, by_hand(plain_body()))
    check_deterministic(zoned, hand_assembly(dict(reversed(plain_body().items()))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"deepseek-chat"', b'"deepseek-Chat"'),
        (b'"text":"a"', b'"text":"b"'),
        (b'"b":1,"a":2', b'"a":2,"b":1'),
        (b"0.25}", b"0.5}"),
    ],
)
def test_boundary_stone_names_the_first_differing_byte(old: bytes, new: bytes) -> None:
    zoned = request(*zones()).wire_bytes()
    at = zoned.index(old) + next(i for i in range(len(old)) if old[i] != new[i])
    with pytest.raises(PromptNondeterminismError) as caught:
        check_deterministic(zoned, zoned.replace(old, new, 1))
    assert caught.value.byte == at
    assert str(caught.value) == (
        f"prompt construction is non-deterministic: first diff at byte {at}"
    )


def test_boundary_stone_counts_bytes_and_sees_a_shorter_twin() -> None:
    with pytest.raises(LabError, match=r"first diff at byte 3$"):
        check_deterministic("é1x".encode(), "é1y".encode())
    with pytest.raises(LabError, match=r"first diff at byte 2$"):
        check_deterministic(b"ab", b"abc")
    with pytest.raises(LabError, match=r"first diff at byte 0$"):
        check_deterministic(b"", b"abc")


@given(st.binary(max_size=8), st.binary(max_size=4), st.binary(max_size=4))
def test_the_first_difference_is_the_end_of_the_common_prefix(
    same: bytes, left: bytes, right: bytes
) -> None:
    left, right = same + left, same + right
    if left == right:
        check_deterministic(left, right)
        return
    with pytest.raises(PromptNondeterminismError) as caught:
        check_deterministic(left, right)
    at = caught.value.byte
    assert left[:at] == right[:at]
    assert left[at : at + 1] != right[at : at + 1]


def test_a_request_is_a_snapshot_of_its_zones() -> None:
    log, scratch = zones()
    tools = [dict(tool) for tool in TOOLS]
    settings: dict[str, Any] = {"metadata": {"user": "u"}, "thinking": {"type": "enabled"}}
    made = ThreeZoneRequest("m", 1, PinnedPrefix(SYSTEM, tools), log, scratch, **settings)
    wire = made.wire_bytes()
    log.push(message("later"))
    log.rebuild(RebuildReason.PURGE, [])
    scratch.clear()
    tools[0]["name"] = "other"
    tools.clear()
    settings["metadata"]["user"] = "v"
    assert made.wire_bytes() == wire
    assert len(made.messages()) == 3
    assert made.freeze_prefix() == PinnedPrefix(SYSTEM, TOOLS).freeze()


def test_messages_are_a_slice_of_the_log_and_the_scratch_tail() -> None:
    log, scratch = zones()
    assert request(log, scratch, log_end=1).messages() == (log[0], scratch.user_message)
    assert request(log, TurnScratch(), log_end=0).messages() == ()
    for wrong in (-1, 3):
        with pytest.raises(LabError, match=f"no first {wrong}"):
            request(log, scratch, log_end=wrong)
    not_logs: list[Any] = [[message("q")], (message("q"),), None]
    for zone in not_logs:
        with pytest.raises(LabError, match="the log of a request is "):
            request(zone, scratch)
    with pytest.raises(LabError, match="the scratch of a request is "):
        request(log, [message("q")])  # type: ignore[arg-type]


def test_scratch_then_send_equals_commit_then_send() -> None:
    log, scratch = zones()
    before = request(log, scratch).wire_bytes()
    scratch.commit(log)
    assert scratch.is_empty
    check_deterministic(request(log, scratch).wire_bytes(), before)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"temperature": float("nan")}, "no number nan"),
        ({"temperature": float("inf")}, "no number inf"),
        ({"top_p": 1e39}, "beyond a 32-bit float"),
        ({"top_p": 10**400}, "beyond a 32-bit float"),
        ({"top_p": True}, "True is no number"),
        ({"top_p": "1"}, "'1' is no number"),
        ({"stream": 1}, "stream is True, False or None, not 1"),
        ({"reasoning_effort": 3}, "reasoning_effort is text, not 3"),
        ({"metadata": {1}}, "set is no JSON value"),
        ({"thinking": 2**70}, "does not fit in 64 bits"),
    ],
)
def test_a_field_the_wire_cannot_hold_is_refused_when_the_request_is_made(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(LabError, match=words):
        request(*zones(), **changes)


@pytest.mark.parametrize("wrong", [-1, 2**32, 1.0, True, "8"])
def test_max_tokens_is_a_32_bit_count(wrong: Any) -> None:
    with pytest.raises(LabError, match="max_tokens is a whole number from 0 to 4294967295"):
        ThreeZoneRequest("m", wrong, PinnedPrefix(), AppendLog())


def test_hand_assembly_refuses_an_unknown_field() -> None:
    with pytest.raises(LabError, match="unknown field 'seed'"):
        hand_assembly({"model": "m", "seed": 1})


def test_the_turn_boundary_clears_the_scratch() -> None:
    scratch = TurnScratch(message("q"), ["a.py", "b.py"])
    scratch.clear()
    assert (scratch.user_message, scratch.working_set, scratch.is_empty) == (None, (), True)
    with pytest.raises(LabError, match="several paths"):
        scratch.set_working_set("a.py")
