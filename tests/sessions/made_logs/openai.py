"""OpenAI chat completions and Responses."""

from __future__ import annotations

from typing import Any

from .plot import ANSWER, COUNTS, NEXT, QUESTION, SCHEMA, SYSTEM, TIDE, sse


def chat_messages(turn: int) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"gate":1}'}}
    history = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": TIDE},
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": NEXT},
    ]
    return history[: (2, 4, 6)[turn]]


def chat_body(turn: int, model: str = "gpt-5.6") -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "tide", "parameters": SCHEMA}}
    return {
        "model": model,
        "messages": chat_messages(turn),
        "tools": [tool],
        "prompt_cache_key": "harbour",
    }


def chat_usage(turn: int) -> dict[str, Any]:
    total, read, written, output = COUNTS[turn]
    details = {"cached_tokens": read, "cache_write_tokens": written}
    return {
        "prompt_tokens": total,
        "completion_tokens": output,
        "total_tokens": total + output,
        "prompt_tokens_details": details,
    }


def chat_answer(turn: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": (None, ANSWER, "At 04:25.")[turn]}
    if turn == 0:
        message["tool_calls"] = chat_messages(1)[2]["tool_calls"]
    return message


def chat_response(turn: int) -> dict[str, Any]:
    choice = {"index": 0, "message": chat_answer(turn), "finish_reason": "stop"}
    usage = chat_usage(turn)
    return {
        "id": f"chatcmpl-{turn}",
        "object": "chat.completion",
        "choices": [choice],
        "usage": usage,
    }


def chat_stream(turn: int) -> str:
    answer = chat_answer(turn)
    text = answer["content"] or ""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": letter} for letter in text]
    if turn == 0:
        call = answer["tool_calls"][0]
        deltas.append({"tool_calls": [{"index": 0, **call, "function": {"name": "tide"}}]})
        for piece in ('{"ga', 'te":1}'):
            deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    events: list[dict[str, Any]] = [
        {"id": f"chatcmpl-{turn}", "choices": [{"index": 0, "delta": delta}], "usage": None}
        for delta in deltas
    ]
    # A gateway that repeats the counters: they are replaced and not added.
    last = {"id": f"chatcmpl-{turn}", "choices": [], "usage": chat_usage(turn)}
    return sse([*events, last, last], end="data: [DONE]\n\n")


def response_items(turn: int) -> list[dict[str, Any]]:
    def said(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    history = [
        said("user", QUESTION),
        {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "AAAA"},
        {"type": "function_call", "call_id": "c1", "name": "tide", "arguments": '{"gate":1}'},
        {"type": "function_call_output", "call_id": "c1", "output": TIDE},
        said("assistant", ANSWER),
        said("user", NEXT),
        said("assistant", "At 04:25."),
    ]
    return history[: (1, 4, 6, 7)[turn]]


def responses_body(turn: int) -> dict[str, Any]:
    tool = {"type": "function", "name": "tide", "parameters": SCHEMA}
    return {
        "model": "gpt-5.6",
        "instructions": SYSTEM,
        "input": response_items(turn),
        "tools": [tool],
        "prompt_cache_key": "harbour",
    }


def responses_chained(turn: int) -> dict[str, Any]:
    body = responses_body(turn)
    if turn:
        sent = (1, 4, 6)[turn]
        known = (0, 3, 5)[turn]
        body["input"] = response_items(turn)[known:sent]
        body["previous_response_id"] = f"resp_{turn - 1}"
    return body


def responses_usage(turn: int) -> dict[str, Any]:
    total, read, written, output = COUNTS[turn]
    return {
        "input_tokens": total,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": total + output,
    }


def responses_response(turn: int) -> dict[str, Any]:
    came = ((1, 3), (4, 5), (6, 7))[turn]
    output = response_items(3)[came[0] : came[1]]
    return {"id": f"resp_{turn}", "output": output, "usage": responses_usage(turn)}


def responses_stream(turn: int) -> str:
    done = responses_response(turn)
    begun = {"id": done["id"], "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_text.delta", "delta": "At"},
        {"type": "response.completed", "response": done},
    ]
    return sse(events, named=True)
