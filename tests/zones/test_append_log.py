"""Only a rebuild changes what was said."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.errors import LabError
from codesmith_lab.zones import AppendLog, RebuildReason, ThreeZoneRequest, check_deterministic
from codesmith_lab.zones.prefix import PinnedPrefix

messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant"]),
        "content": st.lists(
            st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=5)}),
            max_size=2,
        ),
    }
)


@given(st.lists(messages, max_size=6), st.lists(messages, max_size=4))
def test_nothing_but_a_rebuild_changes_an_earlier_message(
    first: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    held = copy.deepcopy(first)
    log = AppendLog(held)
    before = [log.message_bytes(i) for i in range(len(log))]
    for message in held:
        message["role"] = "system"
        message["content"].append({"type": "text", "text": "late"})
    for message in more:
        log.push(message)
        log[-1:]
        list(reversed(log))
    assert [log.message_bytes(i) for i in range(len(before))] == before
    assert [m["role"] for m in log[: len(first)]] == [m["role"] for m in first]
    for name in ("insert", "remove", "pop", "clear", "sort", "reverse", "extend", "append"):
        assert not hasattr(log, name)
    if len(log):
        with pytest.raises(TypeError):
            log[0]["role"] = "x"  # type: ignore[index]
        with pytest.raises(TypeError):
            log[0] = {}  # type: ignore[index]


def test_a_rebuild_is_atomic_signed_and_told_once() -> None:
    log = AppendLog([{"role": "user", "content": "a"}])
    events: list[Any] = []
    log.subscribe(events.append)
    with pytest.raises(LabError):
        log.rebuild(RebuildReason.PURGE, [{"role": "user", "content": object()}])
    assert (len(log), events) == (1, [])
    for _ in range(10):
        log.rebuild(RebuildReason.FRONT_TRIM, [])
    assert len(events) == 10
    assert len(log.records) == 8
    assert log.records[-1].messages_before == 0


def test_the_boundary_stone_names_the_byte() -> None:
    log = AppendLog([{"role": "user", "content": "hi"}])
    request = ThreeZoneRequest("m", 1, PinnedPrefix("s"), log)
    plain = (
        b'{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":1,'
        b'"system":"s","tools":[]}'
    )
    check_deterministic(request.wire_bytes(), plain)
    with pytest.raises(LabError, match="non-deterministic: first diff at byte 2"):
        check_deterministic(request.wire_bytes(), b'{"' + b"x" + plain[3:])
