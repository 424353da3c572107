"""Every number of the capacity controller in one frozen, validated object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, get_type_hints

from codesmith_lab.errors import LabError
from codesmith_lab.zones.frozen import FrozenMapping, freeze_mapping

__all__ = [
    "COEFFICIENTS",
    "DEFAULT_PRIORS",
    "FALLBACK_KEY",
    "LIMITS",
    "THRESHOLDS",
    "THROTTLES",
    "WEIGHTS",
    "CapacityConfig",
]

FALLBACK_KEY: Final = "fallback_default"
"""The prior's key of a model that no pattern knows."""
DEFAULT_PRIORS: Final[Mapping[str, float]] = FrozenMapping(
    {
        "deepseek_v3_2_chat": 3.9,
        "deepseek_v3_2_reasoner": 4.1,
        "deepseek_v4_pro": 3.5,
        "deepseek_v4_flash": 4.2,
    }
)

THRESHOLDS: Final = (
    "low_risk_max",
    "medium_risk_max",
    "severe_min_slack",
    "severe_violation_ratio",
)
THROTTLES: Final = (
    "refresh_cooldown_turns",
    "replan_cooldown_turns",
    "max_replay_per_turn",
    "min_turns_before_guardrail",
)
WEIGHTS: Final = (
    "action_weight",
    "tool_weight",
    "reference_weight",
    "context_weight",
    "context_scale",
)
COEFFICIENTS: Final = (
    "final_slack_coefficient",
    "min_slack_coefficient",
    "violation_ratio_coefficient",
    "slack_volatility_coefficient",
    "slack_drop_coefficient",
    "bias",
)

_HUGE_COUNT: Final = 2**53  # above it whole numbers are not exact as floats
LIMITS: Final[Mapping[str, tuple[float, float]]] = FrozenMapping(
    {
        "low_risk_max": (0, 1),
        "medium_risk_max": (0, 1),
        "severe_min_slack": (-1000, 1000),
        "severe_violation_ratio": (0, 1000),
        **dict.fromkeys(THROTTLES, (0, _HUGE_COUNT)),
        "profile_window": (0, 4096),
        "fallback_default": (-1000, 1000),
        **dict.fromkeys(WEIGHTS, (0, 1000)),
        **dict.fromkeys(COEFFICIENTS, (-1000, 1000)),
    }
)
"""Least and greatest value of each number, both allowed. Priors share those of fallback_default."""


@dataclass(frozen=True, slots=True)
class CapacityConfig:
    """Settings of the capacity controller. The defaults are the reference's, which is off.

    The first block is what the reference reads from its `[capacity]` table; weights and
    coefficients are constants there and fields here, so that they can be tuned.

    Attributes
    ----------
    enabled: off, nothing is observed and nothing is decided.
    low_risk_max, medium_risk_max: upper ends of the low and the medium band of p_fail, 0 to 1,
        ends included. A medium below low leaves no medium band (see `doubts`).
    severe_min_slack: at or below this minimum slack (bits) a high risk is severe.
    severe_violation_ratio: at or above this share of slacks <= 0 too; above 1 never.
    refresh_cooldown_turns, replan_cooldown_turns: turns after one such intervention without
        another of its kind.
    max_replay_per_turn: replays a turn. min_turns_before_guardrail: first turns left alone.
    profile_window: newest slacks in the profile. 0 fails open: the profile is all zero and p_fail
        is the bias's alone; 1 has neither volatility nor drop (see `doubts`).
    model_priors: capacity (bits) by prior key; fallback_default: that of every other model.
    action_weight, tool_weight, reference_weight, context_weight: shares of the four terms of
        h_hat; context_scale: bits of a context that is full.
    final_slack_coefficient, ..., bias: of the profile's terms in z, p_fail = sigmoid(z).

    Raises LabError for a value of the wrong type, NaN, or outside `LIMITS`.
    """

    enabled: bool = False
    low_risk_max: float = 0.50
    medium_risk_max: float = 0.62
    severe_min_slack: float = -0.25
    severe_violation_ratio: float = 0.40
    refresh_cooldown_turns: int = 6
    replan_cooldown_turns: int = 5
    max_replay_per_turn: int = 1
    min_turns_before_guardrail: int = 4
    profile_window: int = 8
    model_priors: Mapping[str, float] = field(default_factory=lambda: DEFAULT_PRIORS, hash=False)
    fallback_default: float = 3.8
    action_weight: float = 0.35
    tool_weight: float = 0.30
    reference_weight: float = 0.20
    context_weight: float = 0.15
    context_scale: float = 6.0
    final_slack_coefficient: float = -1.65
    min_slack_coefficient: float = -0.85
    violation_ratio_coefficient: float = 1.35
    slack_volatility_coefficient: float = 0.70
    slack_drop_coefficient: float = 0.28
    bias: float = -0.12

    def __post_init__(self) -> None:
        if not isinstance(self.enabled, bool):
            raise LabError(
                f"enabled is {self.enabled!r}, but it is True or False; pass one of them"
            )
        for name, kind in _NUMBERS.items():
            low, high = LIMITS[name]
            value = check_number(name, getattr(self, name), kind, low, high)
            object.__setattr__(self, name, value)
        priors = freeze_mapping(self.model_priors, "model_priors")
        low, high = LIMITS["fallback_default"]
        checked = {
            key: check_number(f"model_priors[{key!r}]", value, float, low, high)
            for key, value in priors.items()
        }
        object.__setattr__(self, "model_priors", FrozenMapping(checked))

    def with_values(self, **values: Any) -> CapacityConfig:
        """A copy with other values; a key of `model_priors` may be named as `prior.KEY`.

        Raises LabError for a name that is no setting, or a value out of its range.
        """
        priors = dict(self.model_priors)
        plain = {}
        for name, value in values.items():
            if name.startswith("prior."):
                priors[name.removeprefix("prior.")] = value
            elif name in _NAMES:
                plain[name] = value
            else:
                raise LabError(
                    f"{name!r} is no capacity setting; choose one of {', '.join(sorted(_NAMES))} "
                    "or prior.KEY"
                )
        return replace(self, **{"model_priors": priors, **plain})

    def changed_from(self, other: CapacityConfig) -> dict[str, tuple[Any, Any]]:
        """Settings that differ: name -> (other's value, own value), priors as `prior.KEY`."""
        names = [f.name for f in fields(self) if f.name != "model_priors"]
        pairs = {name: (getattr(other, name), getattr(self, name)) for name in names}
        for key in sorted({*self.model_priors, *other.model_priors}):
            pairs[f"prior.{key}"] = (other.model_priors.get(key), self.model_priors.get(key))
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def doubts(self) -> list[str]:
        """What is allowed, as the reference allows it, but hardly meant; one sentence each."""
        found = []
        if self.medium_risk_max < self.low_risk_max:
            found.append(
                f"medium_risk_max is {self.medium_risk_max!r}, below low_risk_max "
                f"{self.low_risk_max!r}: no risk is medium and no refresh is ever proposed"
            )
        if self.profile_window == 0:
            found.append(
                "profile_window is 0: every profile is zero and p_fail is the same on every turn"
            )
        elif self.profile_window == 1:
            found.append("profile_window is 1: volatility and drop are always zero")
        return found


def check_number(name: str, value: Any, kind: type, low: float, high: float) -> float | int:
    """The value as `kind`, when it is a number between `low` and `high`; LabError otherwise."""
    span = f"{low:g} to {high:g}" if abs(high) < _HUGE_COUNT else f"{low:g} to 2**53"
    whole = hasattr(value, "__index__")
    if isinstance(value, bool | str | bytes) or not (whole or hasattr(value, "__float__")):
        raise LabError(f"{name} is {_short(value)}, but it is a number; pass one from {span}")
    number: float | int = value.__index__() if whole else float(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise LabError(f"{name} is {number!r}, but it must be finite; pass a number from {span}")
    if kind is int and number != int(number):
        raise LabError(f"{name} is {number!r}, but it counts; pass a whole number from {span}")
    if not low <= number <= high:
        raise LabError(
            f"{name} is {_short(number)}, but it must be from {span}; pass a number in between"
        )
    return int(number) if kind is int else float(number)


def _short(value: object) -> str:
    if isinstance(value, int) and abs(value) > _HUGE_COUNT:
        return f"a number of {value.bit_length()} bits"  # Python may refuse to write it out
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_HINTS: Final = get_type_hints(CapacityConfig)
_NAMES: Final = frozenset(_HINTS)
_NUMBERS: Final[Mapping[str, type]] = {
    name: hint for name, hint in _HINTS.items() if hint in (int, float)
}
