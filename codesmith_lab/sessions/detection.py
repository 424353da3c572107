"""Which format a request is in, from what only one of the two can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from codesmith_lab.sessions.envelope import Envelope
from codesmith_lab.sessions.json_spans import Span
from codesmith_lab.sessions.lines import ArraySpan, Member

__all__ = ["kind_of"]

_LOOK_MESSAGES: Final = 64
_ANTHROPIC_PARTS: Final = frozenset(
    ("tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use")
)
_OPENAI_ROLES: Final = frozenset(("system", "developer", "tool", "function"))


def kind_of(envelope: Envelope) -> str:
    """ "openai-chat" or "anthropic-messages"; "" for a request that could be either.

    Looks at the fields, the tools, what came back, and the first and last 64 messages. The text of
    messages decides nothing.
    """
    anthropic = _fields(envelope) + _response(envelope)
    openai = 0
    members = envelope.body.members
    tools = members.get("tools")
    for item in tools.items[:1] if isinstance(tools, ArraySpan) else ():
        if isinstance(item.value, dict):
            anthropic += "input_schema" in item.value
            openai += isinstance(item.value.get("function"), dict)
    openai += "functions" in members
    score = anthropic - openai
    messages = members.get("messages")
    near = messages.items if isinstance(messages, ArraySpan) else []
    if len(near) > 2 * _LOOK_MESSAGES:
        near = near[:_LOOK_MESSAGES] + near[-_LOOK_MESSAGES:]
    signs = [_message(item.value) for item in near]
    score += max([0, *signs]) + min([0, *signs])
    if not score:
        score = _weak(members, near)
    return "anthropic-messages" if score > 0 else "openai-chat" if score < 0 else ""


def _weak(members: Mapping[str, Member], near: list[Span]) -> int:
    """1 where nothing decides but the model or a cache marker speaks for Anthropic."""
    model = members.get("model")
    if isinstance(model, Span) and isinstance(model.value, str) and "claude" in model.value:
        return 1
    for item in near:
        content = item.value.get("content") if isinstance(item.value, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and isinstance(part.get("cache_control"), dict):
                return 1
    return 0


def _fields(envelope: Envelope) -> int:
    members = envelope.body.members
    system = members.get("system")
    named = system is not None and not (isinstance(system, Span) and system.value is None)
    return 2 * named + ("anthropic_version" in members)


def _response(envelope: Envelope) -> int:
    """Positive for what Anthropic answers, negative for what OpenAI does."""
    response = envelope.log.get("response")
    value = response.value if response is not None else None
    score = 0
    usage: Any = envelope.log["usage"].value if "usage" in envelope.log else None
    if isinstance(value, dict):
        score += isinstance(value.get("content"), list) - isinstance(value.get("choices"), list)
        usage = value.get("usage", usage)
    if isinstance(usage, dict):
        score -= "prompt_tokens" in usage or "prompt_cache_hit_tokens" in usage
        score += "input_tokens" in usage
    return score


def _message(message: Any) -> int:
    """1 for a message only Anthropic takes, -1 for one only OpenAI takes, 0 for either."""
    if not isinstance(message, dict):
        return 0
    if message.get("role") in _OPENAI_ROLES or "tool_calls" in message:
        return -1
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            continue
        if kind in _ANTHROPIC_PARTS or (kind == "image" and "source" in part):
            return 1
        if kind == "image_url":
            return -1
    return 0
