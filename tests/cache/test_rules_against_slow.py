"""Every rule set: the incremental engine equals the slow, plain one; causes and lines add up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesmith_lab.cache.causes import CAUSES, split_causes, split_lines
from codesmith_lab.cache.indexes import make_index
from codesmith_lab.cache.pieces import PieceTable
from codesmith_lab.cache.plan import make_plan
from codesmith_lab.cache.rule_files import known_rules
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.cache.slow import SlowCache
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.chat_format import CHAT_FORMATS

RULES = {rule.id: rule for rule in known_rules()}
# Engines with little memory.
RULES |= {
    "vllm, 10 blocks": replace(RULES["vllm"], capacity_tokens=30),
    "vllm, 25 blocks": replace(RULES["vllm"], capacity_tokens=75),
    "sglang, 24 tokens": replace(RULES["sglang"], capacity_tokens=24),
    "sglang, pages of 3": replace(RULES["sglang"], capacity_tokens=60, step_tokens=3),
    "llama-cpp, 3 slots": replace(RULES["llama-cpp"], slots=3),
    "deepseek-v4, 10 minutes": replace(RULES["deepseek-v4"], lifetimes_s={"": 600}),
}


def ids(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), np.int32)


def table(chat_format: str) -> PieceTable:
    """One token a character, and no joints."""
    return PieceTable(
        CHAT_FORMATS[chat_format], ids, lambda a, b: 0, lambda texts: [len(t) for t in texts]
    )


def small(rule: CacheRule) -> CacheRule:
    """The same rule for prompts of a few tokens: unlike sizes, so that each shows."""
    return replace(
        rule,
        minimum_tokens=min(rule.minimum_tokens, 6),
        minimum_by_model={},
        step_tokens=min(rule.step_tokens, 3),
        lookback_blocks=None if rule.lookback_blocks is None else min(rule.lookback_blocks, 2),
        lookup_breakpoints=None if rule.lookup_breakpoints is None else 2,
        lifetimes_s={name: seconds / 10 for name, seconds in rule.lifetimes_s.items()}
        if rule.match != "breakpoints"
        else rule.lifetimes_s,
    )


texts = st.text("ab", min_size=1, max_size=5)
lifetimes = st.sampled_from(["5m", "5m", "1h", "24h", "12h"])
SETTINGS: dict[str, list[Any]] = {
    "tool_choice": ["auto", "none"],
    "thinking": [{"type": "enabled"}],
    "speed": ["fast"],
    "cache_salt": ["x"],
    "extra_key": ["x"],
    "cache_control": [{"type": "ephemeral"}, {"ttl": "1h"}],
    "prompt_cache_retention": ["24h"],
    "prompt_cache_options": [{"mode": "explicit"}, {"ttl": "12h"}],
    "prompt_cache_key": ["k"],
    "cache_prompt": [False],
}


@st.composite
def request_settings(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.integers(0, 4)):
        return {"prompt_cache_key": "k"}
    names = draw(st.lists(st.sampled_from(sorted(SETTINGS)), max_size=2, unique=True))
    return {name: draw(st.sampled_from(SETTINGS[name])) for name in names}


def marks(life: str) -> st.SearchStrategy[list[tuple[int, str]]]:
    """Places from the end (-1) or the start. As a rule a log marks the same ones again."""
    places = st.lists(
        st.tuples(st.integers(-1, 8), lifetimes), max_size=4, unique_by=lambda mark: mark[0]
    )
    return st.one_of(st.sampled_from([[], [(-1, life)], [(0, life), (-1, life)]]), places)


@st.composite
def logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Sessions that extend, edit, truncate and come back, over one or two interleaved threads."""
    threads = [
        draw(st.lists(texts, min_size=1, max_size=3)) for _ in range(draw(st.integers(1, 2)))
    ]
    life = draw(lifetimes)
    usual = draw(marks(life))
    # A steady pace below a lifetime shows what a read does to it.
    pace = draw(st.sampled_from([None, None, 200]))
    log = []
    for _ in range(draw(st.integers(1, 9))):
        thread = draw(st.sampled_from(range(len(threads))))
        messages = list(threads[thread])
        change = draw(st.integers(0, 6)) if pace is None else 2
        if change == 0 and messages:
            messages[draw(st.integers(0, len(messages) - 1))] = draw(texts)
        elif change == 1:
            messages = messages[: draw(st.integers(1, len(messages)))]
        elif change >= 3:
            messages += draw(st.lists(texts, min_size=1, max_size=3))
        output = draw(st.one_of(st.none(), texts))
        log.append(
            {
                "system": draw(st.sampled_from([["a"], ["ab"], ["a", "b"], ["b"]]))
                if draw(st.integers(0, 3)) == 0
                else ["aab"],
                "messages": messages,
                "output": output,
                "wait": pace or draw(st.sampled_from([0, 1, 40, 200, 301, 4000])),
                "timed": bool(pace) or draw(st.integers(0, 9)) > 0,
                "marks": usual if draw(st.integers(0, 3)) else draw(marks(life)),
                "settings": draw(request_settings()),
            }
        )
        threads[thread] = messages + ([output] if output is not None else [])
    return log


def blocks_of(entry: dict[str, Any], joined: bool) -> tuple[Block, ...]:
    """The request's blocks. Texts that follow each other without a marker are given as one."""
    if joined:
        entry = {**entry, "system": ["".join(entry["system"])]}
    blocks = [
        Block("pinned", "section", "system", f"s{i}", t, f"{i}".encode())
        for i, t in enumerate(entry["system"])
    ]
    for i, text in enumerate(entry["messages"]):
        blocks.append(message(text, i))
    return tuple(blocks)


def message(text: str, n: int) -> Block:
    role = ("user", "assistant")[n % 2]
    return Block("log", "message", role, role, text, b"", n)


@pytest.mark.parametrize("rule_id", sorted(RULES))
@settings(max_examples=120, deadline=None)
@given(log=logs())
def test_the_engine_equals_the_slow_one(rule_id: str, log: list[dict[str, Any]]) -> None:
    rule = small(RULES[rule_id])
    tab = table("deepseek" if rule.provider == "deepseek" else "openai")
    fast, slow = make_index(tab, rule), SlowCache(tab, rule)
    prompts, clock = [], 1000.0
    for number, entry in enumerate(log):
        clock += entry["wait"]
        time_s = clock if entry["timed"] else None
        blocks = blocks_of(entry, tab.chat_format.name == "deepseek")
        prompt = tab.prompt(blocks)
        placed = {at % len(blocks): name for at, name in entry["marks"] if at < len(blocks)}
        marked = tuple(sorted(placed.items()))
        plan = make_plan(rule, "some-model", entry["settings"], tab, prompt, blocks, marked)
        answer = entry["output"]
        output = tab.output_numbers(
            [] if answer is None else [message(answer, len(entry["messages"]) | 1)]
        )
        match = fast.add(number, prompt, output, time_s, plan)
        want = slow.add(number, prompt, output, time_s, plan)
        prompts.append(prompt)
        if rule.match == "none":
            assert match.hit_tokens == want.hit == 0
            continue
        got = (match.matched_tokens, match.live_tokens, match.hit_tokens, *match.written)
        assert got == (want.matched, want.live, want.hit, want.written_1h, want.written_5m)
        assert match.parent in (want.parents or {None})
        parent = None if match.parent is None else fast.entries[match.parent]
        before = None if match.parent is None else prompts[match.parent]
        causes = split_causes(tab, prompt, match, parent, before)
        assert sum(causes.tokens) == prompt.total_tokens
        assert causes.tokens[0] == match.hit_tokens
        rows = split_lines(causes, match)
        assert [sum(row) for row in rows] == list(causes.tokens)
        assert sum(row[0] for row in rows) == match.hit_tokens
        assert len(rows) == len(CAUSES)
