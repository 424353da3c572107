"""Messages, blocks and tools as the reference writes them: fixed field order, nulls left out.

The reference knows a fixed set of fields and block types. What it does not know (an OpenAI tool
call, a signature) is kept behind the known fields, in the sender's order: nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codesmith_lab.fingerprint import compact_json

__all__ = ["message_json", "ordered_message", "ordered_system_block", "ordered_tool", "tool_json"]

# Field order by block type; a trailing "?" marks a field that vanishes when null.
_BLOCKS: dict[str, tuple[str, ...]] = {
    "text": ("text", "cache_control?"),
    "thinking": ("thinking",),
    "image": ("source",),
    "tool_use": ("id", "name", "input", "caller?"),
    "tool_result": ("tool_use_id", "content", "is_error?", "content_blocks?"),
    "server_tool_use": ("id", "name", "input"),
    "tool_search_tool_result": ("tool_use_id", "content"),
    "code_execution_tool_result": ("tool_use_id", "content"),
}
_SOURCES: dict[str, tuple[str, ...]] = {
    "base64": ("type", "media_type", "data"),
    "file": ("type", "path", "media_type?"),
    "url": ("type", "url"),
}
_CALLER = ("type", "tool_id?")
_SYSTEM_BLOCK = ("type", "text", "cache_control?")
_TOOL = (
    "type?",
    "name",
    "description",
    "input_schema",
    "output_schema?",
    "allowed_callers?",
    "defer_loading?",
    "input_examples?",
    "strict?",
    "cache_control?",
)
_TOOL_ALWAYS: dict[str, Any] = {"name": None, "description": None, "input_schema": None}


def _ordered(value: Mapping[str, Any], order: tuple[str, ...]) -> dict[str, Any]:
    """Known fields in their order, then the others; what is absent is not invented."""
    known = {name.rstrip("?") for name in order}
    fields: dict[str, Any] = {}
    for name in order:
        plain = name.rstrip("?")
        if plain in value and not (name.endswith("?") and value[plain] is None):
            fields[plain] = value[plain]
    return fields | {k: v for k, v in value.items() if k not in known}


def _block(block: Any) -> Any:
    if not isinstance(block, Mapping):
        return block
    kind = block.get("type")
    order = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if order is None:
        return block
    fields = _ordered(block, ("type", *order))
    if isinstance(fields.get("caller"), Mapping):
        fields["caller"] = _ordered(fields["caller"], _CALLER)
    if kind == "image" and isinstance(fields.get("source"), Mapping):
        source = fields["source"]
        kind = source.get("type")
        order = _SOURCES.get(kind) if isinstance(kind, str) else None
        fields["source"] = _ordered(source, order or ("type",))
    return fields


def ordered_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message in wire order: role, content (each block in its order), then anything else."""
    fields = _ordered(message, ("role", "content"))
    content = fields.get("content")
    if isinstance(content, list | tuple):
        fields["content"] = [_block(block) for block in content]
    return fields


def message_json(message: Mapping[str, Any]) -> str:
    """The compact wire JSON of one message."""
    return compact_json(ordered_message(message))


def ordered_system_block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block of the system prompt in wire order."""
    return _ordered(block, _SYSTEM_BLOCK)


def ordered_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool in wire order. A tool with a name always has a description and a schema, if null.

    A tool of another shape (OpenAI's `{"type": "function", "function": {...}}`) stays as it is
    behind its type.
    """
    return _ordered({**_TOOL_ALWAYS, **tool} if "name" in tool else tool, _TOOL)


def tool_json(tool: Mapping[str, Any]) -> str:
    """The compact wire JSON of one tool."""
    return compact_json(ordered_tool(tool))
