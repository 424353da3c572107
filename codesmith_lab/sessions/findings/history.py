"""What changed in the history of a request, aligned message by message with the earlier one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from operator import is_not

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.findings.events import Event, text_classes
from codesmith_lab.sessions.findings.json_differences import classify_json, embedded_json

__all__ = ["Alignment", "align", "history_events", "respelled"]

_MOST_PAIRS = 2_000_000
_FEWEST_COMPACTED = 4
_MOST_TOLD = 8
_SHOWN_MOVED_CHARS = 40
_SUMMARY = re.compile(r"summar|compact|continued from|previous conversation|so far", re.IGNORECASE)
_THOUGHT = re.compile(r"\A<think>.*?</think>", re.DOTALL)
_MEDIA = ("image", "audio", "file", "document")
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Alignment:
    """Runs of blocks as (tag, i1, i2, j1, j2): "equal", "replace", "delete" or "insert".

    i counts the earlier request's blocks, j the new one's.
    """

    codes: tuple[tuple[str, int, int, int, int], ...]


def align(was: Sequence[Block], now: Sequence[Block]) -> Alignment:
    """Which blocks of two histories are the same, by role and text."""
    n, m = len(was), len(now)
    if _extends(was, now):
        return Alignment(_codes(("equal", 0, n, 0, n), ("insert", n, n, n, m)))
    a, b = _keys(was), _keys(now)
    if n and m:
        if a[1:] == b[1:n] and m >= n:
            return Alignment(
                _codes(("replace", 0, 1, 0, 1), ("equal", 1, n, 1, n), ("insert", n, n, n, m))
            )
        shift = a.index(b[0]) if b[0] in a else 0
        if shift and a[shift:] == b[: n - shift]:
            tail = n - shift
            return Alignment(
                _codes(
                    ("delete", 0, shift, 0, 0),
                    ("equal", shift, n, 0, tail),
                    ("insert", n, n, tail, m),
                )
            )
    counts = Counter(b)
    if sum(counts[key] for key in a) > _MOST_PAIRS:
        # Thousands of equal messages: too long to align, and no single one matters.
        return Alignment(_codes(("replace", 0, n, 0, m)))
    # The new one first: of equally long runs the matcher then takes the one that stands earliest
    # in the new history, which is the one that a reader would call kept.
    turned = {"insert": "delete", "delete": "insert"}
    codes = SequenceMatcher(None, b, a, autojunk=False).get_opcodes()
    return Alignment(tuple((turned.get(tag, tag), i1, i2, j1, j2) for tag, j1, j2, i1, i2 in codes))


def _codes(*codes: tuple[str, int, int, int, int]) -> tuple[tuple[str, int, int, int, int], ...]:
    return tuple(c for c in codes if c[1] < c[2] or c[3] < c[4])


def _extends(was: Sequence[Block], now: Sequence[Block]) -> bool:
    """Whether the new history begins with the whole old one. Requests share most block objects."""
    if len(was) > len(now):
        return False
    others = bytes(map(is_not, was, now))
    at = others.find(1)
    while at >= 0:
        if (was[at].role, was[at].text) != (now[at].role, now[at].text):
            return False
        at = others.find(1, at + 1)
    return True


def _keys(blocks: Sequence[Block]) -> list[Key]:
    return [(block.role, block.text) for block in blocks]


def history_events(
    was: Sequence[Block],
    now: Sequence[Block],
    base: int,
    rebuilt: str | None,
    alignment: Alignment | None = None,
) -> list[Event]:
    """Causes in the history, in the order of the new request.

    was, now: messages from some common place on; base: index of now[0] in the new prompt.
    rebuilt: reason of a rebuild signed with this request, or None. alignment: of both, if known.
    """
    codes = (alignment or align(was, now)).codes
    changes = [c for c in codes if c[0] != "equal" and not (c[0] == "insert" and c[1] == len(was))]
    if not changes:
        return []
    at = base + changes[0][3]
    if rebuilt is not None:
        cls = "compaction" if "compaction" in rebuilt else "rebuild"
        return [Event(cls, at, "log", "history", rebuilt.replace("_", " "), True)]
    if _is_rollback(was, now, changes):
        return [Event("message_removed", at, "log", "history", "the end was taken back", True)]
    if _is_compaction(was, now, codes):
        return [Event("compaction", at, "log", "history", "", True)]
    if _is_branch(was, now, changes):
        return [Event("branch", at, "scratch", "history", "", True)]
    if not any(c[0] == "equal" for c in codes) and _starts_over(now):
        return [Event("new_conversation", at, "log", "history", "", True)]
    return _faults(was, now, codes, base)


def _is_rollback(
    was: Sequence[Block], now: Sequence[Block], changes: Sequence[tuple[str, int, int, int, int]]
) -> bool:
    """The request is the beginning of the earlier one: a retry or a branch, nothing is lost."""
    tag, _, i2, _, j2 = changes[-1]
    return len(changes) == 1 and tag == "delete" and i2 == len(was) and j2 == len(now)


def _is_branch(
    was: Sequence[Block], now: Sequence[Block], changes: Sequence[tuple[str, int, int, int, int]]
) -> bool:
    """Only the turn's own messages differ: another question about the same history."""
    own = all(block.zone == "scratch" for block in now[changes[0][3] :])
    return own and all(b.zone == "scratch" for _, i1, i2, _, _ in changes for b in was[i1:i2])


def _starts_over(now: Sequence[Block]) -> bool:
    return not any(block.role == "assistant" for block in now)


def _is_compaction(
    was: Sequence[Block], now: Sequence[Block], codes: Sequence[tuple[str, int, int, int, int]]
) -> bool:
    """Much history gave way to little that is new: a summary, with or without the newest messages.

    Messages that only fell out, with nothing in their place, are no compaction.
    """
    kept = {key for key in _keys(was)}
    for tag, i1, i2, j1, j2 in codes:
        if tag != "replace" or i2 - i1 < _FEWEST_COMPACTED:
            continue
        fresh = [b for b in now[j1:j2] if (b.role, b.text) not in kept]
        gone_chars = sum(len(b.text) for b in was[i1:i2])
        fresh_chars = sum(len(b.text) for b in fresh)
        short = len(now) < len(was) and j2 - j1 < i2 - i1 and 2 * fresh_chars < gone_chars
        keeps = any(c[0] == "equal" for c in codes)
        says = any(_SUMMARY.search(b.text[:2000]) for b in fresh)
        if fresh and short and (keeps or says or not _starts_over(now)):
            return True
    return False


def _faults(
    was: Sequence[Block],
    now: Sequence[Block],
    codes: Sequence[tuple[str, int, int, int, int]],
    base: int,
) -> list[Event]:
    gone = [i for c in codes if c[0] in ("replace", "delete") for i in range(c[1], c[2])]
    fresh = [j for c in codes if c[0] in ("replace", "insert") for j in range(c[3], c[4])]
    moved = _moved(was, now, gone, fresh)
    taken = set(moved.values())
    events: list[Event] = []
    for tag, i1, i2, j1, j2 in codes:
        if tag == "equal":
            continue
        here = [i for i in range(i1, i2) if i not in moved]
        new = [j for j in range(j1, j2) if j not in taken]
        for i in range(i1, i2):
            if i in moved:
                block = was[i]
                events.append(
                    Event("block_moved", base + j1, block.zone, block.name, "", False, block)
                )
        if here and new and _joined(was, here) == _joined(now, new):
            block = now[new[0]]
            events.append(Event("shape_change", base + new[0], "log", block.name))
            continue
        for i, j in zip(here, new, strict=False):
            if len(events) < _MOST_TOLD:
                events += _edited(was[i], now[j], base + j)
            else:
                events.append(Event("message_edited", base + j, now[j].zone, now[j].name))
        for i in here[len(new) :]:
            events.append(_removed(was[i], base + j2))
        # What stands behind the end of the old history is appended, not inserted.
        if i1 < len(was) and (tag == "insert" or i2 < len(was)):
            for j in new[len(here) :]:
                block = now[j]
                events.append(
                    Event("message_inserted", base + j, block.zone, block.name, has=block)
                )
    return sorted(events, key=lambda event: event.at)


def _joined(blocks: Sequence[Block], at: Sequence[int]) -> str:
    return "".join(blocks[i].text for i in at)


def _moved(
    was: Sequence[Block], now: Sequence[Block], gone: Sequence[int], fresh: Sequence[int]
) -> dict[int, int]:
    """Blocks that are missing where they stood and stand elsewhere, whole or inside another."""
    places: dict[str, list[int]] = {}
    for j in fresh:
        if now[j].text:
            places.setdefault(now[j].text, []).append(j)
    found: dict[int, int] = {}
    for i in gone:
        same = places.get(was[i].text)
        if same:
            found[i] = same.pop(0)
    taken = set(found.values())
    for i in [i for i in gone if i not in found][:20]:
        text = was[i].text.strip()
        if len(text) >= _SHOWN_MOVED_CHARS:
            within = (j for j in fresh if j not in taken and text in now[j].text)
            place = next(within, None)
            # A message that grew is edited in place, not moved.
            if place is not None and gone.index(i) != fresh.index(place):
                found[i] = place
    return found


def _removed(block: Block, at: int) -> Event:
    cls = "reasoning_dropped" if block.name.endswith("thinking") else "message_removed"
    return Event(cls, at, block.zone, block.name, "", False, block)


def _edited(old: Block, new: Block, at: int) -> list[Event]:
    classes = _edit_classes(old, new)
    return [Event(cls, at, new.zone, new.name, "", False, old, new) for cls in classes]


def _edit_classes(old: Block, new: Block) -> list[str]:
    if old.role != new.role:
        return ["message_edited"]
    if old.name in _MEDIA or new.name in _MEDIA:
        return ["image_changed"]
    if old.name.endswith("thinking") and not new.name.endswith("thinking"):
        return ["reasoning_dropped"]
    thought = _THOUGHT.match(old.text)
    if thought and old.text[thought.end() :] == new.text:
        return ["reasoning_dropped"]
    return respelled(old, new) or text_classes(old.text, new.text, "message_edited")


def respelled(old: Block, new: Block) -> list[str]:
    """Classes of JSON in two texts that was only written another way (arguments of tool calls)."""
    if not (old.calls and new.calls) and not (old.text[:1] in "[{" and new.text[:1] in "[{"):
        return []
    (plain, was), (now_plain, now) = embedded_json(old.text), embedded_json(new.text)
    if plain != now_plain or not was or len(was) != len(now):
        return []
    found: dict[str, None] = {}
    for a, b in zip(was, now, strict=True):
        classes = classify_json(a, b) if a != b else []
        if a != b and not classes:
            return []
        found.update(dict.fromkeys(classes))
    return list(found)
