"""OpenAI chat-completions bodies (also DeepSeek's and most gateways')."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.bodies import BlockMaker, Part, dump, media_text
from codesmith_lab.sessions.json_spans import BadJson, items_of

__all__ = ["output_blocks", "read_blocks", "response_message"]

Members = Mapping[str, tuple[Any, str]]
_SYSTEM = ("system", "developer")


def read_blocks(members: Members, maker: BlockMaker) -> list[Block]:
    """Tools, system sections and messages of one body. BadJson when it has no messages."""
    value, raw = members.get("messages", (None, ""))
    if not isinstance(value, list) or not value:
        raise BadJson("the request has no list of messages")
    items = items_of(raw)
    if any(not isinstance(item, dict) for item, _ in items):
        raise BadJson("a message is not an object with a role and content")
    blocks = _tools(members, maker)
    leading = 0
    while leading < len(items) and items[leading][0].get("role") in _SYSTEM:
        message, text = items[leading]
        content = _plain(message.get("content"), maker)
        blocks += maker.sections(content, text, leading, str(message["role"]))
        leading += 1
    roles = [item.get("role") for item, _ in items]
    own = max((i + 1 for i, role in enumerate(roles) if role == "assistant"), default=leading)
    calls: dict[str, str] = {}
    for i in range(leading, len(items)):
        message, text = items[i]
        blocks += _message(message, text, i, i >= own, calls, maker)
    return blocks


def _tools(members: Members, maker: BlockMaker) -> list[Block]:
    value, raw = members.get("tools", (None, ""))
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadJson("tools is not a list")
    blocks: list[Block] = []
    for tool, text in items_of(raw):
        inner = tool.get("function") if isinstance(tool, dict) else None
        shown = inner if isinstance(inner, dict) else tool
        name = str(shown.get("name", "tool")) if isinstance(shown, dict) else "tool"
        blocks += maker.tool(name, shown, text)
    return blocks


def _plain(content: Any, maker: BlockMaker) -> str:
    """The text of a system message, whatever its shape."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_part(part, "", maker).text for part in content)
    maker.note("a system message's content is neither text nor a list")
    return dump(content)


def _message(
    message: Mapping[str, Any],
    raw: str,
    index: int,
    scratch: bool,
    calls: dict[str, str],
    maker: BlockMaker,
) -> list[Block]:
    role = message.get("role")
    if not isinstance(role, str):
        maker.note("a message has no role")
        role = "user"
    label = role
    if role == "tool":
        label = f"tool {calls.get(str(message.get('tool_call_id')), '')}".strip()
    content = message.get("content")
    if isinstance(content, list) and len(content) > 1 and not message.get("tool_calls"):
        whole = items_of(_content_text(raw))
        parts = [_part(part, text, maker, label) for part, text in whole]
        return maker.message(parts, role, index, scratch)
    text = _plain_message(content, maker)
    part = Part(label, text, raw)
    if isinstance(content, list) and len(content) == 1:
        part = _part(content[0], raw, maker, label)
    thought = message.get("reasoning_content")
    if isinstance(thought, str) and thought:
        part.text = f"<think>{thought}</think>{part.text}"
    _add_calls(part, message.get("tool_calls"), calls, maker)
    return maker.message([part], role, index, scratch)


def _content_text(raw: str) -> str:
    from codesmith_lab.sessions.json_spans import members_of

    return members_of(raw)["content"][1]


def _plain_message(content: Any, maker: BlockMaker) -> str:
    if content is None or isinstance(content, list):
        return ""
    if isinstance(content, str):
        return content
    maker.note("a message's content is neither text nor a list")
    return dump(content)


def _add_calls(part: Part, given: Any, calls: dict[str, str], maker: BlockMaker) -> None:
    if not given:
        return
    if not isinstance(given, list):
        maker.note("tool_calls is not a list")
        return
    for call in given:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            maker.note("a tool call has no function")
            part.text += dump(call)
            continue
        name, arguments = str(function.get("name", "")), function.get("arguments", "")
        calls[str(call.get("id"))] = name
        part.text += f"\n{name}\n{arguments if isinstance(arguments, str) else dump(arguments)}"
        part.calls += 1
    plural = "s" if part.calls != 1 else ""
    part.name = f"{part.name}, {part.calls} tool call{plural}"


def _part(part: Any, raw: str, maker: BlockMaker, label: str = "") -> Part:
    if isinstance(part, str):
        return Part(label, part, raw)
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("text", "input_text", "output_text") and isinstance(part.get("text"), str):
        return Part(label, part["text"], raw)
    if kind in ("image_url", "input_image", "input_audio", "file"):
        name = "image" if "image" in kind else str(kind)
        return Part(name, media_text(name, part), raw)
    maker.note(f"a content part of type {str(kind)[:40]!r} was kept as its JSON")
    return Part(f"{label} {str(kind)[:40]}".strip(), dump(part), raw)


def response_message(response: Any) -> Any:
    """The message of a response, or None."""
    choices = response.get("choices") if isinstance(response, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("message") if isinstance(first, dict) else None


def output_blocks(response: Any, index: int, maker: BlockMaker) -> Sequence[Block] | None:
    """The response as it would stand in the next request's history."""
    message = response_message(response)
    if not isinstance(message, dict):
        return None
    return _message({"role": "assistant", **message}, dump(message), index, False, {}, maker)
