"""No sequence of public calls but `rebuild` changes an earlier message or its bytes."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from codesmith_lab.errors import LabError
from codesmith_lab.zones import (
    AppendLog,
    PinnedPrefix,
    RebuildReason,
    RebuildRecord,
    ThreeZoneRequest,
    TranscriptRebuilt,
    TurnScratch,
    thaw,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
blocks = st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=5)) | st.builds(
    lambda value: {"type": "tool_use", "id": "t", "name": "n", "input": value}, values
)
messages = st.builds(
    lambda role, content, extra: {"role": role, "content": content} | extra,
    st.sampled_from(["user", "assistant", "tool"]),
    st.text(max_size=5) | st.lists(blocks, max_size=3),
    st.just({}) | st.builds(lambda value: {"tool_calls": value}, values),
)
UNSENDABLE: list[Any] = [
    {"role": "user", "content": {"a", "b"}},
    {"role": "user", "content": "\ud800"},
    {"role": "user", "content": float("nan")},
    {"role": "user", "content": 2**64},
    {"role": "user", 3: "content"},
    {"content": "no role"},
    ["not a mapping"],
    None,
]
unsendable = st.sampled_from(UNSENDABLE)


def spoil(value: Any) -> None:
    """Change everything that can be changed, the inside first; what refuses is left."""
    if value is None or isinstance(value, str | bytes | int | float):
        return
    inside = value.values() if hasattr(value, "values") else value
    for item in list(inside):
        spoil(item)
    changes = (
        lambda: value.clear(),
        lambda: value.append("spoiled"),
        lambda: value.update(role="spoiled"),
        lambda: value.__setitem__("role", "spoiled"),
        lambda: value.__setitem__(0, "spoiled"),
        lambda: setattr(value, "role", "spoiled"),
    )
    for change in changes:
        with contextlib.suppress(AttributeError, TypeError, IndexError, KeyError):
            change()


class Meddler:
    """Takes part in a comparison or a union, and spoils what it is handed."""

    def __eq__(self, other: object) -> bool:
        spoil(other)
        return True

    def __ror__(self, other: object) -> Meddler:
        spoil(other)
        return self

    __hash__ = None  # type: ignore[assignment]


class LogMachine(RuleBasedStateMachine):
    """The model: for each message a plain copy and its bytes, taken when it went in."""

    def __init__(self) -> None:
        super().__init__()
        self.log = AppendLog()
        self.model: list[tuple[Any, bytes]] = []
        self.held: list[Any] = []
        self.events: list[TranscriptRebuilt] = []
        self.records: list[RebuildRecord] = []
        self.requests: list[tuple[ThreeZoneRequest, bytes]] = []

    def note(self, message: Any, position: int) -> None:
        self.model.append((copy.deepcopy(message), self.log.message_bytes(position)))
        self.held.append(message)

    @initialize(first=st.lists(messages, max_size=3))
    def make(self, first: list[Any]) -> None:
        self.log = AppendLog(first)
        for position, message in enumerate(first):
            self.note(message, position)
        self.log.subscribe(self.events.append)

    @rule(message=messages)
    def push(self, message: Any) -> None:
        self.log.push(message)
        self.note(message, len(self.log) - 1)

    @rule(message=unsendable)
    def push_what_cannot_be_sent(self, message: Any) -> None:
        with pytest.raises(LabError):
            self.log.push(message)

    @rule(good=messages, bad=unsendable)
    def rebuild_that_fails(self, good: Any, bad: Any) -> None:
        with pytest.raises(LabError):
            self.log.rebuild(RebuildReason.PURGE, [good, bad])

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def spoil_what_the_caller_holds(self, data: st.DataObject) -> None:
        spoil(data.draw(st.sampled_from(self.held)))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def spoil_what_the_log_gives(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.model) - 1))
        given = self.log[index]
        for thing in (given, self.log[:], list(self.log), self.log.entries(), thaw(given)):
            spoil(thing)
        assert given == Meddler()
        with contextlib.suppress(TypeError):
            given | Meddler()

    @rule(message=messages)
    def use_copies(self, message: Any) -> None:
        for twin in (copy.copy(self.log), copy.deepcopy(self.log)):
            twin.push(message)
            twin.rebuild(RebuildReason.HISTORY_CLEAR, [])
        restored = pickle.loads(pickle.dumps(self.log))
        assert list(restored) == list(self.log)
        assert restored.records == self.log.records

    @rule(statement=st.sampled_from(["log[0] = m", "del log[0]", "log += [m]", "log[:] = []"]))
    def write_to_the_log(self, statement: str) -> None:
        with pytest.raises(TypeError):
            exec(statement, {"log": self.log, "m": {"role": "user"}})

    @rule(message=messages)
    def send_and_commit(self, message: Any) -> None:
        scratch = TurnScratch(message, ["a.py"])
        request = ThreeZoneRequest("m", 1, PinnedPrefix("s", []), self.log, scratch)
        self.requests.append((request, request.wire_bytes()))
        scratch.commit(self.log)
        assert scratch.is_empty
        self.note(message, len(self.log) - 1)

    @rule(fresh=st.lists(messages, max_size=3), keep=st.integers(0, 2))
    def rebuild(self, fresh: list[Any], keep: int) -> None:
        kept, before = self.log[:keep], len(self.log)
        record = self.log.rebuild(RebuildReason.AUTO_COMPACTION, (*kept, *fresh))
        assert record == RebuildRecord(RebuildReason.AUTO_COMPACTION, before, len(self.log))
        self.records.append(record)
        self.model = self.model[:keep]
        for position, message in enumerate(fresh, len(kept)):
            self.note(message, position)

    @invariant()
    def nothing_earlier_changed(self) -> None:
        assert len(self.log) == len(self.model)
        for index, (plain, wire) in enumerate(self.model):
            assert self.log[index] == plain
            assert self.log.message_bytes(index) == wire
            assert json.loads(wire)["role"] == plain["role"]

    @invariant()
    def each_rebuild_is_told_once_and_eight_are_kept(self) -> None:
        assert [event.record for event in self.events] == self.records
        assert self.log.records == tuple(self.records[-8:])

    @invariant()
    def requests_keep_their_bytes(self) -> None:
        for request, wire in self.requests:
            assert request.wire_bytes() == wire


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=60, stateful_step_count=25)
