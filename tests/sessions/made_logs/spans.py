"""OpenTelemetry and OpenInference spans."""

from __future__ import annotations

import json
from typing import Any

from .openai import chat_answer, chat_messages
from .plot import ANSWER, COUNTS, NEXT, QUESTION, SCHEMA, SYSTEM, TIDE, iso, time_of


def otel_messages(turn: int) -> list[dict[str, Any]]:
    call = {"type": "tool_call", "id": "c1", "name": "tide", "arguments": {"gate": 1}}
    history = [
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
        {"role": "assistant", "parts": [call]},
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c1", "response": TIDE}],
        },
        {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]},
        {"role": "user", "parts": [{"type": "text", "content": NEXT}]},
    ]
    return history[: (1, 3, 5)[turn]]


def otel_answer(turn: int) -> dict[str, Any]:
    last = {"role": "assistant", "parts": [{"type": "text", "content": "At 04:25."}]}
    return otel_messages(turn + 1)[2 * turn + 1] if turn < 2 else last


def otel_attributes(turn: int) -> dict[str, Any]:
    total, read, written, output = COUNTS[turn]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.6",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.id": f"chatcmpl-{turn}",
        "gen_ai.conversation.id": "s-1",
        "gen_ai.usage.input_tokens": total,
        "gen_ai.usage.output_tokens": output,
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.usage.cache_creation.input_tokens": written,
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
        "gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "tide"}]),
        "gen_ai.input.messages": json.dumps(otel_messages(turn), ensure_ascii=False),
        "gen_ai.output.messages": json.dumps([otel_answer(turn)]),
    }


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def otlp() -> dict[str, Any]:
    spans = [
        {
            "traceId": "0af7",
            "spanId": f"{turn}",
            "name": "chat gpt-5.6",
            "startTimeUnixNano": str(int(time_of(turn).timestamp()) * 10**9),
            "attributes": [
                {"key": key, "value": any_value(value)}
                for key, value in otel_attributes(turn).items()
            ],
        }
        for turn in range(3)
    ]
    agent = {
        "name": "invoke_agent",
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "3900"}},
        ],
    }
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [*spans, agent]}]}]}


def otel_span(turn: int) -> dict[str, Any]:
    return {
        "name": "chat gpt-5.6",
        "context": {"trace_id": "0x0af7", "span_id": f"0x{turn}"},
        "start_time": iso(turn),
        "attributes": otel_attributes(turn),
    }


def otel_flat(turn: int) -> dict[str, Any]:
    """What was written before messages became one attribute."""
    total, read, written, output = COUNTS[turn]
    attributes: dict[str, Any] = {
        "gen_ai.system": "OpenAI",
        "gen_ai.request.model": "gpt-5.6",
        "gen_ai.usage.prompt_tokens": total,
        "gen_ai.usage.completion_tokens": output,
        "gen_ai.usage.cache_read_input_tokens": read,
        "gen_ai.usage.cache_creation_input_tokens": written,
    }
    answer = chat_answer(turn)
    attributes["gen_ai.completion.0.role"] = "assistant"
    if answer["content"] is not None:
        attributes["gen_ai.completion.0.content"] = answer["content"]
    for place, call in enumerate(answer.get("tool_calls", ())):
        for field, value in {"id": call["id"], **call["function"]}.items():
            attributes[f"gen_ai.completion.0.tool_calls.{place}.{field}"] = value
    attributes["llm.request.functions.0.name"] = "tide"
    attributes["llm.request.functions.0.parameters"] = json.dumps(SCHEMA)
    for at, message in enumerate(chat_messages(turn)):
        attributes[f"gen_ai.prompt.{at}.role"] = message["role"]
        if message["content"] is not None:
            attributes[f"gen_ai.prompt.{at}.content"] = message["content"]
        for place, call in enumerate(message.get("tool_calls", ())):
            start = f"gen_ai.prompt.{at}.tool_calls.{place}"
            attributes[f"{start}.id"] = call["id"]
            attributes[f"{start}.name"] = call["function"]["name"]
            attributes[f"{start}.arguments"] = call["function"]["arguments"]
    return {"name": "openai.chat", "start_time": iso(turn), "attributes": attributes}


def openinference(turn: int) -> dict[str, Any]:
    total, read, written, output = COUNTS[turn]
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-5.6",
        "llm.provider": "openai",
        "llm.token_count.prompt": total,
        "llm.token_count.completion": output,
        "llm.token_count.prompt_details.cache_read": read,
        "llm.token_count.prompt_details.cache_write": written,
    }
    for at, message in enumerate(chat_messages(turn)):
        start = f"llm.input_messages.{at}.message"
        attributes[f"{start}.role"] = message["role"]
        attributes[f"{start}.content"] = message["content"] or ""
        for place, call in enumerate(message.get("tool_calls", ())):
            tool = f"{start}.tool_calls.{place}.tool_call.function"
            attributes[f"{tool}.name"] = call["function"]["name"]
            attributes[f"{tool}.arguments"] = call["function"]["arguments"]
    return {"name": "ChatCompletion", "start_time": iso(turn), "attributes": attributes}
