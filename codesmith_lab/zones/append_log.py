"""Zone 2: the history. Messages are only ever pushed; a signed rebuild is the one exception."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final, overload

from codesmith_lab.errors import LabError
from codesmith_lab.zones.frozen import FrozenMapping, freeze_mapping, thaw
from codesmith_lab.zones.messages import message_json
from codesmith_lab.zones.rebuild import RebuildReason, RebuildRecord, TranscriptRebuilt

__all__ = ["KEPT_RECORDS", "AppendLog", "LogEntry", "Message", "Subscriber", "frozen_entry"]

Message = Mapping[str, Any]
Subscriber = Callable[[TranscriptRebuilt], object]
KEPT_RECORDS = 8
"""Rebuild records kept, the newest."""


class LogEntry(NamedTuple):
    """A message and its wire bytes, made together so that they cannot part."""

    message: FrozenMapping
    wire: bytes


def frozen_entry(message: Message) -> LogEntry:
    """Freeze a message and write its bytes, which refuses what cannot be sent."""
    frozen = freeze_mapping(message, "a message")
    if not isinstance(frozen.get("role"), str):
        raise LabError(
            f"a message has a role that is text, not {frozen.get('role')!r}; "
            'add one, for example "user"'
        )
    return LogEntry(frozen, message_json(frozen).encode("utf-8"))


@final
class AppendLog(Sequence[Message]):
    """An append-only sequence of deeply immutable messages.

    Nothing the caller still holds reaches in: messages are copied on the way in. There is no
    insert, removal, sorting or assignment; `rebuild` replaces everything, with a reason. A copy
    of a log is a log of its own with the same messages and records and no subscribers.
    """

    __slots__ = ("_entries", "_pending", "_records", "_subscribers", "_telling")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._entries: list[LogEntry] = [frozen_entry(message) for message in messages]
        self._records: tuple[RebuildRecord, ...] = ()
        self._subscribers: list[Subscriber] = []
        self._pending: deque[tuple[TranscriptRebuilt, tuple[Subscriber, ...]]] = deque()
        self._telling = False

    def push(self, message: Message) -> None:
        """Append one message. Raises LabError, unchanged, for what JSON cannot hold."""
        self._entries.append(frozen_entry(message))

    def rebuild(self, reason: RebuildReason, messages: Iterable[Message]) -> RebuildRecord:
        """Replace the whole history, atomically, and tell each subscriber once.

        A message that cannot be frozen raises LabError and leaves the log as it was; so does a
        log that changes while `messages` is read. A subscriber that raises does so (in an
        ExceptionGroup) after the rebuild is complete and every other one was told. A rebuild made
        by a subscriber is told after the running one, so all see both in the same order.
        """
        if not isinstance(reason, RebuildReason):
            raise LabError(
                f"a rebuild is signed with a RebuildReason, not {reason!r}; "
                "use for example RebuildReason.MANUAL_COMPACTION"
            )
        before, length = self._entries, len(self._entries)
        entries = [frozen_entry(message) for message in messages]
        if self._entries is not before or len(before) != length:
            raise LabError(
                "the log changed while the messages of its rebuild were read; "
                "collect them in a list first"
            )
        record = RebuildRecord(reason, length, len(entries))
        records = (*self._records, record)[-KEPT_RECORDS:]
        self._entries, self._records = entries, records
        self._pending.append((TranscriptRebuilt(record), tuple(self._subscribers)))
        self._tell()
        return record

    def _tell(self) -> None:
        if self._telling:
            return  # the running call delivers what is pending
        failures: list[Exception] = []
        self._telling = True
        try:
            while self._pending:
                event, subscribers = self._pending.popleft()
                for subscriber in subscribers:
                    try:
                        subscriber(event)
                    except Exception as error:  # the others still have to be told
                        failures.append(error)
        finally:
            self._telling = False
            self._pending.clear()
        if failures:
            raise ExceptionGroup(
                "the rebuild is complete, but subscribers that were told of it failed", failures
            )

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Be told of every rebuild from now on, once each; the result, called, ends it."""
        if subscriber not in self._subscribers:
            self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    @property
    def records(self) -> tuple[RebuildRecord, ...]:
        """The newest rebuilds, at most 8, oldest first."""
        return self._records

    @property
    def last_rebuild(self) -> RebuildRecord | None:
        """The newest rebuild, None before the first."""
        return self._records[-1] if self._records else None

    def message_bytes(self, index: int) -> bytes:
        """The wire bytes of one message (compact JSON, UTF-8)."""
        return self._entries[index].wire

    def entries(self, stop: int | None = None) -> tuple[LogEntry, ...]:
        """The first `stop` messages (all by default) with their bytes, as they are now.

        Raises LabError unless 0 <= stop <= len(log).
        """
        if stop is not None and not 0 <= stop <= len(self._entries):
            raise LabError(
                f"the log has {len(self._entries)} messages, so it has no first {stop}; "
                f"use 0 to {len(self._entries)}"
            )
        return tuple(self._entries[:stop])

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(entry.message for entry in self._entries[index])
        return self._entries[index].message

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Message]:
        return iter(self[:])

    def __copy__(self) -> AppendLog:
        return _restored(self._entries, self._records)

    def __deepcopy__(self, memo: object) -> AppendLog:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, ([thaw(message) for message in self], self._records)

    def __repr__(self) -> str:
        return f"AppendLog({len(self)} messages, {len(self._records)} rebuilds)"


def _restored(entries: Iterable[LogEntry], records: tuple[RebuildRecord, ...]) -> AppendLog:
    log = AppendLog()
    log._entries, log._records = list(entries), records
    return log


def _unpickled(messages: Iterable[Message], records: tuple[RebuildRecord, ...]) -> AppendLog:
    return _restored(AppendLog(messages).entries(), records)
