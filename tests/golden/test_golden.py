"""Every golden vector, bit for bit."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from codesmith_lab.prompt import (
    PromptBundle,
    PromptSection,
    build_effective_prompt,
    parse_rendered_sections,
    system_to_text,
)
from codesmith_lab.prompt.sections import escape_attribute, unescape_attribute
from codesmith_lab.zones import (
    AppendLog,
    PinnedPrefix,
    PrefixChange,
    PrefixDrift,
    PrefixStabilityManager,
    RebuildReason,
    ThreeZoneRequest,
    TurnScratch,
)

HERE = Path(__file__).parent


def vectors(name: str, *kinds: str) -> list[Any]:
    lines = (HERE / f"{name}.jsonl").read_text("utf-8").rstrip("\n").split("\n")
    rows = [json.loads(line) for line in lines]
    chosen = [row for row in rows if row["kind"] in kinds]
    assert chosen
    return [pytest.param(row, id=row["id"]) for row in chosen]


def test_the_files_are_the_pinned_ones():
    for line in (HERE / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((HERE / name).read_bytes()).hexdigest() == digest


def test_every_kind_has_a_test():
    known = {
        "fingerprints": "freeze_system freeze_tools freeze_random verify drift_display "
        "change_text manager",
        "sections": "single body escape bundle attr preset_boundary parse effective system_to_text",
        "wire": "request rebuild_reason append_log",
    }
    for name, kinds in known.items():
        lines = (HERE / f"{name}.jsonl").read_text("utf-8").rstrip("\n").split("\n")
        assert {json.loads(line)["kind"] for line in lines} == set(kinds.split())


@pytest.mark.parametrize(
    "row", vectors("fingerprints", "freeze_system", "freeze_tools", "freeze_random")
)
def test_freeze(row):
    frozen = PinnedPrefix(row["system"], row["tools"]).freeze()
    assert {name: getattr(frozen, name) for name in row["expect"]} == row["expect"]


@pytest.mark.parametrize("row", vectors("fingerprints", "verify"))
def test_verify(row):
    frozen = PinnedPrefix(row["system"], row["tools"]).freeze()
    drift = frozen.verify(row["current_system_text"], row["current_tools"])
    expect = row["expect"]
    if expect["ok"]:
        assert drift is None
        return
    assert drift is not None
    assert str(drift) == expect["message"]
    for name in ("system_changed", "tools_changed", "frozen_hash", "current_hash"):
        assert getattr(drift, name) == expect[name]


@pytest.mark.parametrize("row", vectors("fingerprints", "drift_display"))
def test_drift_text(row):
    drift = PrefixDrift(
        row["frozen_hash"], row["current_hash"], row["system_changed"], row["tools_changed"]
    )
    assert str(drift) == row["expect"]


@pytest.mark.parametrize("row", vectors("fingerprints", "change_text"))
def test_change_text(row):
    change = PrefixChange("a", "b", row["system_changed"], row["tools_changed"])
    assert (change.description(), change.label()) == (row["description"], row["label"])


@pytest.mark.parametrize("row", vectors("fingerprints", "manager"))
def test_manager(row):
    manager = PrefixStabilityManager()
    assert manager.summary() == row["summary_before"]
    assert manager.stability_ratio == row["ratio_before"]
    frozen = [PinnedPrefix(p["system"], p["tools"]).freeze() for p in row["prefixes"]]
    for step in row["steps"]:
        change = manager.check_and_update(frozen[step["prefix"]])
        result = step["result"]
        assert (change is None) == result["stable"]
        if change is not None:
            seen = {
                name: getattr(change, name)
                for name in ("old_sha256", "new_sha256", "system_changed", "tools_changed")
            }
            seen |= {"description": change.description(), "label": change.label()}
            assert seen == result["change"]
        last = manager.last_change
        assert (last.label() if last else None) == step["last_change_label"]
        for name in ("check_count", "change_count", "stability_ratio", "pinned_short_id"):
            assert getattr(manager, name) == step[name]
        assert manager.current_short_id == step["current_short_id"]
        assert manager.summary() == step["summary"]


def section(row: dict[str, Any]) -> PromptSection:
    return PromptSection(**row)


def check_bundle(bundle: PromptBundle, expect: dict[str, Any]) -> None:
    assert bundle.render_text() == expect["render_text"]
    assert bundle.stable_prefix_text() == expect["stable_prefix_text"]
    assert bundle.dynamic_boundary_index == expect["dynamic_boundary_index"]
    check_parsed(bundle.render_text(), expect["parsed"])


def check_parsed(text: str, expect: list[dict[str, Any]] | None) -> None:
    parsed = parse_rendered_sections(text)
    if expect is None:
        assert parsed is None
        return
    assert parsed is not None
    assert [{name: getattr(s, name) for name in expect[0]} for s in parsed] == expect


@pytest.mark.parametrize("row", vectors("sections", "single", "body", "escape", "bundle"))
def test_bundles(row):
    bundle = PromptBundle.from_sections(section(s) for s in row["sections"])
    check_bundle(bundle, row["expect"])
    pushed = PromptBundle()
    for each in row["sections"]:
        pushed.push(section(each))
    assert pushed == bundle


@pytest.mark.parametrize("row", vectors("sections", "preset_boundary"))
def test_preset_boundary(row):
    bundle = PromptBundle([section(s) for s in row["sections"]], row["preset_boundary"])
    for each in row["push"]:
        bundle.push(section(each))
    check_bundle(bundle, row["expect"])


@pytest.mark.parametrize("row", vectors("sections", "attr"))
def test_escapes(row):
    assert escape_attribute(row["value"]) == row["escaped"]
    assert unescape_attribute(row["value"]) == row["unescaped"]
    assert unescape_attribute(row["escaped"]) == row["round_trip"]


@pytest.mark.parametrize("row", vectors("sections", "parse"))
def test_parse(row):
    check_parsed(row["text"], row["parsed"])


@pytest.mark.parametrize("row", vectors("sections", "effective"))
def test_effective_prompt(row):
    given = row["input"]
    bundle = build_effective_prompt(
        [section(s) for s in given["default_sections"]],
        custom=given["custom_system_prompt"],
        agent=given["agent_system_prompt"],
        coordinator=given["coordinator_system_prompt"],
        override=given["override_system_prompt"],
        append=[section(s) for s in given["append_sections"]],
    )
    assert [s.id for s in bundle.sections] == row["section_ids"]
    assert bundle.sections == [section(s) for s in row["sections"]]
    check_bundle(bundle, row["expect"])


@pytest.mark.parametrize("row", vectors("sections", "system_to_text"))
def test_system_to_text(row):
    assert system_to_text(row["system"]) == row["text"]


@pytest.mark.parametrize("row", vectors("wire", "request"))
def test_wire_bytes(row):
    given = dict(row["request"])
    system, tools = given.pop("system"), given.pop("tools")
    log, user = given.pop("log"), given.pop("scratch_user_message")
    request = ThreeZoneRequest(
        given.pop("model"),
        given.pop("max_tokens"),
        PinnedPrefix(system, tools or ()),
        AppendLog(log),
        TurnScratch(user, given.pop("scratch_working_set")),
        tools_given=tools is not None,
        **given,
    )
    assert len(request.messages()) == row["message_count"]
    assert request.messages_json() == row["messages_json"]
    assert request.wire_json() == row["wire_json"]
    assert hashlib.sha256(request.wire_bytes()).hexdigest() == row["wire_sha256"]
    assert request.freeze_prefix().combined_sha256 == row["prefix_combined_sha256"]


REASONS = {
    "ManualCompaction": RebuildReason.MANUAL_COMPACTION,
    "AutoCompaction": RebuildReason.AUTO_COMPACTION,
    "Purge": RebuildReason.PURGE,
    "MicroCompaction": RebuildReason.MICRO_COMPACTION,
    "ContextOverflowRecovery": RebuildReason.CONTEXT_OVERFLOW_RECOVERY,
    "FrontTrim": RebuildReason.FRONT_TRIM,
    "VerifyAndReplanReset": RebuildReason.VERIFY_AND_REPLAN_RESET,
    "EditRollback": RebuildReason.EDIT_ROLLBACK,
    "SessionSync": RebuildReason.SESSION_SYNC,
    "CycleReset": RebuildReason.CYCLE_RESET,
    "TraitClear": RebuildReason.HISTORY_CLEAR,
    "Runtime(micro-compact)": RebuildReason.runtime("micro-compact"),
}


@pytest.mark.parametrize("row", vectors("wire", "rebuild_reason"))
def test_rebuild_reasons(row):
    assert str(REASONS[row["variant"]]) == row["expect"]


@pytest.mark.parametrize("row", vectors("wire", "append_log"))
def test_append_log_audit(row):
    def messages(count: int) -> list[dict[str, Any]]:
        return [
            {"role": "user", "content": [{"type": "text", "text": str(i)}]} for i in range(count)
        ]

    by_text = {str(reason): reason for reason in REASONS.values()}
    log = AppendLog()
    for op in row["ops"]:
        if op["op"] == "from_messages":
            log = AppendLog(messages(op["count"]))
        elif op["op"] == "push":
            log.push(messages(1)[0])
        else:
            reason = by_text.get(op["reason"], RebuildReason(op["reason"]))
            log.rebuild(reason, messages(op["count"]))
        assert len(log) == op["len"]
        last = log.last_rebuild
        seen = last and {
            "reason": str(last.reason),
            "before": last.messages_before,
            "after": last.messages_after,
        }
        assert seen == op["last_rebuild"]
