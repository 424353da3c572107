"""Logs as they come: every kind of bad input ends in one clear error, or is skipped and counted."""

from __future__ import annotations

import gzip
import json
import pickle
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from codesmith_lab.errors import InputError
from codesmith_lab.sessions.reading import cutting, log_reader
from codesmith_lab.sessions.reading.load import load, load_bytes

USER = {"role": "user", "content": "hi"}


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [USER], **fields}).encode()


def wrapped(**fields: Any) -> bytes:
    return json.dumps({"request": {"model": "m", "messages": [USER]}, **fields}).encode()


GOOD = body()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"hello", "not JSON at byte 1"),
        (b"[1]", "not a JSON object"),
        (b'"messages"', "not a JSON object"),
        (b"\x00\x00\x00", "not JSON at byte 1"),
        (
            b'{"messages": [{"role": "user", "content": "\xff"}]}',
            "byte 44 of the line is not UTF-8",
        ),
        (GOOD[:-5], "cut off"),
        (b'{"messages":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "nests deeper"),
        (b"[" * 10_000, "nests deeper"),
        (b'{"messages":[{"content":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}]}", "deeper"),
        (b'{"model":"a","model":"b","messages":[]}', "the key 'model' stands twice"),
        (b'{"temperature":NaN,"messages":[]}', "NaN is not a JSON number"),
        (b'{"temperature":Infinity,"messages":[]}', "Infinity is not a JSON number"),
        (b'{"model":"x"}', "holds no request"),
        (b"{}", "holds no request"),
        (b'{"model":"text-embedding-3-small","input":"hi"}', "no prompt to cache"),
        (b'{"model":"x","input":5}', "neither text nor a list"),
        (b'{"request":"x"}', "its request is not an object"),
        (b'{"request":{}}', "holds no request"),
        (b'{"messages":{"a":1}}', "no list of messages"),
        (b'{"messages":null}', "no list of messages"),
        (b'{"messages":[]}', "no list of messages with any in it"),
    ],
)
def test_a_bad_line_is_skipped_and_counted(line: bytes, reason: str) -> None:
    for log in (GOOD + b"\n" + line + b"\n" + GOOD, GOOD + b"\n" + GOOD + b"\n" + line):
        session = load_bytes(log)
        assert len(session.requests) == 2
        (skipped,) = session.skipped
        assert log.split(b"\n")[skipped.line - 1] == line
        assert reason in skipped.reason
    with pytest.raises(InputError, match=r"log\.jsonl, line 2: ") as caught:
        load_bytes(b"\n" + line, "log.jsonl")
    assert caught.value.line == 2
    assert reason in str(caught.value) or "binary" in str(caught.value)


def test_an_error_is_one_line_that_names_file_and_line() -> None:
    with pytest.raises(InputError) as caught:
        load_bytes(b"foo\nbar\n", "log.jsonl")
    assert str(caught.value) == (
        "log.jsonl, line 1: none of 2 lines holds a usable request: it is not JSON at byte 1 "
        "(expecting value); a log holds one JSON request a line"
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"\n \r\n\t\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (GOOD.decode().encode("utf-16"), "UTF-16"),
        (b"BZh91AY&SY", "compressed .bzip2."),
        (gzip.compress(GOOD)[:20], "compressed data are cut off"),
        (gzip.compress(b""), "the file is empty"),
        (b"\x7fELF\x02\x01\x00\x00" * 50, "binary"),
        (bytes(range(256)) * 40, "binary"),
    ],
)
def test_a_file_of_no_use_has_one_reason(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputError, match=reason) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_what_is_no_file_has_one_reason(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path, "folder holds no log"),
        (tmp_path / "nowhere", "no such file"),
        (str(tmp_path / "a\0b"), "name of a file"),
        (tmp_path / ("x" * 5000), "cannot be read"),
    ):
        with pytest.raises(InputError, match=reason):
            load(path)


def test_a_hopeless_file_is_not_read_to_its_end() -> None:
    with pytest.raises(InputError, match="none of 1000 lines"):
        load_bytes(b"no\n" * 5000 + GOOD)


def test_byte_order_mark_line_ends_and_blank_lines() -> None:
    session = load_bytes(b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n   \n\xef\xbb\xbf" + GOOD + b"\r\n")
    assert [(r.index, r.line, r.body) for r in session.requests] == [(0, 1, GOOD), (1, 4, GOOD)]
    assert session.skipped == ()


def test_a_line_beyond_the_limit_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "MAX_RECORD_BYTES", 1 << 20)
    fill = (1 << 20) - len(body(pad=""))
    fits, longer = body(pad="x" * fill), body(pad="x" * (fill + 1))
    session = load_bytes(b"\r\n".join([longer, fits, longer * 3, GOOD]))
    assert [r.line for r in session.requests] == [2, 4]
    assert [(s.line, s.reason) for s in session.skipped] == [
        (1, "it is longer than 1 MiB; split the log"),
        (3, "it is longer than 1 MiB; split the log"),
    ]


def test_a_line_of_50_mb_is_read() -> None:
    line = json.dumps({"messages": [{"role": "user", "content": "x" * 50_000_000}]}).encode()
    (request,) = load_bytes(line).requests
    assert len(request.blocks[0].text) == 50_000_000
    assert request.body == line


def test_lone_surrogates_stay_in_raw_and_leave_the_text() -> None:
    line = (
        b'{"model":"m\\ud800","\\udfff":["\\ud800"],"messages":[{"role":"user","content":'
        b'"a\\udc00b \\ud83d\\ude00"},{"role":"\\ud800","content":[{"type":"\\ud800"}]}],'
        b'"tools":[{"name":"\\ud800"}]}'
    )
    (request,) = load_bytes(line).requests
    assert request.body == line
    assert request.model == "m\ufffd"
    assert [b.text for b in request.blocks[:2]] == ['{"name": "\ufffd"}', "a\ufffdb 😀"]
    assert b"\\udc00" in request.blocks[1].raw
    assert "a lone surrogate was read as U+FFFD" in request.notes
    for block in request.blocks:
        (block.name + block.text + block.role).encode("utf-8")
    json.dumps(dict(request.settings), ensure_ascii=False).encode("utf-8")


def test_what_stands_beside_the_request() -> None:
    signed = {"reason": "manual_compaction", "before": 84, "after": 6}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}
    line = wrapped(time="2026-08-25T08:00:00+02:00", rebuild=signed, usage=usage)
    (request,) = load_bytes(line).requests
    assert request.body == json.dumps({"model": "m", "messages": [USER]}).encode()
    assert request.time == datetime(2026, 8, 25, 6, tzinfo=timezone.utc)
    assert request.rebuild == signed
    assert request.usage is not None
    assert (request.usage.input_tokens, request.usage.cache_read_tokens) == (10, 4)
    assert request.settings == {}
    # The same beside the fields of a bare body is no setting either.
    (bare,) = load_bytes(body(time="2026-08-25T06:00:00Z", rebuild=signed, usage=usage)).requests
    assert (bare.time, bare.rebuild, bare.usage) == (request.time, signed, request.usage)
    assert bare.settings == {}


def test_broken_fields_beside_the_request_are_noted() -> None:
    for fields, note in (
        ({"usage": [1]}, "usage is not an object and was passed over"),
        ({"usage": {"x": 1}}, "usage holds no counter"),
        ({"usage": {"prompt_tokens": "x"}}, "prompt_tokens is 'x'"),
        ({"rebuild": "x"}, "rebuild is not an object"),
        ({"time": "noon"}, "its time is neither ISO 8601"),
    ):
        (request,) = load_bytes(wrapped(**fields)).requests
        assert note in request.notes[0]


@pytest.mark.parametrize(
    "given",
    [
        "2026-08-25T08:00:00Z",
        "2026-08-25T08:00:00",
        "2026-08-25 10:00:00+02:00",
        1787644800,
        1787644800.0,
        1787644800000,
        "1787644800",
    ],
)
def test_times(given: Any) -> None:
    for key in ("time", "timestamp", "created_at", "ts"):
        (request,) = load_bytes(wrapped(**{key: given})).requests
        assert request.time == datetime(2026, 8, 25, 8, tzinfo=timezone.utc)


@pytest.mark.parametrize("given", ["x", True, 1e300, -1e18, [1], {}, "0001-01-01T00:00:00+14:00"])
def test_times_that_are_none(given: Any) -> None:
    (request,) = load_bytes(wrapped(time=given)).requests
    assert request.time is None
    assert len(request.notes) == 1
    assert load_bytes(wrapped(time=None)).requests[0].notes == ()


def test_requests_are_sorted_when_each_has_a_time() -> None:
    lines = [wrapped(ts=t) for t in (30, 10, 20, 10)]
    session = load_bytes(b"\n".join(lines))
    assert [(r.index, r.line) for r in session.requests] == [(0, 2), (1, 4), (2, 3), (3, 1)]
    session = load_bytes(b"\n".join([*lines, wrapped()]))
    assert [(r.index, r.line) for r in session.requests] == [(i, i + 1) for i in range(5)]


SYSTEM = [{"role": "system", "content": "s"}, USER]
USE = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}
]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, "openai-chat"),
        ({"messages": SYSTEM}, "openai-chat"),
        ({"model": "claude-x", "messages": SYSTEM}, "openai-chat"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "openai-chat"),
        ({"messages": [{"role": "user", "content": 'the word "tool_use"'}]}, "openai-chat"),
        ({"model": "claude-x"}, "anthropic-messages"),
        ({"system": "s"}, "anthropic-messages"),
        ({"system": None}, "openai-chat"),
        ({"anthropic_version": "2023-06-01"}, "anthropic-messages"),
        ({"tools": [{"name": "f", "input_schema": {}}]}, "anthropic-messages"),
        ({"messages": USE}, "anthropic-messages"),
        ({"usage": {"input_tokens": 1, "cache_read_input_tokens": 0}}, "anthropic-messages"),
        ({"usage": {"prompt_tokens": 1}}, "openai-chat"),
        ({"response": {"content": []}}, "anthropic-messages"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "x", "cache_control": {}}],
                    }
                ]
            },
            "anthropic-messages",
        ),
    ],
)
def test_the_format_is_found_out(fields: dict[str, Any], kind: str) -> None:
    assert load_bytes(body(**fields)).format == kind


def test_the_majority_names_the_log_and_neutral_lines_go_along() -> None:
    chat, claude = body(messages=SYSTEM), body(system="s")
    session = load_bytes(b"\n".join([claude, chat, GOOD, chat]))
    assert session.format == "openai-chat"
    assert [(r.line, r.api) for r in session.requests] == [
        (1, "anthropic-messages"),
        (2, "openai-chat"),
        (3, "openai-chat"),
        (4, "openai-chat"),
    ]
    assert session.skipped == ()
    session = load_bytes(b"\n".join([claude, claude, chat, GOOD]))
    assert session.format == "anthropic-messages"
    assert session.requests[3].api == "anthropic-messages"


def test_a_given_format_reads_every_line() -> None:
    log = b"\n".join([body(messages=SYSTEM), body(system="s")])
    for name in ("openai", "openai-chat"):
        session = load_bytes(log, format=name)
        assert session.format == "openai-chat"
        assert len(session.requests) == 2
        notes = " ".join(session.requests[1].notes)
        assert "'system' is no field of this format" in notes
        assert "looks like anthropic-messages and was read as openai-chat" in notes
    assert load_bytes(log, format="anthropic").format == "anthropic-messages"
    with pytest.raises(InputError, match="the format 'csv' is unknown; use one of"):
        load_bytes(log, format="csv")


def test_blocks_are_the_same_tuple_whenever_they_are_asked_for() -> None:
    """What is computed from a request is told to be unchanged by the identity of its blocks."""
    (request,) = load_bytes(GOOD).requests
    assert request.blocks is request.blocks
    changed = replace(request, settings={})
    assert changed.blocks is request.blocks


def test_a_request_can_be_compared_replaced_and_pickled(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(GOOD)
    request = load(path).requests[0]
    assert load(path).name == "log.jsonl"
    assert request == load_bytes(GOOD).requests[0]
    assert request != load_bytes(body(temperature=1)).requests[0]
    changed = replace(request, blocks=())
    assert (changed.body, changed.blocks, changed.line) == (GOOD, (), 1)
    assert pickle.loads(pickle.dumps(request)) == request
    with pytest.raises(AttributeError):
        request.model = "x"  # type: ignore[misc]


@pytest.mark.parametrize("paths", ["", [""], ["sample.jsonl", ""]])
def test_an_empty_name_is_not_the_folder_one_is_in(
    paths: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sample.jsonl").write_bytes(GOOD)
    with pytest.raises(InputError, match="the name of a file is empty"):
        load(paths)


def test_a_file_of_rubbish_behind_one_good_line_is_not_read_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_reader, "MAX_BROKEN", 50)
    session = load_bytes(GOOD + b"\n" + b"1\n" * 1000)
    assert len(session.requests) == 1
    assert len(session.skipped) == 51
    assert session.skipped[-1].reason == "50 records are of no use; the rest was not read"
