"""What the workbench shows, as plain values: figures as ready texts, proportions as integers.

The widget's script draws these and computes nothing of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codesmith_lab.cache.causes import CAUSES
from codesmith_lab.labs.side_views import breaks_history, signed
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.edits import STABILITIES, split_separator
from codesmith_lab.sessions.findings.diagnosis import Break
from codesmith_lab.sessions.findings.differences import changed_range
from codesmith_lab.sessions.findings.drift import DriftStep
from codesmith_lab.sessions.findings.volatile import value_changes
from codesmith_lab.sessions.reports.report import Totals
from codesmith_lab.sessions.reports.report_text import CAUSE_NAMES, dollars
from codesmith_lab.sessions.turns import Turn

__all__ = [
    "blocks_view",
    "editor_view",
    "figures_view",
    "timeline_view",
]

_MOST_COMPARED_CHARS = 20_000
ZONES = (("pinned", "PinnedPrefix"), ("log", "AppendLog"), ("scratch", "TurnScratch"))
Dict = dict[str, Any]


def figures_view(totals: Totals) -> list[Dict]:
    """The figures at the top: hit share, cost, and what drift cost."""
    share, label = totals.hit_share, "cache hit"
    if not totals.predicted:
        read, label = totals.reported_read_tokens, "cache hit, reported"
        share = read / totals.reported_input_tokens if totals.reported_input_tokens else 0.0
    figures = [{"value": f"{share:.1%}", "label": label, "tone": ""}]
    if totals.predicted:
        cost = dollars(totals.cost_usd)
        figures.append({"value": cost, "label": "this session, predicted", "tone": ""})
    if totals.repaid_usd is not None and totals.predicted:
        figures.append(
            {
                "value": signed(totals.repaid_usd),
                "label": "against the same session with no drift",
                "tone": "lost" if totals.repaid_usd else "good",
            }
        )
    if totals.reported_cost_usd is not None:
        figures.append(
            {"value": dollars(totals.reported_cost_usd), "label": "reported", "tone": ""}
        )
    return figures


def timeline_view(
    turns: Sequence[Turn],
    breaks: Sequence[Break | None],
    drift: Sequence[DriftStep],
    rebuilds: Sequence[str],
) -> Dict:
    """Tokens by cause and turn, one sentence a turn, and marks where something happened.

    rebuilds: what the log says of a signed rebuild on each turn, "" for none.
    """
    marks: list[Dict] = []
    # What goes on for many turns is marked where it began.
    drifting = broken_on = False
    for turn in turns:
        label = drift[turn.index].label
        signed = rebuilds[turn.index]
        # The fingerprint held, and yet the wire broke.
        breaks_on = not label and turn.causes.break_piece is not None and _repaid(turn) > 0
        if signed:
            # Under a drift the break lies before the history; it was rebuilt all the same.
            text = "compaction" if "compaction" in signed else "rebuild"
            marks.append({"turn": turn.index, "text": text, "tone": ""})
        elif breaks_history(turn) and (broken := breaks[turn.index]) and broken.intended:
            marks.append({"turn": turn.index, "text": broken.cause, "tone": ""})
        elif label and not drifting:
            marks.append({"turn": turn.index, "text": label, "tone": "lost"})
        elif breaks_on and not broken_on and (broken := breaks[turn.index]):
            marks.append({"turn": turn.index, "text": broken.cause, "tone": "lost"})
        drifting, broken_on = bool(label), breaks_on
    return {
        "causes": list(CAUSES),
        "tokens": [[t.causes.tokens[i] for t in turns] for i in range(len(CAUSES))],
        "totals": [t.prompt.total_tokens for t in turns],
        "labels": [_turn_sentence(t) for t in turns],
        "marks": marks,
    }


def _repaid(turn: Turn) -> int:
    return turn.causes.tokens[CAUSES.index("repaid")]


def _turn_sentence(turn: Turn) -> str:
    parts = [
        f"{tokens:,} {CAUSE_NAMES[cause]}"
        for cause, tokens in zip(CAUSES, turn.causes.tokens, strict=True)
        if tokens
    ]
    return f"turn {turn.index + 1}: {turn.prompt.total_tokens:,} tokens, {', '.join(parts)}"


def blocks_view(turn: Turn, broken: Break | None, step: DriftStep) -> Dict:
    """The blocks of one turn as stacked zones, with the causes inside each."""
    blocks = turn.prompt.blocks
    ends = [int(end) for end in turn.prompt.ends]
    if blocks:
        # The markers that open the reply have no row of their own: the last block carries them.
        ends[len(blocks) - 1] = ends[-1]
    shown = ends[: len(blocks)]
    tokens = [end - start for start, end in zip([0, *shown[:-1]], shown, strict=bool(shown))]
    zones = []
    for zone, title in ZONES:
        at = [i for i, block in enumerate(blocks) if block.zone == zone]
        rows = [at[0], at[-1] + 1] if at else [len(blocks), len(blocks)]
        zones.append(
            {"zone": zone, "title": title, "subtitle": _subtitle(zone, at, step), "rows": rows}
        )
    return {
        "turn": turn.index,
        "zones": zones,
        "name": [block.name for block in blocks],
        "badge": [block.section.stability if block.section else "" for block in blocks],
        "tokens": tokens,
        "tokens_text": [f"{n:,}" for n in tokens],
        "spans": _block_spans(turn, ends[: len(blocks)]),
        "editable": [block.kind == "section" for block in blocks],
        "boundary": _boundary(blocks),
        "break": _break_place(turn, broken, ends[: len(blocks)]),
    }


def _subtitle(zone: str, at: Sequence[int], step: DriftStep) -> str:
    if zone == "pinned":
        return f"{step.before} → {step.after}" if step.label else f"{step.after}, stable"
    if zone == "log":
        return f"{len(at):,} blocks, push only"
    return "cleared at the turn boundary"


def _boundary(blocks: Sequence[Block]) -> int | None:
    for i, block in enumerate(blocks):
        meta = block.section
        if meta is not None and (
            meta.stability in ("session", "dynamic") or meta.cache_policy != "cacheable"
        ):
            return i
    return None


def _block_spans(turn: Turn, ends: Sequence[int]) -> list[list[list[int]]]:
    spans: list[list[list[int]]] = []
    at, start = 0, 0
    parts = turn.causes.spans
    for end in ends:
        inside: list[list[int]] = []
        while at < len(parts) and start < end:
            stop = min(parts[at].end, end)
            if stop > start:
                inside.append([parts[at].cause, stop - start])
            start = max(start, stop)
            if parts[at].end > end:
                break
            at += 1
        spans.append(inside)
    return spans


def _break_place(turn: Turn, broken: Break | None, ends: Sequence[int]) -> Dict | None:
    if broken is None or not ends:
        return None
    block = min(broken.piece, len(ends) - 1)
    start = ends[block - 1] if block else 0
    size = max(1, ends[block] - start)
    return {
        "block": block,
        "share": max(0.0, min(1.0, (broken.token - start) / size)),
        "text": f"first changed byte {broken.byte:,} · token {broken.token:,}",
    }


def editor_view(turns: Sequence[Turn], at: int, selected: int, seq: int, key: str) -> Dict:
    """The chosen block in the editor, with what changed since the best earlier request."""
    turn = turns[at]
    blocks = turn.prompt.blocks
    if not 0 <= selected < len(blocks):
        return {
            "block": -1,
            "key": key,
            "name": "",
            "text": "",
            "editable": False,
            "readonly_reason": "",
            "marks": [],
            "seq": seq,
            "stability": "",
            "stabilities": list(STABILITIES),
            "position_text": "",
            "can_up": False,
            "can_down": False,
            "note": "",
        }
    block = blocks[selected]
    is_section = block.kind == "section"
    text = split_separator(block.text)[0] if is_section else block.text
    was = _same_block(turn.parent_prompt.blocks, block) if turn.parent_prompt else None
    old = None if was is None else split_separator(was.text)[0] if is_section else was.text
    marks: list[list[int]] = []
    note = ""
    if old is not None and old != text:
        start, old_end, _ = changed_range(old, text)
        marks = [[_utf16(text, a), _utf16(text, b)] for a, b in _changed_places(old, text)]
        before = old[start:old_end]
        if turn.parent is not None and 0 < len(before) <= 60 and "\n" not in before:
            note = f"Was “{before}” on turn {turn.parent + 1}. "
    sections = [b.name for b in blocks if b.kind == "section"]
    place = sections.index(block.name) if is_section else -1
    if is_section:
        note += _history_note(turns, block.name)
    return {
        "block": selected,
        "key": key,
        "name": block.name,
        "text": text,
        "editable": is_section,
        "readonly_reason": "" if is_section else _READ_ONLY[block.kind == "tool"],
        "marks": marks,
        "seq": seq,
        "stability": block.section.stability if block.section else "",
        "stabilities": list(STABILITIES),
        "position_text": f"{place + 1} of {len(sections)}" if is_section else "",
        "can_up": place > 0,
        "can_down": is_section and place < len(sections) - 1,
        "note": note.strip(),
    }


def _changed_places(old: str, text: str) -> list[tuple[int, int]]:
    """[start, end) of what changed, in the new text: one range, or one for each changed value."""
    start, old_end, end = changed_range(old, text)
    # All between the first and the last change may be as it was; telling is for texts of some size.
    if max(old_end, end) - start <= _MOST_COMPARED_CHARS:
        places = [(change.start, change.end) for change in value_changes(old, text)]
        if len(places) > 1:
            return places
    return [(start, end)]


_READ_ONLY = (
    "History is append-only: only a signed rebuild changes an earlier message.",
    "Tool definitions come from the program; here they are read only.",
)


def _same_block(blocks: Sequence[Block], block: Block) -> Block | None:
    for other in blocks:
        if (other.kind, other.name, other.message) == (block.kind, block.name, block.message):
            return other
    return None


def _history_note(turns: Sequence[Turn], name: str) -> str:
    changed = at = 0
    seen: Block | None = None
    last: str | None = None
    for turn in turns:
        blocks = turn.prompt.blocks
        if at < len(blocks) and blocks[at] is seen:
            continue
        here = (i for i, b in enumerate(blocks) if b.kind == "section" and b.name == name)
        at = next(here, at)
        if at < len(blocks) and blocks[at].name == name:
            seen = blocks[at]
            text = split_separator(seen.text)[0]
            changed += last is not None and text != last
            last = text
    if not changed:
        return "This section is the same on every turn."
    return f"This section has changed on {changed} of {len(turns)} turns."


def _utf16(text: str, at: int) -> int:
    """Offset in UTF-16 code units, which is how a browser counts text."""
    return at + sum(ch > "\uffff" for ch in text[:at])
