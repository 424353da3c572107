"""Cassettes in YAML: read safely, with limits."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import codesmith_lab as lab
from codesmith_lab.errors import InputError
from codesmith_lab.sessions.reading import yaml_records
from codesmith_lab.sessions.reading.json_spans import BadJson
from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.reading.yaml_records import read_interactions

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]))
    | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abé ~:1"), inner),
    max_leaves=9,
)


def interactions(text: str) -> list[Any]:
    return [value for _, value in read_interactions(io.BytesIO(text.encode()))]


@given(st.lists(VALUES, max_size=4), st.sampled_from([None, True, False]))
def test_values_are_those_of_the_safe_loader(values: list[Any], style: bool | None) -> None:
    text = yaml.safe_dump(
        {"version": 1, "interactions": values},
        allow_unicode=True,
        default_flow_style=style,
        sort_keys=False,
    )
    assert interactions(text) == yaml.safe_load(text)["interactions"]


def test_lines_are_where_interactions_start() -> None:
    text = "version: 1\ninteractions:\n- a: 1\n- b:\n    c: 2\n"
    lines = [line for line, _ in read_interactions(io.BytesIO(text.encode()))]
    assert lines == [3, 4]


def test_no_tag_makes_an_object() -> None:
    text = "interactions:\n- !!python/object/apply:os.system [echo]\n- !x {a: !y 1}\n"
    assert interactions(text) == [["echo"], {"a": "1"}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- &a [*a]", "the alias on line 2 stands inside itself"),
        ("- &a {b: {c: *a}}", "the alias on line 2 stands inside itself"),
        ("- [*a]", "the alias on line 2 names nothing"),
        ("- [1", "it is not YAML"),
        ("- a: b: c", "it is not YAML on line 2"),
        ("- \x01", "it is not YAML"),
        ("- " + "[" * 100_000, "nests deeper than 200 levels"),
        ("- " + "- " * 10_000, "nests deeper than 200 levels"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, reason: str) -> None:
    with pytest.raises(BadJson) as caught:
        interactions("interactions:\n" + text)
    assert reason in str(caught.value)
    with pytest.raises(InputError, match="cassette.yaml, line 1"):
        load_bytes(b"interactions:\n" + text.encode(), "cassette.yaml")


def test_aliases_are_not_copied_and_their_number_is_limited() -> None:
    lines = ["interactions:", "- a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    for level in range(1, 9):
        lines.append(f"  a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")
    tracemalloc.start()
    with pytest.raises(BadJson, match="stand for more than 1,000,000 values by line"):
        interactions("\n".join(lines))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


def test_the_bytes_of_an_interaction_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_records, "MAX_RECORD_BYTES", 1 << 20)
    long = "interactions:\n- a: 1\n- b: " + "x" * (3 << 20)
    with pytest.raises(BadJson, match="an interaction is longer than"):
        interactions(long)
    many = "interactions:\n" + "- a: 1\n" * 200_000
    assert len(interactions(many)) == 200_000


def test_what_was_read_before_a_break_is_kept(made: ModuleType) -> None:
    log = made.LOGS["vcr"]
    broken = log.replace(b"version: 1", b"  : [")
    session = load_bytes(broken)
    # The parser reads ahead: the last interaction ends where the break is.
    assert len(session.requests) == 2
    assert "it is not YAML" in session.skipped[0].reason


def test_exchanges_that_are_no_calls_are_counted(tmp_path: Path, made: ModuleType) -> None:
    other = {
        "request": {"method": "GET", "uri": "https://harbour.example/", "body": None},
        "response": {"status": {"code": 200}, "body": {"string": "<p>"}},
    }
    call = {
        "request": {
            "method": "POST",
            "uri": "https://gateway.example/v1/chat/completions",
            "body": json.dumps(made.chat_body(0)),
        },
        "response": {"status": {"code": 429}, "body": {"string": "no"}},
    }
    text = yaml.safe_dump({"interactions": [other, call, other], "version": 1})
    session = load_bytes(text.encode())
    (request,) = session.requests
    assert (request.status, request.usage, request.scope.provider) == (429, None, "gateway.example")
    assert [entry.reason for entry in session.skipped] == [
        "2 records are no call to a language model"
    ]


@pytest.mark.parametrize("first", ["", "version: 1\n", "# a note\nrecorded: by hand\n"])
def test_interactions_may_be_an_alias_of_a_list_elsewhere(first: str) -> None:
    log = f"""{first}base: &all
- request:
    method: POST
    uri: https://api.openai.com/v1/chat/completions
    body: '{{"model":"gpt-5","messages":[{{"role":"user","content":"Go."}}]}}'
  response:
    status: {{code: 200}}
    body: {{string: '{{"choices":[]}}'}}
interactions: *all
"""
    session = lab.load_bytes(log.encode())
    assert (session.format, len(session.requests)) == ("vcr", 1)
    assert session.requests[0].blocks[0].text == "Go."


def test_a_list_named_again_and_again_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_records, "MAX_ALIASED_VALUES", 1000)
    once = "version: 1\na: &a [" + "1," * 300 + "1]\n"
    again = once + "interactions: *a\n" * 5
    with pytest.raises(BadJson, match="its aliases stand for more than 1,000 values by line 6"):
        list(read_interactions(io.BytesIO(again.encode())))
    other = once + "interactions: *a\n---\ninteractions: *a\n"
    with pytest.raises(BadJson, match="the alias on line 5 names nothing"):
        list(read_interactions(io.BytesIO(other.encode())))


def test_only_what_aliases_stand_for_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_records, "MAX_ALIASED_VALUES", 1000)
    plain = "version: 1\nmeta: [" + "1," * 2000 + "1]\ninteractions:\n- {a: 1}\n"
    assert list(read_interactions(io.BytesIO(plain.encode()))) == [(4, {"a": 1})]
    nested = "a: &a [" + "1," * 400 + "1]\nb: &b [*a, *a]\nc: {d: {e: [*b]}}\n"
    with pytest.raises(BadJson, match="its aliases stand for more than 1,000 values"):
        list(read_interactions(io.BytesIO(nested.encode())))
