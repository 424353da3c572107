"""Counts of joined texts, fast against slow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesmith_lab.billing import token_joints
from codesmith_lab.billing.tokens import (
    count_joined,
    get_tokenizer,
    joint_delta,
    run_counts,
    run_counts_fast,
    tokenizer_ids,
)

EXACT = ("deepseek", "o200k_base", "cl100k_base")


@pytest.mark.parametrize("name", tokenizer_ids())
def test_fast_run_counts_equal_the_slow_ones(
    name: str, prompts: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_joints, "_CHARS_PER_JOINT", 0)  # windows, however small the texts
    tokenizer = get_tokenizer(name)
    for texts in prompts:
        slow = run_counts(texts, tokenizer)
        assert sum(slow) == tokenizer.count("".join(texts))
        assert run_counts_fast(texts, tokenizer) == slow
        counts = [tokenizer.count(text) for text in texts]
        assert run_counts_fast(texts, tokenizer, counts) == slow


@pytest.mark.parametrize("name", EXACT)
def test_many_small_texts_are_counted_whole(name: str, prompts: list[list[str]]) -> None:
    tokenizer = get_tokenizer(name)
    for texts in prompts[::7]:
        assert run_counts_fast(texts, tokenizer) == run_counts(texts, tokenizer)


@pytest.mark.parametrize("name", tokenizer_ids())
def test_joined_counts_equal_a_recount(name: str, prompts: list[list[str]]) -> None:
    tokenizer = get_tokenizer(name)
    for texts in prompts[::3]:
        whole = "".join(texts)
        for cut in range(0, len(whole), 1 + len(whole) // 40):
            assert count_joined(whole[:cut], whole[cut:], tokenizer) == tokenizer.count(whole)


def test_a_joint_inside_a_word() -> None:
    tokenizer = get_tokenizer("o200k_base")
    assert joint_delta("hello wor", "ld", tokenizer) == (
        tokenizer.count("hello world") - tokenizer.count("hello wor") - tokenizer.count("ld")
    )
    assert joint_delta("", "x", tokenizer) == 0
    # Two tokens " wor" + "ld" become one, which starts in the left text.
    assert run_counts(["hello wor", "ld"], tokenizer) == [2, 0]


def test_runs_longer_than_the_window() -> None:
    tokenizer = get_tokenizer("o200k_base")
    for unit in (" ", "a", "=", "\n", "é"):
        left, right = "start here " + unit * 5000, unit * 3001 + " end here"
        assert count_joined(left, right, tokenizer) == tokenizer.count(left + right)


@given(texts=st.lists(st.text(max_size=400), max_size=6))
@settings(max_examples=150, deadline=None)
def test_every_token_belongs_to_one_text(texts: list[str]) -> None:
    tokenizer = get_tokenizer("deepseek")
    counts = run_counts(texts, tokenizer)
    assert len(counts) == len(texts)
    assert sum(counts) == tokenizer.count("".join(texts))
    assert run_counts_fast(texts, tokenizer) == counts


def test_counts_must_match_the_texts() -> None:
    with pytest.raises(ValueError, match="2 counts for 1 texts"):
        run_counts_fast(["a"], get_tokenizer("deepseek"), [1, 2])
