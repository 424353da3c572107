"""Anthropic Messages."""

from __future__ import annotations

from typing import Any

from .plot import ANSWER, COUNTS, NEXT, QUESTION, SCHEMA, SYSTEM, TIDE, sse


def claude_body(turn: int) -> dict[str, Any]:
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    history: list[dict[str, Any]] = [
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "tide", "input": {"gate": 1}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": TIDE}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
        {"role": "user", "content": NEXT},
    ]
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 500,
        "system": [{"type": "text", "text": SYSTEM, **mark}],
        "tools": [{"name": "tide", "input_schema": SCHEMA}],
        "messages": history[: (1, 3, 5)[turn]],
    }


def claude_usage(turn: int) -> dict[str, Any]:
    total, read, written, output = COUNTS[turn]
    return {
        "input_tokens": total - read - written,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - 32,
            "ephemeral_1h_input_tokens": 32,
        },
        "output_tokens": output,
    }


def claude_content(turn: int) -> list[dict[str, Any]]:
    if turn == 0:
        return [{"type": "tool_use", "id": "c1", "name": "tide", "input": {"gate": 1}}]
    return [{"type": "text", "text": ("", ANSWER, "At 04:25.")[turn]}]


def claude_response(turn: int) -> dict[str, Any]:
    content, usage = claude_content(turn), claude_usage(turn)
    return {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "usage": usage,
    }


def claude_stream(turn: int) -> str:
    usage = claude_usage(turn)
    begun = {"id": f"msg_{turn}", "role": "assistant", "usage": {**usage, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    if turn == 0:
        start = {**claude_content(0)[0], "input": {}}
        pieces = [{"type": "input_json_delta", "partial_json": p} for p in ("", '{"gate"', ": 1}")]
    else:
        start = {"type": "text", "text": ""}
        pieces = [
            {"type": "text_delta", "text": letter} for letter in claude_content(turn)[0]["text"]
        ]
    events.append({"type": "content_block_start", "index": 0, "content_block": start})
    events += [{"type": "content_block_delta", "index": 0, "delta": piece} for piece in pieces]
    events.append({"type": "content_block_stop", "index": 0})
    # Cumulative again at the end: replaced, not added.
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
    return sse([*events, {"type": "message_stop"}], named=True)
