"""Transcripts of agents: what counters and times prove, counted once."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from codesmith_lab.sessions.reading.load import load_bytes


def lines(*values: Any) -> bytes:
    return b"\n".join(json.dumps(value).encode() for value in values)


def answer(identity: str, output: int, **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 4, "cache_read_input_tokens": 90, "output_tokens": output}
    message = {"id": identity, "model": "claude-sonnet-4-5", "role": "assistant", "usage": usage}
    return (
        {"type": "assistant", "sessionId": "s", "uuid": f"{identity}{output}"}
        | fields
        | {"message": message}
    )


def test_a_response_of_many_lines_is_one_request_with_its_last_counters() -> None:
    log = lines(*(answer("m", n) for n in (1, 1, 40, 12)), answer("n", 3))
    first, second = load_bytes(log).requests
    assert first.usage is not None and second.usage is not None
    assert (first.usage.output_tokens, second.usage.output_tokens) == (40, 3)
    assert first.usage.input_tokens == 94
    assert (first.line, first.flags) == (1, ())


def test_a_compaction_is_signed_on_the_request_behind_it(made: ModuleType) -> None:
    requests = load_bytes(made.LOGS["claude-code"]).requests
    assert [request.rebuild for request in requests] == [
        None,
        None,
        {"reason": "auto_compaction", "before_tokens": 155250},
    ]


def test_the_recorders_wire_bytes_are_kept(made: ModuleType) -> None:
    requests = load_bytes(made.LOGS["anthropic-messages codesmith"]).requests
    assert [request.body for request in requests] == [
        made.codesmith_wire(turn) for turn in range(3)
    ]
    signed = {"reason": "manual_compaction", "before": 9, "after": 5}
    assert [request.rebuild for request in requests] == [None, None, signed]


def test_start_is_measured_from_what_was_asked() -> None:
    asked = {"type": "user", "uuid": "u", "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z"}
    came = answer("m", 5, parentUuid="u", timestamp="2026-01-01T00:00:30Z")
    (request,) = load_bytes(lines(asked, came)).requests
    assert request.time is not None
    assert request.time.isoformat() == "2026-01-01T00:00:00+00:00"


def test_side_chains_are_sessions_of_their_own() -> None:
    log = lines(answer("m", 5), answer("n", 5, isSidechain=True, agentId="a1"))
    assert [r.scope.session for r in load_bytes(log).requests] == ["s", "s a1"]


def test_answers_that_reached_no_model_are_no_requests() -> None:
    made_up = answer("x", 0)
    made_up["message"]["model"] = "<synthetic>"
    assert len(load_bytes(lines(answer("m", 5), made_up)).requests) == 1


def test_the_same_transcript_twice_is_counted_once(made: ModuleType) -> None:
    """A resumed session's file repeats the lines of the one before it."""
    log = made.LOGS["claude-code"]
    whole = load_bytes(log)
    twice = load_bytes(log + b"\n" + log)
    assert [r.usage for r in twice.requests] == [r.usage for r in whole.requests]


def totals(*counters: dict[str, Any]) -> bytes:
    events = [{"type": "turn_context", "payload": {"model": "gpt-5"}}]
    for info in counters:
        events.append({"type": "event_msg", "payload": {"type": "token_count", "info": info}})
    return lines(*events)


def total(read: int, cached: int, output: int) -> dict[str, int]:
    return {"input_tokens": read, "cached_input_tokens": cached, "output_tokens": output}


def test_cumulative_counters_are_differenced() -> None:
    log = totals(
        {"total_token_usage": total(100, 0, 10)},
        {"total_token_usage": total(100, 0, 10)},
        {"total_token_usage": total(350, 90, 15)},
    )
    first, second = (request.usage for request in load_bytes(log).requests)
    assert first is not None and second is not None
    assert (first.input_tokens, first.cache_read_tokens, first.output_tokens) == (100, 0, 10)
    assert (second.input_tokens, second.cache_read_tokens, second.output_tokens) == (250, 90, 5)


def test_counters_that_go_down_begin_anew_and_are_flagged() -> None:
    log = totals(
        {"total_token_usage": total(900, 0, 10)},
        {"total_token_usage": total(300, 200, 4), "last_token_usage": total(300, 200, 4)},
    )
    first, second = load_bytes(log).requests
    assert second.usage is not None
    assert (second.usage.input_tokens, second.flags) == (300, ("usage_reset",))
    assert first.flags == ()


def test_a_resumed_session_does_not_count_what_it_goes_on_from() -> None:
    log = totals(
        {"total_token_usage": total(9000, 5000, 10), "last_token_usage": total(400, 300, 2)},
        {"total_token_usage": total(9500, 5400, 14), "last_token_usage": total(500, 400, 4)},
    )
    assert [r.usage.input_tokens for r in load_bytes(log).requests if r.usage] == [400, 500]


def test_growth_and_the_event_may_disagree_and_the_growth_counts() -> None:
    log = totals(
        {"total_token_usage": total(100, 0, 1), "last_token_usage": total(100, 0, 1)},
        {"total_token_usage": total(400, 0, 1), "last_token_usage": total(50, 0, 1)},
    )
    request = load_bytes(log).requests[1]
    assert request.usage is not None and request.usage.input_tokens == 300
    assert "the growth was taken" in request.notes[0]
