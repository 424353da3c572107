"""Anthropic Messages bodies.

How a part reads as text: text and thinking as they are; a tool call as its name and its input as
JSON on a new line; a tool result as its text, parts on lines of their own; an image or a document's
bytes as a digest. Signatures and cache markers are no part of the text. Source: Anthropic's API
reference for Messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codesmith_lab.sessions.reading.apis.block_maker import BlockMaker
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
from codesmith_lab.sessions.reading.apis.markers import marker_of
from codesmith_lab.sessions.reading.json_spans import BadJson, Span, items_of, members_of
from codesmith_lab.sessions.reading.spans import ArraySpan, Member

__all__ = ["MessagesReader"]

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_RESULTS = ("tool_result", "mcp_tool_result")


class MessagesReader:
    """Reads the bodies of one log; what repeats is read once."""

    name = "anthropic-messages"
    body_keys: tuple[str, ...] = ("model", "messages", "tools", "system")

    def __init__(self) -> None:
        self._maker = BlockMaker()
        self._history = Histories(self._maker, _read_message)

    def read(self, members: Mapping[str, Member]) -> Reading:
        """Tools, system sections and messages of one body."""
        messages = members.get("messages")
        if not isinstance(messages, ArraySpan):
            raise BadJson("the request has no list of messages")
        reading = Reading()
        self._maker.tools(members.get("tools"), "tools", _read_tool, reading)
        prompts = self._system(members.get("system"))
        if prompts:
            self._maker.system(reading, prompts)
        self._history.extend(reading, messages.items, 0)
        return reading

    def output(self, response: Span, index: int) -> Reading | None:
        """The response as it would stand in the next request's history, or None."""
        content = response.value.get("content") if isinstance(response.value, dict) else None
        if not isinstance(content, list | str):
            return None
        span = Span(response.raw, {"role": "assistant", "content": content})
        draft = _read_message(span).finish()
        reading = Reading()
        reading.add(draft, self._maker.message(draft, index, "log"))
        return reading

    def _system(self, member: Member | None) -> list[tuple[Draft, int]]:
        if isinstance(member, ArraySpan):
            return [(self._maker.draft(item, "system", _read_system), -1) for item in member.items]
        if isinstance(member, Span) and member.value not in (None, ""):
            return [(self._maker.draft(member, "system", _read_system), -1)]
        return []


def _unmarked(value: dict[str, Any]) -> dict[str, Any]:
    # A marker is neither read by the model nor part of the cache key.
    return {k: v for k, v in value.items() if k != "cache_control"}


def _read_tool(span: Span) -> Draft:
    tool, draft = span.value, Draft("user")
    if isinstance(tool, dict):
        name = tool.get("name") or tool.get("type") or "tool"
        marker = marker_of(tool, draft)
        draft.parts.append(Part(name, dump(_unmarked(tool)), span.raw, marker=marker))
    else:
        draft.note("a tool is not an object and was kept as its JSON")
        draft.parts.append(Part("tool", compact(tool), span.raw))
    return draft


def _read_system(span: Span) -> Draft:
    draft = Draft("system")
    if isinstance(span.value, str):
        draft.parts.append(Part("system", span.value, span.raw))
    else:
        draft.parts.append(_part(span, "system", draft))
    return draft


def _read_message(span: Span) -> Draft:
    message = span.value
    if not isinstance(message, dict):
        return unread_message(span)
    role = message.get("role")
    if isinstance(role, str):
        draft, name = Draft(role), role
    else:
        draft = Draft("user", notes=["a message without a role was read as the user's"])
        name = "message"
    content = message.get("content")
    if isinstance(content, list) and len(content) > 1:
        slices = [Span(b"", part) for part in content]
        if span.raw:
            slices = items_of(members_of(span.raw)["content"].raw)
        draft.parts = [_part(part, name, draft) for part in slices]
    elif isinstance(content, list) and content:
        draft.parts = [_part(Span(span.raw, content[0]), name, draft)]
    elif content is None or isinstance(content, str | list):
        draft.parts = [Part(name, content if isinstance(content, str) else "", span.raw)]
    else:
        draft.note("a content that is neither text nor a list was kept as its JSON")
        draft.parts = [Part(name, compact(content), span.raw)]
    return draft


def _part(span: Span, name: str, draft: Draft) -> Part:
    part = span.value
    if isinstance(part, str):
        return Part(name, part, span.raw)
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        draft.note("a content part without a type was kept as its JSON")
        return Part(f"{name}, part without a type", compact(part), span.raw)
    read = _known(part, kind, span.raw, name, draft)
    if read is None:
        draft.note("a content part of an unknown type was kept as its JSON")
        read = Part(f"{name}, {kind}", compact(_unmarked(part)), span.raw)
    read.marker = marker_of(part, draft)
    content = part.get("content")
    if not read.marker and isinstance(content, list):
        inner = [marker_of(item, draft) for item in content]
        read.marker = next((marker for marker in inner if marker), "")
    return read


def _known(part: dict[str, Any], kind: str, raw: bytes, name: str, draft: Draft) -> Part | None:
    """A part of a type with a layout of its own; None for any other, or when it is broken."""
    if kind == "text" and isinstance(part.get("text"), str):
        return Part(name, part["text"], raw)
    if kind == "thinking" and isinstance(part.get("thinking"), str):
        return Part("thinking", part["thinking"], raw)
    if kind == "redacted_thinking":
        return Part("redacted thinking", media_text("thinking", part.get("data")), raw)
    if kind in _CALLS and isinstance(part.get("name"), str):
        if isinstance(part.get("id"), str):
            draft.calls.append((part["id"], part["name"]))
        text = f"{part['name']}\n{dump(part.get('input'))}"
        return Part(f"tool call {part['name']}", text, raw, 1)
    if kind in _RESULTS:
        answers = part.get("tool_use_id")
        answered = answers if isinstance(answers, str) else ""
        return Part("tool", _result_text(part.get("content"), draft), raw, answers=answered)
    if kind in ("image", "document") and isinstance(part.get("source"), dict):
        return Part(kind, _source_text(kind, part), raw)
    return None


def _result_text(content: Any, draft: Draft) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "\n".join(_part(Span(b"", part), "tool", draft).text for part in content)
    draft.note("a tool result that is neither text nor a list was kept as its JSON")
    return compact(content)


def _source_text(kind: str, part: dict[str, Any]) -> str:
    """A document's own text; else the digest of what was sent, with its media type."""
    source = part["source"]
    titles = [part[k] for k in ("title", "context") if isinstance(part.get(k), str)]
    if source.get("type") == "text" and isinstance(source.get("data"), str):
        return "\n".join([*titles, source["data"]])
    content = next((source[k] for k in ("data", "url", "file_id") if source.get(k)), source)
    return "\n".join([*titles, media_text(kind, content, source.get("media_type"))])
