"""Messages as OpenTelemetry's GenAI conventions record them, in attributes of a span.

They are the instrumentation's own form, not the bytes that were sent: what a message says can be
compared, how it was written cannot. Source: OpenTelemetry semantic conventions for generative AI
(gen_ai.input.messages, gen_ai.system_instructions, gen_ai.tool.definitions).
"""

from __future__ import annotations

from collections.abc import Mapping

from codesmith_lab.sessions.reading.apis.block_maker import BlockMaker
from codesmith_lab.sessions.reading.apis.detection import role_of
from codesmith_lab.sessions.reading.apis.drafts import (
    Draft,
    Part,
    Reading,
    compact,
    dump,
    media_text,
    unread_message,
)
from codesmith_lab.sessions.reading.apis.history import Histories
from codesmith_lab.sessions.reading.apis.openai_chat import read_tool
from codesmith_lab.sessions.reading.json_spans import BadJson, Span, items_of, members_of
from codesmith_lab.sessions.reading.spans import ArraySpan, Member

__all__ = ["OtelReader"]


class OtelReader:
    """Reads the messages of one log; what repeats is read once."""

    name = "otel-messages"
    body_keys: tuple[str, ...] = ("model", "messages", "system", "tools")

    def __init__(self) -> None:
        self._maker = BlockMaker()
        self._history = Histories(self._maker, _read_message)

    def read(self, members: Mapping[str, Member]) -> Reading:
        """Tools, system instructions and messages of one span."""
        messages = members.get("messages")
        if not isinstance(messages, ArraySpan):
            raise BadJson("the span's messages are not a list")
        reading = Reading()
        self._maker.tools(members.get("tools"), "tools", read_tool, reading)
        system = members.get("system")
        prompts = []
        for item in system.items if isinstance(system, ArraySpan) else ():
            prompts.append((self._maker.draft(item, "system", _read_system), -1))
        items = messages.items
        leading = 0
        while leading < len(items) and role_of(items[leading]) in ("system", "developer"):
            draft = self._maker.draft(items[leading], "message", _read_message)
            prompts.append((draft, leading))
            leading += 1
        if prompts:
            self._maker.system(reading, prompts)
        self._history.extend(reading, items, leading)
        return reading

    def output(self, response: Span, index: int) -> Reading | None:
        """The first of the output messages, or None."""
        value = response.value
        message = value[0] if isinstance(value, list) and value else None
        if not isinstance(message, dict):
            return None
        raw = items_of(response.raw)[0].raw if response.raw else b""
        draft = _read_message(Span(raw, {**message, "role": "assistant"})).finish()
        reading = Reading()
        reading.add(draft, self._maker.message(draft, index, "log"))
        return reading


def _read_system(span: Span) -> Draft:
    draft = Draft("system")
    draft.parts.append(_part(span, "system", draft))
    return draft


def _read_message(span: Span) -> Draft:
    message = span.value
    if not isinstance(message, dict):
        return unread_message(span)
    role = message.get("role")
    draft = Draft(role if isinstance(role, str) else "user")
    parts = message.get("parts")
    if isinstance(parts, list) and parts:
        spans = [Span(span.raw if len(parts) == 1 else b"", part) for part in parts]
        if len(parts) > 1 and span.raw:
            spans = items_of(members_of(span.raw)["parts"].raw)
        draft.parts = [_part(part, draft.role, draft) for part in spans]
    else:
        content = message.get("content", parts)
        text = content if isinstance(content, str) else "" if not content else compact(content)
        draft.parts = [Part(draft.role, text, span.raw)]
    return draft


def _part(span: Span, name: str, draft: Draft) -> Part:
    part = span.value
    if not isinstance(part, dict):
        return Part(name, part if isinstance(part, str) else compact(part), span.raw)
    kind, content = part.get("type"), part.get("content")
    if kind in ("text", "reasoning") and isinstance(content, str):
        return Part("thinking" if kind == "reasoning" else name, content, span.raw)
    if kind == "tool_call":
        called = part["name"] if isinstance(part.get("name"), str) else ""
        if isinstance(part.get("id"), str):
            draft.calls.append((part["id"], called))
        given = part.get("arguments")
        text = given if isinstance(given, str) else dump(given)
        return Part(f"tool call {called}", f"{called}\n{text}", span.raw, 1)
    if kind == "tool_call_response":
        result = part.get("response", part.get("result"))
        answers = part["id"] if isinstance(part.get("id"), str) else ""
        text = result if isinstance(result, str) else dump(result)
        return Part("tool", text, span.raw, answers=answers)
    if kind in ("blob", "file", "uri"):
        sent = (part.get(k) for k in ("content", "uri", "file_id"))
        digest = media_text("file", next((c for c in sent if c), part), part.get("mime_type"))
        return Part("file", digest, span.raw)
    draft.note("a part of an unknown type was kept as its JSON")
    return Part(name, compact(part), span.raw)
