"""Gemini generateContent."""

from __future__ import annotations

from typing import Any

from .plot import ANSWER, COUNTS, NEXT, QUESTION, SCHEMA, SYSTEM, TIDE


def gemini_body(turn: int) -> dict[str, Any]:
    history = [
        {"role": "user", "parts": [{"text": QUESTION}]},
        {"role": "model", "parts": [{"functionCall": {"name": "tide", "args": {"gate": 1}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "tide", "response": {"result": TIDE}}}],
        },
        {"role": "model", "parts": [{"text": ANSWER}]},
        {"role": "user", "parts": [{"text": NEXT}]},
    ]
    return {
        "model": "models/gemini-2.5-pro",
        "systemInstruction": {"parts": [{"text": SYSTEM}]},
        "tools": [{"functionDeclarations": [{"name": "tide", "parameters": SCHEMA}]}],
        "contents": history[: (1, 3, 5)[turn]],
        "generationConfig": {"temperature": 0},
    }


def gemini_usage(turn: int) -> dict[str, Any]:
    total, read, _, output = COUNTS[turn]
    return {
        "promptTokenCount": total,
        "cachedContentTokenCount": read,
        "candidatesTokenCount": output - 3,
        "thoughtsTokenCount": 3,
        "totalTokenCount": total + output,
    }


def gemini_response(turn: int) -> dict[str, Any]:
    part: dict[str, Any] = {"text": (None, ANSWER, "At 04:25.")[turn]}
    if turn == 0:
        part = {"functionCall": {"name": "tide", "args": {"gate": 1}}}
    content = {"role": "model", "parts": [part]}
    return {
        "candidates": [{"content": content}],
        "usageMetadata": gemini_usage(turn),
        "responseId": f"g{turn}",
        "modelVersion": "gemini-2.5-pro",
    }


def gemini_stream(turn: int) -> list[dict[str, Any]]:
    whole = gemini_response(turn)
    part = whole["candidates"][0]["content"]["parts"][0]
    parts = [{"text": letter} for letter in part["text"]] if "text" in part else [part]
    growing = {"promptTokenCount": COUNTS[turn][0], "candidatesTokenCount": 1}
    events = [
        {**whole, "candidates": [{"content": {"parts": [p]}}], "usageMetadata": growing}
        for p in parts
    ]
    return [*events, {"responseId": f"g{turn}", "usageMetadata": gemini_usage(turn)}]
