"""Splitting, sending with the turn, and coarser clocks: what is sent, and what it saves."""

from __future__ import annotations

import json
from typing import Any

import pytest

import codesmith_lab as lab
from codesmith_lab.errors import LabError
from codesmith_lab.sessions.analysis import make_runner
from codesmith_lab.sessions.order.history import measure_sections, section_history
from codesmith_lab.sessions.order.replay import replay_exactly
from codesmith_lab.sessions.order.rewrites import (
    GRAINS,
    Rewrite,
    apply_rewrites,
    coarser_clock,
    has_clock,
    send_with_turn,
    split_section,
    volatile_name,
)


def made(*bodies: str, declared: bool = True, last: bool = False) -> lab.Session:
    """Requests with a section `env` of these bodies before (or, last, behind) a fixed one."""
    lines = []
    for i, body in enumerate(bodies):
        if declared:
            env = lab.PromptSection("env", "Env", body, "session")
            rules = lab.PromptSection("rules", "Rules", "Be kind.")
            bundle = lab.PromptBundle.from_sections([rules, env] if last else [env, rules])
            system = bundle.render_text()
        else:
            system = f"# Rules\n\nBe kind.\n\n# Env\n\n{body}"
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": f"step {i}"},
        ]
        lines.append(json.dumps({"model": "deepseek-v3.2", "messages": messages}))
    return lab.load_bytes("\n".join(lines).encode(), "made.jsonl")


def system_of(blocks: Any) -> str:
    return "".join(block.text for block in blocks if block.kind == "section")


def test_a_split_keeps_every_line_and_the_stable_part_stands_still() -> None:
    session = made("linux\ntime 1\n/work", "linux\ntime 2\n/work", "linux\n/work")
    blocks = split_section(session.requests, "env")
    names = [[b.name for b in blocks[i] if b.kind == "section"] for i in range(3)]
    assert names == [["env", "env (changing)", "rules"]] * 2 + [["env", "rules"]]
    stable = {b.text for i in range(3) for b in blocks[i] if b.name == "env"}
    assert len(stable) == 1
    for request in session.requests:
        before = system_of(request.blocks)
        after = system_of(blocks[request.index])
        for line in before.split("\n"):
            assert line in after
    parsed = lab.parse_rendered_sections(system_of(blocks[0]))
    assert parsed is not None
    assert [(s.id, s.stability, s.body) for s in parsed] == [
        ("env", "session", "linux\n/work"),
        ("env (changing)", "dynamic", "time 1"),
        ("rules", "static", "Be kind."),
    ]


def test_a_line_that_comes_twice_is_stable_once() -> None:
    """The stable part must be one text; the second copy belongs to what changes."""
    session = made("rule\nstate 1\nrule", "rule\nstate 2", "state 3\nrule")
    blocks = split_section(session.requests, "env")
    assert len({b.text for i in range(3) for b in blocks[i] if b.name == "env"}) == 1
    changing = [b.text.strip() for i in range(3) for b in blocks[i] if "changing" in b.name]
    assert [text.partition("-->\n")[2] for text in changing] == [
        "state 1\nrule",
        "state 2",
        "state 3",
    ]


@pytest.mark.parametrize("declared", [True, False])
def test_a_split_of_the_last_section_still_ends_the_prompt(declared: bool) -> None:
    session = made("linux\ntime 1", "linux\ntime 2", declared=declared, last=True)
    name = session.requests[0].blocks[1].name
    blocks = split_section(session.requests, name)
    sections = [block for block in blocks[0] if block.kind == "section"]
    assert [block.name for block in sections[-2:]] == [name, volatile_name(name)]
    assert sections[-1].text.endswith("time 1")
    assert sections[-2].text.endswith("linux\n\n")
    assert (sections[-2].last, sections[-1].first, sections[-1].last) == (False, False, True)
    assert ("prompt-section" in sections[-1].text) == declared


def test_clocks_are_rounded_down() -> None:
    text = "Now 2026-06-01 08:41:27, or 2026-06-01T08:41Z. Zeit: 08:41. Not 1:2:3, 99:99 or 10:5."
    session = made(text, text.replace("08:41", "17:05"))

    def rounded(grain: Any, at: int) -> str:
        return system_of(coarser_clock(session.requests, "env", grain)[at])

    assert "08:41:00, or 2026-06-01T08:41Z. Zeit: 08:41." in rounded("minute", 0)
    assert "17:00:00, or 2026-06-01T17:00Z. Zeit: 17:00." in rounded("hour", 1)
    assert "00:00:00, or 2026-06-01T00:00Z. Zeit: 00:00." in rounded("day", 1)
    assert rounded("session", 1) == rounded("session", 0) == system_of(session.requests[0].blocks)
    for grain in GRAINS:
        assert "Not 1:2:3, 99:99 or 10:5." in rounded(grain, 0)
    assert has_clock("at 23:59")
    assert not has_clock("ratio 3:2, 24:00, 12:345")


def test_rewrites_of_the_clock_story_save_what_the_engine_says() -> None:
    """Each step from moving to removing is cheaper, billed through the cache engine."""
    runner = make_runner(lab.samples.clock_story())
    requests = runner.session.requests
    name = "environment"
    order = ["constitution", "project_context", "skills", "memory", name]

    def bill(*rewrites: Rewrite) -> float:
        names = [*order, volatile_name(name)]
        usd = replay_exactly(runner, names, apply_rewrites(requests, rewrites)).usd
        assert usd is not None
        return float(usd)

    moved = bill()
    split = bill(Rewrite("split", name))
    turn = bill(Rewrite("split", name), Rewrite("turn", volatile_name(name)))
    grains = [bill(Rewrite("clock", name, grain)) for grain in ("minute", "hour", "day")]
    assert grains == sorted(grains, reverse=True)
    assert grains[0] == pytest.approx(moved)  # the clock shows minutes as it is
    assert grains[2] < 0.5 * moved
    assert turn < 0.5 * split
    history = section_history(runner, apply_rewrites(requests, [Rewrite("split", name)]))
    rates = {s.name: s.changes for s in measure_sections(history)}
    assert (rates[name], rates[volatile_name(name)]) == (0, 33)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s: split_section(s.requests, "rules"), "same in every request"),
        (lambda s: split_section(made("a", "b").requests, "env"), "every line of section 'env'"),
        (lambda s: split_section(s.requests, "nowhere"), "no request has a section"),
        (lambda s: send_with_turn(s.requests, "nowhere"), "no request has a section"),
        (lambda s: coarser_clock(s.requests, "rules", "hour"), "no time of day"),
        (lambda s: coarser_clock(s.requests, "env", "year"), "no grain 'year'"),
    ],
)
def test_what_cannot_be_rewritten_gets_one_clear_sentence(make: Any, words: str) -> None:
    with pytest.raises(LabError) as caught:
        make(made("x\n08:15", "x\n08:16"))
    assert words in str(caught.value)


def test_a_section_needs_a_message_to_travel_with() -> None:
    line = {
        "model": "deepseek-v3.2",
        "messages": [
            {"role": "system", "content": "# A\n\nx"},
            {"role": "assistant", "content": "y"},
        ],
    }
    session = lab.load_bytes(json.dumps(line).encode())
    with pytest.raises(LabError, match="nothing can carry section 'a'"):
        send_with_turn(session.requests, "a")
