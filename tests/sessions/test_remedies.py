"""Remedies are proved by replay: what they promise is what the changed session costs less."""

from __future__ import annotations

from decimal import Decimal

import pytest

import codesmith_lab as lab
from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.remedies.remedy import Remedy
from codesmith_lab.sessions.reports.report import Report

from .finding_logs import S, assistant, report_of, system, tool, user

BOTH = pytest.mark.parametrize("model", ["deepseek-flash", "gpt-5"])


def talk(turns: int, size: int = 80) -> list[dict]:
    """A conversation that ends with the question of turn `turns` (0-based)."""
    said = [
        message
        for n in range(turns)
        for message in (user(f"q{n}{S(size)}"), assistant(f"a{n}{S(size)}"))
    ]
    return [*said, user(f"q{turns}{S(size)}")]


def proved(report: Report, action: str) -> Remedy:
    """The remedy of that name, after checking its promise on a copy of the session."""
    found = next((r for r in report.remedies_list if r.action == action), None)
    assert found is not None, [r.id for r in report.remedies_list]
    runner = report.runner
    changed = analyze(found.apply(runner.session), rules=runner.rule.id)
    assert report.totals.cost_usd - changed.totals.cost_usd == found.saves_usd > 0
    return found


def actions(report: Report) -> set[str]:
    return {remedy.action for remedy in report.remedies_list}


@BOTH
def test_a_clock_moved_held_or_coarsened(model: str) -> None:
    report = report_of(
        *(
            {"messages": [system(f"# Now\nIt is 10:0{n}:11.\n# Rules\n{S(3000)}"), *talk(n)]}
            for n in range(6)
        ),
        model=model,
    )
    for action in ("move_section_last", "move_section_to_turn", "coarsen_clock", "freeze_value"):
        proved(report, action)
    held = proved(report, "freeze_value").apply(report.runner.session)
    texts = {next(b.text for b in r.blocks if b.kind == "section") for r in held.requests}
    assert texts == {"# Now\nIt is 10:00:11.\n"}


def test_the_clocks_fix_saves_the_prompt_at_the_price_of_a_miss() -> None:
    """About 3000 tokens x (0.15 - 0.003) USD per million."""
    report = report_of(
        {"messages": [system(f"Now 10:00:01.{S(3000)}"), user("hi")]},
        {"messages": [system(f"Now 10:00:04.{S(3000)}"), user("hi")]},
    )
    expected = Decimal(3000) * (Decimal("0.15") - Decimal("0.003")) / 1_000_000
    assert abs(proved(report, "freeze_value").saves_usd - expected) < expected / 20


def test_a_coarse_clock_goes_on_with_the_hour_and_follows_edits() -> None:
    times = ["10:05", "10:40", "11:02", "11:30"]
    words = ["a", "a", "a", "b"]
    report = report_of(
        *(
            {"messages": [system(f"# Now\nIt is {t}, {w}.\n# Rules\n{S(3000)}"), user("q")]}
            for t, w in zip(times, words, strict=True)
        )
    )
    held = proved(report, "coarsen_clock").apply(report.runner.session)
    texts = [next(b.text for b in r.blocks if b.kind == "section") for r in held.requests]
    assert [text.split("\n")[1] for text in texts] == [
        "It is 10:05, a.",
        "It is 10:05, a.",
        "It is 11:02, a.",
        "It is 11:02, b.",
    ]


@BOTH
def test_sorting_the_tools(model: str) -> None:
    orders = ("abc", "acb", "bca", "abc", "cab")
    report = report_of(
        *(
            {
                "tools": [tool(n, {"description": S(300, n)}) for n in order],
                "messages": [system(S(2000)), *talk(i)],
            }
            for i, order in enumerate(orders)
        ),
        model=model,
    )
    changed = proved(report, "sort_tools").apply(report.runner.session)
    assert {tuple(b.name for b in r.blocks if b.kind == "tool") for r in changed.requests} == {
        ("a", "b", "c")
    }


def test_tools_that_come_and_go_are_kept() -> None:
    names = ("a", "ab", "a", "abc", "ab")
    report = report_of(
        *(
            {
                "tools": [tool(n, {"description": S(60, n)}) for n in chosen],
                "messages": [system(S(100)), *talk(i, 400)],
            }
            for i, chosen in enumerate(names)
        )
    )
    changed = proved(report, "keep_tools").apply(report.runner.session)
    assert {tuple(b.name for b in r.blocks if b.kind == "tool") for r in changed.requests} == {
        ("a", "b", "c")
    }


@BOTH
def test_one_serialisation_of_a_schema(model: str) -> None:
    a = {"type": "object", "required": ["u"], "properties": {"u": {"type": "string"}}}
    b = {key: a[key] for key in ("properties", "required", "type")}
    report = report_of(
        *(
            {"tools": [tool("f", schema)], "messages": [system(S(2000)), *talk(i)]}
            for i, schema in enumerate((a, b, a, b))
        ),
        model=model,
    )
    # Going back and forth between two forms, either one's entry may be hit; keeping one is best.
    changed = proved(report, "keep_tool_json").apply(report.runner.session)
    assert len({r.blocks[0].text for r in changed.requests}) == 1


@BOTH
def test_appending_in_place_of_edits(model: str) -> None:
    def body(turns: int, first: str) -> dict:
        return {"messages": [system(S(1500)), user(first), *talk(turns)[1:]]}

    report = report_of(
        *(body(n, f"question, {S(40)} note {n * n % 7} of many") for n in range(1, 6)), model=model
    )
    changed = proved(report, "append_only").apply(report.runner.session)
    for before, after in zip(changed.requests, changed.requests[1:], strict=False):
        texts = [block.text for block in before.blocks]
        assert [block.text for block in after.blocks][: len(texts)] == texts
    # Nothing of this turn's own was lost.
    for was, now in zip(report.runner.session.requests, changed.requests, strict=True):
        assert was.blocks[-1].text == now.blocks[-1].text
        assert len(was.blocks) == len(now.blocks)


def test_a_reminder_that_wanders_stays_where_it_was() -> None:
    reminder = f"skills{S(400)}"

    def body(turns: int) -> dict:
        return {"messages": [system(S(200)), *talk(turns, 300)[:-1], user(reminder), user("go")]}

    report = report_of(*(body(n) for n in range(1, 5)))
    changed = proved(report, "append_only").apply(report.runner.session)
    for request in changed.requests:
        assert sum(block.text == reminder for block in request.blocks) == 1


@BOTH
def test_compacting_later_or_not_at_all(model: str) -> None:
    long, short = talk(20, 100), [user(f"Summary so far: {S(80, 'sum')}")]
    later = [{"messages": [system(S(2000)), *short, *talk(30 + n)[60:]]} for n in range(4)]
    report = report_of({"messages": [system(S(2000)), *long]}, *later, model=model)
    kept = report_of(
        {"messages": [system(S(2000)), *long]},
        {"messages": [system(S(2000)), user(f"Summary so far: {S(900, 'sum')}"), user("bye")]},
        model=model,
    )
    # With one request behind it, the summary costs more than reading the history once more.
    changed = proved(kept, "no_compaction").apply(kept.runner.session)
    assert len(changed.requests[1].blocks) == len(long) + 2
    for remedy in report.remedies_list:
        if remedy.action.startswith(("no_compaction", "compact_later")):
            proved(report, remedy.action)


def test_replies_sent_back_as_they_were_given() -> None:
    answer = assistant(S(2000, "answer"), reasoning_content="because of the moon")
    q, n = user(f"q{S(200)}"), user("n")
    report = report_of(
        {"messages": [q]},
        {"messages": [q, assistant(S(2000, "answer")), n]},
        responses=[{"choices": [{"message": answer}]}, None],
    )
    found = proved(report, "resend_output")
    assert found.saves_usd > Decimal("0.0002")


def test_a_longer_life_for_entries_that_run_out() -> None:
    bodies = [{"messages": [system(S(3000)), *talk(n)]} for n in range(3)]
    report = report_of(*bodies, model="gpt-5", gaps_s=900)
    changed = proved(report, "longer_life").apply(report.runner.session)
    assert {r.settings["prompt_cache_retention"] for r in changed.requests} == {"24h"}
    # No lifetime is modelled there, so nothing expires.
    assert "longer_life" not in actions(report_of(*bodies, gaps_s=900))


def test_what_saves_nothing_is_not_offered() -> None:
    report = report_of(*({"messages": [system(S(3000)), *talk(n)]} for n in range(4)))
    assert report.remedies_list == ()
    assert report.plan_list == ()


def test_what_saves_next_to_nothing_is_not_offered() -> None:
    """A clock with 130 tokens behind it, beside a hundred thousand new ones a request."""
    clocks = [system(f"# Now\nIt is 10:0{n}:11.\n# Rules\n{S(130)}") for n in range(4)]
    small = report_of(*({"messages": [clocks[n], user(f"{n}{S(100)}")]} for n in range(4)))
    assert "freeze_value" in actions(small)
    large = report_of(*({"messages": [clocks[n], user(f"{n}{S(100_000)}")]} for n in range(4)))
    assert large.findings_list[0].cls == "volatile_timestamp"
    assert large.remedies_list == ()
    assert large.plan_list == ()


def test_the_plan_finds_what_hides_behind_the_first_cause() -> None:
    """Sorted tools save nothing behind a clock; with the clock gone they do."""
    orders = ("abc", "acb", "bca", "cab", "abc", "bac")
    report = report_of(
        *(
            {
                "tools": [tool(n, {"description": S(300, n)}) for n in order],
                "messages": [system(f"It is 10:0{i}:11.{S(500)}"), *talk(i)],
            }
            for i, order in enumerate(orders)
        )
    )
    found = report.findings_list[0]
    assert found.cls == "volatile_timestamp"
    assert "tools: tool order" in found.also
    assert "sort_tools" not in actions(report)
    steps = [step.action for step in report.plan_list]
    assert steps[1] == "sort_tools"
    assert steps[0] in ("freeze_value", "coarsen_clock", "move_section_to_turn")


@pytest.mark.parametrize("model", [None, "gpt-5"])
def test_the_plans_savings_add_up(model: str | None) -> None:
    report = analyze(lab.samples.clock_story(), model=model)
    session = report.runner.session
    for step in report.plan_list:
        session = step.apply(session)
    after = analyze(session, model=model)
    saved = sum((step.saves_usd for step in report.plan_list), Decimal(0))
    assert report.totals.cost_usd - after.totals.cost_usd == saved
    assert saved >= max(remedy.saves_usd for remedy in report.remedies_list)


def test_savings_that_usage_contradicts_say_so() -> None:
    bodies = [{"messages": [system(f"It is 10:0{n}:11.{S(3000)}"), *talk(n)]} for n in range(4)]
    usage = [
        {"prompt_tokens": 3200, "prompt_tokens_details": {"cached_tokens": 2944}} for _ in bodies
    ]
    report = report_of(*bodies, model="gpt-5", usage=usage)
    assert not report.calibrated
    for remedy in report.remedies_list:
        assert not remedy.calibrated
        assert "uncalibrated" in remedy.message
