"""Transcripts of coding agents."""

from __future__ import annotations

from typing import Any

from .anthropic import claude_content, claude_usage
from .plot import COUNTS, QUESTION, iso, lines


def claude_code() -> bytes:
    made: list[dict[str, Any]] = [{"type": "summary", "summary": "Tides", "leafUuid": "u9"}]
    parent = None
    for turn in range(3):
        asked = f"u{turn}"
        user = {"role": "user", "content": QUESTION}
        common = {"sessionId": "s-1", "isSidechain": False, "version": "2.0.0"}
        made.append(
            {"type": "user", "uuid": asked, "parentUuid": parent, "timestamp": iso(turn)}
            | common
            | {"message": user}
        )
        parent = asked
        # One line a content block, counters of the output growing.
        for part, output in enumerate((1, COUNTS[turn][3])):
            uuid = f"a{turn}.{part}"
            message = {
                "id": f"msg_{turn}",
                "model": "claude-sonnet-4-5",
                "role": "assistant",
                "content": claude_content(turn),
                "usage": {**claude_usage(turn), "output_tokens": output},
            }
            made.append(
                {"type": "assistant", "uuid": uuid, "parentUuid": parent, "requestId": f"r{turn}"}
                | common
                | {"timestamp": iso(turn, 5 + part), "message": message}
            )
            parent = uuid
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "sessionId": "s-1",
        "timestamp": iso(1, 40),
        "compactMetadata": {"trigger": "auto", "preTokens": 155250},
    }
    made.insert(7, boundary)
    return lines(made)


def codex() -> bytes:
    made: list[dict[str, Any]] = []

    def event(turn: int, seconds: int, kind: str, payload: dict[str, Any]) -> None:
        made.append({"timestamp": iso(turn, seconds), "type": kind, "payload": payload})

    event(0, 0, "session_meta", {"id": "s-1", "cli_version": "0.99.0", "model_provider": "openai"})
    event(0, 0, "turn_context", {"model": "gpt-5.6", "effort": "medium"})
    event(0, 0, "event_msg", {"type": "token_count", "info": None, "rate_limits": {}})
    total = dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens"), 0)
    for turn, (whole, read, _, output) in enumerate(COUNTS):
        event(turn, 0, "response_item", {"type": "message", "role": "user", "content": []})
        event(turn, 5, "response_item", {"type": "message", "role": "assistant", "content": []})
        last = {"input_tokens": whole, "cached_input_tokens": read, "output_tokens": output}
        total = {key: total[key] + last[key] for key in total}
        info = {"total_token_usage": total, "last_token_usage": last}
        # The same totals are written again when rate limits change.
        for seconds in (6, 7):
            event(turn, seconds, "event_msg", {"type": "token_count", "info": info})
    return lines(made)
