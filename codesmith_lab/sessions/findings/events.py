"""One difference between a request and its best earlier request, as every comparison gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.findings.volatile import KINDS, value_changes

__all__ = ["Event", "text_classes"]


@dataclass(frozen=True, slots=True)
class Event:
    """One cause, and where it stands.

    cls: a finding class. at: index of the block in the new prompt, where it stands or stood.
    detail: a few words for people, "" where the class says all.
    intended: a compaction, a signed rebuild or a new conversation: no fault.
    was, has: the two versions of the block, before and after, where there are two.
    """

    cls: str
    at: int
    zone: str
    block: str
    detail: str = ""
    intended: bool = False
    was: Block | None = None
    has: Block | None = None


def text_classes(old: str, new: str, edited: str) -> list[str]:
    """Classes of a change in running text, in the order of their places.

    `edited` is the class of what is no volatile value; the list always holds a class.
    """
    if old.split() == new.split():
        return ["whitespace"]
    found = dict.fromkeys(KINDS[change.kind] or edited for change in value_changes(old, new))
    return list(found) or [edited]


def place_of(blocks: Sequence[Block], block: Block) -> int:
    """Index of this very block, len(blocks) when it is not there."""
    return next((i for i, other in enumerate(blocks) if other is block), len(blocks))
