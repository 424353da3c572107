"""Values are told by what changed, one by one, and never where nothing did."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.sessions.findings.volatile import KINDS, clock_step_s, value_changes

from .finding_logs import S, assistant, classes, only, report_of, system, user

PAIRS = [
    ("Now 10:00:01. Go", "Now 10:00:04. Go", ["clock"]),
    ("as of 2026-08-03T10:00:00.123Z", "as of 2026-08-03T10:00:09.456Z", ["clock"]),
    ("at 10:15 PM", "at 10:16 PM", ["clock"]),
    ("t=1756245600", "t=1756245660", ["clock"]),
    ("t=1756245600123", "t=1756245660124", ["clock"]),
    ("20260803T101500Z", "20260803T101501Z", ["clock"]),
    ("2026-08-03, 23:59", "2026-08-04, 00:01", ["clock", "clock"]),
    ("Today is 2026-08-03.", "Today is 2026-08-04.", ["date"]),
    ("Monday, November 3, 2026", "Tuesday, November 4, 2026", ["date", "date"]),
    ("3 Nov 2026", "4 Nov 2026", ["date"]),
    ("year 2026", "year 2027", ["date"]),
    ("turn 7 of many", "turn 8 of many", ["counter"]),
    ("session_41", "session_42", ["counter"]),
    ("cch=aaaaa;", "cch=bbbbb;", ["id"]),
    ("id 3f2a9c1d-0000-4000-8000-aaaaaaaaaaaa", "id 3f2a9c1d-0000-4000-8000-b" + "a" * 11, ["id"]),
    ("run 8f3kd02q", "run 9a8b7c6d", ["id"]),
    ("token AbCdEfGhIjKlMnOpQr", "token ZyXwVuTsRqPoNmLkJi", ["id"]),
    ("nonce 839201", "nonce 120394", ["id"]),
    ("cwd /tmp/agent-x1/work", "cwd /tmp/agent-y2/work", ["path"]),
    ("dir C:\\Users\\a\\x", "dir C:\\Users\\b\\x", ["path"]),
    ("a b", "a  b", ["space"]),
    ("café", "cafe\u0301", ["form"]),
    # Edits like any other, however alike they look.
    ("the quick fox", "the slow fox", ["text"]),
    ("model gpt-4o", "model gpt-5", ["text"]),
    ("version 1.2.3", "version 1.2.4", ["text"]),
    ("the facade was decade", "the decade was facade", ["text", "text"]),
    ("files: 12", "files: 9", ["number"]),
    ("use tabs", "never use tabs", ["text"]),
    ("a 10:00 n 5\nrun 8f3kd02q", "a 10:01 n 6\nrun 9a8b7c6d", ["clock", "counter", "id"]),
    ("one\ntwo\nthree", "one\nthree", ["text"]),
]


@pytest.mark.parametrize(("old", "new", "kinds"), PAIRS)
def test_what_kind_of_value_changed(old: str, new: str, kinds: list[str]) -> None:
    found = value_changes(old, new)
    assert [change.kind for change in found] == kinds
    assert all(new[c.start : c.end] == c.after for c in found)
    # In a long line, and deep in a text, it is the same.
    around = f"first\n{S(3000)} {{}} {S(3000)}\nlast"
    far = value_changes(around.format(old), around.format(new))
    if "\n" not in old + new:
        assert [change.kind for change in far] == kinds


@given(st.text(max_size=60), st.text(max_size=60))
def test_changes_are_places_in_order_and_none_where_nothing_changed(old: str, new: str) -> None:
    assert value_changes(old, old) == []
    found = value_changes(old, new)
    assert bool(found) == (old != new)
    at = 0
    for change in found:
        assert at <= change.start <= change.end <= len(new)
        assert change.kind in KINDS
        at = change.end


@given(st.lists(st.sampled_from([*"ab \n", "10:00", "7", "/a/b/c"]), max_size=12), st.data())
def test_putting_the_old_values_back_gives_the_old_text(parts: list[str], data) -> None:
    """With as many lines as before, the changes say all that differs."""
    swap = {"a": "b", "10:00": "11:31", "7": "9", "/a/b/c": "/a/x/c"}
    old = "".join(parts)
    new = "".join(swap.get(p, p) if data.draw(st.booleans()) else p for p in parts)
    back = new
    for change in reversed(value_changes(old, new)):
        back = back[: change.start] + change.before + back[change.end :]
    assert back == old


def test_how_fine_a_clock_is() -> None:
    assert [clock_step_s(t) for t in ("10:00", "10:00:01", "1756245600", "20260803T101501Z")] == [
        *(60, 1, 1, 1)
    ]


def numbered(values: list[int], **more) -> list[str]:
    bodies = [{"messages": [system(f"tick {v} of it{S(2000)}"), user("q")]} for v in values]
    return classes(report_of(*bodies, **more))


def test_a_number_that_follows_the_time_is_a_clock() -> None:
    """Whatever its form: what counts is that it goes on as the time does."""
    assert numbered([7, 37, 67, 97, 127], gaps_s=30) == ["volatile_timestamp"]
    assert numbered([7, 8, 11, 12, 19], gaps_s=30) == ["volatile_counter"]
    assert numbered([3, 4, 5, 6, 7], gaps_s=60) == ["volatile_timestamp"]


def test_an_identifier_is_a_nonce_only_when_every_request_has_another() -> None:
    def run(ids: list[str]) -> list[str]:
        return classes(
            report_of(*({"messages": [system(f"session {i}{S(2000)}"), user("q")]} for i in ids))
        )

    a, b, c, d = (f"{n}f3k{n}d02q" for n in range(4))
    assert run([a, b, c, d]) == ["volatile_nonce"]
    assert run([a, a, b, b, b, c]) == ["volatile_id"]
    assert run([a, a, a]) == []


def test_a_daily_date_does_not_rank_as_a_clock_does() -> None:
    """Midnight costs once; a clock costs every time."""

    def body(n: int) -> dict:
        day, minute = (3, n) if n < 4 else (4, n)
        parts = f"# Day\nIt is 2026-08-0{day}.\n# Tail\nclock 10:0{minute}{S(600)}"
        return {"messages": [system(parts), user(S(1000)), assistant("a"), user(f"q{n}")]}

    found = report_of(*(body(n) for n in range(8))).findings_list
    assert [f.cls for f in found] == ["volatile_timestamp", "volatile_date"]
    assert (found[0].requests, found[1].requests) == (6, 1)
    assert found[0].cost_usd > 3 * found[1].cost_usd
    assert "tail: volatile timestamp" in found[1].also


def test_a_constant_date_is_innocent() -> None:
    body = {"messages": [system(f"It is 2026-08-03, 10:00:01. {S(2000)}"), user("q")]}
    assert classes(report_of(body, body, body)) == []


def test_a_clock_in_a_tool_and_in_the_first_message() -> None:
    tools = [
        [{"type": "function", "function": {"name": "f", "description": f"at 10:0{n} {S(50)}"}}]
        for n in range(3)
    ]
    found = only(report_of(*({"tools": t, "messages": [user(S(800))]} for t in tools)))
    assert (found.cls, found.block) == ("volatile_timestamp", "f")
    turns = [
        {
            "messages": [
                user(f"10:0{n} {S(800)}"),
                assistant("a"),
                user("q"),
                assistant("b"),
                user("r"),
            ]
        }
        for n in range(3)
    ]
    found = only(report_of(*turns))
    assert (found.cls, found.zone) == ("volatile_timestamp", "log")
