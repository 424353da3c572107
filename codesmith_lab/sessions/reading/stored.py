"""Requests whose body and blocks are kept in pieces that a whole log shares."""

from __future__ import annotations

from typing import Any

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.reading.shared import Shared
from codesmith_lab.sessions.reading.spans import KeptObject
from codesmith_lab.sessions.records import Request

__all__ = ["KeptBlocks", "LoggedRequest"]


class KeptBlocks:
    """A request's blocks: its pinned prefix, its history, and what is this turn's own."""

    __slots__ = ("_made", "history", "own", "pinned")

    def __init__(
        self, pinned: tuple[Block, ...], history: Shared[Block], own: tuple[Block, ...]
    ) -> None:
        self.pinned = pinned
        self.history = history
        self.own = own
        self._made: tuple[Block, ...] | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All of them: put together when first asked for, the same tuple from then on."""
        if self._made is None:
            self._made = (*self.pinned, *self.history.items(), *self.own)
        return self._made


class LoggedRequest(Request):
    """A request read from a log.

    `body` is joined from shared pieces each time it is asked for, `blocks` when first asked for: a
    thousand turns repeat their history a thousand times, and kept whole they would fill the memory.
    """

    __slots__ = ("_blocks", "_body")

    @property
    def body(self) -> bytes:
        """The request body's bytes exactly as they stood in the file."""
        kept: bytes | KeptObject = self._body  # type: ignore[attr-defined]
        return kept.raw if isinstance(kept, KeptObject) else kept

    @body.setter
    def body(self, value: bytes | KeptObject) -> None:
        # The frozen base sets its fields by object.__setattr__, and so lands here.
        object.__setattr__(self, "_body", value)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Tools, system sections and messages."""
        kept: tuple[Block, ...] | KeptBlocks = self._blocks  # type: ignore[attr-defined]
        return kept.blocks if isinstance(kept, KeptBlocks) else kept

    @blocks.setter
    def blocks(self, value: tuple[Block, ...] | KeptBlocks) -> None:
        object.__setattr__(self, "_blocks", value)

    def at(self, index: int, **changes: Any) -> LoggedRequest:
        """This request, numbered. Only for the importer, before anyone else holds it."""
        for name, value in {"index": index, **changes}.items():
            object.__setattr__(self, name, value)
        return self

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Request):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name) for name in Request.__dataclass_fields__
        )

    __hash__ = Request.__hash__
