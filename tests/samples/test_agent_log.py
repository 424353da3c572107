"""Generated agent logs: sizes as asked for, appended only, same bytes."""

from __future__ import annotations

import hashlib
import itertools
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesmith_lab.billing.tokens import get_tokenizer
from codesmith_lab.errors import LabError
from codesmith_lab.samples import agent_log_lines

SHA256_OF_20_TURNS = "915cf2b72c0a6ee7eda6b9b71db67361667a1bf646a15887616297a9281d8892"


def parsed(**arguments: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in agent_log_lines(**arguments)]


def history(line: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = line["request"]["messages"][1:]
    return found


def answer(line: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = line["response"]["choices"][0]["message"]
    return found


@settings(max_examples=25, deadline=None)
@given(
    turns=st.integers(0, 12),
    new_tokens_per_turn=st.integers(1, 200),
    blocks_per_turn=st.integers(2, 7),
    drift_every=st.none() | st.integers(1, 5),
    compact_every=st.none() | st.integers(1, 5),
)
def test_the_history_grows_by_the_blocks_asked_for_and_is_replaced_only_when_signed(
    turns: int, blocks_per_turn: int, compact_every: int | None, **others: Any
) -> None:
    lines = parsed(
        turns=turns, blocks_per_turn=blocks_per_turn, compact_every=compact_every, **others
    )
    assert len(lines) == turns
    for i, (last, line) in enumerate(itertools.pairwise(lines), start=1):
        before = [*history(last), answer(last)]
        assert ("rebuild" in line) == bool(compact_every and i % compact_every == 0)
        if "rebuild" in line:
            assert line["rebuild"]["before"] == len(before)
            assert line["rebuild"]["after"] == len(history(line))
        else:
            assert history(line)[: len(before)] == before
            assert len(history(line)) == len(before) + blocks_per_turn - 1


def test_the_prefix_drifts_on_the_turns_asked_for_and_on_no_other() -> None:
    systems = [
        line["request"]["messages"][0]["content"] for line in parsed(turns=12, drift_every=5)
    ]
    changed = [i for i, (a, b) in enumerate(itertools.pairwise(systems), start=1) if a != b]
    assert changed == [5, 10]
    still = {line["request"]["messages"][0]["content"] for line in parsed(turns=12)}
    assert len(still) == 1


def test_the_tokens_of_a_turn_are_about_as_many_as_asked_for() -> None:
    count = get_tokenizer("deepseek").count
    line = parsed(turns=21, new_tokens_per_turn=800)[-1]
    texts = [str(message["content"]) for message in history(line)]
    assert 720 <= 5 * sum(map(count, texts)) / len(texts) <= 880


def test_a_thousand_turns_have_five_thousand_blocks_and_stream() -> None:
    tracemalloc.start()
    try:
        lines = agent_log_lines(1000, new_tokens_per_turn=100, compact_every=40)
        blocks = bytes_total = 0
        for line in lines:
            blocks += line.count(b'"role":"assistant"') > 0  # the line is read, and let go
            bytes_total += len(line)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert blocks == 1000
    assert peak_bytes < bytes_total / 20


def test_same_arguments_same_bytes_and_another_seed_others() -> None:
    def digest(seed: int) -> str:
        lines = agent_log_lines(20, drift_every=4, compact_every=9, seed=seed)
        return hashlib.sha256(b"\n".join(lines)).hexdigest()

    assert digest(7) == SHA256_OF_20_TURNS
    assert digest(8) != SHA256_OF_20_TURNS


def test_it_loads_as_an_agents_log() -> None:
    from codesmith_lab.sessions.reading.load import load_bytes

    session = load_bytes(b"\n".join(agent_log_lines(12, compact_every=5)))
    assert (len(session.requests), session.skipped) == (12, ())
    assert [r.index for r in session.requests if r.rebuild is not None] == [5, 10]


@pytest.mark.parametrize(
    "wrong",
    [
        {"turns": -1},
        {"turns": 1, "new_tokens_per_turn": 0},
        {"turns": 1, "blocks_per_turn": 1},
        {"turns": 1, "drift_every": 0},
        {"turns": 1, "compact_every": 0},
    ],
)
def test_a_number_out_of_range_is_refused_at_once(wrong: dict[str, int]) -> None:
    name = list(wrong)[-1]
    with pytest.raises(LabError, match=f"{name} is {wrong[name]}, and it must be"):
        agent_log_lines(**wrong)
