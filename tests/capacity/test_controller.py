"""The scalar controller: by hand, by rule, and on bad input."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.capacity import (
    CapacityConfig,
    CapacityController,
    CapacityObservation,
    CapacitySnapshot,
    SlackProfile,
    escalate_errors,
)
from codesmith_lab.capacity.formulas import prior_key, sigmoid, slack_profile
from codesmith_lab.errors import LabError

ON = CapacityConfig(enabled=True)
CALM = CapacityObservation(9, "deepseek-v4-flash", 1, 0, 0, 0.05)
WILD = CapacityObservation(9, "deepseek-v4-flash", 200, 100, 500, 2.0)


def test_one_observation_by_hand() -> None:
    """actions 3, tools 7, refs 15, half the context: every logarithm is a whole number."""
    snapshot = CapacityController(ON).observe(
        CapacityObservation(5, "deepseek-v4-pro", 3, 7, 15, 0.5)
    )
    assert snapshot is not None
    assert snapshot.h_hat == pytest.approx(0.35 * 2 + 0.30 * 3 + 0.20 * 4 + 0.15 * 3)  # 2.85
    assert snapshot.slack == pytest.approx(0.65)
    z = -1.65 * 0.65 - 0.85 * 0.65 - 0.12
    assert snapshot.p_fail == pytest.approx(1 / (1 + math.exp(-z)))
    assert (snapshot.risk_band, snapshot.severe) == ("low", False)


def test_a_profile_by_hand() -> None:
    profile = slack_profile([1.0, 0.0, -2.0, 1.0])
    assert (profile.final_slack, profile.min_slack, profile.violation_ratio) == (1.0, -2.0, 0.5)
    assert profile.slack_volatility == pytest.approx(math.sqrt((1 + 4 + 9) / 3))
    assert profile.slack_drop == 0.0
    assert slack_profile([1.0, -2.0]).slack_drop == 3.0
    assert slack_profile([]) == SlackProfile()


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=12))
def test_profiles_stay_in_their_bounds(slacks: list[float]) -> None:
    profile = slack_profile(slacks)
    assert profile.min_slack <= profile.final_slack
    assert 0.0 <= profile.violation_ratio <= 1.0
    assert profile.slack_volatility >= 0.0
    assert profile.slack_drop >= 0.0


@given(st.floats(allow_nan=False))
def test_the_sigmoid_never_leaves_its_range_and_never_overflows(z: float) -> None:
    assert 0.0 <= sigmoid(z) <= 1.0


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("deepseek-ai/DeepSeek-V4-Pro", "deepseek_v4_pro"),
        ("v4-flash-r1-chat", "deepseek_v4_flash"),
        ("deepseek-ai/deepseek-ai/x", "fallback_default"),
        ("DeepSeek-V4", "fallback_default"),
        ("a model nobody knows", "fallback_default"),
        ("", "fallback_default"),
        ("deepseek-ai/r1", "deepseek_v3_2_reasoner"),
        ("DeepSeek-V3", "deepseek_v3_2_chat"),
        ("V4-FLAſH", "fallback_default"),  # only ASCII letters are lowered
    ],
)
def test_a_models_prior(model: str, key: str) -> None:
    assert prior_key(model) == key


def test_disabled_sees_and_does_nothing() -> None:
    controller = CapacityController()
    assert controller.observe(WILD) is None
    assert controller.slack_window == ()
    decision = controller.decide(9, None)
    assert (decision.action, decision.reason) == (
        "no_intervention",
        "capacity_controller_disabled",
    )


def test_without_data_nothing_is_done() -> None:
    decision = CapacityController(ON).decide(9, None)
    assert decision.reason == "missing_capacity_data_fail_open"
    assert decision.action == "no_intervention"


def test_a_blocked_decision_says_what_was_wanted() -> None:
    controller = CapacityController(ON)
    snapshot = controller.observe(WILD)
    assert controller.decide(3, snapshot).wanted == "verify_and_replan"
    assert controller.decide(3, snapshot).reason == "min_turns_before_guardrail_not_reached"
    controller.mark_intervention_applied(9, "verify_and_replan")
    blocked = controller.decide(14, snapshot)
    assert (blocked.action, blocked.wanted) == ("no_intervention", "verify_and_replan")
    assert (blocked.reason, blocked.cooldown_blocked) == ("replan_cooldown_active", True)
    assert controller.decide(15, snapshot).action == "verify_and_replan"


def test_a_snapshot_may_come_as_plain_values() -> None:
    snapshot = CapacityController(ON).observe(WILD)
    assert snapshot is not None
    assert CapacitySnapshot.from_dict(snapshot.to_dict()) == snapshot
    assert CapacityController(ON).decide(9, snapshot.to_dict()).action == "verify_and_replan"
    for broken in ({"risk_band": "high"}, snapshot.to_dict() | {"risk_band": "purple"}):
        with pytest.raises(LabError):
            CapacityController(ON).decide(9, broken)


@pytest.mark.parametrize(
    "values",
    [
        {"turn_index": -1},
        {"turn_index": 1.5},
        {"action_count_this_turn": True},
        {"tool_calls_recent_window": "3"},
        {"unique_reference_ids_recent_window": None},
        {"model": None},
        {"context_used_ratio": "0.5"},
        {"context_used_ratio": None},
    ],
)
def test_an_observation_that_cannot_be_meant_is_refused(values: dict[str, object]) -> None:
    plain = {
        "turn_index": 1,
        "model": "m",
        "action_count_this_turn": 1,
        "tool_calls_recent_window": 1,
        "unique_reference_ids_recent_window": 1,
        "context_used_ratio": 0.5,
    }
    with pytest.raises(LabError, match=next(iter(values))):
        CapacityObservation(**(plain | values))  # type: ignore[arg-type]


def test_wrong_words_are_refused_with_the_right_ones() -> None:
    controller = CapacityController(ON)
    with pytest.raises(LabError, match="phase is 'later'; choose one of pre_turn, post_tool"):
        controller.observe(CALM, "later")  # type: ignore[arg-type]
    with pytest.raises(LabError, match="action is 'reboot'; choose one of no_intervention"):
        controller.mark_intervention_applied(1, "reboot")  # type: ignore[arg-type]
    with pytest.raises(LabError, match="turn_index is -1"):
        controller.decide(-1, None)
    with pytest.raises(LabError, match="step_error_count is -2"):
        escalate_errors(controller, 1, CALM, -2, 0, [])
