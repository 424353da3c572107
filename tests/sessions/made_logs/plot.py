"""What happens in the made session, and how logs write lines, times and streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

START = datetime(2026, 9, 1, 6, tzinfo=timezone.utc)
SYSTEM = "You keep the harbour's tide tables."
QUESTION, TIDE, ANSWER, NEXT = "When is high tide?", "03:40", "At 03:40.", "And tomorrow – é?"
SCHEMA = {"type": "object", "properties": {"gate": {"type": "string"}}, "required": ["gate"]}
# input in all, of it read, of it written, output
COUNTS = [(1200, 0, 1152, 20), (1300, 1152, 128, 8), (1400, 1280, 96, 9)]


def time_of(turn: int) -> datetime:
    return START + timedelta(minutes=turn)


def iso(turn: int, seconds: int = 0) -> str:
    return (time_of(turn) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def lines(values: Iterator[Any] | list[Any]) -> bytes:
    return b"\n".join(json.dumps(value, ensure_ascii=False).encode() for value in values)


def sse(events: list[dict[str, Any]], named: bool = False, end: str = "") -> str:
    text = ""
    for event in events:
        text += f"event: {event['type']}\n" if named else ""
        text += f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
    return text + end


def wrapped(body: Callable[[int], Any], response: Callable[[int], Any]) -> bytes:
    return lines([{"time": iso(t), "request": body(t), "response": response(t)} for t in range(3)])
