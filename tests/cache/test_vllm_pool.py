"""vLLM's block pool: recorded answers of its own cache manager, and the rules one by one.

`vllm_traces.json` holds token ids and hits only. They were recorded by driving KVCacheManager of
vLLM 0.33.0 (one full-attention group, one request after another) with random prompts; a hit of
null says that the prompt did not fit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codesmith_lab.cache.pools import BlockPool

TRACES = json.loads(Path(__file__).with_name("vllm_traces.json").read_text("utf-8"))["traces"]


def coded(tokens: list[int]) -> bytes:
    return np.array(tokens, ">i4").tobytes()


@pytest.mark.parametrize(
    "trace", TRACES, ids=lambda t: f"{t['capacity_blocks']}x{t['block_tokens']}"
)
def test_hits_equal_the_recorded_ones(trace: dict[str, Any]) -> None:
    pool = BlockPool(trace["capacity_blocks"], trace["block_tokens"])
    for at, (prompt, output, salt, hit) in enumerate(trace["requests"]):
        blocks = pool.run(coded(prompt), coded(prompt + output[:-1]), salt)
        assert (blocks if blocks is None else blocks * trace["block_tokens"]) == hit, at


def test_the_traces_hold_what_they_are_for() -> None:
    every = [row for trace in TRACES for row in trace["requests"]]
    assert len(every) >= 300
    assert sum(1 for row in every if row[3]) >= 100
    assert sum(1 for row in every if row[3] is None) >= 5
    aligned = [
        row
        for trace in TRACES
        for row in trace["requests"]
        if row[3] and row[3] + trace["block_tokens"] == len(row[0])
    ]
    assert len(aligned) >= 10  # whole blocks of which the last is computed again


def pool16(capacity: int = 100) -> BlockPool:
    return BlockPool(capacity, 16)


def ask(pool: BlockPool, prompt: list[int], output: list[int] | None = None, salt: str = "") -> int:
    held = pool.run(coded(prompt), coded(prompt + (output or [])[:-1]), salt)
    assert held is not None
    return held * 16


S = [(i * 7) % 97 for i in range(100)]


def test_the_documented_sizes() -> None:
    pool = pool16()
    assert [ask(pool, S), ask(pool, S)] == [0, 96]
    assert ask(pool, [*S[:50], 999, *S[51:]]) == 48
    assert ask(pool, S[:96]) == 80  # an aligned repeat computes a whole block again
    assert ask(pool, S[:97]) == 96
    assert ask(pool, S[:64]) == 48
    assert ask(pool, S, salt="other") == 0
    assert ask(pool, [1, *S]) == 0
    assert ask(pool, S[:15]) == 0


def test_generated_tokens_are_kept_but_the_last() -> None:
    pool = pool16()
    output = list(range(200, 230))
    ask(pool, S, output)  # 130 tokens, 129 of them computed
    assert ask(pool, S + output + [7] * 20) == 128


def test_the_tail_of_the_oldest_goes_first() -> None:
    """Six blocks; S holds four. A prompt of three takes two free ones and S's last."""
    pool = pool16(6)
    ask(pool, S[:64])
    ask(pool, [500 + i for i in range(48)])
    assert ask(pool, S[:64]) == 48  # three of four stayed, and the fourth is computed anyway
    assert len(pool.serve(coded([*S[:64], 1]))) == 4


def test_a_block_computed_twice_is_held_twice() -> None:
    pool = pool16(8)
    ask(pool, S[:32])
    ask(pool, S[:32])  # the second block is computed again
    held = [len(holders) for holders in pool._holders.values()]
    assert sorted(held) == [1, 2]


def test_a_prompt_that_does_not_fit_changes_nothing() -> None:
    pool = pool16(3)
    ask(pool, S[:33])
    before = (list(pool._free), dict(pool._name_of))
    assert pool.run(coded(S[:64]), coded(S[:64])) is None
    assert (list(pool._free), dict(pool._name_of)) == before
