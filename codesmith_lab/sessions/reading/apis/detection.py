"""Which API a request is in, from what only one of them can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from codesmith_lab.sessions.reading.json_spans import Span
from codesmith_lab.sessions.reading.spans import ArraySpan, Member, value_of

__all__ = ["api_of", "is_other_call", "role_of"]

_LOOK_MESSAGES: Final = 64
_ANTHROPIC_PARTS: Final = frozenset(
    ("tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use")
)
_OPENAI_ROLES: Final = frozenset(("system", "developer", "tool", "function"))
_CONVERSE_FIELDS: Final = (
    "modelId",
    "toolConfig",
    "inferenceConfig",
    "additionalModelRequestFields",
)
_CONVERSE_PARTS: Final = frozenset(("toolUse", "toolResult", "cachePoint", "reasoningContent"))
_OTHER_MODELS: Final = ("embed", "whisper", "tts-", "dall-e", "moderation", "rerank", "gpt-image")


def is_other_call(members: Mapping[str, Member]) -> bool:
    """Whether a body with `input` asks for an embedding, a picture, speech: no prompt to cache."""
    model = value_of(members.get("model"))
    if "encoding_format" in members or "voice" in members:
        return True
    return isinstance(model, str) and any(sign in model.lower() for sign in _OTHER_MODELS)


def api_of(members: Mapping[str, Member], response: Any, usage: Any) -> str:
    """The API of a body; "" for one that could be OpenAI's chat or Anthropic's Messages.

    Looks at the fields, the tools, what came back, and the first and last 64 messages. The text of
    messages decides nothing.
    """
    if "messages" not in members:
        return "gemini" if "contents" in members else "openai-responses"
    messages = members["messages"]
    near = messages.items if isinstance(messages, ArraySpan) else []
    if len(near) > 2 * _LOOK_MESSAGES:
        near = near[:_LOOK_MESSAGES] + near[-_LOOK_MESSAGES:]
    looks = [seen if type(seen := item.seen) is _Look else _look(item) for item in near]
    if any(key in members for key in _CONVERSE_FIELDS) or any(look.converse for look in looks):
        return "bedrock-converse"
    score = _fields(members) + _response(response, usage)
    tools = members.get("tools")
    for item in tools.items[:1] if isinstance(tools, ArraySpan) else ():
        score += _tool_sign(item)
    score -= "functions" in members
    signs = [look.sign for look in looks]
    score += max([0, *signs]) + min([0, *signs])
    if not score:
        score = _weak(members, looks)
    return "anthropic-messages" if score > 0 else "openai-chat" if score < 0 else ""


class _Look(NamedTuple):
    """What was seen of a message. sign: see `_message`; marked: it has a cache marker."""

    role: str | None
    sign: int
    converse: bool
    marked: bool


def _look(span: Span) -> _Look:
    """A log repeats its messages in every line: each is looked at once."""
    if not isinstance(span.seen, _Look):
        message = span.value
        marked = any(
            isinstance(part, dict) and isinstance(part.get("cache_control"), dict)
            for part in _content(message)
        )
        role = message.get("role") if isinstance(message, dict) else None
        span.seen = _Look(
            role if isinstance(role, str) else None,
            _message(message),
            _is_converse(message),
            marked,
        )
    seen: _Look = span.seen
    return seen


def _tool_sign(span: Span) -> int:
    """Positive for a tool as Anthropic defines it, negative for one of OpenAI's chat."""
    if not isinstance(span.seen, int):
        tool, sign = span.value, 0
        if isinstance(tool, dict):
            sign = ("input_schema" in tool) - isinstance(tool.get("function"), dict)
        span.seen = sign
    seen: int = span.seen
    return seen


def role_of(span: Span) -> str | None:
    """The role of a message, None without one."""
    return _look(span).role


def _weak(members: Mapping[str, Member], looks: list[_Look]) -> int:
    """1 where nothing decides but the model or a cache marker speaks for Anthropic."""
    model = members.get("model")
    if isinstance(model, Span) and isinstance(model.value, str) and "claude" in model.value:
        return 1
    return int(any(look.marked for look in looks))


def _fields(members: Mapping[str, Member]) -> int:
    system = members.get("system")
    named = system is not None and not (isinstance(system, Span) and system.value is None)
    return 2 * named + ("anthropic_version" in members)


def _response(response: Any, usage: Any) -> int:
    """Positive for what Anthropic answers, negative for what OpenAI does."""
    score = 0
    if isinstance(response, dict):
        score += isinstance(response.get("content"), list)
        score -= isinstance(response.get("choices"), list)
        usage = response.get("usage", usage)
    if isinstance(usage, dict):
        score -= "prompt_tokens" in usage or "prompt_cache_hit_tokens" in usage
        score += "input_tokens" in usage
    return score


def _content(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def _is_converse(message: Any) -> bool:
    """Whether a message's parts are Bedrock's: told by their only key, where others have a type."""
    parts = [part for part in _content(message) if isinstance(part, dict) and "type" not in part]
    return any(_CONVERSE_PARTS & part.keys() or set(part) == {"text"} for part in parts)


def _message(message: Any) -> int:
    """1 for a message only Anthropic takes, -1 for one only OpenAI takes, 0 for either."""
    if not isinstance(message, dict):
        return 0
    role = message.get("role")
    if (isinstance(role, str) and role in _OPENAI_ROLES) or "tool_calls" in message:
        return -1
    for part in _content(message):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            continue
        if kind in _ANTHROPIC_PARTS or (kind == "image" and "source" in part):
            return 1
        if kind == "image_url":
            return -1
    return 0
