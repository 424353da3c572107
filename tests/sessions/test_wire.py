"""Bytes that differ where the text is equal: seen, named, placed, and never called certain."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.labs.workbench import Workbench
from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.findings.json_differences import compare_json
from codesmith_lab.sessions.reading.load import load_bytes

LONG = "ctx" + " word" * 1500
HEAD = '{"model": "deepseek-v4-flash", '


def report_of(*bodies: str, usage: dict | None = None):
    lines = [
        f'{{"request": {body}, "usage": {json.dumps(usage)}}}' if usage else body for body in bodies
    ]
    return analyze(load_bytes("\n".join(lines).encode()))


def pair(first: str, second: str, rest: str = "", **more):
    """Two requests whose first message is spelled in two ways; the second appends."""
    bodies = [f'{HEAD}{rest}"messages": [{m}]}}' for m in (first, f"{second}, {NEXT}")]
    return report_of(*bodies, **more)


NEXT = '{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}'
PLAIN = f'{{"role": "user", "content": "é {LONG}"}}'
SPELLINGS = {
    "shape_change": f'{{"role": "user", "content": [{{"type": "text", "text": "é {LONG}"}}]}}',
    "unicode_escape": f'{{"role": "user", "content": "\\u00e9 {LONG}"}}',
    "whitespace": f'{{"role":"user", "content": "é {LONG}"}}',
    "json_key_order": f'{{"content": "é {LONG}", "role": "user"}}',
}


@pytest.mark.parametrize("cls", SPELLINGS)
def test_another_spelling_is_possible_and_no_break(cls: str) -> None:
    report = pair(PLAIN, SPELLINGS[cls])
    assert report.breaks == (None, None)
    wire = report.wires[1]
    assert wire is not None
    assert wire.classes == (cls,)
    found = next(f for f in report.findings_list if f.cls == cls)
    assert (found.certainty, found.tokens, found.cost_usd) == ("possible", 0, None)
    assert found.at_risk_tokens == report.turns[1].causes.tokens[0] > 1000
    assert "the text is equal" in found.message


@pytest.mark.parametrize("cls", SPELLINGS)
def test_the_byte_is_where_the_body_differs(cls: str) -> None:
    report = pair(PLAIN, SPELLINGS[cls])
    wire, requests = report.wires[1], report.runner.session.requests
    a, b = (r.body for r in requests)
    first = next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    # The value that differs starts at most one token before the first differing byte.
    assert first - 2 <= wire.byte <= first
    assert b[wire.byte :].decode().startswith(wire.after.rstrip("…"))
    assert wire.path.startswith("messages[0]")


def test_the_same_bytes_are_no_finding() -> None:
    report = pair(PLAIN, PLAIN)
    assert report.wires == (None, None)
    assert report.findings_list == ()


def test_a_marker_that_moves_is_no_change() -> None:
    marked = '{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}'
    report = pair(
        f'{{"role": "user", "content": [{marked}]}}',
        '{"role": "user", "content": [{"type": "text", "text": "q"}]}',
    )
    assert report.wires[1] is None


def test_usage_decides() -> None:
    """Full reads show that it did no harm; missing ones that it probably did."""
    harmless = pair(
        PLAIN,
        SPELLINGS["shape_change"],
        usage={"prompt_tokens": 1520, "prompt_tokens_details": {"cached_tokens": 1408}},
    )
    found = next(f for f in harmless.findings_list if f.cls == "shape_change")
    assert (found.certainty, found.at_risk_tokens) == ("possible", 0)
    assert "usage shows no loss" in found.message
    lost = pair(
        PLAIN,
        SPELLINGS["shape_change"],
        usage={"prompt_tokens": 1520, "prompt_tokens_details": {"cached_tokens": 0}},
    )
    found = next(f for f in lost.findings_list if f.cls == "shape_change")
    assert found.certainty == "likely"
    assert found.tokens == lost.turns[1].causes.tokens[0]
    assert found.cost_usd > 0


def test_white_space_in_a_schema_is_seen_with_its_place() -> None:
    tool = '{"type": "function", "function": {"name": "f", "parameters":%s{"type": "object"}}}'
    bodies = [
        f'{HEAD}"tools": [{tool % gap}], "messages": [{m}]}}'
        for gap, m in ((" ", PLAIN), ("", f"{PLAIN}, {NEXT}"))
    ]
    report = report_of(*bodies)
    wire = report.wires[1]
    assert (wire.block, wire.classes) == ("f", ("whitespace",))
    assert wire.path == "tools[0].function.parameters"
    assert report.runner.session.requests[1].body[wire.byte - 1 :].startswith(b':{"type"')


def test_system_as_text_or_as_blocks() -> None:
    """Anthropic's two ways to send one system prompt."""
    text = json.dumps(LONG)
    bodies = [
        f'{{"model": "claude-x", "max_tokens": 9, "system": {system}, "messages": [{m}]}}'
        for system, m in ((text, PLAIN), (f'[{{"type":"text","text":{text}}}]', PLAIN))
    ]
    session = load_bytes("\n".join(bodies).encode(), format="anthropic")
    report = analyze(session, rules="openai-128")
    wire = report.wires[1]
    assert (wire.path, wire.classes, wire.zone) == ("system", ("shape_change",), "pinned")
    first = next(
        i for i, (x, y) in enumerate(zip(*map(str.encode, bodies), strict=False)) if x != y
    )
    # The list's own bracket comes before its first block.
    assert first == wire.byte - 1


def test_another_system_section_does_not_hide_behind_the_shared_slice() -> None:
    """One slice holds the whole system prompt: its text change is a break, no other spelling."""
    bodies = [
        f'{HEAD}"messages": [{{"role":"system","content":{system}}}, {PLAIN}]}}'
        for system in (json.dumps(f"# One\n{LONG}\n# Two\n{n}") for n in (1, 2))
    ]
    report = report_of(*bodies)
    assert report.wires[1] is None
    assert report.breaks[1] is not None


def test_the_workbench_says_both_truths() -> None:
    lines = [f'{HEAD}"messages": [{m}]}}' for m in (PLAIN, f"{SPELLINGS['whitespace']}, {NEXT}")]
    bench = Workbench(load_bytes("\n".join(lines).encode()))
    bench.turn = 1
    also = bench.side["diagnosis"]["also"]
    assert re.search(r"Possible: wire differs at byte \d+ of the body", also[0])


def test_reordered_tools_keep_the_fingerprint_and_break_the_wire() -> None:
    tools = [f'{{"type": "function", "function": {{"name": "{n}"}}}}' for n in "abc"]
    bodies = [
        f'{HEAD}"tools": [{", ".join(order)}], "messages": [{PLAIN}]}}'
        for order in (tools, [tools[0], tools[2], tools[1]])
    ]
    bench = Workbench(load_bytes("\n".join(bodies).encode()))
    bench.turn = 1
    title = bench.side["diagnosis"]["title"]
    assert re.fullmatch(r"fingerprint stable, wire broken at byte [\d,]+: tool order", title)
    assert bench.head["drift_label"] == ""


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abé", max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(values, st.sampled_from([None, 1]), st.booleans(), st.booleans())
def test_only_the_spelling_that_changed_is_named(value, indent, ascii_only, turn_round) -> None:
    """Against json's own writer: spelling classes come out exactly as they were put in."""
    turn_round = turn_round and isinstance(value, dict)
    other = dict(reversed(value.items())) if turn_round else value
    old = json.dumps([value], ensure_ascii=False)
    new = json.dumps([other], ensure_ascii=ascii_only, indent=indent)
    found = compare_json(old, new)
    if old == new:
        assert found is None
        return
    assert found is not None
    expected = set()
    if json.dumps([value]) != json.dumps([other]):
        expected.add("json_key_order")
    if re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*"|\S', "", old) or indent:
        expected |= {"whitespace"} if indent else set()
    if json.dumps([other], ensure_ascii=False) != json.dumps([other], ensure_ascii=ascii_only):
        expected.add("unicode_escape")
    assert set(found.classes) == expected
    assert old[: found.old_at] == new[: found.new_at]


def test_an_edited_request_was_never_on_the_wire() -> None:
    """Its bytes are nobody's: an edit is an edit, and no change of shape or of the provider's."""
    plain = json.dumps({"role": "system", "content": "# Rules\n" + LONG})
    turns = [PLAIN, f"{PLAIN}, {NEXT}"]
    bodies = [f'{HEAD}"messages": [{plain}, {turn}]}}' for turn in turns]
    bench = Workbench(load_bytes("\n".join(bodies).encode()))
    bench.turn, bench.scope = 1, "turn"
    bench.edit_section("rules", "# Rules\nOther" + LONG)
    assert [wire for wire in bench.report.wires if wire is not None] == []
    assert bench.report.findings["class"].tolist() == ["section_edited"]
    assert bench.report.findings["certainty"].tolist() == ["certain"]
    assert "Possible" not in json.dumps(bench.side["diagnosis"])
