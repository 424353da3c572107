"""The log picker without a browser: pieces in, a session out."""

from __future__ import annotations

import json

import pytest

import codesmith_lab as lab


def line(text: str, model: str = "deepseek-v4-flash") -> bytes:
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    return json.dumps(body).encode() + b"\n"


@pytest.fixture
def picker() -> lab.LogPicker:
    picker = lab.LogPicker()
    picker.picker.chunk_bytes = 64
    picker.sent = []
    picker.picker.send = lambda content, buffers=None: picker.sent.append(content)
    return picker


def drop(picker: lab.LogPicker, name: str, data: bytes) -> None:
    """What the page does: announce the file, then answer each question with a piece."""
    widget = picker.picker
    widget._heard(widget, {"kind": "file", "name": name, "size": len(data)}, [])
    while picker.sent and picker.sent[-1]["kind"] == "send":
        at = picker.sent[-1]["offset"]
        piece = memoryview(data[at : at + widget.chunk_bytes])
        widget._heard(widget, {"kind": "piece", "offset": at}, [piece])


def test_a_dropped_log_opens_its_workbench(picker) -> None:
    data = line("hello " * 100) + b"not json\n" + line("hello " * 100 + "more")
    drop(picker, "my.jsonl", data)
    assert picker.session is not None
    assert [len(request.body) for request in picker.session.requests] == [
        len(part) for part in data.splitlines() if part.startswith(b"{")
    ]
    assert picker.bench in picker.children
    assert picker.picker.status.startswith("my.jsonl: 2 requests, openai-chat; 1 skipped")
    assert not picker.picker.busy
    assert picker.sent[-1] == {"kind": "stop"}


def test_a_bad_log_is_refused_in_words_and_the_next_one_opens(picker) -> None:
    drop(picker, "<img src=x>.jsonl", bytes(range(256)))
    assert "binary" in picker.picker.error
    assert picker.bench is None
    drop(picker, "good.jsonl", line("hello"))
    assert picker.picker.error == ""
    assert picker.bench is not None


def test_a_model_without_rules_asks_for_some(picker) -> None:
    drop(picker, "unknown.jsonl", line("hello " * 50, model="my-own-model"))
    assert "my-own-model" in picker.picker.error
    assert picker._rules.layout.display == ""
    picker._rules.value = "deepseek-v4"
    assert picker.picker.error == ""
    assert picker.bench is not None
    assert picker.bench.head["figures"][1]["value"] == "no price"


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "piece", "offset": 64},
        {"kind": "piece", "offset": 0},
        {"kind": "piece"},
    ],
)
def test_a_file_that_comes_over_wrong_is_given_up(picker, message) -> None:
    widget = picker.picker
    widget._heard(widget, {"kind": "file", "name": "a", "size": 10}, [])
    widget._heard(widget, message, [b"x" * 11])
    assert "drop it again" in widget.error
    assert not widget.busy


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(picker) -> None:
    widget = picker.picker
    widget._heard(widget, {"kind": "file", "name": "big", "size": 1 << 40}, [])
    assert "lab.load(path)" in widget.error
    assert picker.sent == [{"kind": "stop"}]
