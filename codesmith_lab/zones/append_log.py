"""Zone 2: the history. Messages are only ever pushed; a signed rebuild is the one exception."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, overload

from codesmith_lab.errors import LabError
from codesmith_lab.zones.messages import message_json
from codesmith_lab.zones.rebuild import RebuildReason, RebuildRecord, TranscriptRebuilt

__all__ = ["AppendLog", "Message", "freeze"]

Message = Mapping[str, Any]
KEPT_RECORDS = 8


def freeze(value: Any) -> Any:
    """A deeply immutable copy of a JSON-like value: read-only mappings, tuples, scalars."""
    if isinstance(value, Mapping):
        return MappingProxyType({str(key): freeze(item) for key, item in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return tuple(freeze(item) for item in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise LabError(f"{type(value).__name__} is no JSON value; a message holds JSON only")


def _frozen_message(message: Message) -> tuple[Message, bytes]:
    if not isinstance(message, Mapping):
        raise LabError(f"a message is a mapping with a role, not {type(message).__name__}")
    frozen: Message = freeze(message)
    # Writing the bytes now refuses what cannot be sent before anything changes.
    return frozen, message_json(frozen).encode("utf-8")


class AppendLog(Sequence[Message]):
    """An append-only sequence of deeply immutable messages.

    Nothing the caller still holds reaches in: messages are copied on the way in. There is no
    insert, removal, sorting or assignment; `rebuild` replaces everything, with a reason.
    """

    __slots__ = ("_bytes", "_messages", "_records", "_subscribers")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        pairs = [_frozen_message(message) for message in messages]
        self._messages: list[Message] = [pair[0] for pair in pairs]
        self._bytes: list[bytes] = [pair[1] for pair in pairs]
        self._records: deque[RebuildRecord] = deque(maxlen=KEPT_RECORDS)
        self._subscribers: list[Callable[[TranscriptRebuilt], None]] = []

    def push(self, message: Message) -> None:
        """Append one message. Raises LabError, unchanged, for what JSON cannot hold."""
        frozen, wire = _frozen_message(message)
        self._messages.append(frozen)
        self._bytes.append(wire)

    def rebuild(self, reason: RebuildReason, messages: Iterable[Message]) -> RebuildRecord:
        """Replace the whole history, atomically, and tell each subscriber once.

        A message that cannot be frozen raises LabError and leaves the log as it was. A subscriber
        that raises does so after the rebuild is complete and every other one was told.
        """
        if not isinstance(reason, RebuildReason):
            raise LabError(f"a rebuild is signed with a RebuildReason, not {reason!r}")
        pairs = [_frozen_message(message) for message in messages]
        record = RebuildRecord(reason, len(self._messages), len(pairs))
        self._messages = [pair[0] for pair in pairs]
        self._bytes = [pair[1] for pair in pairs]
        self._records.append(record)
        self._tell(TranscriptRebuilt(record))
        return record

    def _tell(self, event: TranscriptRebuilt) -> None:
        failures: list[Exception] = []
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(event)
            except Exception as error:  # the others still have to be told
                failures.append(error)
        if failures:
            raise ExceptionGroup("subscribers of a rebuild failed", failures)

    def subscribe(self, subscriber: Callable[[TranscriptRebuilt], None]) -> None:
        """Be told of every rebuild from now on."""
        self._subscribers.append(subscriber)

    @property
    def records(self) -> tuple[RebuildRecord, ...]:
        """The newest rebuilds, at most 8, oldest first."""
        return tuple(self._records)

    @property
    def last_rebuild(self) -> RebuildRecord | None:
        """The newest rebuild, None before the first."""
        return self._records[-1] if self._records else None

    def message_bytes(self, index: int) -> bytes:
        """The wire bytes of one message (compact JSON, UTF-8)."""
        return self._bytes[index]

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self._messages[index])
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(tuple(self._messages))

    def __repr__(self) -> str:
        return f"AppendLog({len(self)} messages, {len(self._records)} rebuilds)"
