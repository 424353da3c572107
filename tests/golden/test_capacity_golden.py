"""The capacity controller against the compiled reference, bit for bit."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from codesmith_lab.capacity import (
    CapacityConfig,
    CapacityController,
    CapacityObservation,
    escalate_errors,
)

HERE = Path(__file__).parent
FILES = ("capacity_trajectories", "capacity_edges", "error_escalation")


def rows(name: str) -> list[dict[str, Any]]:
    lines = (HERE / f"{name}.jsonl").read_text("utf-8").rstrip("\n").split("\n")
    return [json.loads(line, object_hook=_with_floats) for line in lines]


def _with_floats(values: dict[str, Any]) -> dict[str, Any]:
    return {k: float(v) if v in ("NaN", "inf", "-inf") else v for k, v in values.items()}


def same(ours: Any, theirs: Any) -> bool:
    """Equal to the last bit, NaN equal to NaN; theirs may name fewer fields."""
    if isinstance(theirs, dict):
        return all(same(ours[key], value) for key, value in theirs.items())
    if isinstance(theirs, float) and math.isnan(theirs):
        return isinstance(ours, float) and math.isnan(ours)
    return type(ours) is type(theirs) and ours == theirs


def plain(value: Any) -> Any:
    return None if value is None else asdict(value)


class Replay:
    """Plays the events of a row and compares every answer."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.controller = CapacityController(CapacityConfig(**row["config"]))
        self.last: Any = None

    def play(self, event: dict[str, Any]) -> None:
        controller, op = self.controller, event["op"]
        if op == "observe":
            seen = CapacityObservation(**event["input"])
            self.last = controller.observe(seen, event["phase"])
            assert same(plain(self.last), event["snapshot"]), event
        elif op == "decide":
            before = controller.state
            given = {"last": self.last, "none": None}.get(
                event["snapshot"] if isinstance(event["snapshot"], str) else "", event["snapshot"]
            )
            decision = controller.decide(event["turn_index"], given)
            assert same(plain(decision), event["decision"]), event
            assert controller.state == before
        elif op == "mark_intervention_applied":
            controller.mark_intervention_applied(event["turn_index"], event["action"])
        else:
            {
                "mark_turn_start": controller.mark_turn_start,
                "mark_replay_failed": controller.mark_replay_failed,
            }[op](event["turn_index"])
        if "state" in event:
            assert same(plain(controller.state), event["state"]), event


@pytest.mark.parametrize("name", FILES[:2])
def test_every_event_gives_the_references_answer(name: str) -> None:
    answered = 0
    for row in rows(name):
        replay = Replay(row)
        for event in row["events"]:
            replay.play(event)
            answered += 1
    assert answered > 1000


def test_error_escalation() -> None:
    escalated = 0
    for row in rows("error_escalation"):
        replay = Replay(row)
        for event in row["events"]:
            replay.play(event)
        result = escalate_errors(
            replay.controller,
            row["turn_index"],
            CapacityObservation(**row["fallback_observation"]),
            row["step_error_count"],
            row["consecutive_tool_error_steps"],
            row["error_categories"],
        )
        seen = {
            "result": plain(result.decision),
            "inner_decision": plain(result.inner_decision),
            "fallback_observed": result.fallback_observed,
            "state_after": plain(replay.controller.state),
            "last_snapshot_after": plain(replay.controller.last_snapshot),
        }
        assert same(seen, {key: row[key] for key in seen}), row["id"]
        escalated += result.decision is not None
    assert escalated > 50


def test_the_files_hold_every_reason_and_action() -> None:
    decisions = [
        e["decision"] for n in FILES for r in rows(n) for e in r["events"] if "decision" in e
    ]
    assert {d["action"] for d in decisions} == {
        *("no_intervention", "targeted_context_refresh"),
        *("verify_with_tool_replay", "verify_and_replan"),
    }
    assert len({d["reason"] for d in decisions}) == 10
