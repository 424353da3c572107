"""Whose cache a request can meet, and what reached no provider at all."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.records import Request, Scope


def one(value: Any) -> Request:
    (request,) = load_bytes(json.dumps(value).encode()).requests
    return request


def entry(made: ModuleType, url: str, body: dict[str, Any], *headers: tuple[str, str]) -> Any:
    shown = [{"name": name, "value": value} for name, value in headers]
    request = {"method": "POST", "url": url, "headers": shown}
    posted = {"postData": {"text": json.dumps(body)}}
    return {
        "startedDateTime": made.iso(0),
        "request": request | posted,
        "response": {"status": 200, "content": {}},
    }


@pytest.mark.parametrize(
    ("url", "provider", "model"),
    [
        ("https://api.openai.com/v1/chat/completions", "openai", ""),
        ("https://x.openai.azure.com/openai/deployments/gpt-5/chat", "azure", "gpt-5"),
        (
            "https://bedrock-runtime.eu-north-1.amazonaws.com/model/a.b%3A0/converse",
            "bedrock",
            "a.b:0",
        ),
        (
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/"
            "anthropic/models/claude-x@1:rawPredict",
            "google-vertex",
            "claude-x@1",
        ),
        (
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-3:generateContent?k=1",
            "google",
            "gemini-3",
        ),
        ("http://user:secret@localhost:8000/v1/chat/completions", "localhost", ""),
        ("", "", ""),
    ],
)
def test_provider_and_model_out_of_the_address(
    made: ModuleType, url: str, provider: str, model: str
) -> None:
    body = {key: value for key, value in made.chat_body(0).items() if key != "model"}
    request = one(entry(made, url, body))
    assert (request.scope.provider, request.model) == (provider, model)


def test_keys_are_told_apart_and_never_kept(made: ModuleType) -> None:
    url = "https://api.openai.com/v1/chat/completions"
    entries = [
        entry(made, url, {**made.chat_body(0), "seed": at}, ("Authorization", key), *more)
        for at, (key, more) in enumerate(
            [
                ("Bearer sk-a", [("OpenAI-Organization", "org-1")]),
                ("Bearer sk-b", []),
                ("Bearer sk-a", []),
            ]
        )
    ]
    log = json.dumps({"log": {"entries": entries}}).encode()
    session = load_bytes(log)
    assert [r.scope.account for r in session.requests] == ["org-1 key 1", "key 2", "key 1"]
    assert "sk-" not in repr(session)


@pytest.mark.parametrize("field", ["prompt_cache_key", "user_id", "cache_salt"])
def test_cache_keys_and_sessions_out_of_the_body(made: ModuleType, field: str) -> None:
    body = {key: value for key, value in made.chat_body(0).items() if key != "prompt_cache_key"}
    request = one({**body, field: "k", "session_id": "s"})
    assert request.scope == Scope(model="gpt-5.6", cache_key="k", session="s")


def test_a_record_answered_by_the_gateway_itself_has_no_usage(made: ModuleType) -> None:
    request = one({**made.litellm(0), "cache_hit": True})
    assert request.usage is None
    assert "answered from the gateway's own cache: no provider was called" in request.notes


def test_a_refused_request_says_so(made: ModuleType) -> None:
    error = {"type": "error", "error": {"message": "A maximum of 4 blocks"}}
    request = one({"request": made.claude_body(0), "status": 400, "response": error})
    assert (request.status, request.usage, request.notes) == (400, None, ())


def test_markers_of_every_api(made: ModuleType) -> None:
    body = made.chat_body(0)
    part = {"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}
    body["messages"][1] = {"role": "user", "content": [part, {"type": "text", "text": "b"}]}
    assert one(body).settings["_markers"] == ((2, "5m"),)
    assert one(made.claude_body(0)).settings["_markers"] == ((1, "1h"),)
    assert one(made.converse_body(0)).settings["_markers"] == ((1, "1h"),)
    converse = made.converse_body(0)
    converse["toolConfig"]["tools"].append({"cachePoint": {"type": "default"}})
    converse["messages"][0]["content"] += [{"cachePoint": {}}, {"text": "x"}]
    assert one(converse).settings["_markers"] == ((0, "5m"), (1, "1h"), (2, "5m"))
    assert one(converse).settings["toolChoice"] == {"auto": {}}


def test_what_the_server_keeps_makes_a_request_partial(made: ModuleType) -> None:
    body = {"model": "gpt-5.6", "input": "go on", "previous_response_id": "resp_x"}
    request = one(body)
    assert request.content == "partial"
    assert "this log does not hold" in request.notes[0]
    gemini = {"contents": [{"parts": [{"text": "x"}]}], "cachedContent": "cachedContents/1"}
    assert one(gemini).content == "partial"
