"""What changed in the tools and in the sections of the system prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.findings.events import Event, text_classes
from codesmith_lab.sessions.findings.json_differences import classify_json

__all__ = ["section_events", "tool_events"]

Placed = list[tuple[int, Block]]


def _of_kind(blocks: Sequence[Block], kind: str) -> Placed:
    return [(i, block) for i, block in enumerate(blocks) if block.kind == kind]


def tool_events(now: Sequence[Block], was: Sequence[Block]) -> list[Event]:
    """Tools added, removed, changed or in another order, in the order of the new catalog."""
    mine, theirs = _of_kind(now, "tool"), _of_kind(was, "tool")
    if [b.text for _, b in mine] == [b.text for _, b in theirs]:
        return []
    pairs, added, removed = _paired(mine, theirs)
    events = [
        Event("tool_added", i, "pinned", "tools", block.name, has=block) for i, block in added
    ]
    start = mine[0][0] if mine else _first_place(now, theirs)
    for i, block in removed:
        place = start + i - theirs[0][0]
        events.append(Event("tool_removed", place, "pinned", "tools", block.name, was=block))
    moved = _first_moved(pairs)
    if moved is not None:
        events.append(Event("tool_order", moved, "pinned", "tools"))
    for (i, new), (_, old) in pairs:
        if new.text == old.text:
            continue
        classes = classify_json(old.text, new.text) or _tool_text_classes(old, new)
        events += [Event(cls, i, "pinned", new.name, "", False, old, new) for cls in classes]
    return sorted(events, key=lambda event: event.at)


def _tool_text_classes(old: Block, new: Block) -> list[str]:
    """A definition that says something else; a clock or a path in it is told by what changed."""
    return text_classes(old.text, new.text, "tool_changed")


def section_events(now: Sequence[Block], was: Sequence[Block]) -> list[Event]:
    """Sections edited, moved, added or removed, in the order of the new system prompt.

    The blank lines between sections stay with the place, so that a moved section is not edited.
    """
    mine, theirs = _of_kind(now, "section"), _of_kind(was, "section")
    pairs, added, removed = _paired(mine, theirs)
    events = []
    # A section whose very name changed (a clock in a heading) is edited, not replaced.
    renamed = _same_places(added, removed, mine, theirs)
    pairs += renamed
    fresh, lost = {i for (i, _), _ in renamed}, {i for _, (i, _) in renamed}
    for i, block in added:
        if i not in fresh:
            events.append(Event("section_added", i, "pinned", block.name, has=block))
    start = mine[0][0] if mine else _first_place(now, theirs)
    for i, block in removed:
        if i not in lost:
            place = start + i - theirs[0][0]
            events.append(Event("section_removed", place, "pinned", block.name, was=block))
    moved = _first_moved(pairs)
    if moved is not None:
        name = now[moved].name
        events.append(Event("section_moved", moved, "pinned", name))
    for (i, new), (_, old) in pairs:
        a, b = old.text, new.text
        if moved is not None:
            a, b = a.rstrip("\r\n"), b.rstrip("\r\n")
        if a != b:
            events += [
                Event(cls, i, "pinned", new.name, "", False, old, new)
                for cls in text_classes(a, b, "section_edited")
            ]
    return sorted(events, key=lambda event: event.at)


def _first_place(now: Sequence[Block], theirs: Placed) -> int:
    """Where the removed blocks would stand when the new prompt has none of their kind."""
    return min(theirs[0][0], len(now)) if theirs else len(now)


Pair = tuple[tuple[int, Block], tuple[int, Block]]


def _paired(mine: Placed, theirs: Placed) -> tuple[list[Pair], Placed, Placed]:
    """Blocks of one name in both, blocks only of the new, blocks only of the old."""
    left: dict[str, Placed] = {}
    for item in theirs:
        left.setdefault(item[1].name, []).append(item)
    pairs: list[Pair] = []
    added: Placed = []
    for item in mine:
        same = left.get(item[1].name)
        if same:
            # Of several with one name, the one with the same text.
            at = next((k for k, other in enumerate(same) if other[1].text == item[1].text), 0)
            pairs.append((item, same.pop(at)))
        else:
            added.append(item)
    kept = Counter(id(other[1]) for _, other in pairs)
    removed = [item for item in theirs if not kept[id(item[1])]]
    return pairs, added, removed


def _first_moved(pairs: Sequence[Pair]) -> int | None:
    """The first new place whose block came from elsewhere, among the blocks of both."""
    mine = sorted(pairs, key=lambda pair: pair[0][0])
    theirs = sorted(pairs, key=lambda pair: pair[1][0])
    for a, b in zip(mine, theirs, strict=True):
        if a is not b:
            return a[0][0]
    return None


def _same_places(added: Placed, removed: Placed, mine: Placed, theirs: Placed) -> list[Pair]:
    """An added and a removed section that stand at the same place among the sections."""
    if not mine or not theirs:
        return []
    gone = {i - theirs[0][0]: (i, block) for i, block in removed}
    found = []
    for i, block in added:
        other = gone.get(i - mine[0][0])
        if other is not None:
            found.append(((i, block), other))
    return found
