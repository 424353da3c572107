"""Codex rollouts: JSONL of events, not of requests.

`token_count` events carry cumulative counters (`total_token_usage`); the same totals are often
written twice. A request is a growth of the totals. Where they go down (a resumed or forked session)
the event's own `last_token_usage` is taken. Instructions and tools are not all in a rollout, so a
request has usage, time and model and no content. Source: rollouts of Codex CLI 0.2 to 0.150.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from codesmith_lab.billing.usage import Usage, read_usage, usage_delta
from codesmith_lab.errors import InputError
from codesmith_lab.sessions.reading.calls import Call, Opener, text_of
from codesmith_lab.sessions.reading.formats.plain import log_time
from codesmith_lab.sessions.reading.json_spans import BadJson
from codesmith_lab.sessions.reading.spans import ObjectSpan, value_of

__all__ = ["CodexOpener"]

_KINDS: Final = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
_ANSWERS: Final = ("reasoning", "function_call", "custom_tool_call", "local_shell_call")


class CodexOpener(Opener):
    """Events of a rollout."""

    name = "codex"

    def __init__(self) -> None:
        self._session = ""
        self._provider = "openai"
        self._model = ""
        self._total: Usage | None = None
        self._asked: datetime | None = None
        self._rebuild: dict[str, Any] | None = None

    def claims(self, record: ObjectSpan) -> bool:
        """A line has one of the rollout's types and a payload."""
        kind = value_of(record.members.get("type"))
        return isinstance(kind, str) and kind in _KINDS and "payload" in record.members

    def open(self, record: ObjectSpan, line: int) -> Iterator[Call]:
        """The request that a token count reports; nothing for other events."""
        members = record.members
        notes: list[str] = []
        time = log_time(members, notes, ("timestamp",))
        kind, payload = value_of(members.get("type")), value_of(members.get("payload"))
        payload = payload if isinstance(payload, dict) else {}
        inner = payload.get("type")
        if kind == "session_meta":
            self._session = text_of(payload.get("id"))
            self._provider = text_of(payload.get("model_provider")) or "openai"
        elif kind == "turn_context":
            self._model = text_of(payload.get("model")) or self._model
            self._asked = time
        elif kind == "compacted" or inner == "context_compacted":
            self._rebuild = {"reason": "auto_compaction"}
        elif kind == "response_item" and not _is_answer(payload):
            self._asked = time
        elif inner == "token_count" and isinstance(payload.get("info"), dict):
            usage = self._usage(payload["info"], notes)
            if usage is not None:
                yield self._call(usage, line, time, notes)

    def _call(self, usage: Usage, line: int, time: datetime | None, notes: list[str]) -> Call:
        call = Call(line, usage=usage, notes=notes)
        call.time = self._asked or time
        call.model, call.provider, call.session = self._model, self._provider, self._session
        call.rebuild, self._rebuild, self._asked = self._rebuild, None, None
        return call

    def _usage(self, info: dict[str, Any], notes: list[str]) -> Usage | None:
        """What the newest response added; None where nothing was added."""
        total, last = (_read(info.get(f"{name}_token_usage")) for name in ("total", "last"))
        if total is None:
            return last
        before, self._total = self._total, total
        if before is not None and _sizes(before) == _sizes(total):
            return None
        if before is None and last is not None:
            # A resumed session starts with the totals of the one it goes on from.
            return last
        added = usage_delta(total, before)
        if added is None:
            note = "cumulative counters went down: the session began anew"
            if last is None:
                return _flagged(total, note)
            return _flagged(last, note)
        if last is not None and last.input_tokens != added.input_tokens:
            notes.append(
                f"the totals grew by {added.input_tokens} input tokens and the event names "
                f"{last.input_tokens}; the growth was taken"
            )
        return added


def _is_answer(item: dict[str, Any]) -> bool:
    """Whether an item came from the model."""
    return item.get("role") == "assistant" or item.get("type") in _ANSWERS


def _sizes(usage: Usage) -> tuple[int, int | None, int | None]:
    return usage.input_tokens, usage.output_tokens, usage.cache_read_tokens


def _read(counters: Any) -> Usage | None:
    if not isinstance(counters, dict):
        return None
    try:
        return read_usage(counters, "codex")
    except InputError as error:
        raise BadJson(error.reason) from None


def _flagged(usage: Usage, note: str) -> Usage:
    return replace(usage, notes=(*usage.notes, note), flags=(*usage.flags, "usage_reset"))
