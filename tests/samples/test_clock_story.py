"""What the bundled session promises to whoever teaches or tests with it."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from codesmith_lab.billing.tokens import get_tokenizer
from codesmith_lab.prompt import parse_rendered_sections
from codesmith_lab.samples import clock_story, clock_story_lines, write_clock_story

SHA256 = "05366ed2f33d7bfa429fc094fe61d332d29e2b92987e1f775397acc89c652d68"
CLOCK = range(7, 40)
COMPACTED = 30

Line = dict[str, Any]


@pytest.fixture(scope="module")
def raw_lines() -> list[bytes]:
    return list(clock_story_lines())


@pytest.fixture(scope="module")
def lines(raw_lines: list[bytes]) -> list[Line]:
    return [json.loads(line) for line in raw_lines]


def messages(line: Line) -> list[Line]:
    """The history, without the system prompt."""
    found: list[Line] = line["request"]["messages"][1:]
    return found


def sections(line: Line) -> dict[str, str]:
    parsed = parse_rendered_sections(line["request"]["messages"][0]["content"])
    assert parsed is not None
    return {str(section.id): section.body for section in parsed}


def test_it_has_forty_turns_twenty_tools_and_a_constitution_of_297_lines(lines: list[Line]) -> None:
    assert len(lines) == 40
    for line in lines:
        tools = line["request"]["tools"]
        assert len({tool["function"]["name"] for tool in tools}) == len(tools) == 20
        assert len(sections(line)["constitution"].split("\n")) == 297


def test_the_sections_stand_in_the_order_of_the_picture(lines: list[Line]) -> None:
    parsed = parse_rendered_sections(lines[0]["request"]["messages"][0]["content"])
    assert parsed is not None
    assert [(section.id, section.stability) for section in parsed] == [
        ("constitution", "static"),
        ("project_context", "workspace"),
        ("environment", "dynamic"),
        ("skills", "workspace"),
        ("memory", "session"),
    ]


def test_the_environment_stands_still_for_seven_turns_and_then_changes_with_every_one(
    lines: list[Line],
) -> None:
    texts = [sections(line)["environment"] for line in lines]
    assert len(set(texts[:7])) == 1
    assert "Current time" not in texts[0]
    assert all(texts[i] != texts[i - 1] for i in CLOCK)
    assert len(set(texts[7:])) == 33


def test_the_clock_in_the_prompt_is_the_minute_of_the_request(lines: list[Line]) -> None:
    for i in CLOCK:
        at = datetime.fromisoformat(lines[i]["time"].replace("Z", "+00:00"))
        line = f"Current time: {at:%Y-%m-%d %H:%M}"
        assert sections(lines[i])["environment"].split("\n")[3] == line


def test_nothing_else_in_the_prefix_ever_changes(lines: list[Line]) -> None:
    for line in lines:
        rest = {k: v for k, v in sections(line).items() if k != "environment"}
        first = {k: v for k, v in sections(lines[0]).items() if k != "environment"}
        assert rest == first
        assert line["request"]["tools"] == lines[0]["request"]["tools"]


def test_times_go_forward_by_two_to_six_minutes_around_midnight(lines: list[Line]) -> None:
    times = [datetime.fromisoformat(line["time"].replace("Z", "+00:00")) for line in lines]
    gaps_s = [(b - a).total_seconds() for a, b in itertools.pairwise(times)]
    assert min(gaps_s) >= 120
    assert max(gaps_s) <= 360
    assert times[7].strftime("%Y-%m-%d %H:%M") in {f"2026-08-25 22:{m}" for m in range(35, 50)}
    assert times[-1] < datetime(2026, 8, 26, 1, 0, tzinfo=timezone.utc)


def test_the_history_only_grows_except_at_the_compaction(lines: list[Line]) -> None:
    for i in range(1, 40):
        before = [*messages(lines[i - 1]), lines[i - 1]["response"]["choices"][0]["message"]]
        now = messages(lines[i])
        if i == COMPACTED:
            assert now[: len(before)] != before
            signed = {"reason": "manual_compaction", "before": len(before), "after": len(now)}
            assert lines[i]["rebuild"] == signed
            assert len(now) == 6
        else:
            assert "rebuild" not in lines[i]
            assert now[: len(before)] == before
            assert len(now) > len(before)


def test_a_response_comes_back_byte_for_byte_in_the_next_request(raw_lines: list[bytes]) -> None:
    for i, line in enumerate(raw_lines[:-1]):
        marker = b'"choices":[{"index":0,"message":'
        answer = line[line.index(marker) + len(marker) : line.rindex(b',"finish_reason"')]
        assert answer in raw_lines[i + 1], f"answer of turn {i + 1}"


def test_every_tool_call_has_one_result_and_every_result_its_call(lines: list[Line]) -> None:
    names = {tool["function"]["name"]: tool["function"] for tool in lines[0]["request"]["tools"]}
    for line in lines:
        open_calls: list[str] = []
        for message in messages(line):
            if message["role"] == "tool":
                assert message["tool_call_id"] == open_calls.pop(0)
                assert message["content"]
                continue
            assert open_calls == []
            for call in message.get("tool_calls", ()):
                open_calls.append(call["id"])
                schema = names[call["function"]["name"]]["parameters"]
                arguments = json.loads(call["function"]["arguments"])
                assert set(schema["required"]) <= set(arguments) <= set(schema["properties"])
        assert open_calls == []


def test_no_usage_counters_are_invented(lines: list[Line]) -> None:
    assert all("usage" not in line and "usage" not in line["response"] for line in lines)


def test_token_sizes_are_those_of_the_picture(lines: list[Line]) -> None:
    count = get_tokenizer("deepseek").count
    sizes = {name: count(body) for name, body in sections(lines[0]).items()}
    assert 3_250 <= sizes["constitution"] <= 3_550
    assert 880 <= sizes["project_context"] <= 1_040
    assert 10 <= sizes["environment"] <= 60
    assert 600 <= sizes["skills"] <= 780
    tools = sum(count(json.dumps(t["function"])) for t in lines[0]["request"]["tools"])
    assert 1_900 <= tools <= 2_400


def test_the_prompt_has_grown_to_27_thousand_tokens_before_the_compaction() -> None:
    from codesmith_lab.sessions.analysis import analyze

    bill = analyze(clock_story(), model="deepseek-v4-flash").bill
    assert 25_500 <= bill["input_tokens"][COMPACTED - 1] <= 28_500
    assert 8_000 <= bill["input_tokens"][COMPACTED] <= 10_000


def test_the_same_bytes_on_every_machine(raw_lines: list[bytes]) -> None:
    assert hashlib.sha256(b"\n".join(raw_lines)).hexdigest() == SHA256


def test_neither_time_zone_nor_hash_seed_nor_language_changes_a_byte(tmp_path: Path) -> None:
    program = (
        "import hashlib; from codesmith_lab.samples import clock_story_lines as lines;"
        "print(hashlib.sha256(b'\\n'.join(lines())).hexdigest())"
    )
    for zone, seed, language in (("Pacific/Kiritimati", "1", "C"), ("Etc/GMT+12", "2", "C.UTF-8")):
        env = {**os.environ, "TZ": zone, "PYTHONHASHSEED": seed, "LC_ALL": language}
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=env, cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == SHA256, zone


def test_another_seed_tells_the_same_story_in_other_bytes() -> None:
    other = [json.loads(line) for line in clock_story_lines(seed=4)]
    assert len(other) == 40
    assert [len(messages(line)) for line in other] == [
        len(messages(json.loads(line))) for line in clock_story_lines()
    ]
    assert other[5]["time"] != json.loads(list(clock_story_lines())[5])["time"]


def test_it_loads_as_any_log_does(tmp_path: Path) -> None:
    from codesmith_lab.sessions.reading.load import load

    path = write_clock_story(tmp_path / "story.jsonl")
    read, bundled = load(path), clock_story()
    assert read.requests == bundled.requests
    assert (read.format, read.skipped, len(read.requests)) == ("openai-chat", (), 40)
    assert read.requests[COMPACTED].rebuild is not None
    assert [block.name for block in read.requests[0].blocks if block.section is not None] == [
        "constitution", "project_context", "environment", "skills", "memory",
    ]  # fmt: skip


def test_it_is_made_quickly() -> None:
    started = time.perf_counter()
    list(clock_story_lines())
    assert time.perf_counter() - started < 2.0


def test_no_personal_data(raw_lines: list[bytes]) -> None:
    whole = raw_lines[-1] + raw_lines[29]
    for trace in (b"@gmail", b"/home/", b"/Users/", b"C:\\\\Users", b"sk-", b"http://", b"+49"):
        assert trace not in whole
