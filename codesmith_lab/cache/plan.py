"""What a request asks of the cache: breakpoints, lifetime, salts; and whether it is refused.

Everything that a rule reads from a request besides its text is decided here, so that the engine
only compares prefixes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from codesmith_lab.cache.pieces import BlockNumbers, PieceTable, Prompt
from codesmith_lab.cache.rules import CacheRule, setting_at
from codesmith_lab.prompt.blocks import Block

__all__ = ["Breakpoint", "CachePlan", "Markers", "carry_markers", "kept_blocks", "make_plan"]

Markers = Sequence[tuple[int, str]]
"""(index of the marked block in the request's blocks, name of the lifetime)."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A place that is written: behind `pieces` pieces of the prompt, for `lifetime_s` seconds."""

    pieces: int
    lifetime_s: float | None
    long: bool


@dataclass(frozen=True, slots=True)
class CachePlan:
    """What the rule makes of one request's fields.

    minimum_tokens: shortest hit. lifetime_s: idle life of what the request leaves, None = no limit.
    salts: (piece, text) at which the prefix also depends on something that is no text.
    breakpoints: places to write, in prompt order. lookups: the only places (in pieces) at which an
        entry is looked for, None = all that `lookback_blocks` allows. block_numbers: running
        number of content blocks behind each piece.
    off: nothing may be read from the cache or kept in it. refused: why the provider refuses.
    """

    minimum_tokens: int = 1
    lifetime_s: float | None = None
    salts: tuple[tuple[int, str], ...] = ()
    breakpoints: tuple[Breakpoint, ...] = ()
    lookups: frozenset[int] | None = None
    block_numbers: BlockNumbers | None = None
    off: bool = False
    refused: str = ""


def kept_blocks(rule: CacheRule, model: str, blocks: Sequence[Block]) -> Sequence[Block]:
    """The blocks that the provider reads: some drop thinking of before the last user message.

    A plain user message (no tool result) makes the server drop all earlier thinking.
    """
    if not rule.strips_thinking or not rule.strips(model):
        return blocks
    last = max(
        (i for i, b in enumerate(blocks) if b.role == "user" and not _is_result(b)),
        default=-1,
    )
    if last < 0:
        return blocks
    kept = [b for i, b in enumerate(blocks) if i > last or not is_thinking(b)]
    return blocks if len(kept) == len(blocks) else tuple(kept)


def _is_result(block: Block) -> bool:
    """A tool's result, which some APIs put into a user's message."""
    return block.name == "tool" or block.name.startswith("tool ")


def is_thinking(block: Block) -> bool:
    """A part of an assistant's message that holds its thinking."""
    return block.role == "assistant" and block.name in ("thinking", "redacted thinking")


def carry_markers(markers: Markers, was: Sequence[Block], now: Sequence[Block]) -> Markers:
    """Markers of a request on the blocks that stand there after an edit.

    A marker stays with its block; where the block was replaced, with the one in its place; where
    it was taken out, with the one before it.
    """
    if was is now or len(was) == len(now):
        return markers
    places = {id(block): i for i, block in enumerate(now)}
    known = {_likeness(block): i for i, block in enumerate(now)}
    carried: dict[int, str] = {}
    for at, lifetime in markers:
        found: int | None = None
        for block in reversed(was[: at + 1]):
            found = places.get(id(block), known.get(_likeness(block)))
            if found is not None:
                break
        if found is not None:
            carried[found] = lifetime
    return tuple(sorted(carried.items()))


def _likeness(block: Block) -> tuple[object, ...]:
    return (block.kind, block.role, block.name, block.message, block.first, block.last)


def make_plan(
    rule: CacheRule,
    model: str,
    settings: Mapping[str, Any],
    table: PieceTable,
    prompt: Prompt,
    blocks: Sequence[Block],
    markers: Markers = (),
) -> CachePlan:
    """What `rule` makes of a request.

    Parameters
    ----------
    settings: the body's fields. prompt: the request as the provider reads it.
    blocks: the request's own blocks, which `markers` count.
    """
    plan = CachePlan(
        minimum_tokens=rule.minimum(model),
        lifetime_s=rule.lifetime(model, settings),
        salts=_salts(rule, settings, table, prompt),
        off=_is_off(rule, settings),
        refused=_refused_fields(rule, settings),
    )
    if rule.match != "breakpoints" or plan.refused:
        return plan
    return _with_breakpoints(plan, rule, settings, table, prompt, blocks, markers)


def _is_off(rule: CacheRule, settings: Mapping[str, Any]) -> bool:
    if rule.match == "none":
        return True
    if rule.required_field and not setting_at(settings, rule.required_field):
        return True
    return bool(rule.off_field) and setting_at(settings, rule.off_field) is False


def _refused_fields(rule: CacheRule, settings: Mapping[str, Any]) -> str:
    for name in rule.refused_fields:
        if setting_at(settings, name) is not None:
            return f"{name} is no field of this model's requests (HTTP 400)"
    given = [name for name in rule.exclusive_fields if setting_at(settings, name) is not None]
    if len(given) > 1:
        return f"{' and '.join(given)} exclude each other (HTTP 400)"
    return ""


# -- salts ---------------------------------------------------------------------------------


def _salts(
    rule: CacheRule, settings: Mapping[str, Any], table: PieceTable, prompt: Prompt
) -> tuple[tuple[int, str], ...]:
    """Where the prefix depends on fields: at the first piece of each level a field belongs to."""
    if not rule.invalidates and not rule.salt_field:
        return ()
    found: dict[int, list[str]] = {}
    if rule.salt_field:
        salt = setting_at(settings, rule.salt_field)
        if salt is not None:
            found[0] = [f"{rule.salt_field}={_text(salt)}"]
    values = {
        name: value
        for name in rule.invalidates
        if (value := _level_value(name, settings, table, prompt)) is not None
    }
    if values:
        starts = _level_starts(prompt)
        for name, value in values.items():
            found.setdefault(starts[rule.invalidates[name]], []).append(f"{name}={_text(value)}")
    return tuple((at, "; ".join(sorted(texts))) for at, texts in sorted(found.items()))


def _level_value(name: str, settings: Mapping[str, Any], table: PieceTable, prompt: Prompt) -> Any:
    if name in ("images", "citations"):
        return (
            True
            if table.has(prompt, name.removesuffix("s") if name == "images" else name)
            else None
        )
    return setting_at(settings, name)


def _level_starts(prompt: Prompt) -> dict[str, int]:
    """First piece of each level, in the prompt's own order."""
    pinned = prompt.pinned_pieces
    kinds = [block.kind for block in prompt.pinned_blocks]
    tools = kinds.index("tool") if "tool" in kinds else 0
    system = kinds.index("section") if "section" in kinds else pinned
    return {"tools": min(tools, system), "system": system, "messages": pinned}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)


# -- breakpoints ---------------------------------------------------------------------------


def _with_breakpoints(
    plan: CachePlan,
    rule: CacheRule,
    settings: Mapping[str, Any],
    table: PieceTable,
    prompt: Prompt,
    blocks: Sequence[Block],
    markers: Markers,
) -> CachePlan:
    marked = _in_prompt_order(prompt, blocks, markers)
    refused = _refused_markers(rule, blocks, markers, [name for _, name in marked])
    if rule.automatic == "requested":
        asked = setting_at(settings, rule.automatic_field)
        if asked is not None and not refused:
            refused, marked = _automatic(rule, prompt, marked, asked)
    if refused:
        return replace(plan, refused=refused)
    lookups: frozenset[int] | None = None
    automatic: list[tuple[int, str]] = []
    if rule.automatic == "turn":
        most = rule.lookup_breakpoints
        explicit = bool(rule.mode_field) and setting_at(settings, rule.mode_field) == "explicit"
        ends = [] if explicit else table.turn_ends(prompt, most)
        automatic = [(ends[-1], "")] if ends else []
        places = sorted({*ends, *(at for at, _ in marked)})
        lookups = frozenset(places if most is None else places[-most:])
    elif rule.automatic == "pinned" and prompt.pinned_pieces:
        automatic = [(prompt.pinned_pieces, "")]
    most = rule.max_breakpoints
    if most is not None:
        room = most - len(automatic)
        marked = marked[-room:] if room else []
    by_place = dict(automatic) | dict(marked)
    points = []
    for at, name in sorted(by_place.items()):
        seconds = rule.lifetime_named(name) if name in rule.lifetimes_s else None
        if not name or seconds is None:
            seconds = plan.lifetime_s
        # Only a rule that knows the 1-hour life bills it apart.
        long = "1h" in rule.lifetimes_s and seconds is not None and seconds >= 3600
        points.append(Breakpoint(at, seconds, long))
    return replace(
        plan,
        breakpoints=tuple(points),
        lookups=lookups,
        block_numbers=BlockNumbers(table, prompt),
    )


def _in_prompt_order(
    prompt: Prompt, blocks: Sequence[Block], markers: Markers
) -> list[tuple[int, str]]:
    """(pieces up to and with the marked one, lifetime), by place; unknown blocks are left out."""
    found: dict[int, str] = {}
    moved: dict[int, str] = {}
    for at, name in markers:
        if not 0 <= at < len(blocks):
            continue
        # As a rule both orders agree.
        if at < len(prompt.blocks) and prompt.blocks[at] is blocks[at]:
            found[at + 1] = name
        else:
            moved[id(blocks[at])] = name
    if moved:
        for i, block in enumerate(prompt.blocks):
            if id(block) in moved:
                found[i + 1] = moved[id(block)]
    return sorted(found.items())


def _refused_markers(
    rule: CacheRule, blocks: Sequence[Block], markers: Markers, names: Sequence[str]
) -> str:
    most = rule.max_breakpoints
    if rule.over_limit == "refuse" and most is not None and len(markers) > most:
        return f"{len(markers)} cache markers, and at most {most} are allowed (HTTP 400)"
    for at, _ in markers:
        if 0 <= at < len(blocks) and blocks[at].name in rule.unmarkable:
            return f"a cache marker on a block of {blocks[at].name} (HTTP 400)"
    if rule.long_first:
        lives = [rule.lifetime_named(name) or 0.0 for name in names]
        if any(later > first for first, later in pairwise(lives)):
            return "a cache marker of a longer life behind a shorter one (HTTP 400)"
    return ""


def _automatic(
    rule: CacheRule, prompt: Prompt, marked: list[tuple[int, str]], asked: Any
) -> tuple[str, list[tuple[int, str]]]:
    """The marker that a body asks for on its last block; it takes one of the places."""
    name = asked.get("ttl") if isinstance(asked, Mapping) else None
    name = name if isinstance(name, str) and name else "5m"
    at = len(prompt.blocks)
    while at and prompt.blocks[at - 1].name in rule.unmarkable:
        at -= 1
    if marked and marked[-1][0] == at:
        if rule.lifetime_named(marked[-1][1]) == rule.lifetime_named(name):
            return "", marked
        return "the last block is marked with another lifetime than the body (HTTP 400)", marked
    if rule.max_breakpoints is not None and len(marked) >= rule.max_breakpoints:
        return f"{len(marked)} cache markers and the body's own are one too many (HTTP 400)", marked
    lives = [rule.lifetime_named(n) or 0.0 for _, n in marked]
    if rule.long_first and lives and (rule.lifetime_named(name) or 0.0) > lives[-1]:
        return "a cache marker of a longer life behind a shorter one (HTTP 400)", marked
    return "", [*marked, (at, name)] if at else marked
