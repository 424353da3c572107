"""The capacity formulas in the order of the reference's arithmetic, one observation at a time.

    h_hat  = 0.35 log2(1+actions) + 0.30 log2(1+tools) + 0.20 log2(1+refs) + 0.15 * 6 * context
    slack  = c_hat - h_hat, c_hat the model's prior
    z      = -1.65 final - 0.85 min + 1.35 violations + 0.70 volatility + 0.28 drop - 0.12
    p_fail = sigmoid(z)

Floating-point sums depend on their order, so every sum here goes left to right, as written.
Source: the capacity module of the reference (CodeSmith), matched bit for bit by golden vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from codesmith_lab.capacity.config import FALLBACK_KEY, CapacityConfig
from codesmith_lab.errors import LabError

__all__ = [
    "BANDS",
    "PHASES",
    "CapacityObservation",
    "Phase",
    "RiskBand",
    "SlackProfile",
    "capacity_prior",
    "complexity_bits",
    "h_terms",
    "is_severe",
    "prior_key",
    "risk_band",
    "sigmoid",
    "slack_profile",
    "z_terms",
]

RiskBand = Literal["low", "medium", "high"]
BANDS: tuple[RiskBand, ...] = get_args(RiskBand)
Phase = Literal["pre_turn", "post_tool"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""The two points of observation: before a request, and after a tool."""

_RATIO_MAX = 2.0
_VENDOR = "deepseek-ai/"
_PATTERNS = (
    (("v4-pro", "v4_pro"), "deepseek_v4_pro"),
    (("v4-flash", "v4_flash"), "deepseek_v4_flash"),
    (("reasoner", "r1"), "deepseek_v3_2_reasoner"),
    (("chat", "v3"), "deepseek_v3_2_chat"),
)
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


@dataclass(frozen=True, slots=True)
class CapacityObservation:
    """What the controller sees of a turn.

    turn_index: the turn, 0 or more. model: name as sent.
    action_count_this_turn: steps and tool calls of this turn so far, plus one.
    tool_calls_recent_window: tool calls and results in the recent messages.
    unique_reference_ids_recent_window: distinct call ids and paths in them.
    context_used_ratio: prompt tokens over the context window; clamped to [0, 2] by the
        formula. NaN is let through and makes the risk high, as in the reference.

    Raises LabError for a count that is no whole number from 0, or a ratio that is no number.
    """

    turn_index: int
    model: str
    action_count_this_turn: int
    tool_calls_recent_window: int
    unique_reference_ids_recent_window: int
    context_used_ratio: float

    def __post_init__(self) -> None:
        for name in _COUNTS:
            object.__setattr__(self, name, check_count(name, getattr(self, name)))
        if not isinstance(self.model, str):
            raise LabError(f"model is {self.model!r}, but it is a name; pass a str")
        ratio = self.context_used_ratio
        if isinstance(ratio, bool | str | bytes) or not hasattr(ratio, "__float__"):
            raise LabError(
                f"context_used_ratio is {ratio!r}, but it is a number; pass tokens used over the "
                "context window"
            )
        object.__setattr__(self, "context_used_ratio", float(ratio))


_COUNTS = (
    "turn_index",
    "action_count_this_turn",
    "tool_calls_recent_window",
    "unique_reference_ids_recent_window",
)


def check_count(name: str, value: Any) -> int:
    """The value as int, when it is a whole number from 0 on; LabError otherwise."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
        raise LabError(f"{name} is {value!r}, but it counts; pass a whole number from 0 on")
    return int(value.__index__())


@dataclass(frozen=True, slots=True)
class SlackProfile:
    """What a window of slacks (bits) looks like.

    final_slack: the newest. min_slack: the least. violation_ratio: share of slacks <= 0.
    slack_volatility: population standard deviation of the consecutive differences.
    slack_drop: fall from the last but one to the newest, 0 when it rose.
    """

    final_slack: float = 0.0
    min_slack: float = 0.0
    violation_ratio: float = 0.0
    slack_volatility: float = 0.0
    slack_drop: float = 0.0


def prior_key(model: str) -> str:
    """The key of `model_priors` that a model's name leads to; the first pattern found wins."""
    name = model.removeprefix(_VENDOR).translate(_ASCII_LOWER)
    for patterns, key in _PATTERNS:
        if any(pattern in name for pattern in patterns):
            return key
    return FALLBACK_KEY


def capacity_prior(config: CapacityConfig, model: str) -> float:
    """c_hat (bits): the prior of the model's key, else `fallback_default`."""
    return config.model_priors.get(prior_key(model), config.fallback_default)


def complexity_bits(count: int) -> float:
    """log2(1 + count)."""
    return math.log2(1.0 + float(count))


def h_terms(config: CapacityConfig, seen: CapacityObservation) -> tuple[float, ...]:
    """The four terms of h_hat (bits): actions, tools, references, context. Added left to right."""
    ratio = seen.context_used_ratio
    ratio = 0.0 if ratio < 0.0 else _RATIO_MAX if ratio > _RATIO_MAX else ratio
    return (
        config.action_weight * complexity_bits(seen.action_count_this_turn),
        config.tool_weight * complexity_bits(seen.tool_calls_recent_window),
        config.reference_weight * complexity_bits(seen.unique_reference_ids_recent_window),
        config.context_weight * (config.context_scale * ratio),
    )


def slack_profile(slacks: Sequence[float]) -> SlackProfile:
    """The profile of a window, oldest first; all zero for an empty one. The minimum ignores NaN."""
    if not slacks:
        return SlackProfile()
    least, violations = math.inf, 0
    for slack in slacks:
        if slack < least:
            least = slack
        if slack <= 0.0:
            violations += 1
    n = len(slacks)
    drop = slacks[-2] - slacks[-1] if n > 1 else 0.0
    return SlackProfile(
        slacks[-1],
        least,
        violations / n,
        _deviation([slacks[i + 1] - slacks[i] for i in range(n - 1)]),
        drop if drop > 0.0 else 0.0,
    )


def _deviation(values: Sequence[float]) -> float:
    """Population standard deviation with plain sums: sum() compensates from Python 3.12 on."""
    if not values:
        return 0.0
    total = 0.0
    for value in values:
        total += value
    mean = total / len(values)
    total = 0.0
    for value in values:
        total += (value - mean) * (value - mean)
    return math.sqrt(total / len(values))


def z_terms(config: CapacityConfig, profile: SlackProfile) -> tuple[float, ...]:
    """The terms of z: final, minimum, violations, volatility, drop, bias. Added left to right."""
    return (
        config.final_slack_coefficient * profile.final_slack,
        config.min_slack_coefficient * profile.min_slack,
        config.violation_ratio_coefficient * profile.violation_ratio,
        config.slack_volatility_coefficient * profile.slack_volatility,
        config.slack_drop_coefficient * profile.slack_drop,
        config.bias,
    )


def left_sum(terms: Sequence[float]) -> float:
    """The sum from left to right, each step rounded."""
    total = terms[0]
    for term in terms[1:]:
        total += term
    return total


def sigmoid(z: float) -> float:
    """1 / (1 + exp(-z)), by the branch whose exponential cannot overflow; NaN stays NaN."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    grown = math.exp(z)
    return grown / (1.0 + grown)


def risk_band(config: CapacityConfig, p_fail: float) -> RiskBand:
    """The band of a probability of failure; NaN is high."""
    if p_fail <= config.low_risk_max:
        return "low"
    return "medium" if p_fail <= config.medium_risk_max else "high"


def is_severe(config: CapacityConfig, profile: SlackProfile) -> bool:
    """Whether the profile would make a high risk a severe one."""
    return (
        profile.min_slack <= config.severe_min_slack
        or profile.violation_ratio >= config.severe_violation_ratio
    )
