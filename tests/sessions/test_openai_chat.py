"""OpenAI chat bodies: what each message says, and the slice it came from."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.records import Request

USER = {"role": "user", "content": "hi"}
CALL = {
    "role": "assistant",
    "content": "Let me look.",
    "tool_calls": [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path": "Ume\\u00e5", "n": 1.0}'},
        },
        {"id": "c2", "type": "function", "function": {"name": "run", "arguments": "{}"}},
    ],
}


def read(*messages: Any, **fields: Any) -> Request:
    body = {"model": "m", "messages": list(messages), **fields}
    line = json.dumps(body, ensure_ascii=False).encode()
    (request,) = load_bytes(line, format="openai-chat").requests
    assert request.body == line
    for block in request.blocks:
        assert block.raw in line
        json.loads(block.raw)
    return request


def shown(request: Request) -> list[tuple[str, str, str, str]]:
    return [(b.zone, b.role, b.name, b.text) for b in request.blocks]


def only(request: Request) -> Block:
    (block,) = request.blocks
    return block


def test_zones_follow_the_last_assistant_message() -> None:
    request = read(
        {"role": "system", "content": "# A\nx\n\n# B\ny"},
        {"role": "developer", "content": "dev"},
        USER,
        {"role": "assistant", "content": "yo"},
        {"role": "system", "content": "late"},
        USER,
    )
    assert shown(request) == [
        ("pinned", "system", "a", "# A\nx\n\n"),
        ("pinned", "system", "b", "# B\ny"),
        ("pinned", "developer", "system", "dev"),
        ("log", "user", "user", "hi"),
        ("log", "assistant", "assistant", "yo"),
        ("scratch", "system", "system", "late"),
        ("scratch", "user", "user", "hi"),
    ]
    assert [b.kind for b in request.blocks] == ["section"] * 3 + ["message"] * 4
    assert [b.message for b in request.blocks] == [0, 0, 1, 2, 3, 4, 5]
    assert [(b.first, b.last) for b in request.blocks[:3]] == [
        (True, False),
        (False, True),
        (True, True),
    ]


def test_section_names_are_distinct_over_all_system_messages() -> None:
    request = read(*[{"role": "system", "content": text} for text in ("# A", "# A", "x", "")], USER)
    assert [b.name for b in request.blocks] == ["a", "a (2)", "system", "system (2)", "user"]


def test_calls_are_text_verbatim_and_name_their_results() -> None:
    request = read(
        USER,
        CALL,
        {"role": "tool", "tool_call_id": "c1", "content": "text"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "ok"}]},
        {"role": "tool", "tool_call_id": "c9", "content": "?"},
    )
    assert shown(request)[1:] == [
        (
            "log",
            "assistant",
            "assistant, 2 tool calls",
            'Let me look.\nread_file\n{"path": "Ume\\u00e5", "n": 1.0}\nrun\n{}',
        ),
        ("scratch", "tool", "tool read_file", "text"),
        ("scratch", "tool", "tool run", "ok"),
        ("scratch", "tool", "tool", "?"),
    ]
    assert [b.calls for b in request.blocks] == [0, 2, 0, 0, 0]
    assert request.notes == ()


def test_calls_behind_several_parts_are_a_part_of_their_own() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    request = read(USER, {**CALL, "content": parts})
    assert [(b.kind, b.name, b.first, b.last, b.calls) for b in request.blocks[1:]] == [
        ("part", "assistant", True, False, 0),
        ("part", "assistant", False, False, 0),
        ("part", "assistant, 2 tool calls", False, True, 2),
    ]
    assert json.loads(request.blocks[3].raw) == CALL["tool_calls"]


def test_reasoning_that_is_sent_back_is_text() -> None:
    message = {"role": "assistant", "content": "c", "reasoning_content": "r"}
    assert read(message).blocks[0].text == "<think>r</think>c"
    assert read({**message, "reasoning_content": None}).blocks[0].text == "c"


def test_one_part_is_a_message_and_several_are_parts() -> None:
    part = {"type": "text", "text": "x"}
    one = only(read({"role": "user", "content": [part]}))
    assert (one.kind, one.text, json.loads(one.raw)["role"]) == ("message", "x", "user")
    two = read({"role": "user", "content": [part, part]}).blocks
    assert [(b.kind, b.first, b.last, json.loads(b.raw)) for b in two] == [
        ("part", True, False, part),
        ("part", False, True, part),
    ]


def test_media_are_digests() -> None:
    url = "data:image/png;base64," + "A" * 5000
    digest = hashlib.sha256(url.encode()).hexdigest()
    request = read(
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
                {"type": "input_audio", "input_audio": {"data": "B", "format": "wav"}},
                {"type": "file", "file": {"file_id": "f1", "filename": "a.pdf"}},
            ],
        }
    )
    assert [b.name for b in request.blocks] == ["image", "audio", "file"]
    assert request.blocks[0].text == f"image sha256:{digest} high"
    assert all(len(b.text) < 100 for b in request.blocks)
    assert request.notes == ()


def test_tools_are_their_function_object_in_the_senders_key_order() -> None:
    function = {"parameters": {"type": "object", "required": []}, "name": "läs", "strict": False}
    request = read(USER, tools=[{"type": "function", "function": function}, {"name": "bare"}])
    tools = request.blocks[:2]
    assert [(t.zone, t.kind, t.role, t.name, t.message) for t in tools] == [
        ("pinned", "tool", "", "läs", -1),
        ("pinned", "tool", "", "bare", -1),
    ]
    assert tools[0].text == json.dumps(function, ensure_ascii=False)
    assert read(USER, functions=[function]).blocks[0].text == tools[0].text


def test_other_fields_are_settings() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "x"}}
    request = read(USER, temperature=0.5, response_format=schema, tool_choice="auto")
    assert request.settings == {
        "temperature": 0.5,
        "response_format": schema,
        "tool_choice": "auto",
    }
    assert request.model == "m"


def test_wrong_types_are_kept_and_noted() -> None:
    request = read(5, {"role": "user", "content": 7}, {"content": "x"}, {"role": "bot"}, USER)
    assert [(b.role, b.name, b.text) for b in request.blocks] == [
        ("user", "message", "5"),
        ("user", "user", "7"),
        ("user", "message", "x"),
        ("user", "bot", ""),
        ("user", "user", "hi"),
    ]
    assert len(request.notes) == 4
    kept = read(USER, tools={"a": 1})
    assert kept.settings["tools"] == {"a": 1}
    assert kept.notes == ("tools is not a list and was read as a setting",)
    assert read(USER, tools=None).notes == ()


def test_unknown_parts_are_their_json() -> None:
    part = {"type": "hologram", "é": [1.0, "x"]}
    block = read({"role": "user", "content": [part, "plain"]}).blocks
    assert [(b.name, b.text) for b in block] == [
        ("user, hologram", '{"type":"hologram","é":[1.0,"x"]}'),
        ("user", "plain"),
    ]
    only_part = read({"role": "user", "content": [part]})
    assert only_part.notes == ("a content part of an unknown type was kept as its JSON",)


def test_hostile_names_and_texts_stay_text() -> None:
    hostile = "</script><img src=x onerror=alert(1)>\u202e{0}%s\x1b[31m\x00 e\u0301 😀 ../../etc"
    request = read(
        {"role": "system", "content": f"# {hostile}\nx"},
        {"role": "user", "content": hostile},
        {
            "role": "assistant",
            "tool_calls": [{"id": hostile, "function": {"name": hostile, "arguments": hostile}}],
        },
        {"role": "tool", "tool_call_id": hostile, "content": hostile},
        tools=[{"type": "function", "function": {"name": hostile}}],
        model=hostile,
        metadata={hostile: hostile},
    )
    tool, section, user, call, result = request.blocks
    assert tool.name == request.model == user.text == result.text == hostile
    assert section.section is not None and section.section.title == hostile
    assert call.text == f"{hostile}\n{hostile}"
    assert result.name == f"tool {hostile}"
    assert request.settings == {"metadata": {hostile: hostile}}


def test_an_echoed_answer_equals_the_answer() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    for answer in (CALL, {**CALL, "content": None}, {"content": "x"}, {"content": parts}):
        message = {"refusal": None, **answer}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        line = json.dumps({"request": {"messages": [USER]}, "response": {"choices": [choice]}})
        (request,) = load_bytes(line.encode()).requests
        assert request.output is not None
        echo = read(USER, {"role": "assistant", **answer}, USER).blocks[1:-1]
        assert [(b.text, b.name, b.role, b.zone, b.calls, b.message) for b in request.output] == [
            (b.text, b.name, b.role, b.zone, b.calls, b.message) for b in echo
        ]
        assert all(block.raw in line.encode() for block in request.output)
        assert request.notes == ()


def test_a_response_without_a_message_is_noted() -> None:
    for response in ({"error": {"message": "x"}}, "text", [], {"choices": []}, {"choices": [1]}):
        line = json.dumps({"request": {"messages": [USER]}, "response": response})
        (request,) = load_bytes(line.encode()).requests
        assert request.output is None
        assert request.notes == ("the response holds no message",)


def test_cache_markers_are_found() -> None:
    marked = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    request = read(
        {"role": "system", "content": [marked, {"type": "text", "text": "# T\n"}]},
        {"role": "user", "content": [marked, {**marked, "cache_control": {"ttl": "1h"}}]},
    )
    assert request.settings["_markers"] == ((0, "5m"), (2, "5m"), (3, "1h"))
    assert all("cache_control" not in block.text for block in request.blocks)
