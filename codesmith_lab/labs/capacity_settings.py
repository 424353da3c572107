"""The controls of the capacity lab: names, words, and the span of each slider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.errors import LabError
from codesmith_lab.sessions.capacity.rewrites import InterventionRules

__all__ = ["GROUPS", "NAMES", "Setting", "apply_values", "groups_view", "values_of"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One control.

    low, high, step: of the slider; the field beside it takes whatever the setting may be.
    kind: "float", "int", "switch" or "choice".
    """

    name: str
    label: str
    help: str
    low: float = 0.0
    high: float = 1.0
    step: float = 0.01
    kind: str = "float"
    choices: tuple[tuple[str, str], ...] = ()


GROUPS: tuple[tuple[str, tuple[Setting, ...]], ...] = (
    (
        "Bands of p_fail",
        (
            Setting("enabled", "Controller on", "Off, nothing is decided.", kind="switch"),
            Setting("low_risk_max", "Low up to", "p_fail at or below it is a low risk."),
            Setting("medium_risk_max", "Medium up to", "Above it the risk is high."),
            Setting(
                *("severe_min_slack", "Severe at slack", "Least slack (bits) of a severe high."),
                *(-5.0, 2.0, 0.05),
            ),
            Setting(
                *("severe_violation_ratio", "Severe at share", "Share of slacks at or below zero."),
                *(0.0, 1.05, 0.05),
            ),
        ),
    ),
    (
        "Window and throttles",
        (
            Setting("profile_window", "Window", "Newest slacks in the profile.", 2, 32, 1, "int"),
            Setting(
                "min_turns_before_guardrail",
                "First turns free",
                "Turns left alone.",
                0,
                30,
                1,
                "int",
            ),
            Setting(
                "refresh_cooldown_turns",
                "Refresh pause",
                "Turns between two refreshes.",
                0,
                30,
                1,
                "int",
            ),
            Setting(
                "replan_cooldown_turns",
                "Replan pause",
                "Turns between two replans.",
                0,
                30,
                1,
                "int",
            ),
            Setting("max_replay_per_turn", "Replays a turn", "At most.", 0, 5, 1, "int"),
        ),
    ),
    (
        "Coefficients of z",
        (
            Setting("final_slack_coefficient", "Final slack", "Times the newest slack.", -5, 5),
            Setting("min_slack_coefficient", "Minimum", "Times the least slack.", -5, 5),
            Setting(
                "violation_ratio_coefficient", "Violations", "Times the share at or below 0.", -5, 5
            ),
            Setting(
                "slack_volatility_coefficient", "Volatility", "Times the deviation of steps.", -5, 5
            ),
            Setting("slack_drop_coefficient", "Drop", "Times the last fall.", -5, 5),
            Setting("bias", "Bias", "Always added.", -5, 5),
        ),
    ),
    (
        "Weights of the pressure",
        (
            Setting("action_weight", "Actions", "Times log2(1 + actions)."),
            Setting("tool_weight", "Tools", "Times log2(1 + tool calls)."),
            Setting("reference_weight", "References", "Times log2(1 + references)."),
            Setting("context_weight", "Context", "Times the bits of the context."),
            Setting("context_scale", "Full context", "Bits of a context that is full.", 0, 20, 0.1),
        ),
    ),
    (
        "Capacity of the models (bits)",
        (
            Setting("prior.deepseek_v4_pro", "V4 Pro", "Its head.", 0, 10, 0.05),
            Setting("prior.deepseek_v4_flash", "V4 Flash", "Its head.", 0, 10, 0.05),
            Setting("prior.deepseek_v3_2_chat", "V3.2 chat", "Its head.", 0, 10, 0.05),
            Setting("prior.deepseek_v3_2_reasoner", "V3.2 reasoner", "Its head.", 0, 10, 0.05),
            Setting("fallback_default", "Any other", "A model nobody knows.", 0, 10, 0.05),
        ),
    ),
    (
        "What a compaction does",
        (
            Setting("rule.compression_ratio", "Share that remains", "Of what is summarised."),
            Setting("rule.keep_messages", "Messages kept", "The newest ones.", 0, 20, 1, "int"),
            Setting(
                "rule.summary_call",
                "Summary written",
                "What the model that writes it reads.",
                kind="choice",
                choices=(
                    ("fresh", "by a request of its own"),
                    ("cached", "by repeating the conversation"),
                    ("none", "for nothing"),
                ),
            ),
        ),
    ),
)
NAMES = tuple(setting.name for _, settings in GROUPS for setting in settings)
"""Every name a control has; `prior.KEY` is a prior, `rule.NAME` a rule of the replay."""


def values_of(config: CapacityConfig, rules: InterventionRules) -> dict[str, Any]:
    """The value of every control."""
    values: dict[str, Any] = {}
    for name in NAMES:
        if name.startswith("prior."):
            key = name.removeprefix("prior.")
            values[name] = config.model_priors.get(key, config.fallback_default)
        elif name.startswith("rule."):
            values[name] = getattr(rules, name.removeprefix("rule."))
        else:
            values[name] = getattr(config, name)
    return values


def apply_values(
    config: CapacityConfig, rules: InterventionRules, values: dict[str, Any]
) -> tuple[CapacityConfig, InterventionRules]:
    """Both with other values. LabError for an unknown name, or a value out of its range."""
    for name in values:
        if name not in NAMES:
            raise LabError(f"{name!r} is no control of the lab; choose one of {', '.join(NAMES)}")
    own = {name: v for name, v in values.items() if not name.startswith("rule.")}
    chosen = values_of(config, rules) | values
    rule = {name.removeprefix("rule."): chosen[name] for name in NAMES if name.startswith("rule.")}
    return config.with_values(**own), InterventionRules(**rule)


def groups_view(config: CapacityConfig, rules: InterventionRules) -> list[dict[str, Any]]:
    """The controls for the view, with the default of each."""
    defaults = values_of(config, rules)
    return [
        {
            "title": title,
            "rows": [
                {
                    "name": setting.name,
                    "label": setting.label,
                    "help": setting.help,
                    "low": setting.low,
                    "high": setting.high,
                    "step": setting.step,
                    "kind": setting.kind,
                    "choices": [{"value": v, "label": t} for v, t in setting.choices],
                    "default": defaults[setting.name],
                    "default_text": _text(defaults[setting.name], setting),
                }
                for setting in settings
            ],
        }
        for title, settings in GROUPS
    ]


def _text(value: Any, setting: Setting) -> str:
    if setting.kind == "switch":
        return "on" if value else "off"
    if setting.kind == "choice":
        return dict(setting.choices)[value]
    return f"{value:g}"
