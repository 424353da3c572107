"""Remedies, each proved by replay: applied to a copy of the session and billed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.edits import reorder_sections
from codesmith_lab.sessions.findings import Finding
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.turns import Turn, TurnRunner

__all__ = ["Remedy", "find_remedies", "move_section_last", "move_section_to_turn"]

Blocks = dict[int, tuple[Block, ...]]
Rewrite = Callable[[Sequence[Request], str], Blocks]

_SECTION_FAULTS = (
    "volatile_timestamp",
    "volatile_date",
    "volatile_id",
    "section_edited",
)


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that was replayed on the session and saves money there (simulated).

    action: "move_section_last" or "move_section_to_turn". blocks: what each changed request
    would send.
    """

    action: str
    block: str
    saves_usd: Decimal
    message: str
    blocks: Mapping[int, tuple[Block, ...]]

    @property
    def id(self) -> str:
        """Names the remedy within its session."""
        return f"{self.action}:{self.block}"


def move_section_last(requests: Sequence[Request], name: str) -> Blocks:
    """The section behind all others of the system prompt, in every request."""
    changed: Blocks = {}
    for request in requests:
        names = [block.name for block in request.blocks if block.kind == "section"]
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


_REWRITES: tuple[tuple[str, Rewrite, str], ...] = (
    (
        "move_section_last",
        move_section_last,
        "Move {name} behind the other sections of the system prompt",
    ),
    (
        "move_section_to_turn",
        move_section_to_turn,
        "Put {name} into the turn's own message instead of the system prompt",
    ),
)


def find_remedies(
    runner: TurnRunner,
    turns: Sequence[Turn],
    findings: Sequence[Finding],
    requests: Sequence[Request] | None = None,
) -> list[Remedy]:
    """Remedies that save money on this session, the greatest saving first.

    requests: as they are sent now, where edits changed the session's own.

    Every candidate is applied to every request and the whole session is billed again under the
    same rules; one that saves nothing is not offered. Empty without prices.
    """
    costs = [turn.cost_usd for turn in turns if turn.cost_usd is not None]
    if len(costs) < len(turns):
        return []
    now = sum(costs, Decimal(0))
    requests = runner.session.requests if requests is None else requests
    names = dict.fromkeys(
        f.block for f in findings if f.zone == "pinned" and f.cls in _SECTION_FAULTS and f.tokens
    )
    remedies = []
    for name in names:
        for action, rewrite, message in _REWRITES:
            blocks = rewrite(requests, name)
            replay = runner.run(blocks, exact=True)
            saves = now - sum((t.cost_usd for t in replay if t.cost_usd is not None), Decimal(0))
            if saves > 0:
                remedies.append(
                    Remedy(action, name, saves, message.format(name=name) + ".", blocks)
                )
    return sorted(remedies, key=lambda remedy: -remedy.saves_usd)
