"""The capacity controller: observations in, decisions with reasons out.

The order of the gates, and what each mark resets, are the reference's; its quirks are kept, for
example that a turn observed before `mark_turn_start` swallows that turn's reset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.formulas import (
    BANDS,
    PHASES,
    CapacityObservation,
    Phase,
    RiskBand,
    SlackProfile,
    capacity_prior,
    check_count,
    h_terms,
    is_severe,
    left_sum,
    risk_band,
    sigmoid,
    slack_profile,
    z_terms,
)
from codesmith_lab.errors import LabError

__all__ = [
    "ACTIONS",
    "REASONS",
    "Action",
    "CapacityController",
    "CapacityDecision",
    "CapacitySnapshot",
    "ControllerState",
    "propose",
]

Action = Literal[
    "no_intervention",
    "targeted_context_refresh",
    "verify_with_tool_replay",
    "verify_and_replan",
]
ACTIONS: tuple[Action, ...] = get_args(Action)

REASONS: Mapping[str, str] = {
    "policy_selected_action": "nothing stood against it",
    "capacity_controller_disabled": "the controller is switched off",
    "missing_capacity_data_fail_open": "nothing was observed, and without data nothing is done",
    "min_turns_before_guardrail_not_reached": "the first turns are left alone",
    "low_risk_no_intervention": "the risk is low",
    "intervention_already_applied_this_turn": "this turn has had its intervention",
    "refresh_cooldown_active": "the last refresh was too few turns ago",
    "replan_cooldown_active": "the last replan was too few turns ago",
    "replay_disabled_for_turn": "a replay failed on this turn",
    "max_replay_per_turn_reached": "this turn has had its replays",
}
"""Each reason a decision can carry, in words. An error escalation writes its own."""


@dataclass(frozen=True, slots=True)
class CapacitySnapshot:
    """The result of one observation: pressure, capacity, profile, risk."""

    turn_index: int
    h_hat: float
    c_hat: float
    slack: float
    profile: SlackProfile
    p_fail: float
    risk_band: RiskBand
    severe: bool

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> CapacitySnapshot:
        """A snapshot from its fields as plain values. Raises LabError for other fields."""
        try:
            fields = {**row, "profile": SlackProfile(**row["profile"])}
            made = cls(**fields)
        except (TypeError, KeyError) as error:
            raise LabError(f"a snapshot cannot be made of {dict(row)!r}: {error}") from None
        if made.risk_band not in BANDS:
            raise LabError(f"risk_band is {made.risk_band!r}; choose one of {', '.join(BANDS)}")
        return made

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CapacityDecision:
    """What to do, and why.

    action: what to do. reason: a key of `REASONS`, or the text of an error escalation.
    cooldown_blocked: a throttle stood in the way. wanted: what the risk alone asks for.
    """

    action: Action
    reason: str
    cooldown_blocked: bool
    wanted: Action = "no_intervention"


@dataclass(frozen=True, slots=True)
class ControllerState:
    """What the controller remembers between calls; None is never."""

    last_refresh_turn: int | None = None
    last_replan_turn: int | None = None
    replay_count_this_turn: int = 0
    replay_disabled_turn: int | None = None
    intervention_applied_turn: int | None = None
    slack_window_len: int = 0
    last_snapshot_turn: int | None = None


def propose(band: RiskBand, severe: bool) -> Action:
    """What a risk asks for, before any throttle."""
    if band == "low":
        return "no_intervention"
    if band == "medium":
        return "targeted_context_refresh"
    return "verify_and_replan" if severe else "verify_with_tool_replay"


class CapacityController:
    """Observes turns and decides on interventions; one controller a conversation.

    The order of a turn: `mark_turn_start`, then at each point `observe`, `decide` and, when the
    intervention was carried out, `mark_intervention_applied` (or `mark_replay_failed`). As in the
    reference the turn numbers are the caller's: one that goes back is taken as it is. Tables and
    sessions are checked for that where they come in.
    """

    def __init__(self, config: CapacityConfig | None = None) -> None:
        self.config = CapacityConfig() if config is None else config
        self.last_snapshot: CapacitySnapshot | None = None
        self._slacks: deque[float] = deque(maxlen=self.config.profile_window)
        self._last_refresh: int | None = None
        self._last_replan: int | None = None
        self._replays = 0
        self._replay_disabled: int | None = None
        self._applied: int | None = None

    @property
    def state(self) -> ControllerState:
        """What is remembered now."""
        last = self.last_snapshot
        return ControllerState(
            self._last_refresh,
            self._last_replan,
            self._replays,
            self._replay_disabled,
            self._applied,
            len(self._slacks),
            None if last is None else last.turn_index,
        )

    @property
    def slack_window(self) -> tuple[float, ...]:
        """The slacks (bits) that the next profile starts from, oldest first."""
        return tuple(self._slacks)

    def observe(
        self, observation: CapacityObservation, phase: Phase = "pre_turn"
    ) -> CapacitySnapshot | None:
        """Take an observation into the window; None, and nothing kept, when disabled.

        phase: where it was made; both count the same.
        """
        if phase not in PHASES:
            raise LabError(f"phase is {phase!r}; choose one of {', '.join(PHASES)}")
        config = self.config
        if not config.enabled:
            return None
        h_hat = left_sum(h_terms(config, observation))
        c_hat = capacity_prior(config, observation.model)
        slack = c_hat - h_hat
        self._slacks.append(slack)
        profile = slack_profile(self._slacks)
        p_fail = sigmoid(left_sum(z_terms(config, profile)))
        self.last_snapshot = CapacitySnapshot(
            observation.turn_index,
            h_hat,
            c_hat,
            slack,
            profile,
            p_fail,
            risk_band(config, p_fail),
            is_severe(config, profile),
        )
        return self.last_snapshot

    def decide(
        self, turn_index: int, snapshot: CapacitySnapshot | Mapping[str, Any] | None
    ) -> CapacityDecision:
        """What to do on a turn, given a snapshot; changes nothing.

        Only the snapshot's `risk_band` and `severe` are read. None fails open.
        """
        turn = check_count("turn_index", turn_index)
        if isinstance(snapshot, Mapping):
            snapshot = CapacitySnapshot.from_dict(snapshot)
        if not self.config.enabled:
            return _none("capacity_controller_disabled")
        if snapshot is None:
            return _none("missing_capacity_data_fail_open")
        wanted = propose(snapshot.risk_band, snapshot.severe)
        if turn < self.config.min_turns_before_guardrail:
            return _none("min_turns_before_guardrail_not_reached", False, wanted)
        if wanted == "no_intervention":
            return _none("low_risk_no_intervention")
        blocked = self._blocked(turn, wanted)
        if blocked is not None:
            return _none(blocked, True, wanted)
        return CapacityDecision(wanted, "policy_selected_action", False, wanted)

    def _blocked(self, turn: int, wanted: Action) -> str | None:
        """The throttle in the way of a wanted intervention."""
        config = self.config
        if self._applied == turn:
            return "intervention_already_applied_this_turn"
        if wanted == "targeted_context_refresh":
            last, pause = self._last_refresh, config.refresh_cooldown_turns
            return "refresh_cooldown_active" if last is not None and turn <= last + pause else None
        if wanted == "verify_and_replan":
            last, pause = self._last_replan, config.replan_cooldown_turns
            return "replan_cooldown_active" if last is not None and turn <= last + pause else None
        if self._replay_disabled == turn:
            return "replay_disabled_for_turn"
        if self._replays >= config.max_replay_per_turn:
            return "max_replay_per_turn_reached"
        return None

    def mark_turn_start(self, turn_index: int) -> None:
        """A turn begins: replays, failed replay and applied mark are forgotten.

        Not when the last snapshot is of this very turn. Cooldowns stay.
        """
        turn = check_count("turn_index", turn_index)
        if self.last_snapshot is None or self.last_snapshot.turn_index != turn:
            self._replays = 0
            self._replay_disabled = None
            self._applied = None

    def mark_intervention_applied(self, turn_index: int, action: Action) -> None:
        """An intervention was carried out on this turn; `no_intervention` uses the turn up too."""
        turn = check_count("turn_index", turn_index)
        if action not in ACTIONS:
            raise LabError(f"action is {action!r}; choose one of {', '.join(ACTIONS)}")
        self._applied = turn
        if action == "targeted_context_refresh":
            self._last_refresh = turn
        elif action == "verify_and_replan":
            self._last_replan = turn
        elif action == "verify_with_tool_replay":
            self._replays += 1

    def mark_replay_failed(self, turn_index: int) -> None:
        """A replay failed: no other on this turn."""
        self._replay_disabled = check_count("turn_index", turn_index)


def _none(
    reason: str, blocked: bool = False, wanted: Action = "no_intervention"
) -> CapacityDecision:
    return CapacityDecision("no_intervention", reason, blocked, wanted)
