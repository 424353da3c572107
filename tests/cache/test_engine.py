"""Examples of the engine's work that can be followed by eye: one token a character."""

from __future__ import annotations

import numpy as np

from codesmith_lab.cache.indexes import make_index
from codesmith_lab.cache.match import Match
from codesmith_lab.cache.pieces import PieceTable
from codesmith_lab.cache.rule_files import get_rule
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.chat_format import CHAT_FORMATS


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


def run(
    rule_id: str, prompts: list[list[Block]], outputs: list[list[Block]] | None = None
) -> list[Match]:
    rule = get_rule(rule_id)
    tab = table("plain")
    index = make_index(tab, rule)
    matches = []
    for i, blocks in enumerate(prompts):
        stored = tab.output_numbers(outputs[i] if outputs else [])
        matches.append(index.add(i, tab.prompt(blocks), stored))
    return matches


def test_the_documented_deepseek_example() -> None:
    """A+B then A+C hits nothing, but reveals A: the third request A+D hits it."""
    a = section("a" * 256)
    first, second, third = run("deepseek-v4", [[a, section(c * 300, c)] for c in ("b", "c", "d")])
    assert (first.hit_tokens, second.hit_tokens, third.hit_tokens) == (0, 0, 256)
    assert second.live_tokens == 256


def test_the_older_deepseek_rule_hits_any_common_prefix() -> None:
    a = section("a" * 256)
    _, second = run("deepseek-v3", [[a, section(c * 300, c)] for c in ("b", "c")])
    assert second.hit_tokens == 256


def test_deepseek_output_is_stored_behind_its_prompt() -> None:
    """The shape seen in the field: a hit that ends behind the previous prompt's end."""
    user = message("u" * 872, "user", 0)
    answer = message("o" * 76, "assistant", 1)
    more = message("v" * 40, "user", 2)
    _, second = run("deepseek-v4", [[user], [user, answer, more]], [[answer], []])
    assert second.hit_tokens == 896
    _, without = run("deepseek-v4", [[user], [user, answer, more]])
    assert without.hit_tokens == 768


def test_tools_that_come_back_hit_the_entry_of_before() -> None:
    tools = [Block("pinned", "tool", "", n, n * 600, b"") for n in "abc"]
    rest = [section("s" * 900)]
    _, gone, back = run("openai-128", [tools + rest, tools[:1] + rest, tools + rest])
    assert gone.hit_tokens == 0
    assert back.parent == 0
    assert back.hit_tokens == 2688


def test_openai_caches_nothing_below_its_minimum() -> None:
    assert run("openai-128", [[section("s" * 1023)]] * 2)[1].hit_tokens == 0
    assert run("openai-128", [[section("s" * 1024)]] * 2)[1].hit_tokens == 1024
