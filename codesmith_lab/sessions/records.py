"""Requests and sessions, as every importer delivers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from codesmith_lab.billing.usage import Usage
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.wording import counted

__all__ = ["Content", "Request", "Scope", "Session", "Skipped"]

Content = Literal["whole", "partial", "none"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that was left out, and why (1-based line number; file where several were read)."""

    line: int
    reason: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose cache a request can meet, as far as the log says; "" where it does not.

    provider: "openai", "anthropic", "bedrock", ... or the host it was sent to.
    model: as sent, or as the response names it where the request does not.
    account: organisation, project, team, or "key 1", "key 2", ... in the order in which keys
        appear. Never a key.
    cache_key: what steers routing or separates caches: `prompt_cache_key`, `x-grok-conv-id`,
        DeepSeek's `user_id`, vLLM's `cache_salt`.
    session: the conversation, session or trace. It separates no cache by itself.
    """

    provider: str = ""
    model: str = ""
    account: str = ""
    cache_key: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """What one call sent, and what came back of its usage.

    index: 0-based place in the session.
    line: 1-based line in the file on which its record starts.
    model: as sent; "" when the body names none.
    time: timezone-aware start time, or None.
    body: the request body's bytes exactly as they stood in the file, b"" without one.
    blocks: tools, then system sections, then messages, never changed; a chat format puts the first
        two in its own order. Empty where the log holds no content: then only usage, time and model
        are known.
    settings: the body's other fields (temperature, tool_choice, ...), parsed.
    output: the response's message as the block it would be in the next request's
        history, or None when the log holds no response.
    usage: reported counters, or None.
    rebuild: a signed rebuild recorded with this request, e.g.
        {"reason": "manual_compaction", "before": 84, "after": 6}, or None.
    notes: sentences on what had to be repaired or could not be read.
    api: whose body it is: "openai-chat", "openai-responses", "anthropic-messages", "gemini",
        "bedrock-converse", "otel-messages"; "" without one.
    content: "whole", "partial" (the body refers to content that the log does not hold), "none".
    scope: whose cache it can meet.
    response_id: the provider's id of the response, "" where unknown.
    status: HTTP status, or None. A refused request (400 and above) was neither cached nor billed.
    flags: what is wrong with its usage: "usage_overlap", "usage_negative",
        "usage_contradiction", "usage_reset", "duplicate_usage" (recorded more than once, counted
        once). `notes` has the sentences.
    file: the file it stands in, where several were read; else "".
    """

    index: int
    line: int
    model: str
    time: datetime | None
    body: bytes
    blocks: Sequence[Block]
    settings: Mapping[str, Any] = field(default_factory=dict)
    output: tuple[Block, ...] | None = None
    usage: Usage | None = None
    rebuild: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    api: str = ""
    content: Content = "whole"
    scope: Scope = Scope()
    response_id: str = ""
    status: int | None = None
    flags: tuple[str, ...] = ()
    file: str = ""

    @property
    def has_body(self) -> bool:
        """Whether the log holds a body."""
        return bool(self.body)

    def __repr__(self) -> str:
        """One line, without the content: a log may hold megabytes of it."""
        blocks = counted(len(self.blocks), "block")
        return f"<Request {self.index}: {self.model or '-'}, {blocks}, {len(self.body):,} bytes>"


@dataclass(frozen=True, slots=True)
class Session:
    """Requests in time order from one log or one recording.

    name: for people (a file or folder name without the folders above it).
    format: the log's format, one of `FORMATS` in `reading.load`; of a log of several, that of most
        requests.
    skipped: what was left out, in the order of the file.
    """

    name: str
    format: str
    requests: tuple[Request, ...]
    skipped: tuple[Skipped, ...] = ()

    def __repr__(self) -> str:
        """One line: `requests` has the rest."""
        left_out = f", {counted(len(self.skipped), 'line')} left out" if self.skipped else ""
        requests = counted(len(self.requests), "request")
        return f"<Session {self.name!r}: {requests}, {self.format}{left_out}>"
