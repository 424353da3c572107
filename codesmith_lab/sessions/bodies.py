"""What both request formats share: blocks from parsed values and their exact text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from codesmith_lab.prompt.blocks import Block, BlockKind
from codesmith_lab.sessions.json_spans import plain_text
from codesmith_lab.sessions.system_text import split_sections

__all__ = ["BlockMaker", "Part", "dump", "media_text"]


@dataclass(slots=True)
class Part:
    """One piece of a message, before it becomes a block."""

    name: str
    text: str
    raw: str
    calls: int = 0


def dump(value: Any) -> str:
    """JSON as providers put it into a prompt: keys in order, non-ASCII raw."""
    return json.dumps(value, ensure_ascii=False)


def media_text(kind: str, value: Any) -> str:
    """A stand-in for an image or file: its digest, so that a change shows and nothing is bulky."""
    digest = hashlib.sha256(dump(value).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{kind} sha256:{digest}"


@dataclass(slots=True)
class BlockMaker:
    """Makes blocks and keeps them: a message that repeats in a log is made once."""

    notes: list[str] = field(default_factory=list)
    _kept: dict[tuple[Any, ...], tuple[Block, ...]] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Say once, for this request, what had to be repaired or could not be read."""
        if text not in self.notes:
            self.notes.append(text)

    def clean(self, text: str) -> str:
        """Text that UTF-8 can carry; a repair is noted."""
        cleaned = plain_text(text)
        if cleaned is not text and cleaned != text:
            self.note("a lone surrogate was read as U+FFFD")
        return cleaned

    def sections(self, text: str, raw: str, message: int, role: str) -> list[Block]:
        """The sections of one system text."""
        split = split_sections(self.clean(text))
        return self._keep(
            ("section", text, raw, message, role),
            lambda: [
                Block(
                    "pinned",
                    "section",
                    role,
                    meta.id,
                    part,
                    _bytes(raw),
                    message,
                    i == 0,
                    i == len(split) - 1,
                    0,
                    meta,
                )
                for i, (meta, part) in enumerate(split)
            ],
        )

    def tool(self, name: str, value: Any, raw: str) -> list[Block]:
        """One tool definition."""
        text = self.clean(dump(value))
        return self._keep(
            ("tool", name, raw),
            lambda: [Block("pinned", "tool", "", self.clean(name), text, _bytes(raw))],
        )

    def message(self, parts: Sequence[Part], role: str, message: int, scratch: bool) -> list[Block]:
        """The blocks of one message."""
        key = (role, message, scratch, *((p.name, p.text, p.raw) for p in parts))
        kind: BlockKind = "message" if len(parts) == 1 else "part"
        return self._keep(
            key,
            lambda: [
                Block(
                    "scratch" if scratch else "log",
                    kind,
                    role,
                    self.clean(part.name),
                    self.clean(part.text),
                    _bytes(part.raw),
                    message,
                    i == 0,
                    i == len(parts) - 1,
                    part.calls,
                )
                for i, part in enumerate(parts)
            ],
        )

    def _keep(self, key: tuple[Any, ...], make: Callable[[], list[Block]]) -> list[Block]:
        known = self._kept.get(key)
        if known is None:
            known = self._kept[key] = tuple(make())
        return list(known)


def _bytes(raw: str) -> bytes:
    return raw.encode("utf-8", "surrogatepass")
