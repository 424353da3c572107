"""Ways to send a session's tools and system prompt otherwise.

Each takes the requests as they are sent and gives the blocks of those that would change. Nothing
here says what that saves: a replay does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.edits import reorder_sections
from codesmith_lab.sessions.findings.json_differences import classify_json
from codesmith_lab.sessions.findings.volatile import ValueChange, value_changes
from codesmith_lab.sessions.records import Request

__all__ = [
    "Blocks",
    "hold_values",
    "keep_section_order",
    "keep_tool_json",
    "keep_tools",
    "move_section_last",
    "move_section_to_turn",
    "sort_tools",
]

Blocks = dict[int, tuple[Block, ...]]
_HOURS = re.compile(r"\A(.*?\d{1,2})(?=:|\d{4}Z?\Z)")
_HALF = re.compile(r"[AaPp]\.?[Mm]")


def move_section_last(requests: Sequence[Request], name: str) -> Blocks:
    """The section behind all others of the system prompt, in every request."""
    changed: Blocks = {}
    for request in requests:
        names = [block.name for block in request.blocks if block.kind == "section"]
        if name in names[:-1]:
            order = sorted(range(len(names)), key=lambda i: names[i] == name)
            changed[request.index] = reorder_sections(request.blocks, order)
    return changed


def move_section_to_turn(requests: Sequence[Request], name: str) -> Blocks:
    """The section out of the system prompt and in front of the user's message of its turn.

    The message keeps it in the history of later requests, so that the history stays append-only.
    A request without a user message of its own (an agent's tool loop) sends it no second time.
    """
    changed: Blocks = {}
    kept: dict[tuple[int, str], str] = {}
    for request in requests:
        moved, rest = _taken_out(request.blocks, name)
        text = "".join(block.text for block in moved).strip()
        users = [i for i, b in enumerate(rest) if b.zone == "scratch" and b.role == "user"]
        if text and users:
            block = rest[users[-1]]
            kept.setdefault((block.message, block.text), f"{text}\n\n{block.text}")
        changed[request.index] = tuple(
            replace(block, text=kept.get((block.message, block.text), block.text))
            if block.role == "user"
            else block
            for block in rest
        )
    return changed


def _taken_out(blocks: Sequence[Block], name: str) -> tuple[list[Block], list[Block]]:
    moved = [b for b in blocks if b.kind == "section" and b.name == name]
    return moved, [b for b in blocks if not (b.kind == "section" and b.name == name)]


def keep_section_order(requests: Sequence[Request]) -> Blocks:
    """Sections in the order in which the session first sent them; later ones behind those."""
    rank: dict[str, int] = {}
    changed: Blocks = {}
    for request in requests:
        names = [block.name for block in request.blocks if block.kind == "section"]
        for name in names:
            rank.setdefault(name, len(rank))
        order = sorted(range(len(names)), key=lambda i: rank[names[i]])
        if order != list(range(len(names))):
            changed[request.index] = reorder_sections(request.blocks, order)
    return changed


def sort_tools(requests: Sequence[Request]) -> Blocks:
    """Tools by name in every request."""

    def by_name(tools: list[Block], request: Request) -> list[Block]:
        return sorted(tools, key=lambda block: (block.name, block.text))

    return _with_tools(requests, by_name)


def keep_tools(requests: Sequence[Request]) -> Blocks:
    """Every tool an agent ever offers, in every request of that agent, in the order of first use.

    An agent is told by the first section of its system prompt; requests without tools stay so.
    """
    every: dict[str, dict[str, Block]] = {}
    for request in requests:
        known = every.setdefault(_agent(request), {})
        for block in request.blocks:
            if block.kind == "tool":
                known.setdefault(block.name, block)

    def whole(tools: list[Block], request: Request) -> list[Block]:
        own = {block.name: block for block in tools}
        if len(own) < len(tools) or not tools:
            return tools
        return [own.get(name, block) for name, block in every[_agent(request)].items()]

    return _with_tools(requests, whole)


def _agent(request: Request) -> str:
    return next((b.text[:200] for b in request.blocks if b.kind == "section"), "")


def keep_tool_json(requests: Sequence[Request]) -> Blocks:
    """Each tool definition written as it was first, as long as it means the same."""
    first: dict[str, list[Block]] = {}
    known: dict[tuple[str, str], Block] = {}

    def as_before(block: Block) -> Block:
        key = (block.name, block.text)
        if key not in known:
            same = first.setdefault(block.name, [])
            known[key] = next((b for b in same if classify_json(b.text, block.text)), block)
            if known[key] is block:
                same.append(block)
        return known[key]

    return _with_tools(requests, lambda tools, request: [as_before(b) for b in tools])


def _with_tools(
    requests: Sequence[Request], choose: Callable[[list[Block], Request], list[Block]]
) -> Blocks:
    changed: Blocks = {}
    for request in requests:
        tools = [block for block in request.blocks if block.kind == "tool"]
        chosen = choose(tools, request)
        if [b.text for b in chosen] == [b.text for b in tools]:
            continue
        at = next(i for i, block in enumerate(request.blocks) if block.kind == "tool")
        rest = [block for block in request.blocks if block.kind != "tool"]
        changed[request.index] = (*rest[:at], *chosen, *rest[at:])
    return changed


def hold_values(requests: Sequence[Request], kind: str, name: str, hours: bool = False) -> Blocks:
    """Changing values in a section or tool kept as they first stood.

    kind: "section" or "tool". hours: a clock is written anew when its hour changes, and only then.
    Text that is edited, and not a value that goes on, follows the session.
    """
    changed: Blocks = {}
    held: str | None = None
    memo: dict[tuple[str, str], str] = {}
    for request in requests:
        for i, block in enumerate(request.blocks):
            if block.kind != kind or block.name != name:
                continue
            text = block.text
            if held is not None and held != text:
                pair = (held, text)
                if pair not in memo:
                    memo[pair] = _held(held, text, hours)
                text = memo[pair]
            held = text
            if text != block.text:
                new = replace(block, text=text)
                changed[request.index] = (*request.blocks[:i], new, *request.blocks[i + 1 :])
            break
    return changed


_HELD = ("clock", "date", "counter", "id", "path", "number")


def _held(old: str, new: str, hours: bool) -> str:
    """The new text with the old one's values where only a value changed."""
    parts, at = [], 0
    changes = value_changes(old, new)
    if hours and any(change.kind == "clock" and _hour_passed(change) for change in changes):
        return new
    for change in changes:
        if change.kind in _HELD and (not hours or change.kind in ("clock", "date")):
            parts += [new[at : change.start], change.before]
            at = change.end
    return "".join([*parts, new[at:]])


def _hour_passed(change: ValueChange) -> bool:
    return _hour(change.before) != _hour(change.after)


def _hour(text: str) -> str:
    """What of a written time changes at most once an hour."""
    if text.isdecimal():
        return str(int(text) // (3600 if len(text) < 13 else 3_600_000))
    found = _HOURS.match(text)
    if found is None:
        return text
    half = _HALF.search(text)
    return found[1] + (half[0].lower() if half else "")
