"""What a long log leaves in memory grows with what is new in it, not with its lines."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import tracemalloc
from typing import Any

import pytest

import codesmith_lab as lab
from codesmith_lab.samples.agent_log import agent_log_lines
from codesmith_lab.sessions.reading import lines
from codesmith_lab.sessions.reading.recent import REMEMBERED_REQUESTS, Recent


def _live_mb(turns: int) -> float:
    """Megabytes of Python objects that a session and its report hold."""
    log = b"\n".join(agent_log_lines(turns, 60, blocks_per_turn=8))
    # Tables of prices and tokens are loaded once and are no part of a session.
    lab.analyze(lab.load_bytes(log[: log.index(b"\n")]))
    gc.collect()
    tracemalloc.start(1)
    try:
        report = lab.analyze(lab.load_bytes(log))
        assert report.totals.requests == turns
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 1e6
    finally:
        tracemalloc.stop()


def test_three_times_the_turns_are_three_times_the_memory() -> None:
    """Kept whole, the prompts alone would make it seven times."""
    few, many = _live_mb(200), _live_mb(600)
    assert many < 3.6 * few


def test_a_response_that_is_sent_again_is_kept_once() -> None:
    answer = {"role": "assistant", "content": "An answer of some length."}
    ask: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    log = [
        {"request": {"model": "gpt-5", "messages": ask}, "response": _response(answer)},
        {"request": {"model": "gpt-5", "messages": [*ask, answer, *ask]}},
    ]
    session = lab.load_bytes(b"\n".join(json.dumps(line).encode() for line in log))
    assert session.requests[0].output is not None
    output, again = session.requests[0].output[0], session.requests[1].blocks[1]
    assert output.text is again.text and output.raw is again.raw


def _response(message: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"message": message}]}


@pytest.mark.parametrize("kept_bytes", [0, 1 << 22])
def test_sessions_mixed_in_one_log_share_their_items(
    monkeypatch: pytest.MonkeyPatch, kept_bytes: int
) -> None:
    """Where an earlier line is not kept whole, its items are compared one by one."""
    monkeypatch.setattr(lines, "_LINE_BYTES", kept_bytes)
    walker = lines.LineWalker()
    histories: list[list[dict[str, Any]]] = [[{"session": n}] for n in range(12)]
    seen: dict[int, Any] = {}
    for turn in range(6):
        for number, history in enumerate(histories):
            history += [{"turn": turn, "said": "é" * n} for n in range(number % 4 + 1)]
            if turn == 3 and number % 3 == 0:
                del history[1]
            line = json.dumps({"n": number, "messages": history}, ensure_ascii=False).encode()
            found = walker.walk(line)
            assert found.raw == line
            array = found.members["messages"]
            assert isinstance(array, lines.ArraySpan)
            if number in seen:
                assert array.items[0] is seen[number]
            seen[number] = array.items[0]


def test_what_the_last_requests_asked_for_is_not_forgotten() -> None:
    known: Recent[int, str] = Recent()
    for request in range(500):
        known.request()
        for number in range(100 * request, 100 * request + 200):
            if known.get(number) is None:
                known.keep(number, str(number))
        assert known.get(0 if request < 10 else 100 * request) is not None
        assert all(
            known.get(n) is not None for n in range(100 * max(0, request - 60), 100 * request)
        )
    assert len(known) < 25_000
    assert known.get(5) is None


def test_a_session_that_was_silent_for_long_is_still_read_right() -> None:
    others = [
        {"model": "gpt-5", "messages": [{"role": "user", "content": f"Other {n}"}]}
        for n in range(REMEMBERED_REQUESTS + 50)
    ]
    first = [{"role": "user", "content": f"Part {n}"} for n in range(40)]
    mine = {"model": "gpt-5", "messages": first}
    more = {"model": "gpt-5", "messages": [*first, {"role": "user", "content": "And on."}]}
    log = [mine, *others, more]
    session = lab.load_bytes(b"\n".join(json.dumps(line).encode() for line in log))
    assert [block.text for block in session.requests[-1].blocks[:40]] == [
        message["content"] for message in first
    ]
    turns = lab.analyze(session).turns
    assert turns[-1].match.parent == 0 and turns[-1].match.pieces == 40


def test_blocks_of_a_request_are_a_sequence_like_any_other() -> None:
    session = lab.load_bytes(b"\n".join(agent_log_lines(4, 60)))
    for request in session.requests:
        blocks = request.blocks
        whole = tuple(blocks)
        assert len(whole) == len(blocks) and blocks == whole and whole == blocks
        assert blocks is request.blocks
        for at in range(-len(whole), len(whole)):
            assert blocks[at] is whole[at]
        for part in (slice(2), slice(1, -1), slice(None, None, 3), slice(-4, None)):
            assert blocks[part] == whole[part]
        for at in (len(whole), -len(whole) - 1):
            with pytest.raises(IndexError):
                blocks[at]
        assert blocks != whole[:-1] and blocks != 5
        assert whole[0] in blocks and repr(blocks) == repr(whole)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_sessions_and_turns_can_be_copied(copied: Any) -> None:
    session = lab.load_bytes(b"\n".join(agent_log_lines(6, 60)))
    assert copied(session) == session
    turn = lab.analyze(session).turns[-1]
    again = copied(turn)
    assert again.prompt.blocks == turn.prompt.blocks
    assert again.prompt.ends.tolist() == turn.prompt.ends.tolist()
    bench = lab.Workbench(session)
    name = next(b.name for b in session.requests[0].blocks if b.kind == "section")
    bench.edit_section(name, "Other words.")
    edited = bench.report.turns[-1]
    assert copied(edited).prompt.blocks == edited.prompt.blocks
