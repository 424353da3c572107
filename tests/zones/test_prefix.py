"""The pinned zone: what is drift, what is not, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.errors import LabError
from codesmith_lab.zones import (
    AppendLog,
    PinnedPrefix,
    PrefixChange,
    PrefixStabilityManager,
    ThreeZoneRequest,
)


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": "", "input_schema": {}, **fields}


def openai(description: str) -> dict[str, Any]:
    return {"function": {"name": "f", "description": description}, "type": "function"}


def test_what_the_caller_still_holds_has_no_effect() -> None:
    blocks, tools = [{"type": "text", "text": "a"}], [tool("x", strict=True)]
    pinned = PinnedPrefix(blocks, tools)
    frozen = pinned.freeze()
    blocks[0]["text"] = "b"
    tools[0]["input_schema"]["new"] = 1
    tools.append(tool("y"))
    assert pinned.freeze() == frozen


@given(st.permutations([tool("b"), tool("a"), tool("ä"), tool("🚀"), tool("a")]))
def test_registration_order_never_cries_wolf(tools: list[dict[str, Any]]) -> None:
    assert PinnedPrefix("s", tools).freeze() == PinnedPrefix("s", sorted(tools, key=str)).freeze()


def test_the_catalog_is_sorted_by_bytes() -> None:
    names = ["\U00010000", "\uffff", "a", "Z"]  # UTF-16 would put the first before the second
    catalog = PinnedPrefix(None, [tool(name) for name in names]).freeze().tool_catalog
    lines = catalog.split("\n")
    assert lines == sorted(lines, key=lambda line: line.encode("utf-8"))


def test_a_reordered_tool_list_keeps_the_fingerprint_and_changes_the_wire() -> None:
    one, two = [tool("a"), tool("b")], [tool("b"), tool("a")]
    assert PinnedPrefix("s", one).freeze() == PinnedPrefix("s", two).freeze()
    wires = {
        ThreeZoneRequest("m", 1, PinnedPrefix("s", tools), AppendLog()).wire_json()
        for tools in (one, two)
    }
    assert len(wires) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (openai("old"), openai("new")),
        (tool("a", max_uses=1), tool("a", max_uses=2)),
        (tool("a", input_schema={"a": 1, "b": 2}), tool("a", input_schema={"b": 2, "a": 1})),
        (tool("a", input_schema={"a": 1}), tool("a", input_schema={"a": 1.0})),
        (tool("a"), tool("a", strict=False)),
        (tool("a"), tool("a", allowed_callers=[])),
    ],
)
def test_every_change_of_a_tool_is_drift(before: dict[str, Any], after: dict[str, Any]) -> None:
    drift = PinnedPrefix("s", [before]).freeze().verify("s", [after])
    assert drift is not None
    assert (drift.system_changed, drift.tools_changed) == (False, True)


def test_a_foreign_tool_keeps_its_fields_on_the_wire() -> None:
    wire = ThreeZoneRequest("m", 1, PinnedPrefix(None, [openai("d")]), AppendLog()).wire_json()
    assert '"tools":[{"type":"function","function":{"name":"f","description":"d"}}]' in wire


def test_verify_takes_a_whole_prefix_too() -> None:
    pinned = PinnedPrefix("s", [tool("a")])
    frozen = pinned.freeze()
    assert frozen.verify(pinned) is None
    assert frozen.verify(frozen) is None
    assert frozen.verify(PinnedPrefix("t", [tool("a")])) == frozen.verify("t", [tool("a")])
    with pytest.raises(LabError, match="brings its own tools"):
        frozen.verify(pinned, [])


@pytest.mark.parametrize(
    ("system", "tools", "words"),
    [
        ({"text": "a"}, [], "a system prompt is text, a list of blocks or None, not dict"),
        (b"a", [], "not bytes"),
        ([{"type": "image"}], [], "block 0 of the system prompt has no text"),
        ([{"type": "text", "text": None}], [], "block 0 of the system prompt has no text"),
        (["a"], [], "a block of the system prompt is a mapping, not str"),
        ("\udc80", [], "lone surrogate"),
        ("s", ["read"], "a tool is a mapping, not str"),
        ("s", tool("a"), "the tools are a list of mappings, not dict"),
        ("s", [tool("a", input_schema={"x": float("nan")})], "no number nan"),
        ("s", [tool("a", input_schema={"x": 2**64})], "does not fit in 64 bits"),
    ],
    ids=range(10),
)
def test_what_cannot_be_pinned_is_refused(system: Any, tools: Any, words: str) -> None:
    with pytest.raises(LabError, match=words):
        PinnedPrefix(system, tools).freeze()


def test_the_manager_is_fed_one_call_a_request() -> None:
    manager = PrefixStabilityManager()
    assert manager.check("s", [tool("a")]) is None
    assert manager.check([{"text": "s"}], [tool("a")]) is not None  # a block ends in a newline
    change = manager.check("s", [tool("b")])
    assert change is not None
    assert (change.label(), manager.check_count, manager.change_count) == ("sys+tools", 3, 2)
    assert manager.check("s", [tool("b")]) is None
    assert manager.last_change == change
    with pytest.raises(LabError, match="a check takes a FrozenPrefix"):
        manager.check_and_update("s")  # type: ignore[arg-type]


def test_a_change_of_no_known_part_says_so() -> None:
    change = PrefixChange("a", "b", False, False)
    assert change.label() == "prefix"
    assert "no component" in change.description()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=12))
def test_the_manager_counts_each_change_from_one_check_to_the_next(
    pairs: list[tuple[str, str]],
) -> None:
    manager = PrefixStabilityManager()
    for system, name in pairs:
        manager.check(system, [tool(name)])
    changes = sum(before != after for before, after in itertools.pairwise(pairs))
    assert (manager.check_count, manager.change_count) == (len(pairs), changes)
    assert manager.stability_ratio == (1 if not pairs else (len(pairs) - changes) / len(pairs))
    assert manager.pinned_short_id == manager.current_short_id
