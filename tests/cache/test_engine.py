"""The incremental engine equals a slow, clear one, and causes always add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from codesmith_lab.cache.causes import CAUSES, split_causes
from codesmith_lab.cache.engine import PrefixIndex, slow_match
from codesmith_lab.cache.pieces import PieceTable
from codesmith_lab.cache.rules import get_rule
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.chat_format import CHAT_FORMATS

# One token a character: every token position can then be worked out by eye.
SMALL = {"minimum_tokens": 4, "step_tokens": 2}


def ids(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), np.int32)


def table(chat_format: str = "openai") -> PieceTable:
    return PieceTable(
        CHAT_FORMATS[chat_format], ids, lambda a, b: 0, lambda texts: [len(t) for t in texts]
    )


def section(text: str, name: str = "s") -> Block:
    return Block("pinned", "section", "system", name, text, b"")


def message(text: str, role: str = "user", n: int = 0) -> Block:
    return Block("log", "message", role, role, text, b"", n)


texts = st.text("ab", max_size=6)
requests = st.tuples(
    st.lists(texts, min_size=1, max_size=3),
    st.lists(texts, max_size=5),
    st.one_of(st.none(), texts),
    st.integers(0, 40),
)


def blocks_of(sections: list[str], messages: list[str]) -> list[Block]:
    blocks = [section(t, f"s{i}") for i, t in enumerate(sections)]
    roles = ("user", "assistant")
    return blocks + [message(t, roles[i % 2], i) for i, t in enumerate(messages)]


@settings(max_examples=1500, deadline=None)
@given(st.lists(requests, min_size=1, max_size=8), st.sampled_from([None, 30.0]), st.booleans())
def test_the_index_equals_comparing_with_every_earlier_request(log, lifetime, reuse):
    rule = replace(get_rule("openai-128"), output_reuse=reuse, **SMALL)
    tab = table()
    index = PrefixIndex(tab, rule)
    earlier, clock = [], 0.0
    for number, (sections, messages, output, wait) in enumerate(log):
        clock += wait
        prompt = tab.prompt(blocks_of(sections, messages))
        answer = [] if output is None else [message(output, "assistant", len(messages))]
        stored = tab.output_numbers(answer)
        fast = index.add(number, prompt, stored, clock, lifetime)
        slow = slow_match(tab, rule, earlier, prompt, clock, lifetime)
        assert (fast.matched_tokens, fast.live_tokens, fast.hit_tokens) == (
            slow.matched_tokens,
            slow.live_tokens,
            slow.hit_tokens,
        )
        assert fast.parent == slow.parent or fast.matched_tokens == 0 or fast.live_tokens == 0
        earlier.append((prompt, stored, clock))


@settings(max_examples=1500, deadline=None)
@given(
    st.lists(requests, min_size=1, max_size=8),
    st.sampled_from(["any_prefix", "stored_units"]),
    st.sampled_from([None, 30.0]),
    st.sampled_from(["openai", "deepseek"]),
)
def test_causes_cover_every_prompt_exactly(log, how, lifetime, chat_format):
    rule = replace(get_rule("deepseek-v4"), match=how, **SMALL)
    tab = table(chat_format)
    index = PrefixIndex(tab, rule)
    prompts, clock = [], 0.0
    for number, (sections, messages, output, wait) in enumerate(log):
        clock += wait
        prompt = tab.prompt(blocks_of(sections, messages))
        answer = [] if output is None else [message(output, "assistant", len(messages))]
        match = index.add(number, prompt, tab.output_numbers(answer), clock, lifetime)
        parent = None if match.parent is None else index.entries[match.parent]
        before = None if match.parent is None else prompts[match.parent]
        causes = split_causes(tab, prompt, match, parent, before)
        assert sum(causes.tokens) == prompt.total_tokens
        assert len(causes.tokens) == len(CAUSES)
        at = 0
        for span in causes.spans:
            assert span.start == at < span.end
            at = span.end
        assert at == prompt.total_tokens
        assert match.hit_tokens <= match.live_tokens <= match.matched_tokens <= at
        assert match.hit_tokens % 2 == 0
        prompts.append(prompt)


@settings(max_examples=300, deadline=None)
@given(st.lists(requests, min_size=2, max_size=6), st.integers(1, 5))
def test_a_fork_goes_on_as_the_whole_run_does(log, cut):
    rule = replace(get_rule("deepseek-v4"), **SMALL)
    tab = table()

    def play(index, items, start):
        found = []
        for number, (sections, messages, output, _) in enumerate(items, start):
            answer = [] if output is None else [message(output, "assistant", len(messages))]
            prompt = tab.prompt(blocks_of(sections, messages))
            found.append(index.add(number, prompt, tab.output_numbers(answer), None, None))
        return found

    cut = min(cut, len(log) - 1)
    whole = play(PrefixIndex(tab, rule), log, 0)
    base = PrefixIndex(tab, rule)
    head = play(base, log[:cut], 0)
    first = play(base.fork(), log[cut:], cut)
    second = play(base.fork(), log[cut:], cut)
    assert head + first == whole == head + second


def run(rule_id: str, prompts: list[list[Block]], outputs: list[list[Block]] | None = None):
    rule = get_rule(rule_id)
    tab = table("plain")
    index = PrefixIndex(tab, rule)
    matches = []
    for i, blocks in enumerate(prompts):
        stored = tab.output_numbers(outputs[i] if outputs else [])
        matches.append(index.add(i, tab.prompt(blocks), stored, None, None))
    return matches


def test_the_documented_deepseek_example():
    """A+B then A+C hits nothing, but reveals A: the third request A+D hits it."""
    a = section("a" * 256)
    first, second, third = run("deepseek-v4", [[a, section(c * 300, c)] for c in ("b", "c", "d")])
    assert (first.hit_tokens, second.hit_tokens, third.hit_tokens) == (0, 0, 256)
    assert second.live_tokens == 256


def test_the_older_deepseek_rule_hits_any_common_prefix():
    a = section("a" * 256)
    _, second = run("deepseek-v3", [[a, section(c * 300, c)] for c in ("b", "c")])
    assert second.hit_tokens == 256


def test_deepseek_output_is_stored_behind_its_prompt():
    """The shape seen in the field: a hit that ends behind the previous prompt's end."""
    user = message("u" * 872, "user", 0)
    answer = message("o" * 76, "assistant", 1)
    more = message("v" * 40, "user", 2)
    _, second = run("deepseek-v4", [[user], [user, answer, more]], [[answer], []])
    assert second.hit_tokens == 896
    _, without = run("deepseek-v4", [[user], [user, answer, more]])
    assert without.hit_tokens == 768


def test_tools_that_come_back_hit_the_entry_of_before():
    tools = [Block("pinned", "tool", "", n, n * 600, b"") for n in "abc"]
    rest = [section("s" * 900)]
    _, gone, back = run("openai-128", [tools + rest, tools[:1] + rest, tools + rest])
    assert gone.hit_tokens == 0
    assert back.parent == 0
    assert back.hit_tokens == 2688


def test_openai_caches_nothing_below_its_minimum():
    assert run("openai-128", [[section("s" * 1023)]] * 2)[1].hit_tokens == 0
    assert run("openai-128", [[section("s" * 1024)]] * 2)[1].hit_tokens == 1024
