"""Anthropic Messages bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.bodies import BlockMaker, Part, dump, media_text
from codesmith_lab.sessions.json_spans import BadJson, items_of, members_of

__all__ = ["markers_of", "output_blocks", "read_blocks"]

Members = Mapping[str, tuple[Any, str]]


def read_blocks(members: Members, maker: BlockMaker) -> list[Block]:
    """Tools, system sections and messages of one body. BadJson when it has no messages."""
    value, raw = members.get("messages", (None, ""))
    if not isinstance(value, list) or not (value or members.get("system")):
        raise BadJson("the request has no list of messages")
    items = items_of(raw)
    if any(not isinstance(item, dict) for item, _ in items):
        raise BadJson("a message is not an object with a role and content")
    blocks = _tools(members, maker) + _system(members, maker)
    roles = [item.get("role") for item, _ in items]
    own = max((i + 1 for i, role in enumerate(roles) if role == "assistant"), default=0)
    calls: dict[str, str] = {}
    for i, (message, text) in enumerate(items):
        role = message.get("role")
        if not isinstance(role, str):
            maker.note("a message has no role")
            role = "user"
        parts = _parts(message.get("content"), text, role, calls, maker)
        blocks += maker.message(parts, role, i, i >= own)
    return blocks


def _without_marker(value: Any) -> Any:
    # Cache markers are no part of what the model reads, nor of the cache key.
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if k != "cache_control"}
    return value


def _tools(members: Members, maker: BlockMaker) -> list[Block]:
    value, raw = members.get("tools", (None, ""))
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadJson("tools is not a list")
    blocks: list[Block] = []
    for tool, text in items_of(raw):
        name = str(tool.get("name", "tool")) if isinstance(tool, dict) else "tool"
        blocks += maker.tool(name, _without_marker(tool), text)
    return blocks


def _system(members: Members, maker: BlockMaker) -> list[Block]:
    value, raw = members.get("system", (None, ""))
    if value is None:
        return []
    if isinstance(value, str):
        return maker.sections(value, raw, -1, "system")
    if not isinstance(value, list):
        raise BadJson("system is neither text nor a list of blocks")
    blocks: list[Block] = []
    for part, text in items_of(raw):
        known = isinstance(part, dict) and isinstance(part.get("text"), str)
        content = part["text"] if known else dump(_without_marker(part))
        if not known:
            maker.note("a system block without text was kept as its JSON")
        blocks += maker.sections(content, text, -1, "system")
    return _distinct(blocks)


def _distinct(blocks: list[Block]) -> list[Block]:
    """Section names that are unique over all blocks of the system prompt."""
    from dataclasses import replace

    seen: dict[str, int] = {}
    named = []
    for block in blocks:
        seen[block.name] = seen.get(block.name, 0) + 1
        count = seen[block.name]
        named.append(block if count == 1 else replace(block, name=f"{block.name} ({count})"))
    return named


def _parts(
    content: Any, raw: str, role: str, calls: dict[str, str], maker: BlockMaker
) -> list[Part]:
    if isinstance(content, str):
        return [Part(role, content, raw)]
    if not isinstance(content, list):
        maker.note("a message's content is neither text nor a list")
        return [Part(role, "" if content is None else dump(content), raw)]
    if not content:
        return [Part(role, "", raw)]
    inner = members_of(raw).get("content", (None, "[]"))[1]
    return [_part(part, text, role, calls, maker) for part, text in items_of(inner)]


def _part(part: Any, raw: str, role: str, calls: dict[str, str], maker: BlockMaker) -> Part:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return Part(role, part["text"], raw)
    if kind == "thinking":
        return Part("thinking", str(part.get("thinking", "")), raw)
    if kind == "tool_use":
        name = str(part.get("name", ""))
        calls[str(part.get("id"))] = name
        return Part(f"tool call {name}", f"{name}\n{dump(part.get('input'))}", raw, 1)
    if kind == "tool_result":
        name = calls.get(str(part.get("tool_use_id")), "")
        return Part(f"tool {name}".strip(), _result_text(part.get("content"), maker), raw)
    if kind in ("image", "document"):
        return Part(str(kind), media_text(str(kind), _without_marker(part)), raw)
    maker.note(f"a content part of type {str(kind)[:40]!r} was kept as its JSON")
    return Part(f"{role} {str(kind)[:40]}", dump(_without_marker(part)), raw)


def _result_text(content: Any, maker: BlockMaker) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join(_part(part, "", "", {}, maker).text for part in content)
    return dump(content)


def markers_of(members: Members) -> int:
    """How many cache markers a body carries."""

    def count(value: Any) -> int:
        if isinstance(value, dict):
            own = 1 if isinstance(value.get("cache_control"), dict) else 0
            return own + sum(count(v) for k, v in value.items() if k == "content")
        return sum(count(v) for v in value) if isinstance(value, list) else 0

    return sum(
        count(members[name][0]) for name in ("tools", "system", "messages") if name in members
    )


def output_blocks(response: Any, index: int, maker: BlockMaker) -> Sequence[Block] | None:
    """The response as it would stand in the next request's history."""
    content = response.get("content") if isinstance(response, dict) else None
    if not isinstance(content, list) or not content:
        return None
    parts = [_part(part, dump(part), "assistant", {}, maker) for part in content]
    return maker.message(parts, "assistant", index, False)
