"""Cache rules: which prefix of a prompt a provider can serve from its cache.

The rules are dated data (`rules.toml`), each with its source, the day it was checked, and its
doubts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from typing import Any, Literal

from codesmith_lab.errors import LabError

__all__ = ["CacheRule", "get_rule", "known_rules"]

Match = Literal["any_prefix", "stored_units"]


@dataclass(frozen=True, slots=True)
class CacheRule:
    """One provider's rule for a range of its models.

    match: "any_prefix" (every whole step of the common prefix hits) or "stored_units" (a hit
        ends where an earlier request stored a unit).
    minimum_tokens: shorter prefixes are never hits.
    step_tokens: hits are multiples of this.
    output_reuse: a model's output is stored behind its prompt and can be hit.
    lifetime_s: idle seconds, start to start, after which an entry is gone; None = not modelled.
    long_lifetime_s: the same where the request, or the model, asks for extended retention.
    """

    id: str
    provider: str
    title: str
    match: Match
    minimum_tokens: int
    step_tokens: int
    output_reuse: bool
    source: str
    checked: date
    doubts: str
    lifetime_s: float | None = None
    long_lifetime_s: float | None = None

    def floor(self, tokens: int) -> int:
        """The greatest cacheable prefix length (tokens) that is at most `tokens`."""
        if tokens < self.minimum_tokens:
            return 0
        return tokens // self.step_tokens * self.step_tokens

    def lifetime(self, model: str, settings: Mapping[str, Any]) -> float | None:
        """Idle lifetime in seconds for a request of `model` with these body fields."""
        if self.long_lifetime_s is None:
            return self.lifetime_s
        retention = settings.get("prompt_cache_retention")
        # gpt-5.5 keeps entries for 24 hours and has no in-memory mode (OpenAI cookbook).
        if retention == "24h" or model.rpartition("/")[2].startswith("gpt-5.5"):
            return self.long_lifetime_s
        return self.lifetime_s


@cache
def _table() -> dict[str, CacheRule]:
    text = resources.files("codesmith_lab.cache").joinpath("rules.toml").read_text("utf-8")
    return {name: CacheRule(id=name, **row) for name, row in tomllib.loads(text).items()}


def known_rules() -> tuple[CacheRule, ...]:
    """Every rule, in the order of the table."""
    return tuple(_table().values())


def get_rule(rule_id: str) -> CacheRule:
    """The rule of that name; LabError names the known ones otherwise."""
    rule = _table().get(rule_id)
    if rule is None:
        raise LabError(f"no cache rule is named {rule_id!r}; choose one of {', '.join(_table())}")
    return rule
