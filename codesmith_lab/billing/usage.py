"""Reported usage in one shape, whatever the provider calls its counters."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Usage"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counters of one response. `input_tokens` is the total, cache included.

    `cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens` are parts of it;
    a counter that the provider did not send is None, never zero.
    """

    input_tokens: int
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_5m_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    notes: tuple[str, ...] = ()
