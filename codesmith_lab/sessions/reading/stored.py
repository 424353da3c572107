"""Requests whose body and blocks are kept in pieces that a whole log shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from codesmith_lab.prompt.blocks import Block, LazyBlocks
from codesmith_lab.sessions.reading.shared import Shared
from codesmith_lab.sessions.reading.spans import KeptObject
from codesmith_lab.sessions.records import Request

__all__ = ["KeptBlocks", "LoggedRequest"]


class KeptBlocks(LazyBlocks):
    """A request's blocks: its pinned prefix, its history, and what is this turn's own."""

    __slots__ = ("history", "own", "pinned")

    def __init__(
        self, pinned: tuple[Block, ...], history: Shared[Block], own: tuple[Block, ...]
    ) -> None:
        self.pinned = pinned
        self.history = history
        self.own = own

    def __len__(self) -> int:
        return len(self.pinned) + len(self.history) + len(self.own)

    def block(self, at: int) -> Block:
        for stretch in (self.pinned, self.history):
            if at < len(stretch):
                return stretch[at]
            at -= len(stretch)
        return self.own[at]

    def __iter__(self) -> Iterator[Block]:
        return chain.from_iterable(self._stretches())

    def _stretches(self) -> Iterator[Sequence[Block]]:
        # One after another: most who look for a section stop before the history.
        yield self.pinned
        yield self.history.items()
        yield self.own


class LoggedRequest(Request):
    """A request read from a log.

    `body` is joined from shared pieces each time it is asked for, and `blocks` are `KeptBlocks`: a
    thousand turns repeat their history a thousand times, and kept whole they would fill the memory.
    """

    __slots__ = ("_body",)

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
    def has_body(self) -> bool:
        """Whether the log holds a body; known without joining it."""
        return bool(self._body)  # type: ignore[attr-defined]

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
