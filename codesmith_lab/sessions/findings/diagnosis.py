"""Where a request left its best earlier request, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from codesmith_lab.cache.pieces import Piece, PieceTable, Prompt, common_length
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.findings.differences import Change, first_difference
from codesmith_lab.sessions.findings.events import Event
from codesmith_lab.sessions.findings.history import history_events
from codesmith_lab.sessions.findings.pinned import section_events, tool_events
from codesmith_lab.sessions.turns import Turn

__all__ = ["Break", "find_break"]

_END = Block("scratch", "message", "", "end of the prompt", "", b"")
_MOST_OTHERS = 50
_CHOICES = {"tool_choice", "toolConfig.toolChoice"}


@dataclass(frozen=True, slots=True)
class Break:
    """The first place, in prompt order, at which a request leaves its parent.

    piece: index of the block in the prompt (its length where the prompt simply ends).
    byte, token: 0-based, in the prompt as the provider reads it (UTF-8, framing included).
    block: its name; "history" for an intended change of the whole history.
    line, column: 1-based, in the block's own text, in Unicode characters.
    classes: the cause first, then what else changed in the same place.
    also: sentences on further changes behind the break.
    intended: a compaction, another signed rebuild or a new conversation, not a fault.
    events: the causes in the same place, then those behind it, in prompt order.
    same_rest_tokens: at the end of the changed block, as they were before. They count as new (the
        whole block does, from the break on), and were lost all the same.
    """

    piece: int
    byte: int
    token: int
    zone: str
    block: str
    line: int
    column: int
    classes: tuple[str, ...]
    before: str
    after: str
    also: tuple[str, ...]
    intended: bool
    events: tuple[Event, ...] = ()
    same_rest_tokens: int = 0

    @property
    def cause(self) -> str:
        """The first class in words: "message edited"."""
        return self.classes[0].replace("_", " ")


def find_break(
    turn: Turn, table: PieceTable, rebuilt: str | None = None, sent: Sequence[Block] = ()
) -> Break | None:
    """The break of a turn, or None when it extends its parent or has none.

    rebuilt: the reason of a rebuild that was signed with this request, if any.
    sent: the blocks of the request, from which the provider may have dropped some.
    """
    at, parent = turn.causes.break_piece, turn.parent_prompt
    if at is None or parent is None or turn.causes.break_tokens is None:
        return None
    mine = _block(turn.prompt, at)
    theirs = _block(parent, at)
    piece, other = table[int(turn.prompt.pieces[at])], table[int(parent.pieces[at])]
    change = first_difference(other.full, piece.full)
    inside = first_difference(theirs.text, mine.text)
    if not _same_thing(theirs, mine):
        place = _place(mine.text, change.at - len(piece.head))
        inside = Change(0, *place, _brief(theirs), _brief(mine))
    before_bytes = sum(table[int(p)].n_bytes for p in turn.prompt.pieces[:at])
    byte = before_bytes + len(piece.full[: change.at].encode("utf-8"))
    if turn.setting_change is not None:
        # Equal text, and yet another prefix: a field of the request is part of it.
        was, now = turn.setting_change
        names = _setting_names(was, now)
        cls = "tool_choice_change" if names <= _CHOICES else "setting_change"
        events = [Event(cls, at, mine.zone, ", ".join(sorted(names)))]
        inside = Change(0, 1, 1, was or "not set", now or "not set")
    else:
        events = _events(turn.prompt, parent, at, rebuilt)
        if len(sent) > len(turn.prompt.blocks):
            events = [_dropped(event, sent) for event in events]
    here = [event for event in events if event.at == events[0].at]
    intended = events[0].intended
    return Break(
        at,
        byte,
        turn.causes.break_tokens,
        "log" if intended else mine.zone,
        "history" if intended else mine.name,
        inside.line,
        inside.column,
        tuple(dict.fromkeys(event.cls for event in here)),
        inside.before,
        inside.after,
        tuple(_also(events[len(here) :])),
        intended,
        tuple(events[:_MOST_OTHERS]),
        _same_rest(turn, table, piece, other) if here[0].has is mine else 0,
    )


def _dropped(event: Event, sent: Sequence[Block]) -> Event:
    """What was sent and is not in the prompt was dropped by the server, not by the sender."""
    if event.was is None or not any(block.text == event.was.text for block in sent):
        return event
    return replace(event, cls="server_side")


def _setting_names(was: str, now: str) -> set[str]:
    """The fields that differ between two levels' fields as text ("name=value; name=value")."""
    old, new = set(was.split("; ")), set(now.split("; "))
    return {text.partition("=")[0] for text in old ^ new if text}


def _same_rest(turn: Turn, table: PieceTable, piece: Piece, other: Piece) -> int:
    at, start = turn.causes.break_piece, turn.causes.break_tokens
    if at is None or start is None:
        return 0
    before = int(turn.prompt.ends[at - 1]) if at else 0
    behind = before + piece.tokens - start
    mine, theirs = table.key(piece.number), table.key(other.number)
    same = common_length(mine[::-1], theirs[::-1]) // 4
    return max(0, min(same, behind, other.tokens - (start - before)))


def _events(prompt: Prompt, parent: Prompt, at: int, rebuilt: str | None) -> list[Event]:
    """Every cause from the break on, in prompt order; never empty."""
    now, was = prompt.blocks, parent.blocks
    events: list[Event] = []
    if _pinned_end(now) > at or _pinned_end(was) > at:
        events += section_events(now, was) + tool_events(now, was)
    mine, theirs = max(at, _pinned_end(now)), max(at, _pinned_end(was))
    if not _extends(prompt.pieces[mine:-1], parent.pieces[theirs:-1]):
        events += history_events(was[theirs:], now[mine:], mine, rebuilt)
    if not events:
        # Texts are equal and only their cutting into blocks differs.
        block = _block(prompt, at)
        events = [Event("shape_change", at, block.zone, block.name)]
    clamped = [event if event.at >= at else replace(event, at=at) for event in events]
    return sorted(clamped, key=lambda event: event.at)


def _extends(mine: npt.NDArray[np.int32], theirs: npt.NDArray[np.int32]) -> bool:
    return len(mine) >= len(theirs) and bool(np.array_equal(mine[: len(theirs)], theirs))


def _pinned_end(blocks: Sequence[Block]) -> int:
    """How many blocks lead the prompt before its messages."""
    return next(
        (i for i, block in enumerate(blocks) if block.kind not in ("section", "tool")), len(blocks)
    )


def _also(events: Sequence[Event]) -> list[str]:
    """One sentence for each further cause, equal ones counted."""
    counts: dict[tuple[str, str], int] = {}
    for event in events:
        key = (event.block, event.cls.replace("_", " "))
        counts[key] = counts.get(key, 0) + 1
    return [
        f"{block}: {cls}" + (f" ({n} times)" if n > 1 else "") for (block, cls), n in counts.items()
    ]


def _block(prompt: Prompt, at: int) -> Block:
    return prompt.blocks[at] if at < len(prompt.blocks) else _END


def _place(text: str, at: int) -> tuple[int, int]:
    head = text[: max(0, at)]
    return head.count("\n") + 1, len(head) - (head.rfind("\n") + 1) + 1


def _brief(block: Block) -> str:
    text = block.text.strip().replace("\n", " ")
    return text if len(text) <= 80 else text[:79] + "…"


def _same_thing(a: Block, b: Block) -> bool:
    return (a.kind, a.role) == (b.kind, b.role) and (
        a.name == b.name or a.kind not in ("tool", "section")
    )
