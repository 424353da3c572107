"""Findings and remedies where caches are written at breakpoints (Anthropic's rules)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.remedies.remedy import Remedy
from codesmith_lab.sessions.reports.report import Report

from .finding_logs import S, classes, only, report_of

SONNET = "claude-sonnet-4-6"
Body = dict[str, Any]


def text(words: str, marker: str | None = None) -> Body:
    part: Body = {"type": "text", "text": words}
    if marker is not None:
        part["cache_control"] = {"type": "ephemeral", "ttl": marker}
    return part


def body(system: list[Body], *messages: list[Body], tools: tuple[Body, ...] = ()) -> Body:
    roles = ("user", "assistant")
    said = [{"role": roles[i % 2], "content": parts} for i, parts in enumerate(messages)]
    found: Body = {"max_tokens": 9, "system": system, "messages": said}
    return {**found, "tools": list(tools)} if tools else found


def tool(name: str, words: int = 400) -> Body:
    return {"name": name, "description": S(words, name), "input_schema": {"type": "object"}}


def claude(*bodies: Body, model: str = SONNET, **more: Any) -> Report:
    return report_of(*bodies, model=model, format="anthropic", **more)


def proved(report: Report, action: str) -> Remedy:
    found = next((r for r in report.remedies_list if r.action == action), None)
    assert found is not None, [r.id for r in report.remedies_list]
    changed = analyze(found.apply(report.runner.session))
    assert report.totals.cost_usd - changed.totals.cost_usd == found.saves_usd > 0
    return found


def exchange(n: int) -> list[list[Body]]:
    return [[text(f"q{n}")], [text(f"a{n}")]]


# Claude's tokens are estimated: 1.25 for each of these words.
RULES = S(2400)


def test_five_markers_are_refused_and_cost_nothing() -> None:
    marked = [text(S(1200, f"w{n}"), "5m") for n in range(5)]
    report = claude(body([text(RULES)], marked))
    found = only(report)
    assert (found.cls, found.certainty, found.tokens) == ("too_many_breakpoints", "certain", 0)
    assert "5 cache markers, and at most 4" in found.message
    assert report.totals.cost_usd == 0
    assert classes(claude(body([text(RULES)], marked[:4]))) == []


def test_another_refusal_has_its_own_class() -> None:
    thinking = {"type": "thinking", "thinking": S(1500), "cache_control": {"type": "ephemeral"}}
    report = claude(body([text(RULES)], [text("q")], [thinking, text("a")], [text("r")]))
    assert only(report).cls == "request_refused"


def calls(count: int) -> list[list[Body]]:
    """Tool calls and their results: two blocks in two messages each."""
    return [
        part
        for n in range(count)
        for part in (
            [{"type": "tool_use", "id": f"t{n}", "name": "f", "input": {"n": n}}],
            [{"type": "tool_result", "tool_use_id": f"t{n}", "content": S(50, f"r{n}")}],
        )
    ]


def long_run(markers: tuple[int, ...]) -> Body:
    """The second turn: one question, 12 calls and results, then a marked question."""
    messages = [[text("q0")], *calls(12)]
    for at in markers:
        messages[at] = [{**messages[at][0], "cache_control": {"type": "ephemeral"}}]
    return body([text(RULES, "5m")], *messages)


def test_a_run_of_blocks_beyond_the_lookback() -> None:
    first = body([text(RULES, "5m")], [text("q0" + S(1600, "x"), "5m")])
    second = long_run((24,))
    second["messages"][0] = first["messages"][0] | {"content": [text("q0" + S(1600, "x"))]}
    report = claude(first, second)
    found, turn = only(report), report.turns[1]
    assert found.cls == "lookback_exceeded"
    assert "24 blocks back, and a breakpoint looks back 20" in found.message
    assert found.tokens == turn.causes.tokens[5] > 2000
    # Only the system prompt's own breakpoint is read, and the rest is written again at 1.25x.
    assert 2990 < turn.match.hit_tokens < 3010
    extra = (turn.rates.cache_write_5m - turn.rates.cache_read) / 1_000_000
    assert found.cost_usd == found.tokens * extra
    middle = long_run((12, 24))
    middle["messages"][0] = second["messages"][0]
    assert classes(claude(first, middle)) == []
    proved(report, "mark_between")


def test_a_marker_behind_what_changes_every_time() -> None:
    def ask(n: int) -> Body:
        return body([], [text(S(3200)), text(f"question {n}{S(10)}", "5m")])

    report = claude(ask(1), ask(2), ask(3))
    found = only(report)
    assert (found.cls, found.requests) == ("breakpoint_after_volatile", 2)
    # Claude's tokens can only be estimated.
    assert found.basis == "estimated"
    assert 2 * 3990 < found.tokens < 2 * 4020
    best = proved(report, "mark_stable")
    # Written once and read twice in place of written three times.
    price = Decimal(4000) * (Decimal("3.75") - Decimal("0.30")) / 1_000_000
    assert abs(best.saves_usd - 2 * price) < price / 10


def test_nothing_is_marked() -> None:
    bodies = [
        body([text(RULES)], *(m for k in range(n) for m in exchange(k)), [text(f"q{n}")])
        for n in range(4)
    ]
    report = claude(*bodies)
    found = only(report)
    assert (found.cls, found.requests) == ("unmarked", 3)
    assert "marks nothing" in found.message
    proved(report, "mark_pinned")
    proved(report, "mark_last")


def test_five_minutes_from_start_to_start() -> None:
    """21:27:37 to 21:34:23 is 406 s; an hour's entry would have lived."""

    def turn(n: int, life: str) -> Body:
        said = [m for k in range(n) for m in exchange(k)]
        return body([text(RULES, life)], *said, [text(f"q{n}", life)])

    report = claude(turn(0, "5m"), turn(1, "5m"), gaps_s=406)
    found = only(report)
    assert (found.cls, found.certainty) == ("expired", "likely")
    assert "406 s start to start, where an entry lives 300 s" in found.message
    assert 2990 < found.tokens < 3020
    rates = report.turns[1].rates
    assert found.cost_usd == found.tokens * (rates.cache_write_5m - rates.cache_read) / 1_000_000
    assert classes(claude(turn(0, "1h"), turn(1, "1h"), gaps_s=441)) == []
    proved(report, "longer_life")
    # A life of an hour costs more to write, and here even that runs out.
    slow = claude(*(turn(n, "5m") for n in range(3)), gaps_s=4000)
    assert only(slow).cls == "expired"
    assert all(r.action != "longer_life" for r in slow.remedies_list)


def test_a_retry_is_no_expiry() -> None:
    again = body([text(RULES, "5m")], [text("q", "5m")])
    assert classes(claude(again, again, gaps_s=2.2)) == []


def test_earlier_thinking_that_the_server_drops() -> None:
    """The payload is a pure extension; older models lose the first thinking block on."""
    thinking = {"type": "thinking", "thinking": S(600, "hm"), "signature": "s"}
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": S(900, "r")}
    start = [[text("q" + S(1600), "5m")], [thinking, use], [result]]
    first = body([text(RULES, "5m")], *start)
    second = body([text(RULES, "5m")], *start, [text("done")], [text("next", "5m")])
    report = claude(first, second, model="claude-sonnet-4-5")
    found, broken = report.findings_list[0], report.breaks[1]
    assert found.cls == broken.classes[0] == "server_side"
    assert found.tokens > 800
    assert "server_side" not in classes(claude(first, second, model="claude-opus-4-5"))


def test_tool_choice_loses_the_messages_only() -> None:
    def turn(choice: str, n: int) -> Body:
        said = [m for k in range(n) for m in exchange(k)]
        tools = (tool("f"),)
        asked = body(
            [text(RULES, "5m")],
            [text(S(1600))],
            [text("a")],
            *said,
            [text(f"q{n}", "5m")],
            tools=tools,
        )
        return {**asked, "tool_choice": {"type": choice}}

    report = claude(turn("auto", 0), turn("any", 1), turn("any", 2))
    found, hit = report.findings_list[0], report.turns[1].match.hit_tokens
    assert (found.cls, found.certainty, found.requests) == ("tool_choice_change", "certain", 1)
    assert found.tokens > 1990
    assert 3490 < hit < 3550
    proved(report, "keep_setting")


def test_a_model_switch_costs_the_whole_prompt() -> None:
    """Measured: read 56,333, then another model read nothing and wrote all anew."""
    said = body([text(RULES, "1h")], [text("q" + S(1600), "1h")])
    longer = body([text(RULES, "1h")], [text("q" + S(1600))], *exchange(0)[1:], [text("r", "1h")])
    report = claude({"model": "claude-sonnet-4-5", **said}, {"model": "claude-opus-4-5", **longer})
    found = only(report)
    assert found.cls == "model_change"
    assert found.tokens > 4990
    assert report.turns[1].match.hit_tokens == 0


@pytest.mark.parametrize("other", ["acb", "abcd", "ab"])
def test_another_tool_list_loses_everything(other: str) -> None:
    def turn(names: str) -> Body:
        return body([text(RULES, "5m")], [text("q", "5m")], tools=tuple(map(tool, names)))

    report = claude(turn("abc"), turn(other))
    expected = {"acb": "tool_order", "abcd": "tool_added", "ab": "tool_removed"}[other]
    assert report.breaks[1].classes == (expected,)
    assert report.turns[1].match.hit_tokens == 0
    assert report.findings_list[0].tokens > 2990
