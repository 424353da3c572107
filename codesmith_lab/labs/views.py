"""What the workbench shows, as plain values: figures as ready texts, proportions as integers.

The widget's script draws these and computes nothing of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from codesmith_lab.cache.causes import CAUSES
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.diagnosis import Break
from codesmith_lab.sessions.differences import changed_range
from codesmith_lab.sessions.drift import DriftStep
from codesmith_lab.sessions.edits import STABILITIES, split_separator
from codesmith_lab.sessions.report import Totals
from codesmith_lab.sessions.report_text import CAUSE_NAMES, dollars
from codesmith_lab.sessions.turns import Turn

__all__ = [
    "audit_view",
    "blocks_view",
    "diagnosis_view",
    "editor_view",
    "figures_view",
    "lines_view",
    "multiple_view",
    "signed",
    "timeline_view",
]

ZONES = (("pinned", "PinnedPrefix"), ("log", "AppendLog"), ("scratch", "TurnScratch"))
Dict = dict[str, Any]


def signed(value: Decimal | None, places: int = 4) -> str:
    """A difference in dollars with its sign, "no price" for None."""
    if value is None:
        return "no price"
    return ("+" if value > 0 else "") + dollars(value, places)


def figures_view(totals: Totals) -> list[Dict]:
    """The figures at the top: hit share, cost, and what drift cost."""
    figures = [
        {"value": f"{totals.hit_share:.1%}", "label": "cache hit", "tone": ""},
        {"value": dollars(totals.cost_usd), "label": "this session, predicted", "tone": ""},
    ]
    if totals.repaid_usd is not None:
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
    drifting = False
    for turn, broken in zip(turns, breaks, strict=True):
        label = drift[turn.index].label
        signed = rebuilds[turn.index]
        if signed:
            # Under a drift the break lies before the history; it was rebuilt all the same.
            text = "compaction" if "compaction" in signed else "rebuild"
            marks.append({"turn": turn.index, "text": text, "tone": ""})
        elif broken is not None and broken.intended:
            marks.append({"turn": turn.index, "text": broken.classes[0], "tone": ""})
        elif label and not drifting:
            marks.append({"turn": turn.index, "text": label, "tone": "lost"})
        drifting = bool(label)
    return {
        "causes": list(CAUSES),
        "tokens": [[t.causes.tokens[i] for t in turns] for i in range(len(CAUSES))],
        "totals": [t.prompt.total_tokens for t in turns],
        "labels": [_turn_sentence(t) for t in turns],
        "marks": marks,
    }


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


def diagnosis_view(
    turn: Turn, broken: Break | None, step: DriftStep, wire: str, more: Sequence[str] = ()
) -> Dict:
    """Why this turn's prefix held or broke, in words.

    wire: what differs in the bytes where the text is equal. more: further sentences.
    """
    repaid = turn.causes.tokens[2]
    if broken is None:
        title = "first request: nothing is cached yet" if turn.parent is None else "prefix kept"
        how = "in its text, but not on the wire" if wire else "byte for byte"
        body = "" if turn.parent is None else f"It extends turn {turn.parent + 1}, {how}."
        if turn.causes.tokens[4]:
            title = "cache entry expired"
            body = f"{turn.causes.tokens[4]:,} tokens matched an entry whose lifetime had run out."
        return {
            "title": title,
            "body": body,
            "tone": "good" if turn.parent is not None else "",
            "also": [*([wire] if wire else []), *more],
        }
    kind = {"pinned": "section", "log": "history", "scratch": "this turn"}[broken.zone]
    if step.label:
        title = step.description
    elif broken.intended:
        title = f"history rebuilt on purpose: {broken.classes[0]}"
    else:
        what = broken.classes[0].replace("_", " ")
        title = f"fingerprint stable, wire broken at byte {broken.byte:,}: {what}"
    body = (
        f"{kind} {broken.block}, line {broken.line}, column {broken.column}: "
        f"{', '.join(broken.classes)}. {repaid:,} tokens after it are paid again."
    )
    also = [*(text + "." for text in broken.also), *([wire] if wire else []), *more]
    return {"title": title, "body": body, "tone": "" if broken.intended else "lost", "also": also}


def lines_view(turn: Turn) -> list[Dict]:
    """This turn's tokens and dollars by cause, then output and total."""
    costs = turn.cause_costs_usd
    rows = [
        {
            "name": CAUSE_NAMES[cause],
            "cause": cause,
            "tokens_text": f"{tokens:,}",
            "cost_text": "" if costs is None else dollars(costs[i], 5),
            "total": False,
        }
        for i, (cause, tokens) in enumerate(zip(CAUSES, turn.causes.tokens, strict=True))
        if tokens or cause in ("hit", "new", "repaid", "rounding")
    ]
    output = turn.output_tokens
    rows.append(
        {
            "name": "output",
            "cause": "",
            "tokens_text": "unknown" if output is None else f"{output:,}",
            "cost_text": ""
            if turn.output_usd is None or output is None
            else dollars(turn.output_usd, 5),
            "total": False,
        }
    )
    rows.append(
        {
            "name": "total",
            "cause": "",
            "tokens_text": f"{turn.prompt.total_tokens + (output or 0):,}",
            "cost_text": dollars(turn.cost_usd, 5),
            "total": True,
        }
    )
    return rows


def multiple_view(turns: Sequence[Turn], at: int) -> Dict | None:
    """The price of the byte that broke this turn: a multiple of the turn with no drift."""
    turn = turns[at]
    if turn.cost_usd is None or turn.output_usd is None or not turn.repaid_usd:
        return None
    paid = turn.cost_usd - turn.output_usd
    kept = paid - turn.repaid_usd
    later = [t.repaid_usd for t in turns[at + 1 :] if t.repaid_usd]
    more = ""
    if later:
        total = dollars(sum(later, Decimal(0)))
        more = f"Left as it is, the {len(turns) - at - 1} turns to come pay {total} more."
    ratio = paid / kept if kept > 0 else None
    value = "∞" if ratio is None else f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"
    return {
        "value": value,
        "text": "this turn's input, against the turn with no drift.",
        "more": more,
    }


def audit_view(
    turns: Sequence[Turn],
    breaks: Sequence[Break | None],
    drift: Sequence[DriftStep],
    rebuilds: Sequence[str],
) -> list[Dict]:
    """Runs of drift and every rebuild, in the order of turns."""
    rows: list[Dict] = []
    start: int | None = None
    count = 0
    for i in range(len(turns) + 1):
        label = drift[i].label if i < len(turns) else ""
        if start is not None and (not label or label != drift[start].label):
            end = f"–{i}" if i - 1 > start else ""
            rows.append(
                {
                    "turn_text": f"turn {start + 1}{end}",
                    "turn": start,
                    "text": f"drift {drift[start].label} ×{count}",
                }
            )
            start = None
        if label:
            start, count = (i, 1) if start is None else (start, count + 1)
        if i < len(turns) and rebuilds[i]:
            rows.append({"turn_text": f"turn {i + 1}", "turn": i, "text": rebuilds[i]})
        elif i < len(turns) and (broken := breaks[i]) is not None and broken.zone != "pinned":
            rows.append(
                {
                    "turn_text": f"turn {i + 1}",
                    "turn": i,
                    "text": f"{broken.classes[0]} in {broken.block}",
                }
            )
    return sorted(rows, key=lambda row: int(row["turn"]))


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
        start, old_end, end = changed_range(old, text)
        marks = [[_utf16(text, start), _utf16(text, end)]]
        before = old[start:old_end]
        if turn.parent is not None and len(before) <= 60 and "\n" not in before:
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
    changed = 0
    last: str | None = None
    for turn in turns:
        for block in turn.prompt.blocks:
            if block.kind == "section" and block.name == name:
                text = split_separator(block.text)[0]
                changed += last is not None and text != last
                last = text
                break
            if block.zone != "pinned":
                break
    if not changed:
        return "This section is the same on every turn."
    return f"This section has changed on {changed} of {len(turns)} turns."


def _utf16(text: str, at: int) -> int:
    """Offset in UTF-16 code units, which is how a browser counts text."""
    return at + sum(ch > "\uffff" for ch in text[:at])
