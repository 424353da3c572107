"""Cache rules: which prefix of a prompt a provider can serve from its cache.

The rules are dated data (`rules.toml`), each with its source, the day it was checked, and its
doubts. Rules of a file of one's own are added for the running process with `load_rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any, Literal

__all__ = ["CacheRule", "Level", "MatchKind", "setting_at"]

MatchKind = Literal["any_prefix", "stored_units", "breakpoints", "pool", "radix", "slots", "none"]
Level = Literal["tools", "system", "messages"]
Automatic = Literal["none", "requested", "turn", "pinned"]
OverLimit = Literal["refuse", "latest"]


@dataclass(frozen=True, slots=True, eq=False)
class CacheRule:
    """One provider's rule for a range of its models.

    match: see the head of `rules.toml`.
    models: name patterns (`*` stands for anything) that a file of one's own claims for this rule;
        for the rules that come with the package they only inform.
    minimum_tokens, minimum_by_model: shorter prefixes are never hits; the first pattern that
        matches the model's name wins over the default.
    step_tokens: hits are multiples of this (block or page size of an engine).
    keep_last_tokens: tokens at the end of every prompt that are computed again.
    output_reuse: a model's output is stored behind its prompt and can be hit.
    lifetimes_s: idle seconds, start to start, by the name a request gives; "" is the default, and
        an empty table says that no lifetime is modelled. lifetime_field: dotted body field
        with that name; lifetime_by_model: name by model pattern.
    refreshes: a read starts the lifetime again.
    scope_fields: body fields whose value parts one cache from another.
    required_field: body field without which nothing is cached. off_field: body field that turns
        the cache off for a request when it is false. salt_field: body field that is mixed into
        the first block.
    refused_fields, exclusive_fields: body fields that are refused, or refused together.
    max_breakpoints, over_limit: markers of a request, and whether more are refused or only
        the latest count. automatic: "turn" (the latest message of user or tool is a breakpoint),
        "requested" (the last block, when `automatic_field` is in the body), "pinned" (the end of
        tools and system prompt), "none". mode_field: body field that says "explicit" to
        turn "turn" off.
    lookback_blocks: content blocks that a breakpoint looks back for an entry, None = no limit.
    lookup_breakpoints: that many of the latest possible places are looked up, None = no limit.
    charges_writes: written tokens have a price line of their own.
    long_first: markers of a longer lifetime must stand before shorter ones.
    unmarkable: block names that refuse a marker.
    strips_thinking: patterns of models whose earlier thinking is dropped by the server once a
        plain user message follows it.
    invalidates: body field (dotted), or "images" or "citations", and the first level lost.
    storage_usd_per_mtok_hour: price of keeping a written entry.
    read_factor, write_factor: prices as multiples of the input price, where the tables have none.
    without_markers: the rule that holds for requests without a marker.
    capacity_tokens: tokens that an engine can hold, None = unlimited. slots, slot_similarity:
        slots of an engine, and how alike (share of the new prompt) a slot's prompt must be.
    """

    id: str
    provider: str
    title: str
    match: MatchKind
    source: str
    checked: date
    doubts: str
    models: tuple[str, ...] = ()
    minimum_tokens: int = 1
    minimum_by_model: Mapping[str, int] = field(default_factory=dict)
    step_tokens: int = 1
    keep_last_tokens: int = 0
    output_reuse: bool = False
    lifetimes_s: Mapping[str, float] = field(default_factory=dict)
    lifetime_field: str = ""
    lifetime_by_model: Mapping[str, str] = field(default_factory=dict)
    refreshes: bool = True
    scope_fields: tuple[str, ...] = ()
    required_field: str = ""
    off_field: str = ""
    salt_field: str = ""
    refused_fields: tuple[str, ...] = ()
    exclusive_fields: tuple[str, ...] = ()
    max_breakpoints: int | None = None
    over_limit: OverLimit = "refuse"
    automatic: Automatic = "none"
    automatic_field: str = ""
    mode_field: str = ""
    lookback_blocks: int | None = None
    lookup_breakpoints: int | None = None
    charges_writes: bool = False
    long_first: bool = False
    unmarkable: tuple[str, ...] = ()
    strips_thinking: tuple[str, ...] = ()
    invalidates: Mapping[str, Level] = field(default_factory=dict)
    storage_usd_per_mtok_hour: Decimal | None = None
    read_factor: Decimal | None = None
    write_factor: Decimal | None = None
    without_markers: str = ""
    capacity_tokens: int | None = None
    slots: int = 1
    slot_similarity: Decimal = Decimal("0.1")

    @property
    def long_lifetime_s(self) -> float | None:
        """The longest lifetime that a request can ask for, None where it has no choice."""
        longest = max(self.lifetimes_s.values(), default=None)
        return None if longest in (None, self.lifetimes_s.get("")) else longest

    def minimum(self, model: str) -> int:
        """Tokens of the shortest hit for `model`."""
        plain = _plain(model)
        for pattern, tokens in self.minimum_by_model.items():
            if fnmatchcase(plain, pattern):
                return tokens
        return self.minimum_tokens

    def floor(self, tokens: int, minimum_tokens: int | None = None) -> int:
        """The greatest cacheable prefix length (tokens) that is at most `tokens`."""
        least = self.minimum_tokens if minimum_tokens is None else minimum_tokens
        if tokens < least:
            return 0
        return tokens // self.step_tokens * self.step_tokens

    def lifetime(self, model: str, settings: Mapping[str, Any]) -> float | None:
        """Idle lifetime in seconds for a request of `model` with these body fields.

        None where none is modelled. An unknown name of a lifetime counts as the default.
        """
        named = setting_at(settings, self.lifetime_field) if self.lifetime_field else None
        if not isinstance(named, str) or named not in self.lifetimes_s:
            plain = _plain(model)
            named = next(
                (n for pattern, n in self.lifetime_by_model.items() if fnmatchcase(plain, pattern)),
                "",
            )
        return self.lifetimes_s.get(named)

    def lifetime_named(self, name: str) -> float | None:
        """Seconds of a marker's lifetime; an unknown name counts as the default."""
        return self.lifetimes_s.get(name, self.lifetimes_s.get(""))

    def strips(self, model: str) -> bool:
        """Whether the server drops earlier thinking of `model`."""
        plain = _plain(model)
        return any(fnmatchcase(plain, pattern) for pattern in self.strips_thinking)

    def claims(self, model: str) -> bool:
        """Whether `models` names this model."""
        whole = model.strip().lower()
        return any(fnmatchcase(name, p) for p in self.models for name in (whole, _plain(model)))


def setting_at(settings: Mapping[str, Any], path: str) -> Any:
    """The body field at a dotted path, None when it is not there."""
    value: Any = settings
    for key in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _plain(model: str) -> str:
    """A model's name without vendor prefix and date, dots between digits as hyphens for Claude."""
    name = model.strip().lower().rpartition("/")[2].partition("@")[0]
    head, _, tail = name.rpartition("-")
    if len(tail) == 8 and tail.isdigit():
        name = head
    if "claude" in name:
        name = name.replace(".", "-")
    return name.removesuffix("-latest")
