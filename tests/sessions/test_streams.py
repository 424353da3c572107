"""Recorded streams give the response they are, and their usage once."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from codesmith_lab.sessions.reading.apis.streams import events_of, merge_events
from codesmith_lab.sessions.reading.load import load_bytes


def test_usage_is_replaced_and_never_added() -> None:
    start = {"usage": {"input_tokens": 5, "cache_read_input_tokens": 1000, "output_tokens": 1}}
    delta = {"cache_read_input_tokens": 1000, "input_tokens": None, "output_tokens": 9}
    found = merge_events(
        [
            {"type": "message_start", "message": start},
            {"type": "message_delta", "delta": {}, "usage": delta},
        ]
    )
    assert found["usage"] == {
        "input_tokens": 5,
        "cache_read_input_tokens": 1000,
        "output_tokens": 9,
    }


def test_counters_that_only_the_last_event_has() -> None:
    """Some gateways send them in message_delta alone."""
    found = merge_events(
        [
            {"type": "message_start", "message": {"id": "m", "usage": {"output_tokens": 0}}},
            {"type": "message_delta", "usage": {"input_tokens": 7, "cache_read_input_tokens": 3}},
        ]
    )
    assert found["usage"]["input_tokens"] == 7


@pytest.mark.parametrize(
    "form",
    [
        lambda text, events: text,
        lambda text, events: text.replace("\n", "\r\n"),
        lambda text, events: "\n: ping\n\n" + text,
        lambda text, events: events,
        lambda text, events: {"events": events},
        lambda text, events: {"stream": text},
        lambda text, events: [{"event": "message", "data": json.dumps(e)} for e in events],
        lambda text, events: [f"data: {json.dumps(e)}" for e in events],
    ],
)
@pytest.mark.parametrize("kind", ["openai-chat", "anthropic-messages", "openai-responses"])
def test_forms_in_which_streams_are_recorded(made: ModuleType, form: Any, kind: str) -> None:
    whole = load_bytes(made.LOGS[kind]).requests
    lines = []
    for line in made.LOGS[f"{kind} streams"].split(b"\n"):
        value = json.loads(line)
        text = value["response"]
        found = events_of(text)
        assert found is not None and found[1] == 0
        lines.append({**value, "response": form(text, found[0])})
    for streamed, plain in zip(load_bytes(made.lines(lines)).requests, whole, strict=True):
        assert streamed.usage == plain.usage
        assert streamed.response_id == plain.response_id
        assert streamed.notes == plain.notes
        assert [b.text for b in streamed.output or ()] == [b.text for b in plain.output or ()]


def test_a_stream_that_broke_off_is_what_came_until_then(made: ModuleType) -> None:
    (line, *_) = made.LOGS["anthropic-messages streams"].split(b"\n")
    value = json.loads(line)
    cut = value["response"].index("content_block_stop")
    value["response"] = value["response"][: cut - 20] + 'data: {"type": "mess\n\n'
    (request,) = load_bytes(made.lines([value])).requests
    assert request.usage is not None
    assert request.usage.output_tokens == 1
    assert request.output is not None
    assert "1 events of the response's stream cannot be read" in request.notes


def test_a_tool_call_whose_input_broke_off_is_kept_as_text() -> None:
    events = [
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use"}},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"a": "b'},
        },
    ]
    assert merge_events(events)["content"] == [{"type": "tool_use", "input": '{"a": "b'}]


def test_growing_texts_take_no_time_that_grows_with_their_square() -> None:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}}
    events = [{**delta, "delta": {**delta["delta"], "text": "x" * 20}}] * 200_000  # type: ignore[dict-item]
    merged = merge_events([{"type": "content_block_start", "index": 0}, *events])
    assert merged["content"][0]["text"] == "x" * 4_000_000


@pytest.mark.parametrize("value", [None, 5, "hello", {}, {"id": "x"}, True])
def test_what_is_no_stream_is_left_alone(value: Any) -> None:
    assert events_of(value) is None
