"""A controller run over recorded observations: what it would have wanted and done.

The loop is the engine's: a turn starts when the turn number changes, every row is observed and
decided, and a decision is carried out where its point allows it. Before a request only a refresh
can be carried out, after a tool only a replay or a replan; a decision at the other point is only
reported. Source: the checkpoints of the reference's engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codesmith_lab.capacity.arrays import SnapshotArrays
from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.controller import (
    ACTIONS,
    REASONS,
    Action,
    CapacityController,
    CapacityDecision,
    CapacitySnapshot,
)
from codesmith_lab.capacity.formulas import (
    BANDS,
    PHASES,
    CapacityObservation,
    Phase,
    SlackProfile,
)
from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.errors import LabError

__all__ = ["POINT_OF", "Step", "Trial", "decide_all", "decision_text", "simulate"]

POINT_OF: dict[Action, Phase] = {
    "targeted_context_refresh": "pre_turn",
    "verify_with_tool_replay": "post_tool",
    "verify_and_replan": "post_tool",
}
"""The point at which the engine carries an intervention out."""
_ACTION_NAMES = dict(
    zip(ACTIONS, ("no intervention", "a refresh", "a tool replay", "a replan"), strict=True)
)
_POINT_NAMES = {"pre_turn": "before a request", "post_tool": "after a tool"}


@dataclass(frozen=True, slots=True)
class Step:
    """One observation and what came of it.

    snapshot: None when the controller is off. decision: with its reason.
    done: what was carried out, "no_intervention" for nothing. futile: it was decided at its point,
    but there was nothing to do it to.
    """

    session: int
    observation: CapacityObservation
    phase: Phase
    snapshot: CapacitySnapshot | None
    decision: CapacityDecision
    done: Action
    futile: bool = False

    @property
    def held_back(self) -> bool:
        """Decided, but not done."""
        return self.decision.action != self.done

    def why(self) -> str:
        """What was wanted, what was done and what stood in the way, as one sentence."""
        return decision_text(self.decision, self.done, self.futile)


def decision_text(decision: CapacityDecision, done: Action, futile: bool = False) -> str:
    """What was wanted, what was done and what stood in the way, as one sentence."""
    wanted, reason = decision.wanted, decision.reason
    told = REASONS.get(reason, reason)
    if decision.action != done:
        name = _ACTION_NAMES[decision.action]
        if futile:
            told = "nothing would have become shorter"
        else:
            told = f"it is only carried out {_POINT_NAMES[POINT_OF[decision.action]]}"
        return f"Wanted {name}, did nothing: {told} ({reason})."
    if done != "no_intervention":
        return f"Wanted {_ACTION_NAMES[wanted]} and did it: {told} ({reason})."
    if wanted != "no_intervention":
        return f"Wanted {_ACTION_NAMES[wanted]}, did nothing: {told} ({reason})."
    return f"Wanted and did nothing: {told} ({reason})."


class Trial:
    """One session under a controller, row by row, for callers that change the rows on the way."""

    def __init__(self, config: CapacityConfig, session: int = 0) -> None:
        self.controller = CapacityController(config)
        self._session = session
        self._turn: int | None = None

    def step(
        self,
        observation: CapacityObservation,
        phase: Phase,
        replay_fails: bool = False,
        carry_out: Callable[[Action], bool] | None = None,
    ) -> Step:
        """Observe, decide, and mark what is carried out at this point.

        carry_out: does it, and says whether there was anything to do; without, it is taken as done.

        Raises LabError for a turn that goes back.
        """
        controller, turn = self.controller, observation.turn_index
        if self._turn is not None and turn < self._turn:
            raise LabError(
                f"turn {turn} comes after turn {self._turn}, but turns never go back; "
                "sort the observations by time"
            )
        if turn != self._turn:
            controller.mark_turn_start(turn)
            self._turn = turn
        snapshot = controller.observe(observation, phase)
        decision = controller.decide(turn, snapshot)
        done: Action = "no_intervention"
        here = POINT_OF.get(decision.action) == phase
        if here and (carry_out is None or carry_out(decision.action)):
            done = decision.action
            if done == "verify_with_tool_replay" and replay_fails:
                controller.mark_replay_failed(turn)
            controller.mark_intervention_applied(turn, done)
        futile = here and done == "no_intervention"
        return Step(self._session, observation, phase, snapshot, decision, done, futile)


def simulate(config: CapacityConfig, table: ObservationTable) -> list[Step]:
    """Every row of every session, each session with a controller of its own.

    The clear form; `sweep` gives the same counts for many configurations at once.
    """
    steps = []
    for session, (start, end) in enumerate(zip(table.starts, table.ends, strict=True)):
        trial = Trial(config, session)
        steps += [
            trial.step(table.observation(row), table.phase(row), bool(table.replay_fails[row]))
            for row in range(start, end)
        ]
    return steps


def decide_all(
    config: CapacityConfig, table: ObservationTable, seen: SnapshotArrays
) -> list[tuple[CapacityDecision, Action]]:
    """Decision and what is carried out for every row, from `observe_all`: quick enough to follow a
    slider. Equal to `simulate` wherever p_fail is no rounding error away from a threshold.
    """
    shared = {
        (band, severe): CapacitySnapshot(0, 0.0, 0.0, 0.0, SlackProfile(), 0.0, name, severe)
        for band, name in enumerate(BANDS)
        for severe in (False, True)
    }
    keys = zip(seen.band.tolist(), seen.severe.tolist(), strict=True)
    turns, fails = table.turn_index.tolist(), table.replay_fails.tolist()
    posts, starts = table.post_tool.tolist(), frozenset(table.starts.tolist())
    found: list[tuple[CapacityDecision, Action]] = []
    controller, turn = CapacityController(config), -1
    for row, key in enumerate(keys):
        if row in starts:
            controller, turn = CapacityController(config), -1
        if turns[row] != turn:
            turn = turns[row]
            controller.mark_turn_start(turn)
        # `decide` reads band and severity only, so that rows can share their snapshots.
        decision = controller.decide(turn, shared[key])
        done: Action = "no_intervention"
        if POINT_OF.get(decision.action) == PHASES[posts[row]]:
            done = decision.action
            if done == "verify_with_tool_replay" and fails[row]:
                controller.mark_replay_failed(turn)
            controller.mark_intervention_applied(turn, done)
        found.append((decision, done))
    return found
