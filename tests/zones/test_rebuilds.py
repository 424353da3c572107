"""The one escape hatch: atomic, signed, told once; and what a log refuses."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from codesmith_lab.errors import LabError
from codesmith_lab.zones import AppendLog, RebuildReason, RebuildRecord, TranscriptRebuilt, freeze
from codesmith_lab.zones.append_log import Message


def message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def texts(log: AppendLog) -> list[str]:
    return [each["content"] for each in log]


def test_a_rebuild_replaces_all_and_keeps_a_record() -> None:
    log = AppendLog([message("a"), message("b")])
    record = log.rebuild(RebuildReason.MANUAL_COMPACTION, [message("summary")])
    assert texts(log) == ["summary"]
    assert record == RebuildRecord(RebuildReason.MANUAL_COMPACTION, 2, 1) == log.last_rebuild


def test_the_eight_newest_records_are_kept_oldest_first() -> None:
    log = AppendLog()
    for number in range(11):
        log.rebuild(RebuildReason.runtime(f"step {number}"), [message("x")] * number)
    assert [record.messages_after for record in log.records] == list(range(3, 11))


def test_a_rebuild_reads_the_log_it_replaces() -> None:
    log = AppendLog([message("a"), message("b"), message("c")])
    log.rebuild(RebuildReason.FRONT_TRIM, (each for each in log if each["content"] != "a"))
    assert texts(log) == ["b", "c"]


def test_a_failing_rebuild_leaves_everything_as_it_was() -> None:
    log = AppendLog([message("a")])
    events: list[TranscriptRebuilt] = []
    log.subscribe(events.append)
    wire = log.message_bytes(0)
    with pytest.raises(LabError, match="set is no JSON value"):
        log.rebuild(RebuildReason.PURGE, [message("b"), {"role": "user", "content": {1}}])
    assert (texts(log), log.message_bytes(0), log.records, events) == (["a"], wire, (), [])


def test_a_source_that_changes_the_log_is_refused() -> None:
    log = AppendLog([message("a")])

    def pushing() -> Iterator[Message]:
        log.push(message("pushed"))
        yield message("b")

    def rebuilding() -> Iterator[Message]:
        log.rebuild(RebuildReason.PURGE, [message("inner")])
        yield message("b")

    for source, left in ((pushing, ["a", "pushed"]), (rebuilding, ["inner"])):
        with pytest.raises(LabError, match="changed while"):
            log.rebuild(RebuildReason.PURGE, source())
        assert texts(log) == left


def test_each_subscriber_is_told_exactly_once() -> None:
    log = AppendLog([message("a")])
    first: list[TranscriptRebuilt] = []
    second: list[str] = []

    def tell_second(event: TranscriptRebuilt) -> None:
        second.append(str(event.record.reason))

    def tell_first(event: TranscriptRebuilt) -> None:
        first.append(event)

    log.subscribe(tell_first)
    log.subscribe(tell_first)
    stop = log.subscribe(tell_second)
    log.rebuild(RebuildReason.PURGE, [])
    log.push(message("b"))
    stop()
    stop()
    log.rebuild(RebuildReason.PURGE, [])
    assert [event.record.messages_before for event in first] == [1, 1]
    assert second == ["context purge (/purge)"]


def test_a_raising_subscriber_leaves_nothing_half_done() -> None:
    log = AppendLog([message("a")])
    told: list[TranscriptRebuilt] = []

    def fail(event: TranscriptRebuilt) -> None:
        raise ValueError("boom")

    log.subscribe(fail)
    log.subscribe(told.append)
    with pytest.raises(ExceptionGroup, match="the rebuild is complete") as caught:
        log.rebuild(RebuildReason.EDIT_ROLLBACK, [message("b"), message("c")])
    assert [str(error) for error in caught.value.exceptions] == ["boom"]
    assert texts(log) == ["b", "c"]
    assert log.last_rebuild == RebuildRecord(RebuildReason.EDIT_ROLLBACK, 1, 2)
    assert [event.record for event in told] == [log.last_rebuild]


def test_a_rebuild_by_a_subscriber_is_told_after_the_running_one() -> None:
    log = AppendLog([message("a")])
    seen: dict[str, list[int]] = {"first": [], "last": []}

    def first(event: TranscriptRebuilt) -> None:
        seen["first"].append(event.record.messages_after)
        if event.record.messages_after == 2:
            log.rebuild(RebuildReason.MICRO_COMPACTION, [message("c")])

    log.subscribe(first)
    log.subscribe(lambda event: seen["last"].append(event.record.messages_after))
    log.rebuild(RebuildReason.PURGE, [message("b"), message("b")])
    assert seen == {"first": [2, 1], "last": [2, 1]}


def test_a_subscriber_sees_the_new_history() -> None:
    log = AppendLog([message("a")])
    seen: list[list[str]] = []
    log.subscribe(lambda event: seen.append(texts(log)))
    log.rebuild(RebuildReason.SESSION_SYNC, [message("b")])
    assert seen == [["b"]]


def test_a_copy_is_a_log_of_its_own_without_subscribers() -> None:
    log = AppendLog([message("a")])
    events: list[TranscriptRebuilt] = []
    log.subscribe(events.append)
    for twin in (copy.copy(log), copy.deepcopy(log)):
        twin.push(message("b"))
        twin.rebuild(RebuildReason.PURGE, [])
    assert (texts(log), log.records, events) == (["a"], (), [])


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (["role"], "a message is a mapping"),
        ({"content": "x"}, "a role that is text"),
        ({"role": 3, "content": "x"}, "a role that is text"),
        ({"role": "user", "content": float("inf")}, "no number inf"),
        ({"role": "user", "content": 2**64}, "does not fit in 64 bits"),
        ({"role": "user", "content": -(2**63) - 1}, "does not fit in 64 bits"),
        ({"role": "user", "content": "a\ud83d"}, r"lone surrogate \(U\+D83D\) at character 1"),
        ({"role": "user", "\ud800": "x"}, "lone surrogate"),
        ({"role": "user", "content": {1: "x"}}, "a JSON key is text, not 1"),
        ({"role": "user", "content": b"x"}, "bytes is no JSON value"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_a_sentence(bad: Any, words: str) -> None:
    log = AppendLog()
    with pytest.raises(LabError, match=words):
        log.push(bad)
    assert len(log) == 0


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_depth_is_bounded_and_cycles_are_refused() -> None:
    log = AppendLog([{"role": "user", "content": nested(126)}])
    assert log.message_bytes(0).count(b"[") == 126
    cycle: dict[str, Any] = {"role": "user"}
    cycle["content"] = cycle
    deep = [{"role": "user", "content": nested(levels)} for levels in (127, 20_000)]
    for refused in (*deep, cycle):
        with pytest.raises(LabError, match="nested deeper than 127 levels"):
            log.push(refused)


def test_subclasses_lose_what_they_carry() -> None:
    class Text(str):
        def __str__(self) -> str:
            return "other"

    class Number(float):
        def __repr__(self) -> str:
            return "Number()"

    frozen = freeze({"a": Text("x"), "b": Number(1.5)})
    assert [type(frozen["a"]), type(frozen["b"])] == [str, float]
    log = AppendLog([{"role": "user", "content": [Text("x"), Number(1.5)]}])
    assert log.message_bytes(0) == b'{"role":"user","content":["x",1.5]}'


def test_fields_keep_the_references_order_and_none_is_dropped_or_invented() -> None:
    call = {"type": "function", "id": "c"}
    thought = {"signature": "s", "thinking": "t", "type": "thinking"}
    log = AppendLog(
        [
            {"tool_calls": [call], "role": "assistant", "content": None},
            {"tool_call_id": "c", "role": "tool"},
            {"content": [thought], "role": "user"},
        ]
    )
    assert [log.message_bytes(index).decode() for index in range(3)] == [
        '{"role":"assistant","content":null,"tool_calls":[{"type":"function","id":"c"}]}',
        '{"role":"tool","tool_call_id":"c"}',
        '{"role":"user","content":[{"type":"thinking","thinking":"t","signature":"s"}]}',
    ]


def test_reasons_are_the_references_and_read_back_from_names() -> None:
    for name in ("manual_compaction", "ManualCompaction", "manual compaction (/compact)"):
        assert RebuildReason.from_name(name) == RebuildReason.MANUAL_COMPACTION
    assert RebuildReason.from_name("TraitClear") == RebuildReason.HISTORY_CLEAR
    assert RebuildReason.from_name("runtime: x").operation == "x"
    assert str(RebuildReason.SESSION_SYNC) == "session sync/restore"
    with pytest.raises(LabError, match="is no rebuild reason"):
        RebuildReason("because")
    for operation in ("", "  ", "two\nlines"):
        with pytest.raises(LabError, match="one printable line"):
            RebuildReason.runtime(operation)
    with pytest.raises(LabError, match="signed with a RebuildReason"):
        AppendLog().rebuild("purge", [])  # type: ignore[arg-type]
