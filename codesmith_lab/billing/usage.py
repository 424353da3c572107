"""Reported usage in one shape, whatever the provider calls its counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from codesmith_lab.errors import InputError

__all__ = ["Usage", "UsageApi", "read_usage"]

UsageApi = Literal["openai-chat", "deepseek-chat", "anthropic-messages"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counters of one response. `input_tokens` is the total, cache included.

    `cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens` are parts of it;
    a counter that the provider did not send is None, never zero. `notes` are sentences on what
    was wrong with the counters.
    """

    input_tokens: int
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_5m_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fields:
    """Where one API puts its counters: dotted paths, the first that is sent wins.

    input_includes_cache: whether `input` already holds reads and writes.
    """

    input: str
    output: str
    read: tuple[str, ...]
    write: str
    input_includes_cache: bool


# Sources: the vendors' API references and recorded responses. DeepSeek's real responses carry
# OpenAI's counter beside its own, so one row reads both. OpenAI's writes (GPT-5.6 and later)
# have a single price and are kept as 5-minute writes.
_CHAT: Final = _Fields(
    "prompt_tokens",
    "completion_tokens",
    ("prompt_cache_hit_tokens", "prompt_tokens_details.cached_tokens"),
    "prompt_tokens_details.cache_write_tokens",
    True,
)
_FIELDS: Final[dict[str, _Fields]] = {
    "openai-chat": _CHAT,
    "deepseek-chat": _CHAT,
    "anthropic-messages": _Fields(
        "input_tokens",
        "output_tokens",
        ("cache_read_input_tokens",),
        "cache_creation_input_tokens",
        False,
    ),
}
_MOST: Final = 2**53
_WRITE_5M: Final = "cache_creation.ephemeral_5m_input_tokens"
_WRITE_1H: Final = "cache_creation.ephemeral_1h_input_tokens"


def read_usage(usage: Mapping[str, Any], api: UsageApi) -> Usage | None:
    """The counters of a response's `usage` object, or None when it holds no input counter.

    A counter that was not sent, or is no whole number from 0 to 2**53, is None; the latter is named
    in `notes`, and so are counters that contradict each other (reads and writes that exceed the
    input are kept as they are). Raises InputError when the input counter itself is unusable.
    """
    fields = _FIELDS[api]
    notes: list[str] = []
    raw_input = _at(usage, fields.input)
    if raw_input is None:
        return None
    plain = _counter(usage, fields.input, notes)
    if plain is None:
        raise InputError(f"{notes[0]}; without it this response has no bill")
    reads = [n for n in (_counter(usage, path, notes) for path in fields.read) if n is not None]
    if len(set(reads)) > 1:
        notes.append(f"counters of cached tokens disagree ({reads[0]} and {reads[1]})")
    read = reads[0] if reads else None
    written = _counter(usage, fields.write, notes)
    short, long = written, None
    if not fields.input_includes_cache:
        short, long = _split_writes(usage, written, notes)
        written = max(written or 0, (short or 0) + (long or 0))
    total = plain if fields.input_includes_cache else plain + (read or 0) + (written or 0)
    if (read or 0) + (written or 0) > total:
        notes.append(
            f"usage overlap: {read or 0} tokens read and {written} written exceed the input "
            f"of {total}, so some are counted twice"
        )
    miss = _counter(usage, "prompt_cache_miss_tokens", notes)
    if miss is not None and fields.input_includes_cache and (read or 0) + miss != total:
        notes.append(f"hits and misses ({read or 0} + {miss}) are not the input of {total}")
    output = _counter(usage, fields.output, notes)
    return Usage(total, output, read, short, long, tuple(notes))


def _split_writes(
    usage: Mapping[str, Any], written: int | None, notes: list[str]
) -> tuple[int | None, int | None]:
    """Anthropic's writes by lifetime; without a split all are 5-minute writes, the default."""
    short, long = _counter(usage, _WRITE_5M, notes), _counter(usage, _WRITE_1H, notes)
    if short is None and long is None:
        if written:
            notes.append("the lifetime of cache writes was not sent; 5 minutes are taken")
        return written, None
    if written is not None and (short or 0) + (long or 0) != written:
        notes.append(
            f"cache writes by lifetime ({short or 0} + {long or 0}) are not their total {written}"
        )
    return short, long


def _counter(usage: Mapping[str, Any], path: str, notes: list[str]) -> int | None:
    """The counter at `path`; None when absent, None and a note when it is no counter."""
    value = _at(usage, path)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        notes.append(f"usage.{path} is {value!r:.40}, not a whole number from 0 to 2**53")
        return None
    return value


def _at(usage: Mapping[str, Any], path: str) -> Any:
    value: Any = usage
    for key in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
