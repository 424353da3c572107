"""The CodeSmith recorder's form: the exact bytes of a three-zone request, and what came back."""

from __future__ import annotations

import json
from typing import Any

from codesmith_lab.zones import AppendLog, PinnedPrefix, ThreeZoneRequest, TurnScratch

from .anthropic import claude_body, claude_response
from .plot import iso


def codesmith_wire(turn: int) -> bytes:
    body: dict[str, Any] = claude_body(turn)
    messages = [_blocks(message) for message in body["messages"]]
    prefix = PinnedPrefix(body["system"], [{"description": "", **body["tools"][0]}])
    log, scratch = AppendLog(messages[:-1]), TurnScratch(messages[-1])
    return ThreeZoneRequest(body["model"], 500, prefix, log, scratch, stream=False).wire_bytes()


def _blocks(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": blocks}


def codesmith() -> bytes:
    lines = []
    for turn in range(3):
        rebuild = {"reason": "manual_compaction", "before": 9, "after": 5} if turn == 2 else None
        head = f'{{"time": {json.dumps(iso(turn))}, "rebuild": {json.dumps(rebuild)}, "request": '
        tail = f', "response": {json.dumps(claude_response(turn))}}}'
        lines.append(head.encode() + codesmith_wire(turn) + tail.encode())
    return b"\n".join(lines)
