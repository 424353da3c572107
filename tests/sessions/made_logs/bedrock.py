"""Amazon Bedrock: Converse and its invocation log."""

from __future__ import annotations

from typing import Any

from .plot import ANSWER, COUNTS, NEXT, QUESTION, SCHEMA, SYSTEM, TIDE, iso


def converse_body(turn: int) -> dict[str, Any]:
    history = [
        {"role": "user", "content": [{"text": QUESTION}]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "c1", "name": "tide", "input": {"gate": 1}}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": TIDE}]}}],
        },
        {"role": "assistant", "content": [{"text": ANSWER}]},
        {"role": "user", "content": [{"text": NEXT}]},
    ]
    spec = {"toolSpec": {"name": "tide", "inputSchema": {"json": SCHEMA}}}
    return {
        "modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "system": [{"text": SYSTEM}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
        "toolConfig": {"tools": [spec], "toolChoice": {"auto": {}}},
        "messages": history[: (1, 3, 5)[turn]],
        "inferenceConfig": {"maxTokens": 500},
    }


def converse_usage(turn: int) -> dict[str, Any]:
    total, read, written, output = COUNTS[turn]
    return {
        "inputTokens": total - read - written,
        "outputTokens": output,
        "totalTokens": total + output,
        "cacheReadInputTokens": read,
        "cacheWriteInputTokens": written,
        "cacheDetails": [
            {"inputTokens": 32, "ttl": "1h"},
            {"inputTokens": written - 32, "ttl": "5m"},
        ],
    }


def converse_content(turn: int) -> list[dict[str, Any]]:
    if turn == 0:
        return [{"toolUse": {"toolUseId": "c1", "name": "tide", "input": {"gate": 1}}}]
    return [{"text": ("", ANSWER, "At 04:25.")[turn]}]


def converse_response(turn: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": converse_content(turn)}
    return {"output": {"message": message}, "usage": converse_usage(turn)}


def converse_stream(turn: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    part = converse_content(turn)[0]
    if turn == 0:
        start = {"toolUse": {"toolUseId": "c1", "name": "tide"}}
        events.append({"contentBlockStart": {"contentBlockIndex": 0, "start": start}})
        deltas = [{"toolUse": {"input": piece}} for piece in ('{"gate"', ": 1}")]
    else:
        deltas = [{"text": letter} for letter in part["text"]]
    events += [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": d}} for d in deltas]
    return [*events, {"messageStop": {}}, {"metadata": {"usage": converse_usage(turn)}}]


def bedrock_log(turn: int) -> dict[str, Any]:
    total, read, written, output = COUNTS[turn]
    sent = {key: value for key, value in converse_body(turn).items() if key != "modelId"}
    return {
        "schemaType": "ModelInvocationLog",
        "schemaVersion": "1.0",
        "timestamp": iso(turn),
        "accountId": "000000000000",
        "region": "eu-north-1",
        "requestId": f"q{turn}",
        "operation": "Converse",
        "modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "input": {
            "inputContentType": "application/json",
            "inputBodyJson": sent,
            "inputTokenCount": total - read - written,
            "cacheReadInputTokenCount": read,
            "cacheWriteInputTokenCount": written,
        },
        "output": {"outputBodyJson": converse_response(turn), "outputTokenCount": output},
    }
