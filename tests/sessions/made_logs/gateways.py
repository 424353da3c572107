"""Records of gateways."""

from __future__ import annotations

from typing import Any

from .openai import chat_answer, chat_body
from .plot import COUNTS, iso, time_of


def litellm(turn: int) -> dict[str, Any]:
    total, read, written, output = COUNTS[turn]
    body = chat_body(turn, "claude-sonnet-4-5")
    usage = {
        "prompt_tokens": total,
        "completion_tokens": output,
        "prompt_tokens_details": {"cached_tokens": read},
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }
    return {
        "id": f"chatcmpl-{turn}",
        "call_type": "acompletion",
        "response_cost": 0.0125,
        "prompt_tokens": total,
        "completion_tokens": output,
        "total_tokens": total + output,
        "startTime": time_of(turn).timestamp(),
        "endTime": time_of(turn).timestamp() + 5,
        "model": "claude-sonnet-4-5",
        "custom_llm_provider": "anthropic",
        "metadata": {"user_api_key_hash": "0123456789abcdef", "usage_object": usage},
        "messages": body["messages"],
        "model_parameters": {"tools": body["tools"], "temperature": 0},
        "response": {"id": f"chatcmpl-{turn}", "choices": [{"message": chat_answer(turn)}]},
        "trace_id": "s-1",
    }


def litellm_spend(turn: int) -> dict[str, Any]:
    record = litellm(turn)
    body = chat_body(turn, "claude-sonnet-4-5")
    return {
        "request_id": f"chatcmpl-{turn}",
        "call_type": "acompletion",
        "api_key": "fedcba9876543210",
        "spend": 0.0125,
        **{key: record[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")},
        "startTime": iso(turn),
        "model": "claude-sonnet-4-5",
        "custom_llm_provider": "anthropic",
        "metadata": record["metadata"],
        "messages": "{}",
        "response": {},
        "proxy_server_request": body,
        "session_id": "s-1",
        "cache_hit": "False",
    }


def openrouter(turn: int) -> dict[str, Any]:
    total, read, _, output = COUNTS[turn]
    data = {
        "id": f"gen-{turn}",
        "model": "openai/gpt-5.6",
        "provider_name": "OpenAI",
        "created_at": iso(turn).replace("Z", "+00:00"),
        "tokens_prompt": total - 7,
        "tokens_completion": output,
        "native_tokens_prompt": total,
        "native_tokens_completion": output,
        "native_tokens_cached": read,
        "native_tokens_reasoning": 0,
        "total_cost": 0.0125,
    }
    return {"data": data}
