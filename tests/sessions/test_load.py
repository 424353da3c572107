"""Bad input is one clear error, or skipped and counted; never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesmith_lab.errors import InputError, LabError
from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.reading.json_spans import items_of, members_of
from codesmith_lab.sessions.reading.load import load, load_bytes
from codesmith_lab.sessions.reading.system_text import split_sections

GOOD = json.dumps(
    {"model": "gpt-5", "messages": [{"role": "user", "content": "hello <b>&\u202e\u0301🚀</b>"}]}
).encode()


def test_files_that_hold_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    for path, words in (
        (empty, "empty"),
        (tmp_path / "none.jsonl", "no such file"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            load(path)
        assert path.name in str(caught.value)
    with pytest.raises(InputError, match="binary.*JSONL"):
        load_bytes(b"\x00\x01\x02 binary")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (GOOD[:-3], "not JSON"),
        (b"\xff\xfe nonsense", "not UTF-8"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"messages": NaN}', "NaN"),
        (b'{"messages": [{"role": "user", "role": "user"}]}', "twice"),
        (b'{"messages": []}', "no list of messages"),
        (b'{"messages": 5}', "no list of messages"),
        (b'{"model": "x"}', "no request"),
        (b'{"messages": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "deeper"),
    ],
)
def test_a_bad_line_is_skipped_and_named(line: bytes, reason: str) -> None:
    session = load_bytes(GOOD + b"\r\n" + line + b"\n" + GOOD, "log.jsonl")
    assert len(session.requests) == 2
    assert [entry.line for entry in session.skipped] == [2]
    assert reason in session.skipped[0].reason
    with pytest.raises(InputError, match="line 1"):
        load_bytes(line, "log.jsonl")


def test_raw_bytes_and_hostile_text_survive() -> None:
    session = load_bytes(b"\xef\xbb\xbf" + GOOD + b"\r\n")
    assert session.requests[0].body == GOOD
    assert session.requests[0].blocks[0].text == "hello <b>&\u202e\u0301🚀</b>"
    assert session.requests[0].blocks[0].raw in GOOD


def test_lone_surrogates_are_read_as_replacement_and_noted() -> None:
    session = load_bytes(b'{"model":"gpt-5","messages":[{"role":"user","content":"a\\ud800b"}]}')
    assert session.requests[0].blocks[0].text == "a\ufffdb"
    assert session.requests[0].notes
    assert analyze(session).totals.requests == 1


def test_a_model_nobody_knows_is_a_choice_not_a_guess() -> None:
    session = load_bytes(GOOD)
    with pytest.raises(LabError, match="nearest"):
        analyze(session, model="no-such-model")
    report = analyze(session, model="no-such-model", rules="openai-128")
    assert report.totals.cost_usd is None
    assert not report.tokens_exact


def test_anthropic_bodies_are_read() -> None:
    body = {
        "model": "claude-sonnet-4-5",
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]},
        ],
    }
    session = load_bytes(json.dumps(body).encode())
    assert session.format == "anthropic-messages"
    names = [(b.zone, b.name) for b in session.requests[0].blocks]
    assert names == [
        ("pinned", "f"),
        ("pinned", "system"),
        ("log", "user"),
        ("log", "tool call f"),
        ("scratch", "tool f"),
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), json_values), st.sampled_from([None, 1]))
def test_spans_are_exact_slices(value: dict[str, object], indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    members = members_of(text.encode())
    assert {key: json.loads(span.raw) for key, span in members.items()} == value
    for span in members.values():
        assert json.loads(span.raw) == span.value
        if isinstance(span.value, list):
            assert [json.loads(item.raw) for item in items_of(span.raw)] == span.value


@given(st.text(alphabet="# ab<>/\n`", max_size=80))
def test_sections_joined_are_the_system_prompt(text: str) -> None:
    assert "".join(part for _, part in split_sections(text)) == text


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_nothing_but_an_input_error_ever_comes_out(data: st.DataObject) -> None:
    raw = bytearray(GOOD + b"\n" + GOOD)
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255))
    for blob in (bytes(raw), data.draw(st.binary(max_size=60))):
        try:
            load_bytes(blob)
        except InputError:
            continue


def test_a_session_shows_itself_on_one_line() -> None:
    secret = "word " * 5000
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": secret}]})
    session = load_bytes((body + "\nnot json\n").encode())
    assert repr(session) == (f"<Session {session.name!r}: 1 request, openai-chat, 1 line left out>")
    assert repr(session.requests[0]) == f"<Request 0: m, 1 block, {len(body):,} bytes>"
