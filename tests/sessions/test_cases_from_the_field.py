"""Failures that people have reported, each in small with its right answer."""

from __future__ import annotations

import json

import pytest

import codesmith_lab as lab

from .finding_logs import S, assistant, classes, only, report_of, system, tool, user

HI, YO, NEXT = user("hi"), assistant("yo"), user("next")
BOTH = pytest.mark.parametrize("model", ["deepseek-flash", "gpt-5"])


@BOTH
def test_clock_with_seconds_at_the_top_of_the_system_prompt(model: str) -> None:
    report = report_of(
        {"messages": [system(f"Now 10:00:01.{S(3000)}"), HI]},
        {"messages": [system(f"Now 10:00:04.{S(3000)}"), HI, YO, NEXT]},
        model=model,
    )
    found, broken, turn = only(report), report.breaks[1], report.turns[1]
    assert (found.cls, found.certainty, found.zone) == ("volatile_timestamp", "certain", "pinned")
    assert "(to the second)" in found.message
    assert (broken.before, broken.after) == ("10:00:01.", "10:00:04.")
    # "Now 10:00:0" is shared: byte 11 of the section.
    assert (broken.line, broken.column) == (1, 12)
    assert turn.causes.tokens[0] == 0
    # The block counts as new from the break on; the finding says what was lost.
    assert 2990 < found.tokens < 3010


@BOTH
def test_millisecond_timestamp_behind_a_stable_first_block(model: str) -> None:
    def body(stamp: str, *more: dict) -> dict:
        return {"messages": [system(S(2000)), system(f"mem as of {stamp}{S(500)}"), *more]}

    a, b, c = user("a"), assistant("b"), user("c")
    stamps = [f"2026-08-03T10:00:{n:02}.{n}56Z" for n in range(4)]
    report = report_of(
        *(body(stamp, *([a, b, c] * (i + 1))[: 2 * i + 1]) for i, stamp in enumerate(stamps)),
        model=model,
    )
    found = only(report)
    assert (found.cls, found.requests) == ("volatile_timestamp", 3)
    hits = [turn.causes.tokens[0] for turn in report.turns]
    if model == "gpt-5":
        assert hits == [0, 1920, 1920, 1920]
    else:
        # Stored only once it was seen to be common: from the third request on, always the same.
        assert hits == [0, 0, 1920, 1920]


def test_per_request_nonce_as_first_system_block() -> None:
    def body(nonce: str) -> dict:
        head = f"x-anthropic-billing-header: cch={nonce};"
        return {"system": [{"type": "text", "text": t} for t in (head, S(5000))], "messages": [HI]}

    log = {"format": "anthropic", "rules": "deepseek-v4", "model": "claude-sonnet-4-6"}
    report = report_of(body("aaaaa"), body("bbbbb"), **log)
    found, broken = only(report), report.breaks[1]
    assert found.cls == "volatile_nonce"
    assert found.tokens > 4990
    assert (broken.before, broken.after) == ("aaaaa", "bbbbb")
    assert report.turns[1].causes.tokens[0] == 0
    # On the vendor's own API it does not count, and usage says so: then nobody is blamed.
    read = {"input_tokens": 3, "cache_read_input_tokens": 5000, "cache_creation_input_tokens": 9}
    acquitted = only(report_of(body("aaaaa"), body("bbbbb"), usage=[None, read], **log))
    assert (acquitted.certainty, acquitted.tokens) == ("possible", 0)
    assert "did no harm" in acquitted.message


@BOTH
def test_resume_moves_a_reminder_to_the_new_turn(model: str) -> None:
    reminder = {"type": "text", "text": f"skills{S(400)}"}
    q1, q2 = ({"type": "text", "text": f"q{n}"} for n in (1, 2))
    head = system(S(2000))
    report = report_of(
        {"messages": [head, user([reminder, q1])]},
        {"messages": [head, user([q1]), assistant("a1"), user([reminder, q2])]},
        model=model,
    )
    assert report.breaks[1].classes[0] == "block_moved"
    assert only(report).cls == "block_moved"
    # Tools and system stay: the loss begins with the messages.
    assert report.breaks[1].zone != "pinned"
    assert report.turns[1].causes.tokens[0] >= 1920 or model != "gpt-5"


def test_a_reminder_that_moves_into_another_text_is_moved_too() -> None:
    reminder = f"skills{S(400)}"
    report = report_of(
        {"messages": [user(reminder), assistant("a0"), user("q1")]},
        {"messages": [assistant("a0"), user("q1"), assistant("a1"), user(f"{reminder}\n\nq2")]},
    )
    assert report.breaks[1].classes[0] == "block_moved"


def test_string_against_block_array_on_resume() -> None:
    ctx = f"ctx{S(900)}"
    rest = [assistant("a"), user("b")]
    report = report_of(
        {"messages": [user([{"type": "text", "text": ctx}]), *rest]},
        {"messages": [user(ctx), *rest, assistant("c"), user("d")]},
    )
    found = only(report)
    assert (found.cls, found.certainty) == ("shape_change", "possible")
    assert report.wires[1].path == "messages[0].content"
    assert report.breaks[1] is None
    lost = report_of(
        {"messages": [user([{"type": "text", "text": ctx}]), *rest]},
        {"messages": [user(ctx), *rest, assistant("c"), user("d")]},
        usage=[None, {"prompt_tokens": 930, "prompt_cache_hit_tokens": 0}],
    )
    assert only(lost).certainty == "likely"


@BOTH
def test_reconnect_reorders_tools(model: str) -> None:
    def body(order: str, *more: dict) -> dict:
        tools = [tool(n, {"description": S(40, n)}) for n in order]
        return {"tools": tools, "messages": [system(S(3000)), user("x"), *more]}

    report = report_of(body("abc"), body("acb", assistant("y"), user("z")), model=model)
    found, broken = only(report), report.breaks[1]
    assert (found.cls, found.block, found.also) == ("tool_order", "tools", ())
    assert (broken.classes, broken.block) == (("tool_order",), "c")
    if model == "gpt-5":
        # Tools stand first: what is left of the prefix is below the minimum.
        assert report.turns[1].causes.tokens[0] == 0
        assert found.tokens > 2990


@BOTH
def test_transient_disconnect_hits_the_entry_before_it(model: str) -> None:
    """A comparison of neighbours says miss; the live entries say hit."""

    def body(names: list[str], turns: int) -> dict:
        talk = [m for n in range(9) for m in (user(f"q{n}"), assistant(f"a{n}"))]
        tools = [tool(n, {"description": S(600, n)}) for n in names]
        return {"tools": tools, "messages": [system(S(900)), *talk, user("q")]}

    report = report_of(
        body(["a", "m1", "m2"], 0), body(["a"], 1), body(["a", "m1", "m2"], 2), model=model
    )
    assert report.breaks[1].classes == ("tool_removed",)
    assert report.turns[2].parent == 0
    # Tools in front of or behind the system prompt: either way the third finds the first.
    assert report.turns[2].causes.tokens[0] >= 1792
    assert classes(report)[0] == "tool_removed"


@BOTH
def test_schema_key_order(model: str) -> None:
    a = {"type": "object", "required": ["u"], "properties": {"u": {"type": "string"}}}
    b = {key: a[key] for key in ("properties", "required", "type")}
    bodies = ({"tools": [tool("f", s)], "messages": [user(S(2000))]} for s in (a, b))
    report = report_of(*bodies, model=model)
    found = only(report)
    assert (found.cls, found.block, found.certainty) == ("json_key_order", "f", "certain")
    assert report.breaks[1].classes == ("json_key_order",)


def test_changing_tool_choice() -> None:
    """Where a provider documents no loss there is no finding; elsewhere it is possible."""
    bodies = [
        {"tools": [tool("f")], "tool_choice": choice, "messages": [user(S(2000)), YO, HI]}
        for choice in ("auto", "required")
    ]
    assert classes(report_of(*bodies, model="gpt-5")) == []
    found = only(report_of(*bodies, model="deepseek-flash"))
    assert (found.cls, found.certainty, found.tokens) == ("tool_choice_change", "possible", 0)


def test_tools_added_in_the_middle_of_a_session() -> None:
    def body(count: int, *more: dict) -> dict:
        tools = [tool(f"t{n}", {"description": S(150, f"w{n}")}) for n in range(count)]
        return {"tools": tools, "messages": [user(S(300, "q")), *more]}

    more = [assistant("a"), user("r")]
    report = report_of(body(2), body(4, *more), body(4, *more, assistant("b"), user("s")))
    found = only(report)
    assert (found.cls, found.requests, found.first_request) == ("tool_added", 1, 1)
    hits = [turn.causes.tokens[0] for turn in report.turns]
    assert hits[1] == 0
    assert hits[2] > 500


@BOTH
def test_prune_marks_old_tool_output(model: str) -> None:
    """The prompt shrinks and the cost rises: both sides of that are said."""
    call = assistant(None, tool_calls=[{"id": "c", "function": {"name": "f", "arguments": "{}"}}])
    result = {"role": "tool", "tool_call_id": "c"}

    def body(output: str, *more: dict) -> dict:
        head = [user("q"), call, {**result, "content": output}]
        return {"messages": [*head, assistant(S(2000)), user("n"), *more]}

    report = report_of(body(S(4000)), body("[cleared]", assistant("k"), user("m")), model=model)
    found, broken = only(report), report.breaks[1]
    assert (found.cls, broken.zone, broken.column) == ("message_edited", "log", 1)
    assert 1990 < found.tokens < 2020
    assert report.turns[1].prompt.total_tokens < report.turns[0].prompt.total_tokens
    rates = report.turns[1].rates
    saved = 4000 * rates.cache_read / 1_000_000
    back = found.cost_usd / saved
    said = int(found.message.partition("pays the loss back after ")[2].split()[0].replace(",", ""))
    assert abs(said - back) <= 1


@BOTH
def test_compaction_is_intended_and_has_two_numbers(model: str) -> None:
    talk = [m for n in range(20) for m in (user(f"q{n}{S(100)}"), assistant(f"a{n}{S(100)}"))]
    head = system(S(2000))
    short = [user(f"Summary of the conversation so far: {S(80, 'sum')}"), *talk[-2:], user("go")]
    report = report_of(
        {"messages": [head, *talk, user("q")]}, {"messages": [head, *short]}, model=model
    )
    found, broken, turn = only(report), report.breaks[1], report.turns[1]
    assert (found.cls, found.intended, found.certainty) == ("compaction", True, "likely")
    assert (found.zone, found.block) == (broken.zone, broken.block) == ("log", "history")
    # Tools and system are still read.
    assert turn.match.matched_tokens >= 2000
    assert found.read_again_tokens == turn.prompt.total_tokens - turn.match.hit_tokens
    before = report.turns[0].prompt.total_tokens
    assert found.given_up_tokens == before - turn.match.matched_tokens - turn.causes.tokens[2]
    assert f"{found.given_up_tokens:,}" in found.message
    assert f"{found.read_again_tokens:,}" in found.message
    signed = report_of(
        {"messages": [head, *talk, user("q")]},
        {"messages": [head, *short]},
        model=model,
        rebuilds={1: {"reason": "auto_compaction", "before": 41, "after": 4}},
    )
    assert only(signed).certainty == "certain"


def test_reasoning_that_is_not_sent_back() -> None:
    """The request extends the prompt; what is lost is the stored output behind it."""
    answer = assistant(S(2000, "answer"), reasoning_content="because of the moon")
    q, n = user(f"q{S(200)}"), user("n")
    report = report_of(
        {"messages": [q]},
        {"messages": [q, assistant(S(2000, "answer")), n]},
        responses=[{"choices": [{"message": answer}]}, None],
    )
    found, turn = only(report), report.turns[1]
    assert report.breaks[1] is None
    assert (found.cls, found.certainty) == ("reasoning_dropped", "certain")
    assert 1990 < found.tokens < 2010
    # The hit is the earlier prompt's floor.
    assert turn.causes.tokens[0] == 128
    kept = report_of(
        {"messages": [q]},
        {"messages": [q, answer, n]},
        responses=[{"choices": [{"message": answer}]}, None],
    )
    assert kept.findings_list == ()
    assert kept.turns[1].causes.tokens[0] > 2100


@BOTH
def test_tool_call_arguments_serialised_again(model: str) -> None:
    def body(arguments: str, *more: dict) -> dict:
        call = {"id": "c", "function": {"name": "w", "arguments": arguments}}
        said = assistant(None, tool_calls=[call])
        return {"messages": [user(S(2000)), said, user("then"), *more]}

    report = report_of(
        body('{"city": "Ume\\u00e5", "n": 1.0}'),
        body('{"city":"Umeå","n":1}', assistant("k"), user("m")),
        model=model,
    )
    found, broken = only(report), report.breaks[1]
    assert broken.classes == ("whitespace", "unicode_escape", "number_format")
    assert (found.cls, found.certainty) == ("whitespace", "certain")
    assert found.also == ("unicode_escape", "number_format")
    # In front of the first space: name, line end, brace, "city" and the colon.
    assert (broken.line, broken.column) == (2, len('{"city":') + 1)


def test_a_lifetime_that_ran_out_is_measured_from_start_to_start() -> None:
    body = {"messages": [system(S(3000)), HI]}
    longer = {"messages": [system(S(3000)), HI, YO, NEXT]}
    report = report_of(body, longer, model="gpt-5", gaps_s=706)
    found = only(report)
    assert (found.cls, found.certainty) == ("expired", "likely")
    assert "706 s start to start, where an entry lives 600 s" in found.message
    assert found.tokens == report.turns[1].causes.tokens[4] > 2990
    extra = (report.turns[1].rates.input - report.turns[1].rates.cache_read) / 1_000_000
    assert found.cost_usd == found.tokens * extra
    assert classes(report_of(body, longer, model="gpt-5", gaps_s=441)) == []
    # A longer retention was asked for, or a retry 2.2 s after an aborted call.
    kept = [{**b, "prompt_cache_retention": "24h"} for b in (body, longer)]
    assert classes(report_of(*kept, model="gpt-5", gaps_s=706)) == []
    assert classes(report_of(body, body, model="gpt-5", gaps_s=2.2)) == []


def test_a_read_starts_the_lifetime_again() -> None:
    body = {"messages": [system(S(3000)), HI]}
    assert classes(report_of(body, body, body, model="gpt-5", gaps_s=500)) == []


def test_model_switch() -> None:
    """The bytes are equal, the cache is not."""
    head = system(S(3000))
    report = report_of(
        {"model": "gpt-5", "messages": [head, HI]},
        {"model": "gpt-5", "messages": [head, HI, YO, NEXT]},
        {"model": "gpt-5-mini", "messages": [head, HI, YO, NEXT, YO, NEXT]},
    )
    found = only(report)
    assert (found.cls, found.block, found.requests) == ("model_change", "gpt-5-mini", 1)
    assert "from gpt-5 to gpt-5-mini" in found.message
    assert found.tokens > 2990
    # Another model with a prompt of its own is no switch.
    other = {"model": "gpt-5-mini", "messages": [system(S(3000, "other")), HI]}
    assert classes(report_of({"model": "gpt-5", "messages": [head, HI]}, other)) == []


def test_counters_that_count_twice() -> None:
    body = {"messages": [user("a")]}
    usage = {
        "prompt_tokens": 2168,
        "prompt_tokens_details": {"cached_tokens": 2161, "cache_write_tokens": 2161},
    }
    found = only(report_of(body, model="gpt-5", usage=[usage]))
    assert found.cls == "usage_overlap"
    assert "2,154 tokens more than the input" in found.message


def test_missing_reads_that_the_payload_cannot_explain() -> None:
    body = {"messages": [system(S(3000)), HI]}
    longer = {"messages": [system(S(3000)), HI, YO, NEXT]}
    counters = [
        {"prompt_tokens": n, "prompt_tokens_details": {"cached_tokens": 0}} for n in (3010, 3020)
    ]
    report = report_of(body, longer, model="gpt-5", usage=counters)
    found = only(report)
    assert (found.cls, found.certainty) == ("routing", "possible")
    assert "not the prompt" in found.message
    assert report.reconciled[1].unexplained == 2944
    assert not report.calibrated
    assert any("uncalibrated" in note for note in report.notes())


def test_an_image_that_was_replaced() -> None:
    def body(data: str, *more: dict) -> dict:
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        return {"messages": [user([{"type": "text", "text": S(1500)}, picture]), YO, *more]}

    report = report_of(body("AAAA", user("a")), body("BBBB", user("a"), YO, NEXT))
    assert only(report).cls == "image_changed"


def test_a_prompt_below_the_minimum() -> None:
    body = {"messages": [system(S(700)), HI]}
    longer = {"messages": [system(S(700)), HI, YO, NEXT]}
    found = only(report_of(body, longer, model="gpt-5"))
    assert found.cls == "below_minimum"
    assert "hits begin at 1,024 tokens" in found.message
    assert classes(report_of(body, longer, model="deepseek-flash")) == []


def test_the_findings_are_plain_json() -> None:
    report = report_of(
        {"messages": [system(f"Now 10:00:01.{S(3000)}"), HI]},
        {"messages": [system(f"Now 10:00:04.{S(3000)}"), HI]},
    )
    found = json.loads(json.dumps(report.to_json()))["findings"][0]
    assert (found["class"], found["basis"]) == ("volatile_timestamp", "simulated")
    assert found["request_indices"] == [1]


def exchange(n: int, provider: str, read: int | None = None) -> str:
    """A line of a gateway that says who served the request."""
    talk = [m for k in range(n) for m in (user(f"q{k}"), assistant(f"a{k}"))]
    body = {"model": "openai/gpt-5", "messages": [system(S(3000)), *talk, user(f"q{n}")]}
    usage = {"prompt_tokens": 3010 + 8 * n}
    if read is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": read}
    message = {"role": "assistant", "content": f"a{n}"}
    response = {
        "id": f"gen-{n}",
        "provider": provider,
        "model": "openai/gpt-5",
        "choices": [{"message": message}],
        "usage": usage,
    }
    time = f"2026-11-29T12:00:{n:02}Z"
    return json.dumps({"time": time, "request": body, "response": response})


def test_another_provider_behind_a_gateway_has_its_own_cache() -> None:
    lines = [exchange(n, p) for n, p in enumerate(("OpenAI", "OpenAI", "Azure", "OpenAI"))]
    report = lab.analyze(lab.load_bytes("\n".join(lines).encode()))
    found = next(f for f in report.findings_list if f.cls == "provider_change")
    assert (found.requests, found.certainty) == (1, "certain")
    assert found.tokens > 2990
    assert report.turns[2].match.hit_tokens == 0
    pinned = next(r for r in report.remedies_list if r.action == "pin_provider")
    changed = lab.analyze(pinned.apply(report.runner.session))
    assert report.totals.cost_usd - changed.totals.cost_usd == pinned.saves_usd > 0
    assert changed.turns[2].match.hit_tokens > 2800
    assert "provider_change" not in classes(changed)
    # Back at the first provider, its entry is still there.
    assert report.turns[3].match.hit_tokens > 2800


def test_a_cache_key_that_changes_is_routing() -> None:
    body = {"messages": [system(S(3000)), HI]}
    bodies = [{**body, "prompt_cache_key": key} for key in ("a", "b", "a", "b")]
    report = report_of(*bodies, model="gpt-5")
    found = only(report)
    assert (found.cls, found.requests) == ("routing", 1)
    assert "another prompt_cache_key" in found.message
    assert [r.action for r in report.remedies_list] == ["pin_key"]


def test_one_response_on_several_lines_is_counted_once_and_told() -> None:
    line = exchange(0, "OpenAI", 0)
    report = lab.analyze(lab.load_bytes("\n".join([line, line, exchange(1, "OpenAI")]).encode()))
    assert report.totals.requests == 2
    assert classes(report) == ["duplicate_usage"]


def test_a_call_that_failed_left_no_entry_and_costs_nothing() -> None:
    body = {"model": "gpt-5", "messages": [system(S(3000)), HI]}
    lines = [
        json.dumps({"time": f"2026-11-29T12:00:0{n}Z", "request": body, "status": status})
        for n, status in enumerate((500, 200, 200))
    ]
    session = lab.load_bytes("\n".join(lines).encode())
    assert [r.status for r in session.requests] == [500, 200, 200]
    report = lab.analyze(session)
    assert report.turns[0].cost_usd == 0
    assert [turn.match.hit_tokens for turn in report.turns] == [0, 0, 2944]
    assert report.findings_list == ()
