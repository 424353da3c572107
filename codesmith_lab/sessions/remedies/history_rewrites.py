"""Ways to send a session's history otherwise: append instead of edit, compact later or never.

Each takes the requests as they are sent and gives the blocks of those that would change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.findings.history import Alignment, align, history_events
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.remedies.rewrites import Blocks

__all__ = ["Histories", "append_only", "resend_output", "skip_compactions"]

_COMPACTED = ("compaction", "rebuild")


@dataclass(slots=True)
class _Step:
    """How one request's messages follow an earlier one's."""

    before: int
    kinds: frozenset[str]
    intended: bool
    fresh: list[Block]


@dataclass(slots=True)
class Histories:
    """The messages of every request, and what each adds to the one it follows.

    parents: the best earlier request of each, by index.
    """

    requests: Sequence[Request]
    parents: Sequence[int | None]
    logs: list[tuple[Block, ...]] = field(default_factory=list)
    steps: list[_Step | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.logs = [tuple(b for b in r.blocks if b.zone != "pinned") for r in self.requests]
        self.steps = [self._step(i) for i in range(len(self.requests))]

    def _step(self, i: int) -> _Step | None:
        found = [p for p in {i - 1, self.parents[i]} if p is not None and p >= 0]
        if not found or not self.logs[i]:
            return None
        known = {p: align(self.logs[p], self.logs[i]) for p in found}
        before = max(found, key=lambda p: (_kept(known[p]), p))
        alignment = known[before]
        was, now = self.logs[before], self.logs[i]
        rebuild = self.requests[i].rebuild
        reason = None if rebuild is None else str(rebuild.get("reason", "unnamed"))
        events = history_events(was, now, 0, reason, alignment)
        intended = any(event.intended for event in events)
        kinds = frozenset(event.cls for event in events)
        return _Step(before, kinds, intended, _fresh(was, now, kinds, alignment))


def _kept(alignment: Alignment) -> int:
    return sum(c[2] - c[1] for c in alignment.codes if c[0] == "equal")


def _fresh(
    was: Sequence[Block], now: Sequence[Block], kinds: frozenset[str], alignment: Alignment
) -> list[Block]:
    """What a request adds to the history before it, in its own order."""
    codes = alignment.codes
    old = {(block.role, block.text) for block in was}
    if kinds & set(_COMPACTED):
        # The first new block is the summary; what was kept of the old history is there already.
        fresh = [block for block in now if (block.role, block.text) not in old]
        return fresh[1:] or fresh
    gone = Counter(
        key
        for tag, i1, i2, _, _ in codes
        if tag in ("delete", "replace")
        for key in ((b.role, b.text) for b in was[i1:i2])
    )
    fresh = []
    for tag, i1, i2, j1, j2 in codes:
        added: Sequence[Block] = now[j1:j2] if tag == "insert" else ()
        if tag == "replace":
            # The old version stays; what goes beyond it, one to one, is new. At the very end it is
            # this turn's own message that is another one.
            own = i2 == len(was) and j2 - j1 <= i2 - i1
            added = now[j1:j2] if own else now[j1 + i2 - i1 : j2]
        for block in added:
            key = (block.role, block.text)
            # What is missing elsewhere was moved here; kept in its place it is not sent twice.
            if gone[key]:
                gone[key] -= 1
            else:
                fresh.append(block)
    return fresh


def append_only(histories: Histories) -> Blocks:
    """Every history as it was sent before, with what is new behind it; compactions stay."""
    return _rewritten(histories, False, None)


def skip_compactions(histories: Histories, later: int | None = None) -> Blocks:
    """Histories that go on in place of a compaction.

    later: put each compaction off by so many requests; None leaves them out.
    """
    return _rewritten(histories, True, later)


def _rewritten(histories: Histories, compacted: bool, later: int | None) -> Blocks:
    logs: list[tuple[Block, ...]] = []
    aged: dict[int, Block] = {}
    since: list[int | None] = []
    changed: Blocks = {}
    for i, step in enumerate(histories.steps):
        own = histories.logs[i]
        log, put_off = own, None
        if step is not None:
            wanted = bool(step.kinds & set(_COMPACTED)) if compacted else _is_fault(step)
            put_off = 0 if wanted and compacted else _next(since[step.before])
            follows = logs[step.before] is not histories.logs[step.before]
            over = later is not None and put_off is not None and put_off >= later
            if not over and (wanted or (follows and not step.intended)):
                log = _joined(logs[step.before], step.fresh, aged)
            put_off = None if over else put_off
        logs.append(log)
        since.append(put_off)
        if log is not own:
            pinned = [b for b in histories.requests[i].blocks if b.zone == "pinned"]
            changed[i] = (*pinned, *log)
    return changed


def _next(age: int | None) -> int | None:
    return None if age is None else age + 1


def _is_fault(step: _Step) -> bool:
    return bool(step.kinds) and not step.intended


def _joined(
    before: Sequence[Block], fresh: Sequence[Block], aged: dict[int, Block]
) -> tuple[Block, ...]:
    """An earlier request's messages as history, and new ones behind it."""
    kept = []
    for block in before:
        if block.zone == "scratch":
            old = aged.get(id(block))
            if old is None:
                old = aged[id(block)] = replace(block, zone="log")
                # Keeps the id taken.
                aged[id(old)] = block
            block = old
        kept.append(block)
    return (*kept, *fresh)


def resend_output(requests: Sequence[Request], parents: Sequence[int | None]) -> Blocks:
    """Replies sent back as they were generated, reasoning and spelling included."""
    as_generated: dict[tuple[int, str], Block] = {}
    for request in requests:
        parent = parents[request.index]
        output = None if parent is None else requests[parent].output
        if parent is None or not output or len(output) != 1:
            continue
        at = len(requests[parent].blocks)
        if at < len(request.blocks) and request.blocks[at].role == "assistant":
            block = request.blocks[at]
            if block.text != output[0].text and block.first and block.last:
                new = replace(block, text=output[0].text, calls=output[0].calls)
                as_generated[(block.message, block.text)] = new
    changed: Blocks = {}
    for request in requests:
        blocks = tuple(
            as_generated.get((b.message, b.text), b) if b.role == "assistant" else b
            for b in request.blocks
        )
        if any(a is not b for a, b in zip(blocks, request.blocks, strict=True)):
            changed[request.index] = blocks
    return changed
