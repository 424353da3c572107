"""Every format: the made session comes out the same, whatever log it was written to."""

from __future__ import annotations

import json
from itertools import pairwise
from types import ModuleType

import pytest

from codesmith_lab.sessions.reading.load import FORMATS, load_bytes
from codesmith_lab.sessions.records import Request, Session

NO_WRITES = ("gemini", "gemini streams", "codex", "openrouter")
SPLIT_WRITES = ("anthropic", "bedrock-converse", "claude-code", "har", "vcr ruby")
NO_CONTENT = ("claude-code", "codex", "openrouter")
NO_BODY = (*NO_CONTENT, "litellm", "otel", "otel pretty", "otel spans", "otel flat")
NO_BODY = (*NO_BODY, "otel openinference")
NO_TOOLS = ("otel openinference",)


def read(made: ModuleType, name: str) -> Session:
    return load_bytes(made.LOGS[name], name)


def counts(request: Request) -> tuple[int | None, ...]:
    usage = request.usage
    assert usage is not None
    written = (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens)
    whole = None if written == (None, None) else sum(n or 0 for n in written)
    return usage.input_tokens, usage.cache_read_tokens, whole, usage.output_tokens


def test_there_is_a_made_log_of_every_format(made: ModuleType) -> None:
    assert {name.split(" ")[0] for name in made.LOGS} == set(FORMATS)


def test_the_format_is_found_out(made: ModuleType, log_name: str) -> None:
    session = read(made, log_name)
    assert session.format == log_name.split(" ")[0]
    assert session.name == log_name
    assert [entry.reason for entry in session.skipped] == (
        ["1 record is no call to a language model"] if log_name.startswith("har") else []
    )


def test_requests_times_and_models(made: ModuleType, log_name: str) -> None:
    requests = read(made, log_name).requests
    assert [r.index for r in requests] == [0, 1, 2]
    assert [r.time for r in requests] == [made.time_of(turn) for turn in range(3)]
    (model,) = {r.model for r in requests}
    assert any(kind in model for kind in ("gpt-5.6", "claude-sonnet-4-5", "gemini-2.5-pro"))
    assert all(not r.flags for r in requests)


def test_usage_to_the_token(made: ModuleType, log_name: str) -> None:
    expected = [
        (total, read_, None if log_name in NO_WRITES else written, output)
        for total, read_, written, output in made.COUNTS
    ]
    requests = read(made, log_name).requests
    assert [counts(request) for request in requests] == expected
    for request in requests:
        assert request.usage is not None
        long = request.usage.cache_write_1h_tokens
        assert long == (32 if log_name.startswith(SPLIT_WRITES) else None)


def test_content_in_prompt_order(made: ModuleType, log_name: str) -> None:
    for turn, request in enumerate(read(made, log_name).requests):
        if log_name in NO_CONTENT:
            assert (request.content, request.blocks, request.api) == ("none", (), "")
            continue
        assert request.content == ("partial" if log_name in NO_TOOLS else "whole")
        blocks = [b for b in request.blocks if b.name != "reasoning"]
        kinds = [block.kind for block in blocks]
        assert kinds.count("tool") == (0 if log_name in NO_TOOLS else 1)
        assert all("tide" in block.name for block in blocks if block.kind == "tool")
        assert [b.text for b in blocks if b.kind == "section"] == [made.SYSTEM]
        messages = [b for b in blocks if b.kind in ("message", "part")]
        said = [made.QUESTION, "tide", made.TIDE, made.ANSWER, made.NEXT]
        assert len(messages) == (1, 3, 5)[turn]
        for block, text in zip(messages, said, strict=False):
            assert text in block.text
        roles = ["user", "assistant", "tool", "assistant", "user"][: len(messages)]
        if request.api == "anthropic-messages" or request.api == "bedrock-converse":
            roles = ["user" if role == "tool" else role for role in roles]
        assert [b.role for b in messages] == roles
        # What follows the last answer is this turn's own.
        own = 1 if turn == 0 else [b.role for b in messages][::-1].index("assistant")
        assert [b.zone for b in messages][-own:] == ["scratch"] * own


def test_the_body_is_kept_to_the_byte(made: ModuleType, log_name: str) -> None:
    log = made.LOGS[log_name]
    for request in read(made, log_name).requests:
        if log_name in NO_BODY:
            assert request.body == b""
            continue
        body = json.loads(request.body)
        assert any(key in body for key in ("messages", "input", "contents"))
        if not log_name.startswith(("har", "vcr")):
            assert request.body in log
        for block in request.blocks:
            if "chained" not in log_name:
                assert block.raw in request.body
        if log_name.startswith("har"):
            # The bytes sent are the posted text, not what stands in the HAR.
            assert json.dumps(request.body.decode(), ensure_ascii=True).encode() in log


def test_the_answer_is_what_the_history_holds_later(made: ModuleType, log_name: str) -> None:
    if log_name in NO_CONTENT or log_name in ("otel openinference", "litellm spend"):
        return
    requests = read(made, log_name).requests
    for before, after in pairwise(requests):
        assert before.output
        said = [block.text for block in before.output]
        assert set(said) <= {block.text for block in after.blocks}


def test_lines_are_those_of_the_file(made: ModuleType, log_name: str) -> None:
    lines = made.LOGS[log_name].split(b"\n")
    for request in read(made, log_name).requests:
        assert lines[request.line - 1].strip()
        if len(lines) == 3:
            assert request.line == request.index + 1


def test_no_key_is_kept(made: ModuleType, log_name: str) -> None:
    for request in read(made, log_name).requests:
        shown = repr(request.scope) + repr(request.settings) + repr(request.notes)
        for key in ("sk-secret", "0123456789abcdef", "fedcba9876543210"):
            assert key not in shown
            assert key.encode() not in request.body


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_interleaved_logs_keep_their_scopes(made: ModuleType, order: tuple[int, ...]) -> None:
    """Sessions that are mixed in one file read as they do alone."""
    names = ["openai-chat", "anthropic-messages", "openai-responses"]
    split = [made.LOGS[names[i]].split(b"\n") for i in order]
    mixed = b"\n".join(line for turn in range(3) for line in (log[turn] for log in split))
    together = load_bytes(mixed)
    assert len(together.requests) == 9
    for name in names:
        alone = read(made, name)
        found = [r for r in together.requests if r.api == name]
        assert [r.blocks for r in found] == [r.blocks for r in alone.requests]
        assert [r.scope for r in found] == [r.scope for r in alone.requests]
        assert [r.body for r in found] == [r.body for r in alone.requests]
