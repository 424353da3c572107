"""Why a history was replaced wholesale, and the record that is kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codesmith_lab.errors import LabError

__all__ = ["RebuildReason", "RebuildRecord", "TranscriptRebuilt"]


_RUNTIME = "runtime: "
_TEXTS = {
    "MANUAL_COMPACTION": "manual compaction (/compact)",
    "AUTO_COMPACTION": "auto compaction",
    "PURGE": "context purge (/purge)",
    "MICRO_COMPACTION": "micro-compaction",
    "CONTEXT_OVERFLOW_RECOVERY": "context-overflow recovery",
    "FRONT_TRIM": "front trim to budget",
    "VERIFY_AND_REPLAN_RESET": "verify-and-replan reset",
    "EDIT_ROLLBACK": "edit rollback (/edit)",
    "SESSION_SYNC": "session sync/restore",
    "CYCLE_RESET": "cycle reset reseed",
    "HISTORY_CLEAR": "history clear",
}
"""The reference's audit texts, by the name of the constant."""


@dataclass(frozen=True, slots=True)
class RebuildReason:
    """The signed reason of a rebuild; `str()` gives the reference's audit text.

    Use the constants (`RebuildReason.MANUAL_COMPACTION` ...), `RebuildReason.runtime(operation)`,
    or `RebuildReason.from_name("manual_compaction")` for a name out of a log. A text that is none
    of the reference's raises LabError.
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

    def __post_init__(self) -> None:
        operation = self.operation
        if operation is None and self.text not in _TEXTS.values():
            raise LabError(
                f"{self.text!r} is no rebuild reason; use one of {', '.join(_TEXTS.values())}, "
                "or RebuildReason.runtime(operation)"
            )
        if operation is not None and not (operation.strip() and operation.isprintable()):
            raise LabError(
                f"a runtime rebuild names its operation in one printable line, not {operation!r}; "
                "for example 'micro-compact'"
            )

    @property
    def operation(self) -> str | None:
        """The operation that a runtime rebuild names, None for every other reason."""
        return self.text.removeprefix(_RUNTIME) if self.text.startswith(_RUNTIME) else None

    @classmethod
    def runtime(cls, operation: str) -> RebuildReason:
        """A rebuild by a named runtime operation; a blank name raises LabError."""
        return cls(f"{_RUNTIME}{operation}")

    @classmethod
    def from_name(cls, name: str) -> RebuildReason:
        """The reason of a name in any common spelling, or of an audit text.

        "manual_compaction", "ManualCompaction" and "manual compaction (/compact)" are one reason;
        the reference calls the history clear "TraitClear". Raises LabError for any other name.
        """
        key = "".join(letter for letter in name if letter.isalnum()).lower()
        spellings = {constant.replace("_", "").lower(): text for constant, text in _TEXTS.items()}
        spellings["traitclear"] = _TEXTS["HISTORY_CLEAR"]
        return cls(spellings.get(key, name))

    def __str__(self) -> str:
        return self.text


for _name, _text in _TEXTS.items():
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
