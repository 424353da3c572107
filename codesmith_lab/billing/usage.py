"""Reported usage in one shape, whatever the provider calls its counters.

One table says what each API's counters mean; most of all whether its input counter holds the
cached tokens. That differs from API to API and is the commonest accounting error there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from codesmith_lab.billing.usage_fields import FIELDS, UsageApi, UsageFields
from codesmith_lab.errors import InputError

__all__ = [
    "FLAGS",
    "Usage",
    "UsageApi",
    "merge_usage",
    "money",
    "read_usage",
    "usage_api",
    "usage_delta",
]

FLAGS: Final = ("usage_overlap", "usage_negative", "usage_contradiction", "usage_reset")
"""What can be wrong with counters: the same tokens counted twice, a counter below zero, counters
that contradict each other, a cumulative counter that went down."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counters of one response. `input_tokens` is the total, cache included.

    `cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens` are parts of it;
    a counter that the provider did not send is None, never zero. `reasoning_tokens` are a part of
    `output_tokens`. `cost_usd` is what the provider or gateway itself says it charged. `notes`
    are sentences on what was wrong with the counters, `flags` the same as names (see `FLAGS`).
    """

    input_tokens: int
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_5m_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    reasoning_tokens: int | None = None
    cost_usd: Decimal | None = None


_MOST: Final = 2**53


@dataclass(slots=True)
class _Reading:
    """Counters taken from one usage object, and what was wrong with them."""

    usage: Mapping[str, Any]
    notes: list[str]
    flags: list[str]

    def flag(self, name: str, note: str) -> None:
        self.flags.append(name)
        self.notes.append(note)

    def counter(self, path: str) -> int | None:
        """The counter at `path`; None when absent, None and a note when it is no counter."""
        value = _at(self.usage, path)
        if isinstance(value, float) and value.is_integer() and abs(value) <= _MOST:
            value = int(value)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
            note = f"usage.{path} is {value!r:.40}, not a whole number from 0 to 2**53"
            below = isinstance(value, int | float) and value < 0
            self.flag("usage_negative" if below else "usage_contradiction", note)
            return None
        return value

    def first(self, paths: tuple[str, ...], what: str) -> int | None:
        """The first of several counters that is sent; the others have to agree with it."""
        found = [n for n in map(self.counter, paths) if n is not None]
        if len(set(found)) > 1:
            other = next(n for n in found if n != found[0])
            note = f"counters of {what} disagree ({found[0]} and {other})"
            self.flag("usage_contradiction", note)
        return found[0] if found else None

    def total(self, paths: tuple[str, ...]) -> int | None:
        """The sum of the counters that are sent."""
        found = [n for n in map(self.counter, paths) if n is not None]
        return sum(found) if found else None


def usage_api(usage: Mapping[str, Any]) -> UsageApi | None:
    """Whose counters these are, told by their names; None where no input counter is known."""
    for api, fields in FIELDS.items():
        if any(_at(usage, name) is not None for name in fields.signs):
            return api
    return None


def read_usage(usage: Mapping[str, Any], api: UsageApi) -> Usage | None:
    """The counters of a response's `usage` object, or None when it holds no input counter.

    A counter that was not sent, or is no whole number from 0 to 2**53, is None; the latter is named
    in `notes`, and so are counters that contradict each other (reads and writes that exceed the
    input are kept as they are). Raises InputError when the input counter itself is unusable.
    """
    fields = FIELDS[api]
    reading = _Reading(usage, [], [])
    if all(_at(usage, path) is None for path in fields.input):
        return None
    plain = reading.total(fields.input)
    if plain is None or reading.notes:
        raise InputError(f"{reading.notes[0]}; without it this response has no bill")
    read = reading.first(fields.read, "cached tokens")
    written = reading.first(fields.write, "tokens written to the cache")
    short, long = _split_writes(fields, written, reading)
    written = max(written or 0, (short or 0) + (long or 0))
    cached = (read or 0) + written
    included = fields.input_includes_cache
    if included is None:
        included = cached <= plain
        if not included:
            reading.notes.append(
                f"the input of {plain} is less than the {cached} tokens read and written, so it "
                "was taken for the rest without them"
            )
    total = plain if included else plain + cached
    if cached > total:
        reading.flag(
            "usage_overlap",
            f"usage overlap: {read or 0} tokens read and {written} written exceed the input "
            f"of {total}, so some are counted twice",
        )
    miss = reading.counter(fields.miss) if fields.miss else None
    if miss is not None and (read or 0) + miss != total:
        reading.flag(
            "usage_contradiction",
            f"hits and misses ({read or 0} + {miss}) are not the input of {total}",
        )
    return Usage(
        total,
        reading.total(fields.output),
        read,
        short,
        long,
        tuple(reading.notes),
        tuple(dict.fromkeys(reading.flags)),
        reading.first(fields.reasoning, "reasoning tokens"),
        _money(usage, fields),
    )


def _split_writes(
    fields: UsageFields, written: int | None, reading: _Reading
) -> tuple[int | None, int | None]:
    """Writes by lifetime; without a split all are 5-minute writes, the default."""
    if not fields.lifetimes and not fields.details:
        return written, None
    short, long = map(reading.counter, fields.lifetimes or ("", ""))
    details = _at(reading.usage, fields.details) if fields.details else None
    if isinstance(details, list):
        short, long = _by_lifetime(details, reading)
    if short is None and long is None:
        if written:
            reading.notes.append("the lifetime of cache writes was not sent; 5 minutes are taken")
        return written, None
    if written is not None and (short or 0) + (long or 0) != written:
        reading.flag(
            "usage_contradiction",
            f"cache writes by lifetime ({short or 0} + {long or 0}) are not their total {written}",
        )
    return short, long


def _by_lifetime(details: list[Any], reading: _Reading) -> tuple[int | None, int | None]:
    """Bedrock's list of writes: {inputTokens, ttl}."""
    sums: dict[str, int] = {}
    for entry in details:
        if isinstance(entry, Mapping) and entry.get("ttl") in ("5m", "1h"):
            count = _Reading(entry, reading.notes, reading.flags).counter("inputTokens")
            sums[entry["ttl"]] = sums.get(entry["ttl"], 0) + (count or 0)
    return sums.get("5m"), sums.get("1h")


def _money(usage: Mapping[str, Any], fields: UsageFields) -> Decimal | None:
    """The charge that the provider names, in USD; None where there is none that can be read."""
    value = _at(usage, fields.cost) if fields.cost else None
    return money(value)


def money(value: Any) -> Decimal | None:
    """A number or a numeric text as an amount; None for anything else, and for less than zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = Decimal(str(value)[:40])
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None


def merge_usage(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Counters of one response seen twice: the later ones replace the earlier, none are added.

    Streams repeat cumulative counters from event to event (Anthropic's `message_start` and
    `message_delta`, OpenAI's last chunk). A counter sent as null does not replace one.
    """
    merged = dict(earlier)
    for key, value in later.items():
        known = merged.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            merged[key] = merge_usage(known, value)
        elif value is not None:
            merged[key] = value
    return merged


def usage_delta(total: Usage, before: Usage | None) -> Usage | None:
    """What one response added to cumulative counters; None when a counter went down.

    Counters start anew when a session is resumed or forked: then the difference means nothing.
    """
    if before is None:
        return total
    numbers: list[int | None] = []
    for name in _COUNTERS:
        now, then = getattr(total, name), getattr(before, name)
        numbers.append(None if now is None else now - (then or 0))
    if any(number is not None and number < 0 for number in numbers):
        return None
    found = dict(zip(_COUNTERS, numbers, strict=True))
    return Usage(**found, notes=total.notes, flags=total.flags)  # type: ignore[arg-type]


_COUNTERS: Final = (
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens"),
    *("cache_write_1h_tokens", "reasoning_tokens"),
)


def _at(usage: Mapping[str, Any], path: str) -> Any:
    """The value under a dotted path; a key that holds the dots itself goes first."""
    if path in usage:
        return usage[path]
    value: Any = usage
    for key in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
