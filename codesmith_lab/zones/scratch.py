"""Zone 3: what belongs to this turn alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codesmith_lab.errors import LabError
from codesmith_lab.fingerprint import check_text
from codesmith_lab.zones.append_log import AppendLog, LogEntry, Message, frozen_entry

__all__ = ["TurnScratch"]


class TurnScratch:
    """The turn's own user message and its working set (paths); both go at the turn boundary."""

    __slots__ = ("_entry", "_working_set")

    def __init__(
        self, user_message: Mapping[str, Any] | None = None, working_set: Iterable[str] = ()
    ) -> None:
        self._entry: LogEntry | None = None
        self._working_set: tuple[str, ...] = ()
        if user_message is not None:
            self.set_user_message(user_message)
        self.set_working_set(working_set)

    @property
    def user_message(self) -> Message | None:
        """The message this turn adds behind the log, or None."""
        return None if self._entry is None else self._entry.message

    @property
    def entry(self) -> LogEntry | None:
        """The user message with its wire bytes, or None."""
        return self._entry

    @property
    def working_set(self) -> tuple[str, ...]:
        """Paths in play this turn; never sent by themselves."""
        return self._working_set

    def set_user_message(self, message: Mapping[str, Any]) -> None:
        """Set the turn's message; it is copied and frozen. LabError for what cannot be sent."""
        self._entry = frozen_entry(message)

    def set_working_set(self, paths: Iterable[str]) -> None:
        """Replace the working set."""
        if isinstance(paths, str):
            raise LabError(f"the working set is several paths, not the text {paths!r}; use a list")
        self._working_set = tuple(check_text(path) for path in paths)

    def commit(self, log: AppendLog) -> None:
        """Push the user message, if there is one, to the log and clear the scratch."""
        if self._entry is not None:
            log.push(self._entry.message)
        self.clear()

    def clear(self) -> None:
        """The turn boundary: nothing of this turn stays."""
        self._entry = None
        self._working_set = ()

    @property
    def is_empty(self) -> bool:
        """Nothing is held for this turn."""
        return self._entry is None and not self._working_set

    def __copy__(self) -> TurnScratch:
        return TurnScratch(self.user_message, self._working_set)

    def __deepcopy__(self, memo: object) -> TurnScratch:
        return self.__copy__()

    def __repr__(self) -> str:
        held = "no user message" if self._entry is None else "a user message"
        return f"TurnScratch({held}, working set of {len(self._working_set)})"
