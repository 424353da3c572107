"""Agent logs of any length, for benchmarks and long-session tests."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from codesmith_lab.samples.tools import tool_definitions

__all__ = ["agent_log_lines"]

_WORDS = (
    *("claim", "worker", "reminder", "tide", "harbour", "gate", "keeper", "store", "due"),
    *("until", "send", "retry", "clock", "window", "test", "commit", "branch", "module"),
    *("function", "value", "error", "result", "check", "before", "after", "second", "queue"),
)


def _prose(source: random.Random, tokens: int) -> str:
    """Text of about `tokens` tokens: one short word is about one token."""
    words = [source.choice(_WORDS) for _ in range(max(1, tokens))]
    lines = [" ".join(words[i : i + 12]) for i in range(0, len(words), 12)]
    return "\n".join(lines)


def agent_log_lines(
    turns: int,
    new_tokens_per_turn: int = 800,
    blocks_per_turn: int = 5,
    seed: int = 7,
    drift_every: int | None = None,
    model: str = "deepseek-v4-flash",
) -> Iterator[bytes]:
    """JSONL lines of an agent that only ever appends; the log grows with the square of `turns`.

    blocks_per_turn: messages added each turn. drift_every: a line of the system prompt changes
    every so many turns; None = never. Same arguments, same bytes.
    """
    source = random.Random(seed)
    tools = tool_definitions()
    constitution = _prose(source, 3000)
    messages: list[dict[str, Any]] = []
    now = datetime(2026, 8, 25, 8, 0, tzinfo=timezone.utc)
    share = max(1, new_tokens_per_turn // max(1, blocks_per_turn))
    for turn in range(turns):
        mark = turn // drift_every if drift_every else 0
        system = (
            f"# Rules\n{constitution}\n\n# State\nRevision {mark}\n\n# Closing\nWork with care.\n"
        )
        role = "user"
        for _ in range(max(1, blocks_per_turn - 1)):
            messages.append({"role": role, "content": _prose(source, share)})
            role = "assistant" if role == "user" else "user"
        if messages[-1]["role"] == "assistant":
            messages.append({"role": "user", "content": _prose(source, share)})
        answer = {"role": "assistant", "content": _prose(source, share)}
        line = {
            "time": now.isoformat(),
            "request": {
                "model": model,
                "messages": [{"role": "system", "content": system}, *messages],
                "tools": tools,
            },
            "response": {"choices": [{"index": 0, "message": answer}]},
        }
        yield json.dumps(line, separators=(",", ":")).encode("utf-8")
        messages.append(answer)
        now += timedelta(seconds=45)
