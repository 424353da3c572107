"""Amazon Bedrock Converse bodies.

How a part reads as text: text and reasoning as they are; a tool call as its name and its input as
JSON on a new line; a tool result as its text or JSON; images, documents and videos as a digest. A
`cachePoint` is no content: it marks what stands before it. Source: AWS's API reference for
Converse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from codesmith_lab.sessions.reading.apis.block_maker import BlockMaker
from codesmith_lab.sessions.reading.apis.drafts import (
    Draft,
    Part,
    Reading,
    compact,
    dump,
    label,
    media_text,
    unread_message,
)
from codesmith_lab.sessions.reading.apis.history import Histories
from codesmith_lab.sessions.reading.json_spans import BadJson, Span, items_of, members_of
from codesmith_lab.sessions.reading.spans import ArraySpan, Member, ObjectSpan, value_of

__all__ = ["ConverseReader"]

_MEDIA: Final = ("image", "document", "video", "audio")


class ConverseReader:
    """Reads the bodies of one log; what repeats is read once."""

    name = "bedrock-converse"
    body_keys: tuple[str, ...] = ("modelId", "model", "messages", "system")

    def __init__(self) -> None:
        self._maker = BlockMaker()
        self._history = Histories(self._maker, _read_message)

    def read(self, members: Mapping[str, Member]) -> Reading:
        """Tools, system texts and messages of one body."""
        messages = members.get("messages")
        if not isinstance(messages, ArraySpan):
            raise BadJson("the request has no list of messages")
        reading = Reading()
        self._tools(members.get("toolConfig"), reading)
        prompts: list[tuple[Draft, int]] = []
        system = members.get("system")
        for item in system.items if isinstance(system, ArraySpan) else ():
            draft = self._maker.draft(item, "system", _read_system)
            if draft.parts:
                prompts.append((draft, -1))
            elif prompts and isinstance(item.value, dict):
                # The draft is shared by every request; the marker is this one's.
                prompts[-1] = (_marked(self._maker, prompts[-1][0], _lifetime(item.value)), -1)
        if isinstance(system, Span) and system.value is not None:
            reading.notes.append("system is not a list and was read as a setting")
            reading.ignored["system"] = system.value
        if prompts:
            self._maker.system(reading, prompts)
        self._history.extend(reading, messages.items, 0)
        return reading

    def output(self, response: Span, index: int) -> Reading | None:
        """The response as it would stand in the next request's history, or None."""
        output = response.value.get("output") if isinstance(response.value, dict) else None
        message = output.get("message") if isinstance(output, dict) else None
        if not isinstance(message, dict):
            return None
        raw = response.raw
        if raw:
            raw = members_of(members_of(raw)["output"].raw)["message"].raw
        draft = _read_message(Span(raw, {**message, "role": "assistant"})).finish()
        reading = Reading()
        reading.add(draft, self._maker.message(draft, index, "log"))
        return reading

    def _tools(self, config: Member | None, reading: Reading) -> None:
        tools = config.members.get("tools") if isinstance(config, ObjectSpan) else None
        for item in tools.items if isinstance(tools, ArraySpan) else ():
            draft = self._maker.draft(item, "tool", _read_tool)
            if draft.parts:
                reading.add(draft, self._maker.tool(draft))
            elif reading.blocks:
                reading.markers.append((len(reading.blocks) - 1, _lifetime(item.value)))
        if isinstance(config, ObjectSpan):
            for key, member in config.members.items():
                if key != "tools":
                    reading.ignored[key] = value_of(member)


def _marked(maker: BlockMaker, draft: Draft, lifetime: str) -> Draft:
    """The same draft with a marker behind it; made once."""

    def make() -> Draft:
        parts = [Part(p.name, p.text, p.raw, p.calls, p.answers, p.marker) for p in draft.parts]
        marked = Draft(draft.role, parts, draft.calls, list(draft.notes))
        marked.mark(lifetime)
        return marked

    return maker.derived(draft, lifetime, make)


def _lifetime(item: dict[str, Any]) -> str:
    """Lifetime of a cache point; five minutes unless it says otherwise."""
    point = item.get("cachePoint")
    ttl = point.get("ttl") if isinstance(point, dict) else None
    return label(ttl[:20]) if isinstance(ttl, str) and ttl else "5m"


def _is_point(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("cachePoint"), dict)


def _read_tool(span: Span) -> Draft:
    tool, draft = span.value, Draft("user")
    if _is_point(tool):
        return draft
    spec = tool.get("toolSpec") if isinstance(tool, dict) else None
    shown = spec if isinstance(spec, dict) else tool
    if not isinstance(shown, dict):
        draft.note("a tool is not an object and was kept as its JSON")
    name = shown.get("name") if isinstance(shown, dict) else None
    draft.parts.append(Part(name or "tool", dump(shown), span.raw))
    return draft


def _read_system(span: Span) -> Draft:
    draft = Draft("system")
    if not _is_point(span.value):
        draft.parts.append(_part(span, "system", draft))
    return draft


def _read_message(span: Span) -> Draft:
    message = span.value
    if not isinstance(message, dict):
        return unread_message(span)
    role = message.get("role")
    draft = Draft(role if isinstance(role, str) else "user")
    content = message.get("content")
    if isinstance(content, list) and content:
        draft.parts = []
        for part in _slices(span, content):
            if _is_point(part.value):
                draft.mark(_lifetime(part.value))
            else:
                draft.parts.append(_part(part, draft.role, draft))
    elif content is not None and not isinstance(content, str | list):
        draft.note("a content that is neither text nor a list was kept as its JSON")
        draft.parts = [Part(draft.role, compact(content), span.raw)]
    if not draft.parts:
        draft.parts = [Part(draft.role, content if isinstance(content, str) else "", span.raw)]
    return draft


def _slices(span: Span, content: list[Any]) -> Sequence[Span]:
    if len(content) == 1 or not span.raw:
        return [Span(span.raw if len(content) == 1 else b"", part) for part in content]
    return items_of(members_of(span.raw)["content"].raw)


def _part(span: Span, name: str, draft: Draft) -> Part:
    part = span.value
    if not isinstance(part, dict):
        draft.note("a part that is not an object was kept as its JSON")
        return Part(name, compact(part), span.raw)
    if isinstance(part.get("text"), str):
        return Part(name, part["text"], span.raw)
    call = part.get("toolUse")
    if isinstance(call, dict):
        called = call["name"] if isinstance(call.get("name"), str) else ""
        if isinstance(call.get("toolUseId"), str):
            draft.calls.append((call["toolUseId"], called))
        return Part(f"tool call {called}", f"{called}\n{dump(call.get('input'))}", span.raw, 1)
    result = part.get("toolResult")
    if isinstance(result, dict):
        answers = result["toolUseId"] if isinstance(result.get("toolUseId"), str) else ""
        return Part("tool", _result_text(result.get("content"), draft), span.raw, answers=answers)
    thought = part.get("reasoningContent")
    if isinstance(thought, dict):
        inner = thought.get("reasoningText")
        text = inner.get("text") if isinstance(inner, dict) else None
        if not isinstance(text, str):
            text = media_text("thinking", thought.get("redactedContent", thought))
        return Part("thinking", text, span.raw)
    for kind in _MEDIA:
        media = part.get(kind)
        if isinstance(media, dict):
            source = media.get("source")
            content = next(iter(source.values()), media) if isinstance(source, dict) else media
            return Part(kind, media_text(kind, content, media.get("format")), span.raw)
    draft.note("a part of an unknown type was kept as its JSON")
    return Part(f"{name}, {next(iter(part), 'empty part')}", compact(part), span.raw)


def _result_text(content: Any, draft: Draft) -> str:
    if not isinstance(content, list):
        return content if isinstance(content, str) else "" if content is None else compact(content)
    texts = []
    for item in content:
        if isinstance(item, dict) and "json" in item:
            texts.append(dump(item["json"]))
        elif not _is_point(item):
            texts.append(_part(Span(b"", item), "tool", draft).text)
    return "\n".join(texts)
