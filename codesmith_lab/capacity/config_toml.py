"""The `[capacity]` table of the reference's configuration file, read and written."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from codesmith_lab.capacity.config import (
    COEFFICIENTS,
    DEFAULT_PRIORS,
    FALLBACK_KEY,
    THRESHOLDS,
    THROTTLES,
    WEIGHTS,
    CapacityConfig,
)
from codesmith_lab.errors import InputError, LabError

__all__ = ["config_from_toml", "config_to_toml"]

_PRIOR_KEYS: Final = {f"{key}_prior": key for key in DEFAULT_PRIORS}
_FALLBACK: Final = "fallback_default_prior"
_PLAIN: Final = ("enabled", *THRESHOLDS, *THROTTLES, "profile_window")
_KEYS: Final = (*_PLAIN, *_PRIOR_KEYS, _FALLBACK)
_TUNED: Final = (*WEIGHTS, *COEFFICIENTS)
_LEAST_WINDOW: Final = 2
_ASIDE: Final = (
    "# The reference has these numbers built in and reads no such table; codesmith_lab reads it.\n"
)


def config_from_toml(text: str, path: str = "") -> CapacityConfig:
    """The settings of a configuration file's `[capacity]` table; missing keys keep their default.

    Other tables are left alone. `[capacity.coefficients]` may hold weights and coefficients.
    path: the file's name, for messages.

    Raises InputError for text that is no TOML, a key that `[capacity]` does not have, a value out
    of its range, thresholds out of order, and a window below 2 (which the reference raises to 2).
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the text is no TOML: {error}", path) from None
    table = document.get("capacity", {})
    if not isinstance(table, dict):
        raise InputError(f"capacity is {table!r}, but it is a table; write [capacity]", path)
    table = dict(table)
    tuned = table.pop("coefficients", {})
    if not isinstance(tuned, dict):
        raise InputError(
            f"coefficients is {tuned!r}, but it is a table; write [capacity.coefficients]", path
        )
    _check_keys(table, _KEYS, "[capacity]", path)
    _check_keys(tuned, _TUNED, "[capacity.coefficients]", path)
    try:
        config = _from_table(table, tuned)
    except LabError as error:
        raise InputError(f"in [capacity], {error}", path) from None
    _check_meant(config, path)
    return config


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], name: str, path: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, 3) or known
            raise InputError(
                f"{name} has no key {key!r}; write one of {', '.join(near)}, or leave it out", path
            )


def _from_table(table: Mapping[str, Any], tuned: Mapping[str, Any]) -> CapacityConfig:
    priors = dict(DEFAULT_PRIORS)
    values = {**tuned}
    for key, value in table.items():
        if key in _PRIOR_KEYS:
            priors[_PRIOR_KEYS[key]] = value
        else:
            values["fallback_default" if key == _FALLBACK else key] = value
    return CapacityConfig(model_priors=priors, **values)


def _check_meant(config: CapacityConfig, path: str) -> None:
    """Refuse what the constructor allows for the reference's sake: in a file it is a mistake."""
    if config.medium_risk_max < config.low_risk_max:
        raise InputError(
            f"medium_risk_max is {config.medium_risk_max!r}, but it must be from low_risk_max "
            f"({config.low_risk_max!r}) to 1; put the thresholds in order",
            path,
        )
    if config.profile_window < _LEAST_WINDOW:
        raise InputError(
            f"profile_window is {config.profile_window}, but in a [capacity] table it must be "
            f"{_LEAST_WINDOW} or more; write {_LEAST_WINDOW}, which is what the reference takes",
            path,
        )


def config_to_toml(config: CapacityConfig) -> str:
    """The settings as a `[capacity]` table, every key of the reference written out.

    Weights and coefficients follow in `[capacity.coefficients]` where they differ from the
    reference's. Reading the text gives a configuration that decides the same.

    Raises LabError for settings that such a table cannot hold: thresholds out of order, a window
    below 2, a prior under a key of its own.
    """
    _check_meant(config, "")
    strange = set(config.model_priors) - {*DEFAULT_PRIORS, FALLBACK_KEY}
    if strange:
        raise LabError(
            f"model_priors has {', '.join(sorted(map(repr, strange)))}, which [capacity] has no "
            "key for and the controller never reads; take it out"
        )
    fallback = config.model_priors.get(FALLBACK_KEY, config.fallback_default)
    lines = ["[capacity]"]
    lines += [f"{name} = {_value(getattr(config, name))}" for name in _PLAIN]
    lines += [
        f"{key} = {_value(config.model_priors.get(prior, config.fallback_default))}"
        for key, prior in _PRIOR_KEYS.items()
    ]
    lines.append(f"{_FALLBACK} = {_value(fallback)}")
    reference = CapacityConfig()
    tuned = [
        f"{name} = {_value(getattr(config, name))}"
        for name in _TUNED
        if getattr(config, name) != getattr(reference, name)
    ]
    text = "\n".join(lines) + "\n"
    if tuned:
        text += "\n" + _ASIDE + "\n".join(["[capacity.coefficients]", *tuned]) + "\n"
    return text


def _value(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
