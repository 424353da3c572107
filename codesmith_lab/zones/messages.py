"""Messages and content blocks as the reference writes them: fixed field order, nulls left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codesmith_lab.fingerprint import compact_json

__all__ = ["message_json", "ordered_message"]

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
_SOURCES: dict[Any, tuple[str, ...]] = {
    "base64": ("type", "media_type", "data"),
    "file": ("type", "path", "media_type?"),
    "url": ("type", "url"),
}
_CALLER = ("type", "tool_id?")


def _ordered(value: Mapping[str, Any], order: tuple[str, ...]) -> dict[str, Any]:
    known = {name.rstrip("?") for name in order}
    fields: dict[str, Any] = {}
    for name in order:
        plain = name.rstrip("?")
        if name.endswith("?") and value.get(plain) is None:
            continue
        fields[plain] = value.get(plain)
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
        fields["source"] = _ordered(source, _SOURCES.get(source.get("type"), ("type",)))
    return fields


def ordered_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message in wire order: role, content (each block in its order), then anything else."""
    fields = _ordered(message, ("role", "content"))
    content = fields["content"]
    if isinstance(content, list | tuple):
        fields["content"] = [_block(block) for block in content]
    return fields


def message_json(message: Mapping[str, Any]) -> str:
    """The compact wire JSON of one message."""
    return compact_json(ordered_message(message))
