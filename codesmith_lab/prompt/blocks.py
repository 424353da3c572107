"""The block: the unit of a prompt that a person thinks in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Block", "BlockKind", "SectionMeta", "Zone"]

Zone = Literal["pinned", "log", "scratch"]
BlockKind = Literal[
    "section",  # one part of the system prompt
    "tool",  # one tool definition
    "message",  # a whole message, or its only part
    "part",  # one of several content parts of a message
]


@dataclass(frozen=True, slots=True)
class SectionMeta:
    """What is declared, or assumed, of a system-prompt section.

    `declared` is true when the text carries a rendered section header; otherwise
    the stability is an assumption and is the user's to adjust.
    """

    id: str
    title: str
    stability: str  # static, workspace, session, dynamic
    cache_policy: str  # cacheable, uncached, cache_breaker
    source: str
    declared: bool


@dataclass(frozen=True, slots=True)
class Block:
    """One section, tool definition, message or content part, as a request sent it.

    zone: "pinned" (system prompt and tool catalog), "log" (history) or "scratch"
        (what follows the last assistant message: this turn's own).
    kind: see `BlockKind`.
    role: "system", "developer", "tool", "user", "assistant"; "" for tool definitions.
    name: short label for people, e.g. "environment", "read_file", "assistant, 2 tool calls".
    text: what a provider reads for this block, framing excluded. JSON string escapes are
        decoded; tool definitions are one JSON object in the sender's key order. Sections own
        their trailing blank line, so that the texts of a system prompt's sections
        joined with "" are that system prompt. Never holds lone surrogates.
    raw: the exact slice of the request body that this block came from (UTF-8, JSON).
        Sections of one system prompt share the slice of the whole system value.
    message: index of the message in the body's `messages` (or equivalent); -1 for
        tools and for a system prompt outside `messages`.
    first, last: this block is the first / last block of its message (both true for a
        message that is one block). Always true for tool definitions.
    calls: number of tool calls in this block.
    section: set for kind "section".
    """

    zone: Zone
    kind: BlockKind
    role: str
    name: str
    text: str
    raw: bytes
    message: int = -1
    first: bool = True
    last: bool = True
    calls: int = 0
    section: SectionMeta | None = None
