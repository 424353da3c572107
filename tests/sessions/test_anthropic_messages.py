"""Anthropic Messages bodies: what each part says, and the slice it came from."""

from __future__ import annotations

import json
from typing import Any

from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.records import Request

MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
USER = {"role": "user", "content": "hi"}


def read(*messages: Any, **fields: Any) -> Request:
    body = {"model": "claude", **fields, "messages": list(messages)}
    line = json.dumps(body, ensure_ascii=False).encode()
    (request,) = load_bytes(line, format="anthropic").requests
    assert request.body == line
    for block in request.blocks:
        assert block.raw in line
        json.loads(block.raw)
    return request


def test_tools_then_system_then_messages() -> None:
    tool = {"name": "läs", "input_schema": {"type": "object"}, **MARK}
    request = read(
        USER,
        {"role": "assistant", "content": "yo"},
        {"role": "user", "content": [{"type": "text", "text": "q"}]},
        system=[{"type": "text", "text": "# A\nx\n# B\ny", **HOUR}, {"type": "text", "text": "z"}],
        tools=[tool],
    )
    assert [(b.zone, b.kind, b.role, b.name, b.message) for b in request.blocks] == [
        ("pinned", "tool", "", "läs", -1),
        ("pinned", "section", "system", "a", -1),
        ("pinned", "section", "system", "b", -1),
        ("pinned", "section", "system", "system", -1),
        ("log", "message", "user", "user", 0),
        ("log", "message", "assistant", "assistant", 1),
        ("scratch", "message", "user", "user", 2),
    ]
    assert request.blocks[0].text == '{"name": "läs", "input_schema": {"type": "object"}}'
    assert request.settings == {"_markers": ((0, "5m"), (2, "1h"))}
    # Sections share the slice of the system block they were cut from.
    assert request.blocks[1].raw is request.blocks[2].raw


def test_a_system_text_is_one_slice() -> None:
    request = read(USER, system='say "hi"')
    assert (request.blocks[0].text, request.blocks[0].raw) == ('say "hi"', b'"say \\"hi\\""')
    for nothing in ("", None, []):
        assert len(read(USER, system=nothing).blocks) == 1


def test_parts_of_every_kind() -> None:
    request = read(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "xyz"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"p": "å", "n": 1.0}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                },
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "AA"},
                },
                {
                    "type": "document",
                    "title": "T",
                    "source": {"type": "text", "media_type": "text/plain", "data": "doc"},
                },
                {"type": "hologram", "x": 1, **MARK},
            ],
        },
    )
    texts = [(b.name, b.text, b.calls) for b in request.blocks]
    assert texts[0] == ("thinking", "hm", 0)
    assert texts[1][0] == "redacted thinking" and texts[1][1].startswith("thinking sha256:")
    assert texts[2:5] == [
        ("assistant", "I look.", 0),
        ("tool call read", 'read\n{"p": "å", "n": 1.0}', 1),
        ("tool read", "a\nb", 0),
    ]
    assert texts[5][0] == "image" and texts[5][1].endswith(" image/png")
    assert texts[6:] == [
        ("document", "T\ndoc", 0),
        ("user, hologram", '{"type":"hologram","x":1}', 0),
    ]
    assert request.settings["_markers"] == ((7, "5m"),)
    assert request.notes == ("a content part of an unknown type was kept as its JSON",)


def test_a_single_call_is_a_message_with_a_call() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    (block,) = read({"role": "assistant", "content": [call]}).blocks
    assert (block.kind, block.name, block.calls) == ("message", "tool call f", 1)


def test_a_marker_inside_a_tool_result_marks_its_block() -> None:
    inner = [{"type": "text", "text": "x", **HOUR}]
    result = {"type": "tool_result", "tool_use_id": "t", "content": inner}
    assert read(USER, {"role": "user", "content": [result]}).settings["_markers"] == ((1, "1h"),)


def test_five_markers_are_all_counted() -> None:
    marked = [{"type": "text", "text": "x", **MARK}]
    request = read(
        {"role": "user", "content": marked},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": marked},
        system=marked * 2,
        tools=[{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}, **MARK}],
    )
    assert [index for index, _ in request.settings["_markers"]] == [1, 2, 3, 4, 6]


def test_a_broken_marker_is_noted() -> None:
    part = {"type": "text", "text": "x", "cache_control": "yes"}
    request = read({"role": "user", "content": [part]})
    assert "_markers" not in request.settings
    assert request.notes == ("a cache_control that is not an object was passed over",)


def test_an_echoed_answer_equals_the_answer() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": [1]}}
    for content in ([{"type": "text", "text": "x"}], [{"type": "text", "text": "x"}, call], [call]):
        response = {"id": "m", "type": "message", "role": "assistant", "content": content}
        line = json.dumps({"request": {"system": "s", "messages": [USER]}, "response": response})
        session = load_bytes(line.encode())
        assert session.format == "anthropic-messages"
        output = session.requests[0].output
        assert output is not None
        echo = read(USER, {"role": "assistant", "content": content}, USER).blocks[1:-1]
        assert [(b.text, b.name, b.role, b.calls, b.message) for b in output] == [
            (b.text, b.name, b.role, b.calls, b.message) for b in echo
        ]
        assert all(block.raw in line.encode() for block in output)


def test_empty_messages_with_a_system_prompt_are_a_request() -> None:
    assert len(read(system="s").blocks) == 1


def test_reported_counters_follow_the_format() -> None:
    usage = {
        "input_tokens": 3,
        "output_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 10,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 6},
    }
    for place in ({"usage": usage}, {"response": {"content": [], "usage": usage}}):
        line = json.dumps({"request": {"messages": [USER]}, **place})
        session = load_bytes(line.encode())
        assert session.format == "anthropic-messages"
        counted = session.requests[0].usage
        assert counted is not None
        assert (counted.input_tokens, counted.cache_read_tokens) == (113, 100)
        assert (counted.cache_write_5m_tokens, counted.cache_write_1h_tokens) == (4, 6)
