"""Zone 3: what belongs to this turn alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codesmith_lab.errors import LabError
from codesmith_lab.zones.append_log import Message, freeze

__all__ = ["TurnScratch"]


class TurnScratch:
    """The turn's own user message and its working set (paths); both go at the turn boundary."""

    __slots__ = ("_user_message", "_working_set")

    def __init__(
        self, user_message: Mapping[str, Any] | None = None, working_set: Iterable[str] = ()
    ) -> None:
        self._user_message: Message | None = None
        self._working_set: tuple[str, ...] = tuple(working_set)
        if user_message is not None:
            self.set_user_message(user_message)

    @property
    def user_message(self) -> Message | None:
        """The message this turn adds behind the log, or None."""
        return self._user_message

    @property
    def working_set(self) -> tuple[str, ...]:
        """Paths in play this turn; never sent by themselves."""
        return self._working_set

    def set_user_message(self, message: Mapping[str, Any]) -> None:
        """Set the turn's message; it is copied and frozen."""
        if not isinstance(message, Mapping):
            raise LabError(f"a message is a mapping with a role, not {type(message).__name__}")
        self._user_message = freeze(message)

    def set_working_set(self, paths: Iterable[str]) -> None:
        """Replace the working set."""
        self._working_set = tuple(paths)

    def clear(self) -> None:
        """The turn boundary: nothing of this turn stays."""
        self._user_message = None
        self._working_set = ()

    @property
    def is_empty(self) -> bool:
        """Nothing is held for this turn."""
        return self._user_message is None and not self._working_set
