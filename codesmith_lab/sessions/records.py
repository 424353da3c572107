"""Requests and sessions, as every importer delivers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from codesmith_lab.billing.usage import Usage
from codesmith_lab.prompt.blocks import Block

__all__ = ["Request", "Session", "Skipped"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that was left out, and why (1-based line number)."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Request:
    """What one call sent, and what came back of its usage.

    index: 0-based place in the session.
    line: 1-based line in the file.
    model: as sent; "" when the body names none.
    time: timezone-aware start time, or None.
    body: the request body's bytes exactly as they stood in the file.
    blocks: tools, then system sections, then messages; a chat format puts the first two in its
        own order.
    settings: the body's other fields (temperature, tool_choice, ...), parsed.
    output: the response's message as the block it would be in the next request's
        history, or None when the log holds no response.
    usage: reported counters, or None.
    rebuild: a signed rebuild recorded with this request, e.g.
        {"reason": "manual_compaction", "before": 84, "after": 6}, or None.
    notes: sentences on what had to be repaired or could not be read.
    """

    index: int
    line: int
    model: str
    time: datetime | None
    body: bytes
    blocks: tuple[Block, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    output: tuple[Block, ...] | None = None
    usage: Usage | None = None
    rebuild: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """Requests in time order from one log or one recording.

    name: for people (a file name without its folder).
    format: "openai-chat" or "anthropic-messages".
    """

    name: str
    format: str
    requests: tuple[Request, ...]
    skipped: tuple[Skipped, ...] = ()
