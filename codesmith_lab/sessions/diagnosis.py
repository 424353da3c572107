"""Where a request left its best earlier request, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from codesmith_lab.cache.pieces import PieceTable, Prompt
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.differences import Change, classify_text, first_difference
from codesmith_lab.sessions.json_differences import classify_json, embedded_json
from codesmith_lab.sessions.turns import Turn

__all__ = ["Break", "find_break"]

_END = Block("scratch", "message", "", "end of the prompt", "", b"")


@dataclass(frozen=True, slots=True)
class Break:
    """The first place, in prompt order, at which a request leaves its parent.

    piece: index of the block in the prompt (its length where the prompt simply ends).
    byte, token: 0-based, in the prompt as the provider reads it (UTF-8, framing included).
    line, column: 1-based, in the block's own text, in Unicode characters.
    classes: the cause first, then what else changed in the same place.
    also: sentences on further changes behind the break.
    intended: a compaction or another signed rebuild, not a fault.
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


def find_break(turn: Turn, table: PieceTable, rebuilt: str | None = None) -> Break | None:
    """The break of a turn, or None when it extends its parent or has none.

    rebuilt: the reason of a rebuild that was signed with this request, if any.
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
    classes, intended = _classes(turn.prompt, parent, at, rebuilt)
    return Break(
        at,
        byte,
        turn.causes.break_tokens,
        mine.zone,
        mine.name,
        inside.line,
        inside.column,
        classes,
        inside.before,
        inside.after,
        _also(turn.prompt, parent, at),
        intended,
    )


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


def _classes(
    prompt: Prompt, parent: Prompt, at: int, rebuilt: str | None
) -> tuple[tuple[str, ...], bool]:
    mine, theirs = _block(prompt, at), _block(parent, at)
    if mine.kind == "tool" or theirs.kind == "tool":
        return _tool_classes(prompt, parent, mine, theirs), False
    if mine.kind == "section" or theirs.kind == "section":
        return _section_classes(prompt, parent, mine, theirs), False
    return _message_classes(prompt, parent, at, rebuilt)


def _of_kind(prompt: Prompt, kind: str) -> list[Block]:
    return [block for block in prompt.blocks if block.kind == kind]


def _tool_classes(prompt: Prompt, parent: Prompt, mine: Block, theirs: Block) -> tuple[str, ...]:
    now, was = _of_kind(prompt, "tool"), _of_kind(parent, "tool")
    if Counter(b.text for b in now) == Counter(b.text for b in was):
        return ("tool_order",)
    names, old_names = Counter(b.name for b in now), Counter(b.name for b in was)
    classes = []
    if names - old_names:
        classes.append("tool_added")
    if old_names - names:
        classes.append("tool_removed")
    if classes:
        return tuple(classes)
    return tuple(classify_json(theirs.text, mine.text)) or ("tool_changed",)


def _section_classes(prompt: Prompt, parent: Prompt, mine: Block, theirs: Block) -> tuple[str, ...]:
    now, was = _of_kind(prompt, "section"), _of_kind(parent, "section")
    if mine.name != theirs.name and Counter(b.text.strip() for b in now) == Counter(
        b.text.strip() for b in was
    ):
        return ("section_moved",)
    if mine.name == theirs.name:
        return tuple(classify_text(theirs.text, mine.text)) or ("section_edited",)
    if Counter(b.name for b in now) == Counter(b.name for b in was):
        return ("section_moved", "section_edited")
    return ("section_edited",)


def _message_classes(
    prompt: Prompt, parent: Prompt, at: int, rebuilt: str | None
) -> tuple[tuple[str, ...], bool]:
    if rebuilt is not None:
        return ("compaction" if "compaction" in rebuilt else "rebuild",), True
    mine, theirs = _block(prompt, at), _block(parent, at)
    now = [b.text for b in prompt.blocks[at:]]
    was = [b.text for b in parent.blocks[at:]]
    kept = sum((Counter(now) & Counter(was)).values())
    if len(was) >= 4 and len(now) < len(was) and kept <= len(was) // 2 and mine is not _END:
        return ("compaction",), True
    if mine is _END or (mine.text in was and theirs.text not in now):
        return ("message_removed",), False
    if mine.text and mine.text in was and theirs.text in now:
        return ("block_moved",), False
    if theirs.text in now:
        return ("message_inserted",), False
    if theirs.name == "image" or mine.name == "image":
        return ("image_changed",), False
    if _text_of(prompt, at) == _text_of(parent, at):
        return ("shape_change",), False
    found = _respelled(theirs.text, mine.text) or classify_text(theirs.text, mine.text)
    return tuple(found) or ("message_edited",), False


def _text_of(prompt: Prompt, at: int) -> str:
    """The text of the message that block `at` belongs to, whatever its parts."""
    number = _block(prompt, at).message
    return "".join(b.text for b in prompt.blocks if b.kind != "section" and b.message == number)


def _respelled(old: str, new: str) -> list[str]:
    """Classes of JSON in two texts that was only written another way (arguments of tool calls)."""
    (plain, was), (now_plain, now) = embedded_json(old), embedded_json(new)
    if plain != now_plain or not was or len(was) != len(now):
        return []
    found: dict[str, None] = {}
    for a, b in zip(was, now, strict=True):
        classes = classify_json(a, b) if a != b else []
        if a != b and not classes:
            return []
        found.update(dict.fromkeys(classes))
    return list(found)


def _also(prompt: Prompt, parent: Prompt, at: int) -> tuple[str, ...]:
    """Pinned blocks behind the break that changed too, one sentence each."""
    kept = {block.text for block in parent.blocks[at:]}
    names: Sequence[str] = [
        block.name
        for block in prompt.blocks[at + 1 :]
        if block.zone == "pinned" and block.text not in kept
    ]
    return tuple(f"{name} changed too" for name in dict.fromkeys(names))
