"""Failures from the field, in small: where the tokens go under each provider's rule."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

import codesmith_lab as lab
from codesmith_lab.sessions.reports.report import Report
from codesmith_lab.sessions.turns import Turn

Body = dict[str, Any]


def s(tokens: int, word: str = " word") -> str:
    """A fixed text of that many tokens in every vocabulary here."""
    return word * tokens


def report(model: str, *bodies: Body, times: Sequence[str] = (), **fields: Any) -> Report:
    lines = []
    for i, body in enumerate(bodies):
        entry: Body = {"request": {"model": model, **body}}
        if "_output" in body:
            entry["request"].pop("_output")
            entry["response"] = body["_output"]
        entry["time"] = times[i] if times else f"2026-11-29T12:00:{i:02}Z"
        lines.append(json.dumps(entry))
    return lab.analyze(lab.load_bytes("\n".join(lines).encode()), **fields)


def causes(turn: Turn) -> dict[str, int]:
    names = ("hit", "new", "repaid", "rounding", "expired", "unmarked")
    return {n: t for n, t in zip(names, turn.causes.tokens, strict=True) if t}


def chat(system: str | list[str], *turns: str) -> Body:
    systems = [system] if isinstance(system, str) else system
    roles = ("user", "assistant")
    return {
        "messages": [
            *({"role": "system", "content": text} for text in systems),
            *({"role": roles[i % 2], "content": text} for i, text in enumerate(turns)),
        ]
    }


def text(words: str, marker: str | None = None) -> Body:
    part: Body = {"type": "text", "text": words}
    if marker is not None:
        part["cache_control"] = {"type": "ephemeral", "ttl": marker}
    return part


def claude(
    system: list[Body], *turns: list[Body], tools: Sequence[Body] = (), **fields: Any
) -> Body:
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": parts} for i, parts in enumerate(turns)]
    body: Body = {"system": system, "messages": messages, "max_tokens": 10, **fields}
    return {**body, "tools": list(tools)} if tools else body


# -- 1, 2: clocks ------------------------------------------------------------------------------


def test_1_a_clock_at_the_top_costs_the_whole_prompt() -> None:
    first = chat("Now 10:00:01." + s(3000), "hi")
    second = chat("Now 10:00:04." + s(3000), "hi", "yo", "next")
    found = report("deepseek-flash", first, second)
    turn = found.turns[1]
    assert turn.match.hit_tokens == 0
    assert turn.cost_usd == turn.prompt.total_tokens * Decimal("0.15") / 10**6
    assert report("gpt-5", first, second).turns[1].match.hit_tokens == 0
    where = found.breaks[1]
    assert where is not None and (where.line, where.column) == (1, 12)  # the second's last digit


@pytest.mark.parametrize(
    ("model", "hits"), [("deepseek-flash", [0, 0, 1920]), ("gpt-5", [0, 1920, 1920])]
)
def test_2_a_clock_behind_a_stable_block_pins_the_hit_to_it(model: str, hits: list[int]) -> None:
    """DeepSeek stores the common prefix when it first sees it; OpenAI hits it at once."""
    bodies = [
        chat(
            [s(1990), f"mem as of 2026-08-03T10:00:0{i}.123Z" + s(500)],
            *(["a", "b"] * 3)[: 2 * i + 1],
        )
        for i in range(3)
    ]
    assert [t.match.hit_tokens for t in report(model, *bodies).turns] == hits


# -- 5: a nonce before everything --------------------------------------------------------------


@pytest.mark.parametrize("rules", ["vllm", "sglang", "llama-cpp", "deepseek-v4"])
def test_5_a_billing_nonce_in_the_first_block(rules: str) -> None:
    bodies = [chat([f"x-billing: cch={n};", s(1800)], "q") for n in ("aaaaa", "bbbbb")]
    turn = report("deepseek-flash", *bodies, rules=rules).turns[1]
    assert turn.match.hit_tokens <= 16
    assert turn.causes.tokens[2] >= 1800  # the system text behind it, unchanged and paid again


# -- 9, 10, 14: tools --------------------------------------------------------------------------


def tool(name: str, tokens: int = 1200) -> Body:
    return {"name": name, "description": s(tokens), "input_schema": {"type": "object"}}


def function(name: str, tokens: int = 1200) -> Body:
    return {"type": "function", "function": {"name": name, "description": s(tokens)}}


def test_9_reordered_tools_lose_everything_behind_the_first() -> None:
    orders = ([tool(n) for n in "abc"], [tool(n) for n in "acb"])
    bodies = [claude([text(s(3000), "5m")], [text("x")], tools=tools) for tools in orders]
    turn = report("claude-sonnet-4-6", *bodies).turns[1]
    assert causes(turn).keys() <= {"new", "repaid", "unmarked", "rounding"}
    assert turn.match.hit_tokens == 0

    functions = [[function(n) for n in order] for order in ("abc", "acb")]
    bodies = [{**chat(s(3000), "x"), "tools": tools} for tools in functions]
    openai = report("gpt-5", *bodies).turns[1]
    assert 1024 <= openai.match.hit_tokens <= 1300  # tool a alone
    # DeepSeek reads the system prompt first, but no unit was stored at its end.
    assert report("deepseek-flash", *bodies).turns[1].match.hit_tokens == 0


def test_10_tools_that_come_back_hit_the_entry_of_before() -> None:
    sets = ("abc", "a", "abc")
    bodies = [
        claude([text(s(3000), "5m")], [text("x")], tools=[tool(n) for n in names]) for names in sets
    ]
    turns = report("claude-sonnet-4-6", *bodies).turns
    assert turns[1].match.hit_tokens == 0
    assert (turns[2].parent, turns[2].causes.tokens[0]) == (0, turns[0].lines[2])


def test_14_tools_added_in_mid_session_lose_all_of_them() -> None:
    """As recorded: tools 2 -> 4, the messages a pure extension; the third hits stored output."""
    answer = {"choices": [{"message": {"role": "assistant", "content": s(79)}}]}
    few, more = [function(n, 150) for n in "ab"], [function(n, 150) for n in "abcd"]
    first = {"messages": [{"role": "user", "content": s(200)}], "tools": few, "_output": answer}
    grown = [
        *first["messages"],
        {"role": "assistant", "content": s(79)},
        {"role": "user", "content": "n"},
    ]
    second = {"messages": grown, "tools": more, "_output": answer}
    third = {
        "messages": [
            *grown,
            {"role": "assistant", "content": s(79)},
            {"role": "user", "content": "m"},
        ],
        "tools": more,
    }
    turns = report("deepseek-flash", first, second, third).turns
    assert turns[1].match.hit_tokens < turns[0].prompt.total_tokens - 200
    assert turns[2].match.hit_tokens >= turns[1].prompt.total_tokens // 128 * 128
    assert turns[2].match.hit_tokens > turns[1].prompt.total_tokens - 128


# -- 13: tool choice ---------------------------------------------------------------------------


def test_13_a_forced_tool_loses_the_messages_only() -> None:
    marked = [text(s(3000), "5m")]
    bodies = [
        claude(marked, [text(s(900), "5m")], tools=[tool("a")]),
        claude(marked, [text(s(900), "5m")], tools=[tool("a")], tool_choice={"type": "any"}),
    ]
    found = report("claude-sonnet-4-6", *bodies)
    turn = found.turns[1]
    pinned = turn.prompt.tokens_before(2)
    assert (turn.match.hit_tokens, turn.lines[2]) == (pinned, turn.prompt.total_tokens - pinned)
    assert turn.causes.tokens[2] == turn.prompt.total_tokens - pinned
    where = found.breaks[1]
    assert where is not None and where.classes == ("tool_choice_change",)
    assert (where.before, where.after) == ("not set", 'tool_choice={"type": "any"}')

    nova = report("amazon.nova-pro-v1:0", *bodies).turns[1]
    assert 0 < nova.match.hit_tokens < nova.prompt.total_tokens - 800
    body = chat(s(3000), s(900))
    plain = report("gpt-5", body, {**body, "tool_choice": "required"}).turns[1]
    assert plain.match.hit_tokens >= 3840


# -- 18: reasoning not sent back -----------------------------------------------------------------


def test_18_reasoning_not_sent_back_loses_only_the_output() -> None:
    message = {"role": "assistant", "reasoning_content": "r", "content": s(2000)}
    first = {**chat([], s(600)), "_output": {"choices": [{"message": message}]}}
    second = chat([], s(600), s(2000), "n")
    found = report("deepseek-flash", first, second)
    turn = found.turns[1]
    assert turn.match.hit_tokens == 512  # the previous prompt, in whole units
    assert found.breaks[1] is None
    with_it = {"messages": [*first["messages"], message, {"role": "user", "content": "n"}]}
    assert report("deepseek-flash", first, with_it).turns[1].match.hit_tokens == 2560


# -- 24, 25, 26: Claude's breakpoints ------------------------------------------------------------


def test_24_five_markers_are_refused_and_cost_nothing() -> None:
    system = [text(s(1100), "5m"), text(s(100), "5m")]
    marked = {**tool("a"), "cache_control": {"type": "ephemeral"}}
    body = claude(system, [text("a", "5m")], [text("b")], [text("c", "5m")], tools=[marked])
    found = report("claude-sonnet-4-6", body, body)
    for turn in found.turns:
        assert "5 cache markers" in turn.match.refused
        assert (turn.cost_usd, turn.repaid_usd, turn.match.hit_tokens) == (0, 0, 0)
        assert sum(turn.lines) == sum(turn.causes.tokens) == turn.prompt.total_tokens
    assert found.totals.cost_usd == 0


def test_25_more_than_twenty_blocks_behind_the_last_entry() -> None:
    """Turn 2 adds 12 calls and 12 results: its marker is 24 blocks behind turn 1's entry."""
    system = [text(s(2000), "5m")]
    calls = [{"type": "tool_use", "id": f"t{i}", "name": "f", "input": {"i": i}} for i in range(12)]
    results = [
        {"type": "tool_result", "tool_use_id": f"t{i}", "content": f"r{i}"} for i in range(12)
    ]
    first = claude(system, [text(s(300)), text("q", "5m")])
    last = {**results[-1], "cache_control": {"type": "ephemeral"}}
    second = claude(system, [text(s(300)), text("q")], calls, [*results[:-1], last])
    turns = report("claude-sonnet-4-6", first, second).turns
    pinned = turns[1].prompt.tokens_before(1)
    assert turns[1].match.hit_tokens == pinned
    assert turns[1].causes.tokens[5] == turns[0].prompt.total_tokens - pinned  # it matched
    assert turns[1].lines[2] == turns[1].prompt.total_tokens - pinned  # and is written again
    halfway = [*calls[:-1], {**calls[-1], "cache_control": {"type": "ephemeral"}}]
    third = claude(system, [text(s(300)), text("q")], halfway, [*results[:-1], last])
    assert report("claude-sonnet-4-6", first, third).turns[1].match.hit_tokens == turns[0].lines[2]


def test_26_a_marker_on_the_unique_tail_writes_and_never_reads() -> None:
    bodies = [claude([text(s(4000))], [text(f"question {n}", "5m")]) for n in (1, 2)]
    turn = report("claude-sonnet-4-6", *bodies).turns[1]
    stable = turn.prompt.tokens_before(1)
    assert turn.match.hit_tokens == 0
    assert causes(turn)["unmarked"] == stable
    assert turn.lines[2] == turn.prompt.total_tokens
    marked = [claude([text(s(4000), "5m")], [text(f"question {n}", "5m")]) for n in (1, 2)]
    fixed = report("claude-sonnet-4-6", *marked).turns[1]
    assert fixed.match.hit_tokens == stable
    assert turn.cost_usd is not None and fixed.cost_usd is not None
    assert turn.cost_usd - fixed.cost_usd == stable * (Decimal("3.75") - Decimal("0.30")) / 10**6


# -- 29: lifetimes -------------------------------------------------------------------------------


def test_29_an_entry_is_gone_5_minutes_after_its_last_start() -> None:
    def ask(life: str, first: str, second: str) -> Turn:
        bodies = [
            claude([text(s(2000), life)], [text(s(900), life)]),
            claude([text(s(2000), life)], [text(s(900))], [text("a")], [text("b", life)]),
        ]
        times = [f"2026-11-29T{t}Z" for t in (first, second)]
        return report("claude-sonnet-4-6", *bodies, times=times).turns[1]

    late = ask("5m", "21:27:37", "21:34:23")  # 406 s
    assert late.match.hit_tokens == 0
    assert causes(late)["expired"] == late.match.matched_tokens
    assert late.lines == (0, 0, late.prompt.total_tokens, 0)
    assert ask("5m", "21:27:37", "21:32:37").match.hit_tokens > 0  # 300 s to the second
    hour = ask("1h", "21:27:37", "21:34:58")  # 441 s
    assert hour.match.hit_tokens == hour.match.matched_tokens > 0
    assert hour.lines[2] == 0 < hour.lines[3]


def test_29_a_read_starts_the_life_again_and_an_aborted_call_counts() -> None:
    body = claude([text(s(2000), "5m")], [text("a", "5m")])
    minutes = ("12:00:00", "12:04:00", "12:08:00", "12:12:00", "12:12:02")
    turns = report(
        "claude-sonnet-4-6", *[body] * 5, times=[f"2026-11-29T{m}Z" for m in minutes]
    ).turns
    assert [t.match.hit_tokens > 0 for t in turns] == [False, True, True, True, True]


# -- 31: another model ---------------------------------------------------------------------------


def test_31_each_model_has_its_own_cache_and_price() -> None:
    """Equal bytes; the other model reads nothing and writes all of it at its own price."""
    body = claude([text(s(5000), "1h")], [text("a", "1h")])
    lines = [
        json.dumps({"time": f"2026-11-29T12:00:0{i}Z", "request": {"model": m, **body}})
        for i, m in enumerate(
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250929", "claude-opus-4-5-20251101")
        )
    ]
    turns = lab.analyze(lab.load_bytes("\n".join(lines).encode())).turns
    assert [t.match.hit_tokens > 0 for t in turns] == [False, True, False]
    total = turns[2].prompt.total_tokens
    assert turns[2].lines == (0, 0, 0, total)
    assert turns[2].cost_usd == total * Decimal(10) / 10**6
    assert turns[0].cost_usd == total * Decimal(6) / 10**6


# -- 48: vLLM ------------------------------------------------------------------------------------


def test_48_a_prompt_of_whole_blocks_computes_its_last_block_again() -> None:
    body = chat([], s(63))
    turns = report("vllm/some-model", body, body).turns
    assert turns[0].prompt.total_tokens == 63 + 3
    exact = chat([], s(61))
    assert [t.match.hit_tokens for t in report("vllm/some-model", exact, exact).turns] == [0, 48]
    longer = chat([], s(62))
    assert [t.match.hit_tokens for t in report("vllm/some-model", longer, longer).turns] == [0, 64]
