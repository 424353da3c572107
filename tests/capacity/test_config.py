"""Settings: what is refused, with which words, and that TOML carries them both ways."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.capacity import (
    CapacityConfig,
    CapacityController,
    CapacityObservation,
    config_from_toml,
    config_to_toml,
)
from codesmith_lab.capacity.config import COEFFICIENTS, LIMITS, THRESHOLDS, THROTTLES, WEIGHTS
from codesmith_lab.errors import InputError, LabError

NUMBERS = (*THRESHOLDS, *THROTTLES, *WEIGHTS, *COEFFICIENTS, "profile_window", "fallback_default")


def test_the_defaults_are_the_references() -> None:
    config = CapacityConfig()
    assert config.enabled is False
    assert (config.low_risk_max, config.medium_risk_max) == (0.50, 0.62)
    assert (config.severe_min_slack, config.severe_violation_ratio) == (-0.25, 0.40)
    assert (config.refresh_cooldown_turns, config.replan_cooldown_turns) == (6, 5)
    assert (config.max_replay_per_turn, config.min_turns_before_guardrail) == (1, 4)
    assert (config.profile_window, config.fallback_default) == (8, 3.8)
    assert dict(config.model_priors) == {
        "deepseek_v3_2_chat": 3.9,
        "deepseek_v3_2_reasoner": 4.1,
        "deepseek_v4_flash": 4.2,
        "deepseek_v4_pro": 3.5,
    }


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 1e300, -1e300, pytest.param(10**5000, id="many digits")]
)
def test_numbers_beyond_their_range_are_refused_with_it(name: str, value: float) -> None:
    low, _ = LIMITS[name]
    with pytest.raises(LabError) as caught:
        CapacityConfig(**{name: value})
    text = str(caught.value)
    assert name in text
    assert f"{low:g} to " in text
    assert len(text) < 200
    assert "\n" not in text


@pytest.mark.parametrize("name", [*WEIGHTS, *THROTTLES, "profile_window", "low_risk_max"])
def test_negative_weights_counts_and_probabilities_are_refused(name: str) -> None:
    with pytest.raises(LabError, match=f"^{name} is -1"):
        CapacityConfig(**{name: -1})


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [None, "1", True, [1.0], b"1"])
def test_what_is_no_number_is_refused(name: str, value: object) -> None:
    with pytest.raises(LabError, match=f"^{name} is .* but it is a number"):
        CapacityConfig(**{name: value})


def test_switches_priors_and_fractions_are_checked_too() -> None:
    with pytest.raises(LabError, match="enabled is 1"):
        CapacityConfig(enabled=1)  # type: ignore[arg-type]
    with pytest.raises(LabError, match="profile_window is 2.5, but it counts"):
        CapacityConfig(profile_window=2.5)  # type: ignore[arg-type]
    with pytest.raises(LabError, match=r"model_priors\['deepseek_v4_pro'\] is nan"):
        CapacityConfig(model_priors={"deepseek_v4_pro": float("nan")})
    with pytest.raises(LabError, match="model_priors is a mapping"):
        CapacityConfig(model_priors=3)  # type: ignore[arg-type]


def test_it_cannot_be_changed_and_travels() -> None:
    priors = {"deepseek_v4_pro": 3.0}
    config = CapacityConfig(model_priors=priors)
    priors["deepseek_v4_pro"] = 9.0
    assert config.model_priors["deepseek_v4_pro"] == 3.0
    with pytest.raises(FrozenInstanceError):
        config.bias = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        config.model_priors["x"] = 1.0  # type: ignore[index]
    assert pickle.loads(pickle.dumps(config)) == config == copy.deepcopy(config)
    assert hash(config) == hash(CapacityConfig(model_priors={"deepseek_v4_pro": 3.0}))


def test_values_by_name_and_what_differs() -> None:
    config = CapacityConfig().with_values(**{"bias": 0.5, "prior.deepseek_v4_pro": 3})
    assert config.changed_from(CapacityConfig()) == {
        "bias": (-0.12, 0.5),
        "prior.deepseek_v4_pro": (3.5, 3.0),
    }
    with pytest.raises(LabError, match="'biass' is no capacity setting; choose one of .*bias"):
        CapacityConfig().with_values(biass=1)


def test_what_the_reference_allows_but_hardly_means_is_said() -> None:
    assert CapacityConfig().doubts() == []
    assert "no risk is medium" in CapacityConfig(low_risk_max=0.9).doubts()[0]
    assert "the same on every turn" in CapacityConfig(profile_window=0).doubts()[0]
    assert "always zero" in CapacityConfig(profile_window=1).doubts()[0]


def test_a_window_of_nothing_fails_open() -> None:
    config = CapacityConfig(enabled=True, profile_window=0, min_turns_before_guardrail=0)
    controller = CapacityController(config)
    hopeless = CapacityObservation(9, "deepseek-v4-pro", 500, 500, 500, 2.0)
    for _ in range(20):
        snapshot = controller.observe(hopeless)
        assert controller.decide(9, snapshot).action == "no_intervention"


REFERENCE_FILE = """
model = "deepseek-v4-pro"   # another program's settings stay its own

[capacity]
enabled = true
low_risk_max = 0.4
medium_risk_max = 0.55
severe_min_slack = -1
severe_violation_ratio = 0.3
refresh_cooldown_turns = 3
replan_cooldown_turns = 2
max_replay_per_turn = 2
min_turns_before_guardrail = 1
profile_window = 12
deepseek_v3_2_chat_prior = 3.1
deepseek_v3_2_reasoner_prior = 3.2
deepseek_v4_pro_prior = 3.3
deepseek_v4_flash_prior = 3.4
fallback_default_prior = 3.0

[ui]
profile_window = "not ours"
"""


def test_every_key_of_the_reference_is_read() -> None:
    assert config_from_toml(REFERENCE_FILE) == CapacityConfig(
        enabled=True,
        low_risk_max=0.4,
        medium_risk_max=0.55,
        severe_min_slack=-1.0,
        severe_violation_ratio=0.3,
        refresh_cooldown_turns=3,
        replan_cooldown_turns=2,
        max_replay_per_turn=2,
        min_turns_before_guardrail=1,
        profile_window=12,
        model_priors={
            "deepseek_v3_2_chat": 3.1,
            "deepseek_v3_2_reasoner": 3.2,
            "deepseek_v4_pro": 3.3,
            "deepseek_v4_flash": 3.4,
        },
        fallback_default=3.0,
    )
    assert config_from_toml("") == CapacityConfig()


def test_the_reference_reads_what_is_written() -> None:
    """Every key of its table, each once, floats as floats: it refuses an integer there."""
    lines = config_to_toml(CapacityConfig(fallback_default=4)).splitlines()
    assert lines[0] == "[capacity]"
    keys = [line.split(" = ")[0] for line in REFERENCE_FILE.splitlines()[4:19]]
    assert [line.split(" = ")[0] for line in lines[1:]] == keys
    assert "fallback_default_prior = 4.0" in lines


finite = st.floats(-1000, 1000)


@st.composite
def configs(draw: st.DrawFn) -> CapacityConfig:
    low, high = sorted((draw(st.floats(0, 1)), draw(st.floats(0, 1))))
    values = {name: draw(st.floats(*LIMITS[name])) for name in (*WEIGHTS, *COEFFICIENTS)}
    values |= {name: draw(st.integers(0, 2**53)) for name in THROTTLES}
    values |= {
        "enabled": draw(st.booleans()),
        "low_risk_max": low,
        "medium_risk_max": high,
        "severe_min_slack": draw(finite),
        "severe_violation_ratio": draw(st.floats(0, 1000)),
        "profile_window": draw(st.integers(2, 4096)),
        "fallback_default": draw(finite),
        "model_priors": {key: draw(finite) for key in CapacityConfig().model_priors},
    }
    return CapacityConfig(**values)


@given(configs())
def test_toml_there_and_back_is_exact(config: CapacityConfig) -> None:
    assert config_from_toml(config_to_toml(config)) == config


def test_priors_that_are_missing_or_overruled_decide_the_same_after_toml() -> None:
    for priors in ({}, {"fallback_default": 2.5}, {"deepseek_v4_pro": 1.0}):
        config = CapacityConfig(enabled=True, model_priors=priors)
        again = config_from_toml(config_to_toml(config))
        for model in ("deepseek-v4-pro", "deepseek-chat", "gpt-5"):
            seen = CapacityObservation(9, model, 3, 3, 3, 0.5)
            assert CapacityController(config).observe(seen) == CapacityController(again).observe(
                seen
            )
    with pytest.raises(LabError, match=r"model_priors has 'gpt-5', which \[capacity\] has no key"):
        config_to_toml(CapacityConfig(model_priors={"gpt-5": 9.0}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[capacity", "the text is no TOML"),
        ("capacity = 3", "capacity is 3, but it is a table"),
        ("[capacity]\ncoefficients = 3", "coefficients is 3, but it is a table"),
        ("[capacity]\nlow_risk_mx = 0.5", "has no key 'low_risk_mx'; write one of low_risk_max"),
        ("[capacity]\nbias = 0.5", r"\[capacity\] has no key 'bias'"),
        ("[capacity.coefficients]\nbais = 0.5", "no key 'bais'; write one of bias"),
        ("[capacity]\nlow_risk_max = nan", "low_risk_max is nan, but it must be finite"),
        ("[capacity]\nlow_risk_max = 1.5", "must be from 0 to 1"),
        ("[capacity]\nlow_risk_max = '0.5'", "but it is a number"),
        ("[capacity]\nlow_risk_max = 0.7", "medium_risk_max is 0.62, but it must be from low_risk"),
        ("[capacity]\nprofile_window = 1", "profile_window is 1, but in a .* must be 2 or more"),
        ("[capacity]\nprofile_window = 0", "write 2, which is what the reference takes"),
        ("[capacity]\nrefresh_cooldown_turns = -1", "refresh_cooldown_turns is -1"),
        ("[capacity]\ndeepseek_v4_pro_prior = inf", r"model_priors\['deepseek_v4_pro'\] is inf"),
    ],
)
def test_a_bad_table_is_refused_with_its_reason(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        config_from_toml(text, "config.toml")
    assert str(caught.value).startswith("config.toml: ")


@pytest.mark.parametrize("values", [{"low_risk_max": 0.9}, {"profile_window": 1}])
def test_what_a_file_may_not_hold_is_not_written(values: dict[str, float]) -> None:
    with pytest.raises(LabError):
        config_to_toml(CapacityConfig(**values))
