"""What one message, tool or system text says, whatever its place: the draft of its blocks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.reading.json_spans import Span, plain
from codesmith_lab.sessions.reading.shared import Shared

__all__ = ["Draft", "Part", "Reading", "compact", "dump", "label", "media_text", "unread_message"]

_NAME_CHARACTERS: Final = 200
_ROLES: Final = ("system", "developer", "tool", "user", "assistant")


@dataclass(slots=True)
class Part:
    """One piece of a message.

    answers: id of the tool call whose result it is, or "". marker: lifetime of its cache marker
    ("5m" unless it says otherwise), or "".
    """

    name: str
    text: str
    raw: bytes
    calls: int = 0
    answers: str = ""
    marker: str = ""


@dataclass(slots=True, eq=False)
class Draft:
    """What a message says, apart from its place.

    calls: ids and names of the tools it calls. notes: what had to be repaired.
    """

    role: str
    parts: list[Part] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say what had to be repaired or could not be read."""
        self.notes.append(text)

    def clean(self, value: str) -> str:
        """Text that UTF-8 can carry; a repair is noted."""
        cleaned: str = plain(value)
        if cleaned != value:
            self.note("a lone surrogate was read as U+FFFD")
        return cleaned

    def mark(self, lifetime: str) -> None:
        """Set a cache marker behind what was read so far."""
        if self.parts:
            self.parts[-1].marker = self.parts[-1].marker or lifetime
        else:
            self.note("a cache marker with nothing before it was passed over")

    def finish(self) -> Draft:
        """Texts, names and role in the form blocks carry."""
        for part in self.parts:
            part.text = self.clean(part.text)
            part.name = label(part.name)
        if self.role not in _ROLES:
            known = "tool" if self.role == "function" else "user"
            if known == "user":
                self.note(f"a message of the role {label(self.role)!r} was read as the user's")
            self.role = known
        return self


@dataclass(slots=True)
class Reading:
    """What one body gave: blocks of its pinned prefix, of its history, of this turn's own.

    markers: (block index, lifetime) of each cache marker. ignored: fields that are settings after
    all. partial: the body refers to content that it does not hold.
    """

    blocks: list[Block] = field(default_factory=list)
    history: Shared[Block] = field(default_factory=Shared)
    own: list[Block] = field(default_factory=list)
    markers: list[tuple[int, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ignored: dict[str, Any] = field(default_factory=dict)
    partial: bool = False

    @property
    def empty(self) -> bool:
        """Nothing was read."""
        return not (self.blocks or self.history.length or self.own)

    def add(self, draft: Draft, blocks: Iterable[Block]) -> None:
        """Append the blocks of a draft to the pinned prefix, with its markers and notes."""
        start = len(self.blocks)
        self.blocks += blocks
        self.notes += draft.notes
        for i, part in enumerate(draft.parts):
            if part.marker:
                self.markers.append((start + i, part.marker))


def label(name: Any) -> str:
    """A name for people: short, and carried by UTF-8."""
    text: str = plain(name if isinstance(name, str) else compact(name))
    return text if len(text) <= _NAME_CHARACTERS else text[: _NAME_CHARACTERS - 1] + "…"


def dump(value: Any) -> str:
    """JSON as chat templates write it: keys in the sender's order, non-ASCII raw."""
    return json.dumps(value, ensure_ascii=False)


def compact(value: Any) -> str:
    """The same without spaces, for what is kept as its JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def media_text(kind: str, content: Any, *details: Any) -> str:
    """A stand-in for an image or a file: its digest, so that a change shows and nothing is bulky.

    The digest is the SHA-256 of the text sent (URL, data URL, base64), or of its JSON.
    """
    text = content if isinstance(content, str) else compact(content)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return " ".join([f"{kind} sha256:{digest}", *(d for d in details if isinstance(d, str) and d)])


def unread_message(span: Span) -> Draft:
    """A message that is no object, kept as its JSON."""
    draft = Draft("user", notes=["a message is not an object and was kept as its JSON"])
    draft.parts.append(Part("message", compact(span.value), span.raw))
    return draft
