"""Bytes that differ on the wire where the text a model reads is equal.

A string against a one-part list, `é` against `\\u00e9`, white space inside the JSON: the prompt may
be the same to the model, and some providers hash what was sent. Nobody publishes which, so what is
found here is possible, until usage speaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_not

from codesmith_lab.cache.pieces import Prompt
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.findings.json_differences import compare_json
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.turns import Turn

__all__ = ["WireDifference", "find_wire", "wire_sentence"]

_SHOWN_CHARS = 60
_WORDS = {
    "shape_change": "the same text in another shape",
    "unicode_escape": "the same characters, escaped another way",
    "whitespace": "other white space",
    "number_format": "the same number, written another way",
    "json_key_order": "the same keys in another order",
    "json_array_order": "the same list in another order",
    "volatile_id": "another call id",
}


@dataclass(frozen=True, slots=True)
class WireDifference:
    """The first block whose bytes differ from the parent's while its text is the same.

    piece: index of the block in the prompt. byte: 0-based, in the request's body as it was sent
        (not in the prompt: there nothing differs); None where the log kept no body.
    path: of the value in the body, e.g. "messages[0].content".
    classes: in the order of their places. before, after: what stands there, as sent.
    tokens: of the prompt before the block. at_risk_tokens: predicted hits from the block on, lost
        where the provider compares bytes.
    """

    piece: int
    byte: int | None
    zone: str
    block: str
    path: str
    classes: tuple[str, ...]
    before: str
    after: str
    tokens: int
    at_risk_tokens: int


def find_wire(turn: Turn, requests: Sequence[Request]) -> WireDifference | None:
    """The first difference on the wire before a turn's break, or None.

    `requests` are the session's, by index; the request's own body gives the byte. Where either of
    the two was never sent (an edit has no body), there is no wire to compare.
    """
    parent = turn.parent_prompt
    if parent is None or turn.parent is None:
        return None
    if not requests[turn.index].has_body or not requests[turn.parent].has_body:
        return None
    at = turn.causes.break_piece
    end = min(turn.prompt.size, parent.size) - 1 if at is None else at
    # Requests share their blocks, so that few are left to look at.
    start = min(turn.prompt.same_start(parent), end)
    between = (prompt.blocks_between(start, end) for prompt in (turn.prompt, parent))
    others = bytes(start) + bytes(map(is_not, *between))
    i = others.find(1)
    while i >= 0:
        mine, theirs = turn.prompt.blocks, parent.blocks
        if mine[i].raw != theirs[i].raw and _alike(mine, theirs, i, end):
            found = _difference(turn, theirs[i], i, requests[turn.index])
            if found is not None:
                return found
        i = others.find(1, i + 1)
    return None


def wire_sentence(found: WireDifference) -> str:
    """What differs and where, in one sentence without its full stop."""
    what = ", ".join(_WORDS.get(cls, cls) for cls in found.classes)
    place = "" if found.byte is None else f" at byte {found.byte:,} of the body"
    return f"wire differs{place} ({found.path}): {what}; the text is equal"


def _alike(mine: Sequence[Block], theirs: Sequence[Block], at: int, end: int) -> bool:
    """Whether a raw slice stands for equal text: a system prompt's sections share one slice."""
    if mine[at].kind != "section":
        return bool(mine[at].raw and theirs[at].raw)
    # Behind the break the shared slice may differ by its text, and says nothing here.
    return bool(mine[at].raw and theirs[at].raw) and not any(
        blocks[end].raw is blocks[at].raw for blocks in (mine, theirs) if end < len(blocks)
    )


def _difference(turn: Turn, other: Block, at: int, request: Request) -> WireDifference | None:
    block = turn.prompt.blocks[at]
    # In brackets, a plain string is a list too, and can be compared with one.
    old = f"[{other.raw.decode('utf-8', 'replace')}]"
    new = f"[{block.raw.decode('utf-8', 'replace')}]"
    found = compare_json(old, new)
    if found is None:
        return None
    start = _offset(request.body, turn.prompt, at)
    inside = len(new[1 : found.new_at].encode("utf-8"))
    before = int(turn.prompt.ends[at - 1]) if at else 0
    return WireDifference(
        at,
        None if start is None else start + inside,
        block.zone,
        block.name,
        _root(turn.prompt, at) + found.path.removeprefix("[0]"),
        found.classes,
        _shown(old, found.old_at),
        _shown(new, found.new_at),
        before,
        max(0, turn.match.hit_tokens - before),
    )


def _shown(text: str, at: int) -> str:
    part = text[at : at + _SHOWN_CHARS]
    return part if at + _SHOWN_CHARS >= len(text) - 1 else part[:-1] + "…"


def _family(block: Block) -> str:
    return block.kind if block.kind in ("tool", "section") else "message"


def _offset(body: bytes, prompt: Prompt, at: int) -> int | None:
    """Where the block's slice starts in the body.

    Slices of one kind follow each other there, so each is looked for behind the one before it.
    """
    block = prompt.blocks[at]
    found, last = 0, None
    for other in prompt.blocks[: at + 1]:
        if _family(other) != _family(block) or other.raw is last or not other.raw:
            continue
        place = body.find(other.raw, found)
        if place < 0:
            return None
        if other is block:
            return place
        last, found = other.raw, place + len(other.raw)
    return found - len(block.raw) if last is block.raw else None


def _root(prompt: Prompt, at: int) -> str:
    block = prompt.blocks[at]
    if block.kind == "tool":
        return f"tools[{sum(b.kind == 'tool' for b in prompt.blocks[:at])}]"
    if block.message < 0:
        return "system"
    if block.kind != "part":
        return f"messages[{block.message}]"
    place = sum(b.message == block.message and b.kind == "part" for b in prompt.blocks[:at])
    return f"messages[{block.message}].content[{place}]"
