"""The shapes in which tools wrap a request and its response once more."""

from __future__ import annotations

import json
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from codesmith_lab.errors import InputError
from codesmith_lab.sessions.reading.load import load_bytes
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


def test_a_response_that_cannot_be_unpacked_loses_no_request(made: ModuleType) -> None:
    """In a HAR as in a cassette: the request is good, and the note says what is missing."""
    logs = {name: json.loads(made.LOGS[name]) for name in ("har", "vcr ruby")}
    for entry in logs["har"]["log"]["entries"]:
        entry["response"]["content"] = {"text": "%%%no", "encoding": "base64"}
    for entry in logs["vcr ruby"]["http_interactions"]:
        entry["response"]["body"] = {"base64_string": "a"}
    for log in logs.values():
        session = load_bytes(json.dumps(log).encode())
        assert len(session.requests) == 3
        for request in session.requests:
            assert any("the response cannot be read" in note for note in request.notes)


def test_records_on_one_line_are_told_apart(made: ModuleType) -> None:
    entries = json.loads(made.LOGS["har"])["log"]["entries"]
    broken = entries[-1] | {"request": entries[-1]["request"] | {"postData": {"text": "{x"}}}
    session = load_bytes(json.dumps({"log": {"entries": [*entries, broken]}}).encode())
    reasons = [entry.reason for entry in session.skipped]
    assert any(reason.startswith(f"record {len(entries) + 1} on it: ") for reason in reasons)


def test_a_format_that_does_not_fit_is_noted(made: ModuleType) -> None:
    session = load_bytes(made.LOGS["openai-chat"], format="anthropic")
    assert any("looks like openai-chat" in note for note in session.requests[0].notes)
    session = load_bytes(made.LOGS["openai-chat"], format="openai")
    assert not any("looks like" in note for note in session.requests[0].notes)
