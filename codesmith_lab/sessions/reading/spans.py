"""Objects and arrays of a log as the exact bytes they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from codesmith_lab.sessions.reading.json_spans import Span
from codesmith_lab.sessions.reading.shared import Shared

__all__ = ["ArraySpan", "KeptObject", "Member", "ObjectSpan", "value_of"]


@dataclass(slots=True, eq=False)
class ArraySpan:
    """An array as its items and the bytes around them.

    gaps: one more than items; gaps[0] opens the array and the last one closes it.
    kept: gaps and items in turn, but for the closing gap: what stays when the array is dropped.
    """

    items: list[Span]
    gaps: list[bytes]
    kept: Shared[bytes] = field(default_factory=Shared)

    @property
    def raw(self) -> bytes:
        """The exact bytes of the array."""
        pieces = [b""] * (2 * len(self.items) + 1)
        pieces[::2] = self.gaps
        pieces[1::2] = [item.raw for item in self.items]
        return b"".join(pieces)


@dataclass(slots=True, eq=False)
class ObjectSpan:
    """An object as its members and, in order, the bytes it is made of."""

    members: dict[str, Member] = field(default_factory=dict)
    pieces: list[bytes | Member] = field(default_factory=list)

    @property
    def raw(self) -> bytes:
        """The exact bytes of the object."""
        return b"".join(p if isinstance(p, bytes) else p.raw for p in self.pieces)

    def keep(self) -> KeptObject:
        """The object's bytes without its decoded values."""
        return KeptObject(tuple(_kept_pieces(self)))


class KeptObject:
    """The bytes of an object, in pieces that a whole log shares."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: tuple[bytes | Shared[bytes], ...]) -> None:
        self.pieces = pieces

    @property
    def raw(self) -> bytes:
        """The exact bytes of the object."""
        return b"".join(p if isinstance(p, bytes) else b"".join(p.items()) for p in self.pieces)


def _kept_pieces(found: ObjectSpan) -> Iterator[bytes | Shared[bytes]]:
    for piece in found.pieces:
        if isinstance(piece, bytes):
            yield piece
        elif isinstance(piece, ObjectSpan):
            yield from _kept_pieces(piece)
        elif isinstance(piece, ArraySpan):
            yield piece.kept
            yield piece.gaps[-1]
        else:
            yield piece.raw


Member = Span | ArraySpan | ObjectSpan
"""A member of an object: a decoded value, or an array or object that was walked into."""


def value_of(member: Member | None) -> Any:
    """The decoded value of a member, None without one."""
    if member is None or isinstance(member, Span):
        return None if member is None else member.value
    if isinstance(member, ArraySpan):
        return [item.value for item in member.items]
    return {key: value_of(inner) for key, inner in member.members.items()}
