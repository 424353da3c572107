"""OpenAI Responses bodies.

How an item reads as text: a message as in chat completions; a function call as its name and its
arguments verbatim on a new line; a result as its text; reasoning as its summary, or as a digest
where it is encrypted. A request with `previous_response_id` goes on from what that request sent and
what came back, taken from the log; `instructions` are not carried over. Source: OpenAI's API
reference for responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from codesmith_lab.sessions.reading.apis.block_maker import BlockMaker
from codesmith_lab.sessions.reading.apis.detection import role_of
from codesmith_lab.sessions.reading.apis.drafts import (
    Draft,
    Part,
    Reading,
    compact,
    media_text,
    unread_message,
)
from codesmith_lab.sessions.reading.apis.history import Histories
from codesmith_lab.sessions.reading.apis.markers import marker_of
from codesmith_lab.sessions.reading.apis.openai_chat import (
    read_content,
    read_part,
    read_system,
    read_tool,
)
from codesmith_lab.sessions.reading.json_spans import BadJson, Span, items_of, members_of
from codesmith_lab.sessions.reading.spans import ArraySpan, Member, value_of

__all__ = ["ResponsesReader"]

_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS: Final = ("function_call_output", "custom_tool_call_output")


class _Turn:
    """What one response knew: the items of its request and its own, behind those of `before`."""

    __slots__ = ("before", "items")

    def __init__(self, before: _Turn | None, items: list[Span]) -> None:
        self.before = before
        self.items = items

    def history(self) -> list[Span]:
        parts: list[list[Span]] = []
        turn: _Turn | None = self
        while turn is not None:
            parts.append(turn.items)
            turn = turn.before
        return [item for part in reversed(parts) for item in part]


class ResponsesReader:
    """Reads the bodies of one log; what repeats is read once."""

    name = "openai-responses"
    body_keys: tuple[str, ...] = ("model", "input", "tools", "instructions")

    def __init__(self) -> None:
        self._maker = BlockMaker()
        self._history = Histories(self._maker, _read_item)
        self._turns: dict[str, _Turn] = {}
        self._now = _Turn(None, [])

    def read(self, members: Mapping[str, Member]) -> Reading:
        """Tools, instructions, leading system messages and items of one body."""
        given = members.get("input")
        if isinstance(given, ArraySpan):
            items = given.items
        elif isinstance(given, Span) and isinstance(given.value, str):
            items = [given]
        elif value_of(given) is None and ("prompt" in members or "instructions" in members):
            items = []
        else:
            raise BadJson("the request's input is neither text nor a list")
        reading = Reading()
        before = self._before(members, reading)
        self._now = _Turn(before, items)
        items = self._now.history()
        self._maker.tools(members.get("tools"), "tools", read_tool, reading)
        prompts = []
        instructions = members.get("instructions")
        if isinstance(instructions, Span) and isinstance(instructions.value, str):
            prompts.append((self._maker.draft(instructions, "system", _read_text), -1))
        elif value_of(instructions) is not None:
            reading.notes.append("instructions is not text and was read as a setting")
            reading.ignored["instructions"] = value_of(instructions)
        leading = 0
        while leading < len(items) and role_of(items[leading]) in ("system", "developer"):
            draft = self._maker.draft(items[leading], "system", read_system)
            prompts.append((draft, leading))
            leading += 1
        if prompts:
            self._maker.system(reading, prompts)
        self._history.extend(reading, items, leading)
        return reading

    def output(self, response: Span, index: int) -> Reading | None:
        """The response's items as they would stand in the next request's history, or None."""
        value = response.value if isinstance(response.value, dict) else {}
        if not isinstance(value.get("output"), list):
            return None
        if response.raw:
            items = items_of(members_of(response.raw)["output"].raw)
        else:
            items = [Span(b"", item) for item in value["output"]]
        if isinstance(value.get("id"), str):
            self._turns[value["id"]] = _Turn(self._now, items)
        reading = Reading()
        first = len(self._now.history())
        for place, item in enumerate(items):
            draft = self._maker.draft(item, "message", _read_item)
            reading.add(draft, self._maker.message(draft, first + place, "log"))
        return reading

    def _before(self, members: Mapping[str, Member], reading: Reading) -> _Turn | None:
        """What the server remembers for this request, as far as the log has it."""
        kept = value_of(members.get("previous_response_id"))
        if isinstance(kept, str) and kept in self._turns:
            reading.notes.append(
                "the history is kept by the server under previous_response_id; it was taken from "
                "the earlier request and response in this log"
            )
            return self._turns[kept]
        for key in ("previous_response_id", "conversation", "prompt"):
            if value_of(members.get(key)) is not None:
                reading.partial = True
                reading.notes.append(
                    f"{key} names content that the server keeps and this log does not hold"
                )
        return None


def _read_text(span: Span) -> Draft:
    return Draft("system", [Part("system", span.value, span.raw)])


def _read_item(span: Span) -> Draft:
    item = span.value
    if isinstance(item, str):
        return Draft("user", [Part("user", item, span.raw)])
    if not isinstance(item, dict):
        return unread_message(span)
    kind = item["type"] if isinstance(item.get("type"), str) else None
    if kind in _CALLS:
        return _call(span, item, item.get(_CALLS[kind]))
    if kind in _RESULTS:
        return _result(span, item)
    if kind == "reasoning":
        return _reasoning(span, item)
    role = item.get("role")
    if isinstance(role, str) and kind in (None, "message"):
        draft = Draft(role)
        draft.parts = read_content(span, role, draft)
        return draft
    draft = Draft("tool" if kind and kind.endswith("_output") else "assistant")
    name = kind or "item without a type"
    draft.note(f"an item of another type was kept as its JSON: {name[:60]}")
    draft.parts.append(Part(name, compact(item), span.raw, marker=marker_of(item, draft)))
    return draft


def _call(span: Span, item: dict[str, Any], given: Any) -> Draft:
    draft = Draft("assistant")
    name = item["name"] if isinstance(item.get("name"), str) else ""
    if not isinstance(given, str):
        draft.note("the arguments of a tool call are not text and were kept as their JSON")
        given = compact(given)
    if isinstance(item.get("call_id"), str):
        draft.calls.append((item["call_id"], name))
    draft.parts.append(Part("assistant, 1 tool call", f"{name}\n{given}", span.raw, 1))
    return draft


def _result(span: Span, item: dict[str, Any]) -> Draft:
    draft = Draft("tool")
    answers = item["call_id"] if isinstance(item.get("call_id"), str) else ""
    output = item.get("output")
    if isinstance(output, list) and output:
        given = items_of(members_of(span.raw)["output"].raw) if span.raw else None
        parts = given or [Span(b"", part) for part in output]
        draft.parts = [read_part(part, "tool", draft) for part in parts]
        for part in draft.parts:
            part.answers = answers
    else:
        text = output if isinstance(output, str) else "" if not output else compact(output)
        draft.parts.append(Part("tool", text, span.raw, answers=answers))
    return draft


def _reasoning(span: Span, item: dict[str, Any]) -> Draft:
    draft = Draft("assistant")
    texts = [
        part["text"]
        for key in ("summary", "content")
        for part in (item[key] if isinstance(item.get(key), list) else ())
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
    hidden = item.get("encrypted_content")
    if isinstance(hidden, str) and hidden:
        texts.append(media_text("reasoning", hidden))
    draft.parts.append(Part("reasoning", "\n".join(texts), span.raw))
    return draft
