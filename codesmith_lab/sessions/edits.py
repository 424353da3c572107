"""What-if edits of a session's system prompt: text, stability and order of sections.

An edit names a section and a turn; its scope says which turns it reaches. The log itself is never
touched: edits give the blocks that the changed turns would have sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, Literal

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.blocks import Block, SwappedBlocks
from codesmith_lab.sessions.records import Session

__all__ = [
    "SCOPES",
    "STABILITIES",
    "Edit",
    "MoveEdit",
    "RewriteEdit",
    "StabilityEdit",
    "TextEdit",
    "apply_edits",
    "edited_settings",
    "first_edited_turn",
    "merge_text",
    "reorder_sections",
    "split_separator",
]

Scope = Literal["from_here", "this_turn", "all_turns"]
SCOPES: dict[str, str] = {
    "from_here": "from this turn on",
    "this_turn": "this turn only",
    "all_turns": "every turn",
}
"""How far an edit reaches, with what people call it."""
STABILITIES = ("static", "workspace", "session", "dynamic")

_HEADER_STABILITY = re.compile(r'\A(<!-- prompt-section: [^\n]*?\bstability=")([^"]*)(")')


@dataclass(frozen=True, slots=True)
class TextEdit:
    """`old` became `new` in the section `name`, as seen on `turn` (separators excluded)."""

    turn: int
    name: str
    scope: Scope
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class StabilityEdit:
    """The section is declared `stability` from now on; a rendered header says so too."""

    turn: int
    name: str
    scope: Scope
    stability: str


@dataclass(frozen=True, slots=True)
class MoveEdit:
    """The section changes places with its neighbour: `step` is -1 (up) or +1 (down)."""

    turn: int
    name: str
    scope: Scope
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class RewriteEdit:
    """Whole requests as a remedy would send them; made from the state with the edits before it.

    id, title: what was applied, for programs and for people. blocks, settings: by turn; others
    stay.
    """

    id: str
    title: str
    blocks: Mapping[int, tuple[Block, ...]]
    settings: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


Edit = TextEdit | StabilityEdit | MoveEdit | RewriteEdit


def split_separator(text: str) -> tuple[str, str]:
    """A section's text and the blank lines it owns behind it."""
    body = text.rstrip("\r\n")
    return body, text[len(body) :]


def reorder_sections(blocks: Sequence[Block], order: Sequence[int]) -> tuple[Block, ...]:
    """The sections in another order (`order` are positions among sections).

    Separators stay where they are: the last section still ends the system prompt. `first` and
    `last` stay with the place, too.
    """
    at = [i for i, block in enumerate(blocks) if block.kind == "section"]
    if sorted(order) != list(range(len(at))):
        raise LabError(f"an order of {len(at)} sections names each position once, not {order!r}")
    result = list(blocks)
    for slot, source in zip(at, order, strict=True):
        here, moved = blocks[slot], blocks[at[source]]
        if here is moved:
            continue
        text = split_separator(moved.text)[0] + split_separator(here.text)[1]
        result[slot] = replace(
            moved, text=text, message=here.message, first=here.first, last=here.last
        )
    return tuple(result)


def merge_text(old: str, new: str, other: str) -> str:
    """The edit old -> new, applied to another turn's version of the same text.

    Line by line: lines the edit left alone keep the other turn's version (a clock goes on
    ticking), lines it touched take the edit's.
    """
    if other == old:
        return new
    a, b, c = (text.split("\n") for text in (old, new, other))
    versions = a if len(a) == len(c) else None
    if versions is None:
        shift = SequenceMatcher(None, a, c, autojunk=False).get_opcodes()
        pairs: dict[int, list[str]] = {i: [] for i in range(len(a))}
        for tag, i1, i2, j1, j2 in shift:
            if tag == "equal" or i2 - i1 == j2 - j1:
                pairs.update({i1 + k: [c[j1 + k]] for k in range(i2 - i1)})
            else:
                # Lines that only the other turn has stay with the line before them.
                anchor = min(max(i1 - 1, 0) if i1 == i2 else i1, len(a) - 1)
                pairs[anchor] = pairs[anchor] + c[j1:j2]
    else:
        pairs = {i: [line] for i, line in enumerate(c)}
    merged: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            for i in range(i1, i2):
                merged += pairs[i]
        else:
            merged += b[j1:j2]
    return "\n".join(merged)


def _reaches(edit: Edit, turn: int) -> bool:
    if isinstance(edit, RewriteEdit):
        return turn in edit.blocks
    return (
        edit.scope == "all_turns"
        or turn == edit.turn
        or (edit.scope == "from_here" and turn > edit.turn)
    )


def first_edited_turn(edits: Sequence[Edit], turns: int) -> int:
    """The first turn any edit reaches; `turns` when there is none."""
    return min((_first(edit, turns) for edit in edits), default=turns)


def _first(edit: Edit, turns: int) -> int:
    if isinstance(edit, RewriteEdit):
        return min((*edit.blocks, *edit.settings), default=turns)
    return 0 if edit.scope == "all_turns" else edit.turn


def apply_edits(
    session: Session, edits: Sequence[Edit], memo: dict[object, Block]
) -> dict[int, Sequence[Block]]:
    """The blocks of every turn that the edits reach, in the order the edits were made.

    `memo` keeps edited blocks, so that equal results are the same objects (and are tokenized
    once); hand the same dictionary in again while typing.
    """
    changed: dict[int, Sequence[Block]] = {}
    if not edits:
        return changed
    for turn in range(first_edited_turn(edits, len(session.requests)), len(session.requests)):
        sent = session.requests[turn].blocks
        blocks: Sequence[Block] = sent
        for edit in edits:
            if _reaches(edit, turn):
                blocks = _apply(turn, blocks, edit, memo)
        if blocks is not sent:
            changed[turn] = blocks
    return changed


def edited_settings(edits: Sequence[Edit]) -> dict[int, Mapping[str, Any]]:
    """The settings of every turn that the edits reach."""
    changed: dict[int, Mapping[str, Any]] = {}
    for edit in edits:
        if isinstance(edit, RewriteEdit):
            changed.update(edit.settings)
    return changed


def _apply(
    turn: int, blocks: Sequence[Block], edit: Edit, memo: dict[object, Block]
) -> Sequence[Block]:
    if isinstance(edit, RewriteEdit):
        return edit.blocks[turn]
    if isinstance(edit, MoveEdit):
        return _moved(blocks, edit, memo)
    for i, block in enumerate(blocks):
        if block.kind == "section" and block.name == edit.name:
            key = (id(block), edit)
            known = memo.get(key)
            if known is None:
                if isinstance(edit, TextEdit):
                    known = _with_text(block, edit)
                else:
                    known = _with_stability(block, edit)
                memo[key] = known
                # Keeps the id taken for as long as the memo lives.
                memo[(key, "kept")] = block
            return SwappedBlocks.over(blocks, i, known)
    return blocks


def _with_text(block: Block, edit: TextEdit) -> Block:
    text, separator = split_separator(block.text)
    return replace(block, text=merge_text(edit.old, edit.new, text) + separator)


def _with_stability(block: Block, edit: StabilityEdit) -> Block:
    if block.section is None:
        return block
    section = replace(block.section, stability=edit.stability)
    text = _HEADER_STABILITY.sub(
        lambda found: found.group(1) + edit.stability + found.group(3), block.text, count=1
    )
    return replace(block, section=section, text=text)


def _moved(blocks: Sequence[Block], edit: MoveEdit, memo: dict[object, Block]) -> Sequence[Block]:
    names = [block.name for block in blocks if block.kind == "section"]
    if edit.name not in names:
        return blocks
    at = names.index(edit.name)
    to = at + edit.step
    if not 0 <= to < len(names):
        return blocks
    order = list(range(len(names)))
    order[at], order[to] = order[to], order[at]
    intern: Callable[[Block], Block] = lambda b: memo.setdefault(("moved", b), b)  # noqa: E731
    return tuple(
        new if new is old else intern(new)
        for new, old in zip(reorder_sections(blocks, order), blocks, strict=True)
    )
