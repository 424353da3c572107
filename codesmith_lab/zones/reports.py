"""The reference's two reports on a running session, as text."""

from __future__ import annotations

from dataclasses import dataclass, field

from codesmith_lab.zones.append_log import AppendLog
from codesmith_lab.zones.prefix import FrozenPrefix
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

    def check(self, frozen: FrozenPrefix) -> None:
        """Feed the prefix of the next request."""
        self.prefix = frozen
        self.manager.check_and_update(frozen)


def cache_stats(session: ZoneSession) -> str:
    """Stability of the prefix and the last change, a few lines."""
    manager = session.manager
    change = manager.last_change
    lines = [manager.summary()]
    if change is None:
        lines.append("last change: none")
    else:
        lines.append(f"last change: {change.description()} [{change.label()}]")
        lines.append(f"  {change.old_sha256[:12]} -> {change.new_sha256[:12]}")
    return "\n".join(lines)


def cache_zones(session: ZoneSession) -> str:
    """State of the three zones: contract, pinned id, drift, rebuild audit, scratch."""
    manager, log, scratch = session.manager, session.log, session.scratch
    change = manager.last_change
    lines = [
        f"three-zone contract: {'wired' if session.prefix is not None else 'not wired'}",
        f"PinnedPrefix: pinned {manager.pinned_short_id or 'none'}, "
        + (
            "no drift"
            if change is None
            else f"drift {change.label()} x{manager.change_count} ({change.description()})"
        ),
        f"AppendLog: {len(log)} messages, {len(log.records)} rebuilds kept",
        *(
            f"  {record.reason}: {record.messages_before} -> {record.messages_after} messages"
            for record in log.records
        ),
    ]
    if scratch.is_empty:
        lines.append("TurnScratch: empty")
    else:
        held = "user message" if scratch.user_message is not None else "no user message"
        lines.append(f"TurnScratch: {held}, working set of {len(scratch.working_set)}")
    return "\n".join(lines)
