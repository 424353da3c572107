"""Watches the pinned prefix from check to check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codesmith_lab.errors import LabError
from codesmith_lab.zones.prefix import FrozenPrefix, PinnedPrefix, PrefixChange, System

__all__ = ["PrefixStabilityManager"]


class PrefixStabilityManager:
    """Pins the first prefix it sees, counts checks, and re-pins on every drift.

    check_count, change_count: checks so far and drifts among them. last_change: the newest drift,
    kept across later stable checks.
    """

    def __init__(self) -> None:
        self.check_count = 0
        self.change_count = 0
        self.last_change: PrefixChange | None = None
        self.pinned: FrozenPrefix | None = None
        self.current: FrozenPrefix | None = None

    def check_and_update(self, frozen: FrozenPrefix) -> PrefixChange | None:
        """Check one prefix: None for the first pin and while stable, the change on drift."""
        if not isinstance(frozen, FrozenPrefix):
            raise LabError(
                f"a check takes a FrozenPrefix, not {type(frozen).__name__}; "
                "call PinnedPrefix(system, tools).freeze()"
            )
        self.check_count += 1
        pinned, self.current = self.pinned, frozen
        if pinned is None or pinned.combined_sha256 == frozen.combined_sha256:
            self.pinned = pinned or frozen
            return None
        change = PrefixChange(
            pinned.combined_sha256,
            frozen.combined_sha256,
            pinned.system_sha256 != frozen.system_sha256,
            pinned.tools_sha256 != frozen.tools_sha256,
        )
        self.change_count += 1
        self.last_change = change
        self.pinned = frozen
        return change

    def check(self, system: System, tools: Sequence[Mapping[str, Any]] = ()) -> PrefixChange | None:
        """Freeze a system prompt and its tools and check them: one call a request."""
        return self.check_and_update(PinnedPrefix(system, tools).freeze())

    @property
    def pinned_short_id(self) -> str | None:
        """Short id of the pinned prefix, None before the first check."""
        return None if self.pinned is None else self.pinned.short_id

    @property
    def current_short_id(self) -> str | None:
        """Short id of the newest prefix checked, None before the first check."""
        return None if self.current is None else self.current.short_id

    @property
    def stability_ratio(self) -> float:
        """Stable checks over all checks, 0 to 1; 1 before the first."""
        if not self.check_count:
            return 1.0
        return (self.check_count - self.change_count) / self.check_count

    def summary(self) -> str:
        """One line: ratio, counts, fingerprint, changes."""
        stable = self.check_count - self.change_count
        return (
            f"Prefix stability: {self.stability_ratio * 100:.1f}% "
            f"({stable}/{self.check_count} checks stable) | "
            f"fingerprint: {self.current_short_id or 'none'} | changes: {self.change_count}"
        )
