"""Remedies, each proved by replay: applied to a copy of the session and billed again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.edits import RewriteEdit
from codesmith_lab.sessions.findings.collect import Finding
from codesmith_lab.sessions.records import Request, Session
from codesmith_lab.sessions.remedies.candidates import Candidate, candidates
from codesmith_lab.sessions.remedies.rewrites import move_section_last, move_section_to_turn
from codesmith_lab.sessions.remedies.settings_rewrites import carried
from codesmith_lab.sessions.turns import Turn, TurnRunner

__all__ = [
    "Remedy",
    "find_plan",
    "find_remedies",
    "move_section_last",
    "move_section_to_turn",
]

MOST_CANDIDATES = 16
MOST_STEPS = 6
LEAST_SHARE = Decimal("0.001")
"""Of the session's cost: what saves less is noise beside what a provider rounds and evicts."""
_NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that was replayed on the session and saves money there (simulated).

    action: what kind of change, e.g. "move_section_to_turn"; block: what it is done to.
    saves_usd: against the session without it (in a plan: against the steps before it).
    blocks, settings: what each changed request would send.
    calibrated: False where predicted and reported reads differ too much to trust the figure.
    """

    action: str
    block: str
    saves_usd: Decimal
    message: str
    blocks: Mapping[int, tuple[Block, ...]]
    settings: Mapping[int, Mapping[str, Any]]
    calibrated: bool = True

    @property
    def id(self) -> str:
        """Names the remedy within its session."""
        return f"{self.action}:{self.block}"

    @property
    def edit(self) -> RewriteEdit:
        """The remedy as an edit for the workbench."""
        return RewriteEdit(self.id, self.message.rstrip("."), self.blocks, self.settings)

    def apply(self, session: Session) -> Session:
        """A copy of the session as the remedy would have sent it; its requests have no body."""
        requests = tuple(
            sent_as(r, self.blocks.get(r.index), self.settings.get(r.index))
            for r in session.requests
        )
        return replace(session, requests=requests)


def sent_as(
    request: Request,
    blocks: Sequence[Block] | None,
    settings: Mapping[str, Any] | None = None,
) -> Request:
    """The request with other blocks or settings. Its bytes were never sent: it has no body."""
    if blocks is None and settings is None:
        return request
    return replace(
        request,
        body=b"",
        blocks=request.blocks if blocks is None else tuple(blocks),
        settings=request.settings if settings is None else settings,
    )


@dataclass(slots=True)
class _Bench:
    """Replays of one session under changes. states: what is sent now."""

    runner: TurnRunner
    states: list[Request]
    parents: list[int | None]
    changed: dict[int, tuple[Block, ...]]
    settings: dict[int, Mapping[str, Any]]
    refused: int

    def tried(self, candidate: Candidate) -> _Trial | None:
        """The session with a candidate on top; None when nothing changes or more is refused.

        A refused request costs nothing, and saves nothing.
        """
        blocks, settings = candidate.rewrite(self.states, self.parents)
        if not blocks and not settings:
            return None
        for i in blocks.keys() - settings.keys():
            # Markers count blocks, so they move with them.
            if self.states[i].settings.get("_markers"):
                settings[i] = carried(self.states[i], blocks[i])
        all_blocks, all_settings = {**self.changed, **blocks}, {**self.settings, **settings}
        turns = self.runner.run(all_blocks, exact=True, settings=all_settings)
        if _refused(turns) > self.refused:
            return None
        return _Trial(_cost(turns), blocks, settings)

    def take(self, trial: _Trial) -> None:
        """Let a trial stand."""
        self.changed.update(trial.blocks)
        self.settings.update(trial.settings)
        self.states = [
            sent_as(r, trial.blocks.get(r.index), trial.settings.get(r.index)) for r in self.states
        ]


@dataclass(frozen=True, slots=True)
class _Trial:
    cost_usd: Decimal
    blocks: Mapping[int, tuple[Block, ...]]
    settings: Mapping[int, Mapping[str, Any]]


def _cost(turns: Iterable[Turn]) -> Decimal:
    return sum((t.cost_usd for t in turns if t.cost_usd is not None), Decimal(0))


def _worth(saves_usd: Decimal, now_usd: Decimal) -> bool:
    return saves_usd > 0 and saves_usd >= now_usd * LEAST_SHARE


def _refused(turns: Iterable[Turn]) -> int:
    return sum(bool(turn.match.refused) for turn in turns)


def _bench(
    runner: TurnRunner, turns: Sequence[Turn], requests: Sequence[Request] | None
) -> _Bench | None:
    """A bench for what is sent now; None where not everything has a price."""
    if any(turn.cost_usd is None for turn in turns):
        return None
    own = runner.session.requests
    states = list(own if requests is None else requests)
    pairs = list(zip(states, own, strict=True))
    return _Bench(
        runner,
        states,
        [turn.parent for turn in turns],
        {now.index: tuple(now.blocks) for now, was in pairs if now.blocks is not was.blocks},
        {now.index: now.settings for now, was in pairs if now.settings is not was.settings},
        _refused(turns),
    )


def find_remedies(
    runner: TurnRunner,
    turns: Sequence[Turn],
    findings: Sequence[Finding],
    requests: Sequence[Request] | None = None,
    calibrated: bool = True,
) -> list[Remedy]:
    """Remedies that save money on this session, the greatest saving first.

    requests: as they are sent now, where edits changed the session's own.

    Every candidate is applied to every request and the whole session is billed again under the
    same rules; one that saves nothing, or less than `LEAST_SHARE` of the cost, is not offered.
    Empty without prices.
    """
    bench = _bench(runner, turns, requests)
    if bench is None:
        return []
    now = _cost(turns)
    remedies = []
    for candidate in candidates(findings, runner.rule, bench.states)[:MOST_CANDIDATES]:
        trial = bench.tried(candidate)
        if trial is not None and _worth(now - trial.cost_usd, now):
            remedies.append(_remedy(candidate, trial, now, calibrated))
    return sorted(remedies, key=lambda remedy: (-remedy.saves_usd, remedy.id))


def find_plan(
    runner: TurnRunner,
    turns: Sequence[Turn],
    findings: Sequence[Finding],
    remedies: Sequence[Remedy],
    requests: Sequence[Request] | None = None,
    calibrated: bool = True,
) -> list[Remedy]:
    """Remedies taken one after the other, each time the one that saves most on top of the others.

    Greedy: what a remedy saved when it was last tried is the hope for it, so that few are tried
    again at each step. What saves nothing alone may save behind another, and is tried once more.
    The savings add up to that of the whole plan.
    """
    bench = _bench(runner, turns, requests)
    if bench is None or not remedies:
        return []
    alone = {remedy.id: remedy.saves_usd for remedy in remedies}
    hopes = {
        candidate.id: (alone.get(candidate.id, _NOTHING), candidate)
        for candidate in candidates(findings, runner.rule, bench.states)[:MOST_CANDIDATES]
    }
    plan: list[Remedy] = []
    now = _cost(turns)
    while hopes and len(plan) < MOST_STEPS:
        best = _best(bench, hopes, now)
        if best is None:
            break
        candidate, trial = best
        plan.append(_remedy(candidate, trial, now, calibrated))
        bench.take(trial)
        now = trial.cost_usd
        del hopes[candidate.id]
        for name, (hope, other) in hopes.items():
            if not _worth(hope, now):
                hopes[name] = (now, other)
    return plan


def _best(
    bench: _Bench, hopes: dict[str, tuple[Decimal, Candidate]], now: Decimal
) -> tuple[Candidate, _Trial] | None:
    """The candidate that saves most now. `hopes` keeps what each saved when it was last tried."""
    fresh: dict[str, _Trial] = {}
    while True:
        name = max(hopes, key=lambda key: (hopes[key][0], key))
        hope, candidate = hopes[name]
        if not _worth(hope, now):
            return None
        if name in fresh:
            return candidate, fresh[name]
        trial = bench.tried(candidate)
        if trial is None:
            hopes[name] = (_NOTHING, candidate)
            continue
        fresh[name] = trial
        hopes[name] = (now - trial.cost_usd, candidate)


def _remedy(candidate: Candidate, trial: _Trial, now: Decimal, calibrated: bool) -> Remedy:
    message = candidate.message
    if not calibrated:
        message += " (uncalibrated: predicted and reported reads differ)"
    return Remedy(
        candidate.action,
        candidate.block,
        now - trial.cost_usd,
        message + ".",
        trial.blocks,
        trial.settings,
        calibrated,
    )
