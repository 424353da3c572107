"""One response recorded more than once is one request, and says so."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from codesmith_lab.sessions.reading.load import load_bytes


def log(*values: Any) -> bytes:
    return b"\n".join(json.dumps(value).encode() for value in values)


def test_the_same_response_is_counted_once_and_flagged(made: ModuleType) -> None:
    line = {"request": made.chat_body(0), "response": made.chat_response(0)}
    other = {"request": made.chat_body(1), "response": made.chat_response(1)}
    first, second = load_bytes(log(line, line, other, line)).requests
    assert (first.line, first.flags) == (1, ("duplicate_usage",))
    assert "the same response stands again in line 2, line 4: counted once" in first.notes
    assert second.flags == ()


def test_an_id_that_stands_for_two_bodies_is_two_requests(made: ModuleType) -> None:
    response = made.chat_response(0)
    lines = [{"request": made.chat_body(turn), "response": response} for turn in (0, 1)]
    assert len(load_bytes(log(*lines)).requests) == 2


def test_a_record_without_content_joins_the_one_that_has_it(made: ModuleType) -> None:
    usage = {"gen_ai.usage.input_tokens": 1200, "gen_ai.response.id": "chatcmpl-0"}
    span = {"attributes": {"gen_ai.operation.name": "chat", **usage}}
    body = {"request": made.chat_body(0), "response": made.chat_response(0)}
    for lines in ((span, body), (body, span)):
        (request,) = load_bytes(log(*lines)).requests
        assert request.content == "whole"
        assert request.flags == ("duplicate_usage",)
        assert request.usage is not None and request.usage.cache_write_5m_tokens == 1152


def test_overlapping_and_negative_counters_are_flagged(made: ModuleType) -> None:
    def line(number: int, usage: dict[str, Any]) -> dict[str, Any]:
        body = {**made.chat_body(0), "seed": number}
        return {"request": body, "response": {"choices": [], "usage": usage}}

    details = {"cached_tokens": 2161, "cache_write_tokens": 2161}
    overlap = {"prompt_tokens": 2168, "prompt_tokens_details": details}
    negative = {"prompt_tokens": 9, "completion_tokens": -1}
    flags = [r.flags for r in load_bytes(log(line(0, overlap), line(1, negative))).requests]
    assert flags == [("usage_overlap",), ("usage_negative",)]
