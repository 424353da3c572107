"""What a log repeats is read once, and reading it so changes nothing."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.errors import InputError
from codesmith_lab.samples.agent_log import agent_log_lines
from codesmith_lab.sessions.reading.load import load_bytes

TEXTS = st.sampled_from(["a", "é", "b" * 3000, "\ud800", "# H\nx", "", "😀"])
CONTENTS = TEXTS | st.lists(
    st.builds(lambda t: {"type": "text", "text": t}, TEXTS)
    | st.just({"type": "zzz"})
    | st.just({"type": "text", "text": "m", "cache_control": {"type": "ephemeral"}}),
    max_size=3,
)
CHAT = st.one_of(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant", "system"]),
        CONTENTS,
    ),
    st.builds(
        lambda name, call: {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call, "function": {"name": name, "arguments": "{}"}}],
        },
        st.sampled_from("fgh"),
        st.sampled_from("12"),
    ),
    st.builds(
        lambda call: {"role": "tool", "tool_call_id": call, "content": "r"}, st.sampled_from("12")
    ),
)
CLAUDE = st.one_of(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant"]),
        CONTENTS,
    ),
    st.builds(
        lambda name, call: {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": call, "name": name, "input": {}}],
        },
        st.sampled_from("fgh"),
        st.sampled_from("12"),
    ),
    st.builds(
        lambda call: {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": call, "content": "r"},
                {"type": "text", "text": "t"},
            ],
        },
        st.sampled_from("12"),
    ),
)
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["append", "insert", "replace", "remove", "cut", "swap", "move"]),
        st.integers(0, 9),
        st.integers(0, 5),
    ),
    max_size=8,
)


def histories(messages: list[Any], edits: list[tuple[str, int, int]]) -> list[list[Any]]:
    """One history after another, each an edit of the one before."""
    now = list(messages[:3])
    found = [list(now)]
    for edit, at, pick in edits:
        at = min(at, max(0, len(now) - 1))
        message = messages[pick % len(messages)]
        if edit == "append":
            now += [message, messages[0]]
        elif edit == "insert":
            now.insert(at, message)
        elif edit == "replace" and now:
            now[at] = message
        elif edit == "remove":
            del now[at : at + 1]
        elif edit == "cut":
            del now[at:]
        elif edit == "swap":
            now.reverse()
        elif now:
            now.append(now.pop(at))
        found.append(list(now))
    return found


@pytest.mark.parametrize("kind", ["openai-chat", "anthropic-messages"])
@given(data=st.data(), edits=EDITS, ascii_only=st.booleans())
def test_a_log_reads_as_its_lines_do_one_by_one(
    kind: str, data: st.DataObject, edits: list[tuple[str, int, int]], ascii_only: bool
) -> None:
    """The slow clear way beside the fast one: each line alone, with nothing to share."""
    one = CHAT if kind == "openai-chat" else CLAUDE
    messages = data.draw(st.lists(one, min_size=1, max_size=6))
    lines = []
    for turn, history in enumerate(histories(messages, edits)):
        body: dict[str, Any] = {"tools": [{"name": "t" * (turn // 3 + 1)}], "messages": history}
        if kind == "anthropic-messages":
            body["system"] = [{"type": "text", "text": "s" * (turn // 2)}]
        line = {"n": "9" * turn, "request": body}
        text = json.dumps(line, ensure_ascii=ascii_only)
        lines.append(text.encode("utf-8", "replace"))
    together = load_bytes(b"\n".join(lines), format=kind)
    assert together.skipped == ()
    for line, request in zip(lines, together.requests, strict=True):
        (alone,) = load_bytes(line, format=kind).requests
        assert request.body in line
        for field in ("body", "blocks", "settings", "notes"):
            assert getattr(request, field) == getattr(alone, field)


def test_equal_messages_are_one_block_and_its_text_is_kept_once() -> None:
    session = load_bytes(b"\n".join(agent_log_lines(30, drift_every=10)))
    first, last = session.requests[5], session.requests[-1]
    shared = {id(b): b for b in first.blocks if b.zone == "log"}
    assert len(shared) > 20
    assert set(shared) <= {id(b) for b in last.blocks}
    assert {id(b) for b in first.blocks if b.kind == "tool"} <= {id(b) for b in last.blocks}
    # The system prompt has drifted: its sections are others, the text that stayed is the same.
    rules = [next(b for b in r.blocks if b.name == "rules") for r in (first, last)]
    assert rules[0] is not rules[1] and rules[0].text is rules[1].text


def test_memory_grows_with_what_is_new_and_not_with_the_square_of_the_turns() -> None:
    log = b"\n".join(agent_log_lines(120, new_tokens_per_turn=400))
    assert len(log) > 20_000_000
    tracemalloc.start()
    session = load_bytes(log)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 4_000_000
    assert b"\n".join(log.split(b"\n")) == log
    for line, request in zip(log.split(b"\n"), session.requests, strict=True):
        assert request.body in line


SEEDS = [
    b'{"time":1,"request":{"model":"m","messages":[{"role":"user","content":"hi"},'
    b'{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}],'
    b'"tools":[{"type":"function","function":{"name":"f"}}]},"usage":{"prompt_tokens":5},'
    b'"response":{"choices":[{"message":{"content":"\\ud83d\\ude00"}}]}}',
    b'{"system":[{"type":"text","text":"# A\\nx","cache_control":{"type":"ephemeral"}}],'
    b'"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1",'
    b'"content":[{"type":"text","text":"\xc3\xa9"}]},{"type":"image","source":{"data":"A"}}]}],'
    b'"rebuild":{"reason":"x","before":1,"after":2},"response":{"content":[{"type":"thinking"}]}}',
]
FIELDS = (
    *("type", "text", "role", "content", "name", "id", "function", "arguments", "tool_calls"),
    *("source", "data", "url", "tool_use_id", "cache_control", "ttl", "choices", "message"),
    *("usage", "input", "image_url", "file"),
)
KINDS = ("text", "tool_use", "tool_result", "image", "image_url", "file", "tool")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS) | st.text(max_size=3),
            inner | st.sampled_from(KINDS),
            max_size=4,
        )
    ),
    max_leaves=15,
)
TOP = st.sampled_from(
    [
        *("messages", "tools", "system", "functions", "request", "response"),
        *("usage", "rebuild", "time", "model", "_markers"),
    ]
)


def survives(data: bytes) -> None:
    for given_format in (None, "openai-chat", "anthropic-messages"):
        try:
            session = load_bytes(data, "log.jsonl", given_format)
        except InputError as error:
            assert str(error).startswith("log.jsonl")
            continue
        lines = data.split(b"\n")
        for request in session.requests:
            assert request.body in lines[request.line - 1]
            for block in (*request.blocks, *(request.output or ())):
                (block.text + block.name + block.role).encode("utf-8")
                assert block.raw in lines[request.line - 1]
            for index, _ in request.settings.get("_markers", ()):
                assert index < len(request.blocks)


@given(st.binary(max_size=200))
def test_any_bytes_end_in_an_input_error_at_most(data: bytes) -> None:
    survives(data)


@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 600), st.binary(max_size=3))))
def test_mutated_logs_end_in_an_input_error_at_most(
    seed: bytes, changes: list[tuple[int, bytes]]
) -> None:
    mutated = bytearray(seed)
    for at, new in changes:
        at %= len(mutated) + 1
        mutated[at : at + len(new)] = new
    survives(seed + b"\n" + bytes(mutated) + b"\n" + seed[: len(changes) * 9])


@given(
    st.lists(
        st.dictionaries(
            TOP, JSON | st.lists(JSON, max_size=4) | st.dictionaries(TOP, JSON, max_size=3)
        ),
        min_size=1,
        max_size=3,
    )
)
def test_wrong_types_everywhere_end_in_an_input_error_at_most(bodies: list[Any]) -> None:
    survives(b"\n".join(json.dumps(body).encode() for body in bodies))


@given(st.lists(JSON, max_size=4), st.lists(JSON, max_size=2), JSON)
def test_wrong_types_in_messages_are_still_requests(
    messages: list[Any], tools: list[Any], response: Any
) -> None:
    user = {"role": "user", "content": messages}
    lines = [
        {"request": {"messages": [user, *messages], "tools": tools}, "response": response},
        {"messages": [*messages, user], "system": tools, "usage": response, "time": response},
    ]
    survives(b"\n".join(json.dumps(line).encode() for line in lines))
