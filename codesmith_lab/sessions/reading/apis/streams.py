"""Recorded streams: events put together to the response they are.

Usage is merged by replacement: the events repeat cumulative counters, and adding them would count
tokens twice. Sources: the vendors' streaming references and recorded streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from codesmith_lab.billing.usage import merge_usage
from codesmith_lab.sessions.reading.json_spans import BadJson, decode_at, skip

__all__ = ["events_of", "is_stream_text", "merge_events"]

_EVENT_KEYS: Final = ("events", "stream", "chunks")
_FINAL: Final = ("response.completed", "response.incomplete", "response.failed")
_DELTAS: Final = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}


def is_stream_text(text: str) -> bool:
    """Whether a text is a stream of server-sent events."""
    return text.lstrip().startswith(("data:", "event:", ":", "id:", "retry:"))


def events_of(value: Any) -> tuple[list[Any], int] | None:
    """The events of a recorded stream and how many of them could not be read; None for others.

    value: a list of events, {"events": [...]}, or the text of a stream of server-sent events.
    """
    if isinstance(value, dict):
        for key in _EVENT_KEYS:
            if isinstance(value.get(key), list | str):
                return events_of(value[key])
        return None
    if isinstance(value, str):
        return _sse(value) if is_stream_text(value) else None
    if isinstance(value, list):
        flat = [_plain_event(event) for event in value]
        return [event for event in flat if isinstance(event, dict)], flat.count(None)
    return None


def _plain_event(event: Any) -> Any:
    """An event as its data: some recorders keep {event, data}, some the text of the data."""
    if isinstance(event, dict) and "data" in event and "type" not in event:
        event = event["data"]
    if isinstance(event, str):
        event = event.strip().removeprefix("data:").strip()
        return {} if event in ("[DONE]", "") else _json(event)
    return event


def _json(text: str) -> Any:
    raw = text.encode("utf-8", "surrogatepass")
    try:
        value, end = decode_at(raw, skip(raw, 0))
    except BadJson:
        return None
    return value if skip(raw, end) == len(raw) else None


def _sse(text: str) -> tuple[list[Any], int]:
    """Data of each event (WHATWG HTML, 9.2.6); events that are no JSON are counted."""
    events: list[Any] = []
    broken = 0
    data: list[str] = []
    for line in [*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            joined = "\n".join(data)
            data = []
            if joined.strip() == "[DONE]":
                continue
            event = _json(joined)
            if isinstance(event, dict):
                events.append(event)
            else:
                broken += 1
    return events, broken


def merge_events(events: Sequence[Any]) -> dict[str, Any]:
    """The response that a stream's events are, in the form of one that was not streamed."""
    known = [event for event in events if isinstance(event, dict)]
    kinds = {event["type"] for event in known if isinstance(event.get("type"), str)}
    if any(kind.startswith("response.") for kind in kinds):
        found = _responses(known)
    elif kinds & {"message_start", "message_delta", "content_block_start"}:
        found = _messages(known)
    elif any("choices" in event for event in known):
        found = _chat(known)
    elif any("candidates" in event or "usageMetadata" in event for event in known):
        found = _gemini(known)
    else:
        found = _converse(known)
    settled: dict[str, Any] = _settled(found)
    return settled


class _Texts(list[str]):
    """The pieces of a text that is still growing: joined once, not with every piece."""


def _append(target: dict[str, Any], key: str, piece: Any) -> None:
    if isinstance(piece, str):
        known = target.get(key)
        if not isinstance(known, _Texts):
            known = target[key] = _Texts([known] if isinstance(known, str) else [])
        known.append(piece)


def _settled(value: Any) -> Any:
    if isinstance(value, _Texts):
        return "".join(value)
    if isinstance(value, list):
        return [_settled(item) for item in value]
    if isinstance(value, dict):
        return {key: _settled(item) for key, item in value.items()}
    return value


def _responses(events: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for event in events:
        response = event.get("response")
        if isinstance(response, dict):
            usage = merge_usage(_dict(found.get("usage")), _dict(response.get("usage")))
            found = {**found, **response, "usage": usage or None}
            if event.get("type") in _FINAL:
                break
    return found


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _messages(events: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, list[str]] = {}
    for event in events:
        kind, at = event.get("type"), event.get("index")
        at = at if isinstance(at, int) else 0
        if kind == "message_start":
            message = {**_dict(event.get("message"))}
            usage = merge_usage(usage, _dict(message.get("usage")))
        elif kind == "message_delta":
            message.update(_dict(event.get("delta")))
            usage = merge_usage(usage, _dict(event.get("usage")))
        elif kind == "content_block_start":
            blocks[at] = {**_dict(event.get("content_block"))}
        elif kind == "content_block_delta":
            _block_delta(blocks.setdefault(at, {}), _dict(event.get("delta")), inputs, at)
    for at, pieces in inputs.items():
        blocks[at]["input"] = _input("".join(pieces))
    content = [blocks[at] for at in sorted(blocks)]
    return {**message, "content": content, **({"usage": usage} if usage else {})}


def _block_delta(
    block: dict[str, Any], delta: dict[str, Any], inputs: dict[int, list[str]], at: int
) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta" and isinstance(delta.get("partial_json"), str):
        inputs.setdefault(at, []).append(delta["partial_json"])
    elif kind in _DELTAS:
        field, target = _DELTAS[kind]
        _append(block, target, delta.get(field))


def _input(text: str) -> Any:
    """The input of a tool call; the text itself where the stream broke off."""
    value = _json(text) if text.strip() else {}
    return text if value is None else value


def _chat(events: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant"}
    calls: dict[int, dict[str, Any]] = {}
    usage: dict[str, Any] = {}
    for event in events:
        for key in ("id", "model", "created", "provider", "system_fingerprint"):
            if event.get(key) is not None:
                found[key] = event[key]
        usage = merge_usage(usage, _dict(event.get("usage")))
        choices = event.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, dict) or first.get("index", 0) != 0:
            continue
        # Moonshot puts the counters into the choice.
        usage = merge_usage(usage, _dict(first.get("usage")))
        delta = _dict(first.get("delta", first.get("message")))
        for key in ("content", "reasoning_content", "reasoning", "refusal"):
            _append(message, key, delta.get(key))
        for call in delta["tool_calls"] if isinstance(delta.get("tool_calls"), list) else ():
            if isinstance(call, dict):
                _call_delta(calls, call)
    if calls:
        message["tool_calls"] = [calls[at] for at in sorted(calls)]
    return {**found, "choices": [{"index": 0, "message": message}], "usage": usage or None}


def _call_delta(calls: dict[int, dict[str, Any]], call: dict[str, Any]) -> None:
    at = call.get("index")
    known = calls.setdefault(at if isinstance(at, int) else len(calls), {"function": {}})
    if isinstance(call.get("id"), str) and call["id"]:
        known["id"] = call["id"]
    function = _dict(call.get("function"))
    _append(known["function"], "name", function.get("name"))
    _append(known["function"], "arguments", function.get("arguments"))


def _gemini(events: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    parts: list[Any] = []
    for event in events:
        found.update({k: v for k, v in event.items() if k not in ("candidates", "usageMetadata")})
        usage = merge_usage(usage, _dict(event.get("usageMetadata")))
        candidates = event.get("candidates")
        first = candidates[0] if isinstance(candidates, list) and candidates else None
        content = _dict(_dict(first).get("content"))
        for part in content["parts"] if isinstance(content.get("parts"), list) else ():
            last = parts[-1] if parts else None
            if _only_text(part) and _only_text(last) and _thought(part) == _thought(last):
                _append(parts[-1], "text", part["text"])
            else:
                parts.append({**part} if isinstance(part, dict) else part)
    content = {"role": "model", "parts": parts}
    return {**found, "candidates": [{"content": content}], "usageMetadata": usage}


def _only_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str | _Texts)


def _thought(part: Any) -> bool:
    return part.get("thought") is True


def _converse(events: list[dict[str, Any]]) -> dict[str, Any]:
    usage: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, list[str]] = {}
    for event in events:
        usage = merge_usage(usage, _dict(_dict(event.get("metadata")).get("usage")))
        start, delta = _dict(event.get("contentBlockStart")), _dict(event.get("contentBlockDelta"))
        at = start.get("contentBlockIndex", delta.get("contentBlockIndex", 0))
        at = at if isinstance(at, int) else 0
        if isinstance(_dict(start.get("start")).get("toolUse"), dict):
            blocks[at] = {"toolUse": {**start["start"]["toolUse"]}}
        inner = _dict(delta.get("delta"))
        if isinstance(inner.get("text"), str):
            _append(blocks.setdefault(at, {}), "text", inner["text"])
        elif isinstance(_dict(inner.get("toolUse")).get("input"), str):
            blocks.setdefault(at, {"toolUse": {}})
            inputs.setdefault(at, []).append(inner["toolUse"]["input"])
        elif isinstance(_dict(inner.get("reasoningContent")).get("text"), str):
            block = blocks.setdefault(at, {"reasoningContent": {"reasoningText": {}}})
            thought = _dict(_dict(block.get("reasoningContent")).get("reasoningText"))
            _append(thought, "text", inner["reasoningContent"]["text"])
    for at, pieces in inputs.items():
        if isinstance(blocks[at].get("toolUse"), dict):
            blocks[at]["toolUse"]["input"] = _input("".join(pieces))
    content = [blocks[at] for at in sorted(blocks)]
    message = {"role": "assistant", "content": content}
    return {"output": {"message": message}, "usage": usage or None}
