"""Requests whose body is kept in pieces that a whole log shares."""

from __future__ import annotations

from typing import Any

from codesmith_lab.sessions.lines import ObjectSpan
from codesmith_lab.sessions.records import Request

__all__ = ["LoggedRequest"]


class LoggedRequest(Request):
    """A request read from a log.

    `body` is joined from shared pieces each time it is asked for: a thousand turns repeat their
    history a thousand times, and kept whole they would fill the memory.
    """

    __slots__ = ("_body",)

    @property
    def body(self) -> bytes:
        """The request body's bytes exactly as they stood in the file."""
        kept: bytes | ObjectSpan = self._body  # type: ignore[attr-defined]
        return kept.raw if isinstance(kept, ObjectSpan) else kept

    @body.setter
    def body(self, value: bytes | ObjectSpan) -> None:
        # The frozen base sets its fields by object.__setattr__, and so lands here.
        object.__setattr__(self, "_body", value)

    def at(self, index: int) -> LoggedRequest:
        """This request, numbered. Only for the importer, before anyone else holds it."""
        object.__setattr__(self, "index", index)
        return self

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Request):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name) for name in Request.__dataclass_fields__
        )

    __hash__ = Request.__hash__
