"""Words around numbers."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """The number with its noun, in the plural unless it is one: "1 request", "2,000 requests"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
