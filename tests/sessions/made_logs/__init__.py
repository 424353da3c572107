"""One small session in every log format: three requests whose counters are known.

A harbour's agent is asked for the tide, calls a tool, and answers twice. All of it is invented.
`LOGS` maps a name to the bytes of a log; `COUNTS` are the counters every one of them must give.
"""

from __future__ import annotations

import json
from typing import Any

from .anthropic import claude_body, claude_response, claude_stream, claude_usage
from .bedrock import bedrock_log, converse_body, converse_response, converse_stream
from .exchanges import har, ruby_vcr, vcr, vcr_parsed
from .gateways import litellm, litellm_spend, openrouter
from .gemini import gemini_body, gemini_response, gemini_stream
from .openai import (
    chat_body,
    chat_response,
    chat_stream,
    chat_usage,
    responses_body,
    responses_chained,
    responses_response,
    responses_stream,
)
from .plot import (
    ANSWER,
    COUNTS,
    NEXT,
    QUESTION,
    SYSTEM,
    TIDE,
    iso,
    lines,
    sse,
    time_of,
    wrapped,
)
from .recorder import codesmith, codesmith_wire
from .spans import openinference, otel_flat, otel_span, otlp
from .transcripts import claude_code, codex

__all__ = [
    "ANSWER",
    "COUNTS",
    "LOGS",
    "NEXT",
    "QUESTION",
    "SYSTEM",
    "TIDE",
    "chat_body",
    "chat_response",
    "chat_usage",
    "claude_body",
    "claude_response",
    "claude_usage",
    "codesmith_wire",
    "converse_body",
    "har",
    "iso",
    "lines",
    "litellm",
    "pretty",
    "sse",
    "time_of",
    "wrapped",
]


def pretty(values: list[Any]) -> bytes:
    return b"\n".join(json.dumps(value, indent=2).encode() for value in values)


def recorded() -> list[dict[str, Any]]:
    return [
        {"time": iso(t), "request": chat_body(t), "response": chat_response(t)} for t in range(3)
    ]


LOGS: dict[str, bytes] = {
    "openai-chat": wrapped(chat_body, chat_response),
    "openai-chat streams": wrapped(chat_body, chat_stream),
    "openai-chat pretty": pretty(recorded()),
    "openai-chat array": json.dumps(recorded()).encode(),
    "openai-chat pretty array": json.dumps(recorded(), indent=1).encode(),
    "openai-responses": wrapped(responses_body, responses_response),
    "openai-responses streams": wrapped(responses_body, responses_stream),
    "openai-responses chained": wrapped(responses_chained, responses_response),
    "anthropic-messages": wrapped(claude_body, claude_response),
    "anthropic-messages codesmith": codesmith(),
    "anthropic-messages streams": wrapped(claude_body, claude_stream),
    "gemini": wrapped(gemini_body, gemini_response),
    "gemini streams": wrapped(gemini_body, gemini_stream),
    "bedrock-converse": wrapped(converse_body, converse_response),
    "bedrock-converse streams": wrapped(converse_body, converse_stream),
    "bedrock-log": lines([bedrock_log(turn) for turn in range(3)]),
    "claude-code": claude_code(),
    "codex": codex(),
    "litellm": lines([litellm(turn) for turn in range(3)]),
    "litellm spend": json.dumps([litellm_spend(turn) for turn in range(3)]).encode(),
    "openrouter": lines([openrouter(turn) for turn in range(3)]),
    "otel": json.dumps(otlp()).encode(),
    "otel pretty": json.dumps(otlp(), indent=2).encode(),
    "otel spans": pretty([otel_span(turn) for turn in range(3)]),
    "otel flat": lines([otel_flat(turn) for turn in range(3)]),
    "otel openinference": lines([openinference(turn) for turn in range(3)]),
    "har": json.dumps(har()).encode(),
    "har pretty": json.dumps(har(), indent=2).encode(),
    "vcr": vcr(),
    "vcr parsed": vcr_parsed(),
    "vcr ruby": json.dumps(ruby_vcr()).encode(),
    "vcr ruby pretty": json.dumps(ruby_vcr(), indent=2).encode(),
}
"""A log of each format, by the format's name and a word on its variant."""
