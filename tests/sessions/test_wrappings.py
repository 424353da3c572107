"""The shapes in which tools wrap a request and its response once more."""

from __future__ import annotations

import json
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from codesmith_lab.errors import InputError
from codesmith_lab.sessions.load import load_bytes
from codesmith_lab.sessions.records import Request


def one(value: Any) -> Request:
    (request,) = load_bytes(json.dumps(value).encode()).requests
    return request


def test_bodies_under_other_names(made: ModuleType) -> None:
    body, response = made.chat_body(0), made.chat_response(0)
    plain = one({"request": body, "response": response})
    for value in (
        {"request": {"body": body}, "response": {"body": response}},
        {"custom_id": "a", "method": "POST", "url": "/v1/chat", "body": body, "response": response},
        {"request_body": body, "response_body": response},
        {"request": body, "response": {"status_code": 200, "body": response}},
        {"request": {"url": "x", "headers": {}, "body": body}, "response": response},
    ):
        request = one(value)
        assert request.body == json.dumps(body).encode()
        assert (request.blocks, request.usage) == (plain.blocks, plain.usage)
        assert request.output == plain.output
    status = {"request": body, "response": {"status_code": 529, "body": {"error": {}}}}
    assert one(status).status == 529


def test_log_records_of_otlp(made: ModuleType) -> None:
    span = json.loads(made.LOGS["otel"])["resourceSpans"][0]["scopeSpans"][0]["spans"][1]
    record = {"timeUnixNano": span["startTimeUnixNano"], "attributes": span["attributes"]}
    log = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    whole = load_bytes(made.LOGS["otel"]).requests[1]
    request = one(log)
    assert (request.time, request.usage) == (whole.time, whole.usage)
    assert request.blocks == whole.blocks


def test_openrouter_says_who_served(made: ModuleType) -> None:
    response = {**made.chat_response(0), "id": "gen-1", "provider": "Azure"}
    response["usage"]["cost"] = 0.0125
    request = one({"request": made.chat_body(0), "response": response})
    assert request.scope.provider == "openrouter azure"
    assert request.usage is not None
    assert request.usage.cost_usd == Decimal("0.0125")


def test_charges_in_transcripts(made: ModuleType) -> None:
    line = {
        "type": "assistant",
        "sessionId": "s",
        "uuid": "u",
        "costUSD": 0.25,
        "message": {"id": "m", "model": "claude-x", "usage": {"input_tokens": 5}},
    }
    request = one(line)
    assert request.usage is not None
    assert request.usage.cost_usd == Decimal("0.25")


@pytest.mark.parametrize(
    "body",
    [
        {"model": "text-embedding-3-small", "input": "hi"},
        {"model": "x", "input": ["hi"], "encoding_format": "float"},
        {"model": "tts-1", "input": "hi", "voice": "a"},
    ],
)
def test_calls_without_a_prompt_to_cache_are_left_out(body: Any) -> None:
    with pytest.raises(InputError, match="no prompt to cache"):
        load_bytes(json.dumps(body).encode())


def test_other_calls_of_a_gateway_are_left_out(made: ModuleType) -> None:
    lines = [made.litellm(0), {**made.litellm(1), "call_type": "aembedding"}]
    session = load_bytes(made.lines(lines))
    assert len(session.requests) == 1
    assert "aembedding" in session.skipped[0].reason
