"""Gemini generateContent bodies.

How a part reads as text: text as it is; a function call as its name and its arguments as JSON on a
new line; a function's response as its JSON; inline data and files as a digest. Keys are read in
camel case and in snake case. Source: Google's API reference for generateContent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
from codesmith_lab.sessions.reading.json_spans import BadJson, Span, items_of, members_of
from codesmith_lab.sessions.reading.spans import ArraySpan, Member, value_of

__all__ = ["GeminiReader"]

_SYSTEM: Final = ("systemInstruction", "system_instruction")
_DECLARATIONS: Final = ("functionDeclarations", "function_declarations")
_CACHED: Final = ("cachedContent", "cached_content")


class GeminiReader:
    """Reads the bodies of one log; what repeats is read once."""

    name = "gemini"
    body_keys: tuple[str, ...] = ("model", "contents", "tools", *_SYSTEM)

    def __init__(self) -> None:
        self._maker = BlockMaker()
        self._history = Histories(self._maker, _read_message)

    def read(self, members: Mapping[str, Member]) -> Reading:
        """Tools, system instruction and contents of one body."""
        contents = members.get("contents")
        reading = Reading()
        if isinstance(contents, ArraySpan):
            items = contents.items
        elif isinstance(contents, Span) and isinstance(contents.value, str | dict):
            items = [contents]
        else:
            raise BadJson("the request's contents are neither text nor a list")
        for key in _CACHED:
            if value_of(members.get(key)) is not None:
                reading.partial = True
                reading.notes.append(
                    f"{key} names a prefix that the server keeps and this log does not hold"
                )
        self._maker.tools(members.get("tools"), "tools", _read_tools, reading)
        for key in _SYSTEM:
            prompt = members.get(key)
            if isinstance(prompt, Span) and prompt.value not in (None, "", {}):
                draft = self._maker.draft(prompt, "system", _read_system)
                self._maker.system(reading, [(draft, -1)])
        self._history.extend(reading, items, 0)
        return reading

    def output(self, response: Span, index: int) -> Reading | None:
        """The first candidate as it would stand in the next request's history, or None."""
        candidates = response.value.get("candidates") if isinstance(response.value, dict) else None
        first = candidates[0] if isinstance(candidates, list) and candidates else None
        content = first.get("content") if isinstance(first, dict) else None
        if not isinstance(content, dict):
            return None
        raw = response.raw
        if raw:
            raw = items_of(members_of(raw)["candidates"].raw)[0].raw
            raw = members_of(raw)["content"].raw
        draft = _read_message(Span(raw, {**content, "role": "model"})).finish()
        reading = Reading()
        reading.add(draft, self._maker.message(draft, index, "log"))
        return reading


def _read_tools(span: Span) -> Draft:
    """One entry of the list: a block for each function it declares, or one for itself."""
    tool, draft = span.value, Draft("user")
    for key in _DECLARATIONS:
        given = tool.get(key) if isinstance(tool, dict) else None
        if isinstance(given, list) and given:
            for item in items_of(members_of(span.raw)[key].raw):
                named = item.value.get("name") if isinstance(item.value, dict) else None
                draft.parts.append(Part(named or "tool", dump(item.value), item.raw))
    if not draft.parts:
        name = next(iter(tool), "tool") if isinstance(tool, dict) else "tool"
        draft.parts.append(Part(name, dump(tool), span.raw))
    return draft


def _read_system(span: Span) -> Draft:
    draft = Draft("system")
    draft.parts = _parts(span, "system", draft)
    return draft


def _read_message(span: Span) -> Draft:
    message = span.value
    if isinstance(message, str):
        return Draft("user", [Part("user", message, span.raw)])
    if not isinstance(message, dict):
        return unread_message(span)
    role = message.get("role", "user")
    known = {"model": "assistant", "user": "user", "function": "tool"}
    draft = Draft(known.get(role, role) if isinstance(role, str) else "user")
    draft.parts = _parts(span, draft.role, draft)
    if draft.role == "user" and all(map(_is_answer, _listed(message))):
        draft.role = "tool"
    return draft


def _listed(message: dict[str, Any]) -> list[Any]:
    parts = message.get("parts")
    return parts if isinstance(parts, list) and parts else [parts]


def _is_answer(part: Any) -> bool:
    return isinstance(part, dict) and ("functionResponse" in part or "function_response" in part)


def _parts(span: Span, name: str, draft: Draft) -> list[Part]:
    value = span.value
    if isinstance(value, str):
        return [Part(name, value, span.raw)]
    given = value.get("parts") if isinstance(value, dict) else value
    if isinstance(given, dict):
        given = [given]
    if not isinstance(given, list) or not given:
        if given not in (None, []):
            draft.note("parts that are not a list were kept as their JSON")
            return [Part(name, compact(given), span.raw)]
        return [Part(name, "", span.raw)]
    if len(given) == 1 or not span.raw:
        spans = [Span(span.raw if len(given) == 1 else b"", part) for part in given]
    else:
        spans = items_of(members_of(span.raw)["parts"].raw)
    return [_part(part, name, draft) for part in spans]


def _part(span: Span, name: str, draft: Draft) -> Part:
    part = span.value
    if not isinstance(part, dict):
        if not isinstance(part, str):
            draft.note("a part that is not an object was kept as its JSON")
        return Part(name, part if isinstance(part, str) else compact(part), span.raw)
    if isinstance(part.get("text"), str):
        return Part("thinking" if part.get("thought") is True else name, part["text"], span.raw)
    call = part.get("functionCall", part.get("function_call"))
    if isinstance(call, dict):
        called = call["name"] if isinstance(call.get("name"), str) else ""
        return Part(f"tool call {called}", f"{called}\n{dump(call.get('args'))}", span.raw, 1)
    answer = part.get("functionResponse", part.get("function_response"))
    if isinstance(answer, dict):
        named = answer["name"] if isinstance(answer.get("name"), str) else ""
        return Part(f"tool {named}".rstrip(), dump(answer.get("response")), span.raw)
    for key in ("inlineData", "inline_data", "fileData", "file_data"):
        data = part.get(key)
        if isinstance(data, dict):
            content = (data.get(k) for k in ("data", "fileUri", "file_uri"))
            kind = data.get("mimeType", data.get("mime_type"))
            digest = media_text("file", next((c for c in content if c), data), kind)
            return Part("file", digest, span.raw)
    draft.note("a part of an unknown type was kept as its JSON")
    return Part(f"{name}, {next(iter(part), 'empty part')}", compact(part), span.raw)
