"""The reference's two reports on a running session, as text."""

from __future__ import annotations

from dataclasses import dataclass, field

from codesmith_lab.wording import counted
from codesmith_lab.zones.append_log import AppendLog
from codesmith_lab.zones.prefix import FrozenPrefix, PrefixChange
from codesmith_lab.zones.scratch import TurnScratch
from codesmith_lab.zones.stability import PrefixStabilityManager

__all__ = ["ZoneSession", "cache_stats", "cache_zones"]


@dataclass(slots=True)
class ZoneSession:
    """A session built from the three zones.

    prefix: the frozen prefix of the newest request, None before the first.
    """

    log: AppendLog = field(default_factory=AppendLog)
    scratch: TurnScratch = field(default_factory=TurnScratch)
    manager: PrefixStabilityManager = field(default_factory=PrefixStabilityManager)
    prefix: FrozenPrefix | None = None

    def check(self, frozen: FrozenPrefix) -> PrefixChange | None:
        """Feed the prefix of the next request; the change on drift, else None."""
        change = self.manager.check_and_update(frozen)
        self.prefix = frozen
        return change

    def end_turn(self) -> None:
        """The turn boundary: the scratch is cleared."""
        self.scratch.clear()


def _drift_lines(manager: PrefixStabilityManager) -> list[str]:
    change = manager.last_change
    if change is None:
        return ["last change: none"]
    return [
        f"last change: {change.description()} [{change.label()}]",
        f"  {change.old_sha256[:12]} -> {change.new_sha256[:12]}",
    ]


def cache_stats(session: ZoneSession) -> str:
    """Stability of the prefix and the last change, a few lines."""
    return "\n".join([session.manager.summary(), *_drift_lines(session.manager)])


def cache_zones(session: ZoneSession) -> str:
    """State of the three zones: contract, pinned id, drift, rebuild audit, scratch, stability.

    The audit lists the 8 newest rebuilds, the newest last.
    """
    manager, log, scratch = session.manager, session.log, session.scratch
    change = manager.last_change
    pinned = manager.pinned_short_id
    if pinned is None and session.prefix is not None:
        pinned = session.prefix.short_id
    drift = "no drift" if change is None else f"drift {change.label()} x{manager.change_count}"
    lines = [
        f"three-zone contract: {'not wired' if pinned is None else 'wired'}",
        f"PinnedPrefix: pinned {pinned or 'none'}, {drift}",
        *(f"  {line}" for line in _drift_lines(manager)),
        f"AppendLog: {counted(len(log), 'message')}, {counted(len(log.records), 'rebuild')} kept",
        *(
            f"  {record.reason}: {record.messages_before} -> {record.messages_after} messages"
            for record in log.records
        ),
    ]
    if scratch.is_empty:
        lines.append("TurnScratch: empty")
    else:
        held = "no user message" if scratch.user_message is None else "user message"
        lines.append(f"TurnScratch: {held}, working set of {len(scratch.working_set)}")
    return "\n".join([*lines, manager.summary()])
