"""OpenAI chat-completions bodies (also DeepSeek's and most gateways').

How a message reads as text: the reasoning sent back with it between `<think>` and `</think>`, its
content, then each tool call as its name and its arguments verbatim, each on a new line. Call ids
are no part of the text. Sources: OpenAI's API reference for chat completions; DeepSeek's published
message encoding for the place of the reasoning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from codesmith_lab.sessions.reading.apis.markers import marker_of
from codesmith_lab.sessions.reading.json_spans import BadJson, Span, items_of, members_of
from codesmith_lab.sessions.reading.spans import ArraySpan, Member

__all__ = ["ChatReader", "read_content", "read_part", "read_system", "read_tool"]

_SYSTEM = ("system", "developer")
_TEXT_TYPES = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}


class ChatReader:
    """Reads the bodies of one log; what repeats is read once."""

    name = "openai-chat"
    body_keys: tuple[str, ...] = ("model", "messages", "tools", "functions")

    def __init__(self) -> None:
        self._maker = BlockMaker()
        self._history = Histories(self._maker, _read_message)

    def read(self, members: Mapping[str, Member]) -> Reading:
        """Tools, leading system sections and messages of one body."""
        messages = members.get("messages")
        if not isinstance(messages, ArraySpan):
            raise BadJson("the request has no list of messages")
        reading = Reading()
        for key in ("tools", "functions"):
            self._maker.tools(members.get(key), key, read_tool, reading)
        items = messages.items
        leading = 0
        while leading < len(items) and role_of(items[leading]) in _SYSTEM:
            leading += 1
        if leading:
            prompts = [
                (self._maker.draft(items[i], "system", read_system), i) for i in range(leading)
            ]
            self._maker.system(reading, prompts)
        self._history.extend(reading, items, leading)
        return reading

    def output(self, response: Span, index: int) -> Reading | None:
        """The response as it would stand in the next request's history, or None."""
        choices = response.value.get("choices") if isinstance(response.value, dict) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(message, dict):
            return None
        raw = response.raw
        if raw:
            raw = items_of(members_of(raw)["choices"].raw)[0].raw
            raw = members_of(raw)["message"].raw
        draft = _read_message(Span(raw, {"role": "assistant", **message})).finish()
        reading = Reading()
        reading.add(draft, self._maker.message(draft, index, "log"))
        return reading


def read_tool(span: Span) -> Draft:
    tool, draft = span.value, Draft("user")
    inner = tool.get("function") if isinstance(tool, dict) else None
    shown = inner if isinstance(inner, dict) else tool
    if isinstance(shown, dict):
        name = shown.get("name") or shown.get("type") or "tool"
        marker = marker_of(tool, draft) or marker_of(shown, draft)
        shown = {k: v for k, v in shown.items() if k != "cache_control"}
    else:
        draft.note("a tool is not an object and was kept as its JSON")
        name, marker = "tool", ""
    draft.parts.append(Part(name, dump(shown), span.raw, marker=marker))
    return draft


def read_system(span: Span) -> Draft:
    """A leading system message. Its sections share the slice of the whole message."""
    message, draft = span.value, Draft(span.value["role"])
    content = message.get("content")
    whole = marker_of(message, draft)
    if isinstance(content, list) and content:
        draft.parts = [read_part(Span(span.raw, part), "system", draft) for part in content]
    else:
        draft.parts = [Part("system", _content_text(content, draft), span.raw)]
    draft.parts[-1].marker = draft.parts[-1].marker or whole
    return draft


def _read_message(span: Span) -> Draft:
    message = span.value
    if not isinstance(message, dict):
        return unread_message(span)
    role = message.get("role")
    if not isinstance(role, str):
        draft = Draft("user", notes=["a message without a role was read as the user's"])
    else:
        draft = Draft(role)
    name = role if isinstance(role, str) else "message"
    thought = _thought(message)
    calls = _calls(message, draft)
    draft.parts = read_content(span, name, draft)
    first, last = draft.parts[0], draft.parts[-1]
    if thought:
        first.text = f"<think>{thought}</think>{first.text}"
    if calls:
        plural = "s" if len(calls) > 1 else ""
        title = f"{name}, {len(calls)} tool call{plural}"
        if len(draft.parts) > 1:
            inner = members_of(span.raw).get("tool_calls") if span.raw else None
            last = Part(title, "", inner.raw if inner else span.raw)
            draft.parts.append(last)
        last.name, last.calls = title, len(calls)
        last.text = "\n".join([last.text, *calls] if last.text else calls)
    last.marker = last.marker or marker_of(message, draft)
    if role in ("tool", "function"):
        answered = message.get("tool_call_id") if role == "tool" else None
        named = message.get("name")
        for part in draft.parts:
            part.answers = answered if isinstance(answered, str) else ""
            if isinstance(named, str) and part.name == role:
                part.name = f"tool {named}"
    return draft


def _thought(message: dict[str, Any]) -> str:
    """Reasoning sent back: DeepSeek's `reasoning_content`, `reasoning` with some gateways."""
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str) and message[key]:
            return str(message[key])
    return ""


def _calls(message: dict[str, Any], draft: Draft) -> list[str]:
    """Text of each tool call; ids and names go to the draft."""
    given = message.get("tool_calls")
    if given is not None and not isinstance(given, list):
        draft.note("tool_calls is not a list and was kept as its JSON")
        return [compact(given)]
    calls = list(given or ())
    if message.get("function_call") is not None:
        calls.append({"function": message["function_call"]})
    texts = []
    for call in calls:
        function = call.get("function", call.get("custom")) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            draft.note("a tool call without a function was kept as its JSON")
            texts.append(compact(call))
            continue
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        arguments = function.get("arguments", function.get("input"))
        if not isinstance(arguments, str):
            draft.note("the arguments of a tool call are not text and were kept as their JSON")
            arguments = compact(arguments)
        if isinstance(call.get("id"), str):
            draft.calls.append((call["id"], name))
        texts.append(f"{name}\n{arguments}")
    return texts


def read_content(span: Span, name: str, draft: Draft) -> list[Part]:
    """The parts of a message: one for text or a single part, else one for each part."""
    message = span.value
    content = message.get("content")
    if not isinstance(content, list) or not content:
        text = "" if isinstance(content, list) else _content_text(content, draft)
        refusal = message.get("refusal")
        return [Part(name, text or (refusal if isinstance(refusal, str) else ""), span.raw)]
    if len(content) == 1:
        return [read_part(Span(span.raw, content[0]), name, draft)]
    if not span.raw:
        return [read_part(Span(b"", part), name, draft) for part in content]
    return [read_part(part, name, draft) for part in items_of(members_of(span.raw)["content"].raw)]


def _content_text(content: Any, draft: Draft) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    draft.note("a content that is neither text nor a list was kept as its JSON")
    return compact(content)


def read_part(span: Span, name: str, draft: Draft) -> Part:
    part = span.value
    if isinstance(part, str):
        return Part(name, part, span.raw)
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        draft.note("a content part without a type was kept as its JSON")
        return Part(f"{name}, part without a type", compact(part), span.raw)
    marker = marker_of(part, draft)
    field = _TEXT_TYPES.get(kind)
    if field is not None and isinstance(part.get(field), str):
        return Part(name, part[field], span.raw, marker=marker)
    media = _media(kind, part)
    if media is not None:
        return Part(media.split(" ", 1)[0], media, span.raw, marker=marker)
    draft.note("a content part of an unknown type was kept as its JSON")
    shown = {k: v for k, v in part.items() if k != "cache_control"}
    return Part(f"{name}, {kind}", compact(shown), span.raw, marker=marker)


def _media(kind: str, part: dict[str, Any]) -> str | None:
    """The stand-in for an image, a sound or a file; None for another or a broken part."""
    inner = part.get(kind)
    if kind in ("image_url", "input_image") and "image_url" in part:
        inner = part["image_url"]
        if isinstance(inner, dict):
            return media_text("image", inner.get("url"), inner.get("detail"))
        return media_text("image", inner, part.get("detail"))
    if kind in ("input_image", "input_file"):
        sent = (part.get(k) for k in ("file_data", "file_url", "file_id"))
        kind = kind.removeprefix("input_")
        return media_text(kind, next((c for c in sent if c), part), part.get("filename"))
    if not isinstance(inner, dict):
        return None
    if kind == "input_audio":
        return media_text("audio", inner.get("data"), inner.get("format"))
    if kind == "file":
        content: Sequence[Any] = [inner.get(k) for k in ("file_data", "file_id")]
        return media_text("file", next((c for c in content if c), inner), inner.get("filename"))
    return None
