"""Rules from TOML: the table that comes with the package, and files of one's own.

A file has the form of `rules.toml`: one table a rule. A rule that exists needs only the keys it
changes; a new one names what it builds on in `base`, or every key without a default. The model
patterns in `models` are what the rule is used for from then on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

from codesmith_lab.cache.rules import Automatic, CacheRule, Level, MatchKind, OverLimit
from codesmith_lab.errors import InputError, LabError

__all__ = ["claimed_rule", "drop_rules", "get_rule", "known_rules", "load_rules", "parse_rules"]

_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "match": get_args(MatchKind),
    "automatic": get_args(Automatic),
    "over_limit": get_args(OverLimit),
}
_COUNTS: Final = {
    "minimum_tokens": 1,
    "step_tokens": 1,
    "keep_last_tokens": 0,
    "max_breakpoints": 0,
    "lookback_blocks": 0,
    "lookup_breakpoints": 1,
    "capacity_tokens": 1,
    "slots": 1,
}
_FLAGS: Final = ("output_reuse", "refreshes", "charges_writes", "long_first")
_NAMES: Final = (
    *("models", "scope_fields", "refused_fields", "exclusive_fields", "unmarkable"),
    "strips_thinking",
)
_DECIMALS: Final = ("storage_usd_per_mtok_hour", "read_factor", "write_factor", "slot_similarity")
_TABLES: Final = ("minimum_by_model", "lifetimes_s", "lifetime_by_model", "invalidates")
_KEYS: Final = {entry.name for entry in fields(CacheRule)} - {"id"}
_NEEDED: Final = [
    entry.name
    for entry in fields(CacheRule)
    if entry.default is MISSING and entry.default_factory is MISSING and entry.name != "id"
]
# Rules of files that were loaded, the latest last: they stand before the package's own.
_own: dict[str, CacheRule] = {}


@cache
def _table() -> dict[str, CacheRule]:
    text = resources.files("codesmith_lab.cache").joinpath("rules.toml").read_text("utf-8")
    return parse_rules(text, {}, "rules.toml")


def known_rules() -> tuple[CacheRule, ...]:
    """Every rule in force, those of loaded files included."""
    return tuple({**_table(), **_own}.values())


def get_rule(rule_id: str) -> CacheRule:
    """The rule of that name; LabError names the known ones otherwise."""
    rules = {**_table(), **_own}
    rule = rules.get(rule_id)
    if rule is None:
        raise LabError(f"no cache rule is named {rule_id!r}; choose one of {', '.join(rules)}")
    return rule


def claimed_rule(model: str) -> CacheRule | None:
    """The rule of a loaded file that claims a model in `models`, the latest of several."""
    return next((rule for rule in reversed(_own.values()) if rule.claims(model)), None)


def load_rules(path: str | Path) -> tuple[CacheRule, ...]:
    """Add or change rules from a TOML file, for this process; gives the rules of the file.

    Raises InputError, naming the file, for a file or a rule that cannot be used; then nothing
    has changed.
    """
    shown = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("this is not UTF-8 text; save the rules as UTF-8 TOML", shown) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this cannot be the name of a file"
        raise InputError(f"the rules cannot be read ({reason})", shown) from None
    found = parse_rules(text, {**_table(), **_own}, shown)
    for rule in found.values():
        _own.pop(rule.id, None)
        _own[rule.id] = rule
    return tuple(found.values())


def drop_rules() -> None:
    """Forget the rules of loaded files."""
    _own.clear()


def parse_rules(text: str, known: Mapping[str, CacheRule], path: str) -> dict[str, CacheRule]:
    """The rules of a TOML text; `known` are what `base` and changes build on."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"this is not TOML ({error})", path) from None
    rules: dict[str, CacheRule] = {}
    for name, row in data.items():
        if not isinstance(row, dict):
            raise InputError(f"{name!r} is no table; a rule is a table such as [my-rule]", path)
        try:
            rules[name] = _rule(name, row, {**known, **rules})
        except LabError as error:
            raise InputError(f"rule {name!r}: {error}", path) from None
    every = {**known, **rules}
    for rule in rules.values():
        if rule.without_markers and rule.without_markers not in every:
            wanted = rule.without_markers
            raise InputError(f"rule {rule.id!r}: without_markers names no rule: {wanted!r}", path)
    return rules


def _rule(name: str, row: Mapping[str, Any], known: Mapping[str, CacheRule]) -> CacheRule:
    given = dict(row)
    base_name = given.pop("base", name if name in known else None)
    values: dict[str, Any] = {}
    if base_name is not None:
        base = known.get(base_name) if isinstance(base_name, str) else None
        if base is None:
            raise LabError(f"base names no rule: {base_name!r}")
        values = {key: getattr(base, key) for key in _KEYS}
        if base_name != name:
            values["models"] = ()
    for key, value in given.items():
        if key not in _KEYS:
            raise LabError(f"the key {key!r} is unknown; the keys are {', '.join(sorted(_KEYS))}")
        values[key] = _value(key, value)
    missing = [key for key in _NEEDED if key not in values]
    if missing:
        raise LabError(f"it lacks {', '.join(missing)}; name them, or a rule to build on in base")
    return CacheRule(id=name, **values)


def _value(key: str, value: Any) -> Any:
    """A value in the form the rule keeps; LabError says what it should be."""
    if key in _COUNTS:
        least = _COUNTS[key]
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise LabError(f"{key} is {value!r:.40}, not a whole number of {least} or more")
        return value
    if key in _FLAGS:
        if not isinstance(value, bool):
            raise LabError(f"{key} is {value!r:.40}, not true or false")
        return value
    if key in _NAMES:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise LabError(f"{key} is {value!r:.40}, not a list of texts")
        return tuple(value)
    if key in _DECIMALS:
        return _decimal(key, value)
    if key in _TABLES:
        return _small_table(key, value)
    if key == "checked":
        if not isinstance(value, date) or isinstance(value, datetime):
            raise LabError(f"checked is {value!r:.40}, not a date such as 2026-11-29")
        return value
    if not isinstance(value, str):
        raise LabError(f"{key} is {value!r:.40}, not text")
    if key in _CHOICES and value not in _CHOICES[key]:
        raise LabError(f"{key} is {value!r:.40}; use one of {', '.join(_CHOICES[key])}")
    return value


def _decimal(key: str, value: Any) -> Decimal:
    """Text or a number, so that prices stay exact."""
    try:
        number = Decimal(str(value)) if not isinstance(value, bool) else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number < 0:
        raise LabError(f'{key} is {value!r:.40}, not a number of 0 or more such as "0.10"')
    return number


def _small_table(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise LabError(f"{key} is {value!r:.40}, not a table")
    for name, entry in value.items():
        if key == "invalidates":
            _one_of(f"{key}.{name}", entry, get_args(Level))
        elif key == "lifetime_by_model":
            if not isinstance(entry, str):
                raise LabError(f"{key}.{name} is {entry!r:.40}, not the name of a lifetime")
        elif isinstance(entry, bool) or not isinstance(entry, int | float) or not entry >= 1:
            raise LabError(f"{key}.{name} is {entry!r:.40}, not a number of 1 or more")
        elif key == "minimum_by_model" and not isinstance(entry, int):
            raise LabError(f"{key}.{name} is {entry!r:.40}, not a whole number")
    return MappingProxyType(dict(value))


def _one_of(key: str, value: Any, choices: Iterable[str]) -> None:
    if value not in choices:
        raise LabError(f"{key} is {value!r:.40}; use one of {', '.join(choices)}")
