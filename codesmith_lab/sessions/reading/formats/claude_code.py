"""Claude Code transcripts: JSONL of messages, not of requests.

An answer is written one line a content block, each with the response's `message.id` and counters;
the last line's are right. The system prompt and the tools are not in a transcript, so a request has
usage, time and model and no content. A compaction is a line of its own. Source: transcripts of
Claude Code 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from codesmith_lab.billing.usage import money
from codesmith_lab.sessions.reading.calls import Call, Opener, text_of
from codesmith_lab.sessions.reading.formats.plain import log_time
from codesmith_lab.sessions.reading.spans import ObjectSpan, value_of

__all__ = ["ClaudeCodeOpener"]

_KINDS: Final = ("user", "assistant", "system", "summary", "file-history-snapshot", "progress")
_MARKS: Final = ("sessionId", "uuid", "leafUuid", "parentUuid", "snapshot", "messageId")
_MOST_PARENTS: Final = 100_000


class ClaudeCodeOpener(Opener):
    """Lines of a transcript."""

    name = "claude-code"

    def __init__(self) -> None:
        self._times: dict[str, datetime] = {}
        self._compacted: dict[str, dict[str, Any]] = {}

    def claims(self, record: ObjectSpan) -> bool:
        """A line has a type and one of the transcript's ids."""
        kind = value_of(record.members.get("type"))
        if not isinstance(kind, str) or "payload" in record.members:
            return False
        known = kind in _KINDS or kind.endswith("-operation")
        return known and any(key in record.members for key in _MARKS)

    def open(self, record: ObjectSpan, line: int) -> Iterator[Call]:
        """The response that an assistant's line belongs to; nothing for other lines."""
        members = record.members
        notes: list[str] = []
        time = log_time(members, notes, ("timestamp",))
        uuid, parent = (text_of(value_of(members.get(k))) for k in ("uuid", "parentUuid"))
        session = text_of(value_of(members.get("sessionId")))
        kind = value_of(members.get("type"))
        message = value_of(members.get("message"))
        if value_of(members.get("subtype")) == "compact_boundary":
            self._compacted[session] = _compaction(value_of(members.get("compactMetadata")))
        started = self._times.get(parent, time)
        if uuid and time is not None and len(self._times) < _MOST_PARENTS:
            # Lines of one answer follow one another: all of them began with what came before.
            self._times[uuid] = started if kind == "assistant" and started else time
        if kind != "assistant" or not isinstance(message, dict):
            return
        model = text_of(message.get("model"))
        if model == "<synthetic>" or not isinstance(message.get("usage"), dict):
            return
        call = Call(line, usage=message["usage"], usage_api="anthropic-messages", notes=notes)
        call.time, call.model, call.session = started, model, session
        call.provider = "anthropic"
        call.cost_usd = money(value_of(members.get("costUSD")))
        call.response_id = text_of(message.get("id"))
        call.merge = True
        if value_of(members.get("isSidechain")) is True:
            agent = text_of(value_of(members.get("agentId"))) or "side chain"
            call.session = f"{session} {agent}".strip()
        else:
            call.rebuild = self._compacted.pop(session, None)
        yield call


def _compaction(details: Any) -> dict[str, Any]:
    """A compaction as a signed rebuild; `before_tokens` is what the transcript gives."""
    details = details if isinstance(details, dict) else {}
    manual = details.get("trigger") == "manual"
    found: dict[str, Any] = {"reason": "manual_compaction" if manual else "auto_compaction"}
    before = details.get("preTokens")
    if isinstance(before, int) and not isinstance(before, bool):
        found["before_tokens"] = before
    return found
