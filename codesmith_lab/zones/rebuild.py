"""Why a history was replaced wholesale, and the record that is kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codesmith_lab.errors import LabError

__all__ = ["RebuildReason", "RebuildRecord", "TranscriptRebuilt"]


@dataclass(frozen=True, slots=True)
class RebuildReason:
    """The signed reason of a rebuild; `str()` gives the reference's audit text.

    Use the constants (`RebuildReason.MANUAL_COMPACTION` ...) or `RebuildReason.runtime(name)`.
    """

    text: str

    MANUAL_COMPACTION: ClassVar[RebuildReason]
    AUTO_COMPACTION: ClassVar[RebuildReason]
    PURGE: ClassVar[RebuildReason]
    MICRO_COMPACTION: ClassVar[RebuildReason]
    CONTEXT_OVERFLOW_RECOVERY: ClassVar[RebuildReason]
    FRONT_TRIM: ClassVar[RebuildReason]
    VERIFY_AND_REPLAN_RESET: ClassVar[RebuildReason]
    EDIT_ROLLBACK: ClassVar[RebuildReason]
    SESSION_SYNC: ClassVar[RebuildReason]
    CYCLE_RESET: ClassVar[RebuildReason]
    HISTORY_CLEAR: ClassVar[RebuildReason]

    @classmethod
    def runtime(cls, operation: str) -> RebuildReason:
        """A rebuild by a named runtime operation; a blank name raises LabError."""
        if not operation.strip():
            raise LabError("a runtime rebuild names its operation, for example 'micro-compact'")
        return cls(f"runtime: {operation}")

    def __str__(self) -> str:
        return self.text


for _name, _text in (
    ("MANUAL_COMPACTION", "manual compaction (/compact)"),
    ("AUTO_COMPACTION", "auto compaction"),
    ("PURGE", "context purge (/purge)"),
    ("MICRO_COMPACTION", "micro-compaction"),
    ("CONTEXT_OVERFLOW_RECOVERY", "context-overflow recovery"),
    ("FRONT_TRIM", "front trim to budget"),
    ("VERIFY_AND_REPLAN_RESET", "verify-and-replan reset"),
    ("EDIT_ROLLBACK", "edit rollback (/edit)"),
    ("SESSION_SYNC", "session sync"),
    ("CYCLE_RESET", "cycle reset reseed"),
    ("HISTORY_CLEAR", "history clear"),
):
    setattr(RebuildReason, _name, RebuildReason(_text))


@dataclass(frozen=True, slots=True)
class RebuildRecord:
    """One rebuild: its reason, and how many messages there were before and after."""

    reason: RebuildReason
    messages_before: int
    messages_after: int


@dataclass(frozen=True, slots=True)
class TranscriptRebuilt:
    """The event that subscribers of a log receive, once for each rebuild."""

    record: RebuildRecord
