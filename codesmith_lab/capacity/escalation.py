"""Error escalation: repeated tool errors ask for a replan, whatever the risk says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from codesmith_lab.capacity.controller import CapacityController, CapacityDecision
from codesmith_lab.capacity.formulas import CapacityObservation, check_count

__all__ = ["Escalation", "escalate_errors"]

_OVERFLOW = "invalid_input"
_TRANSIENT = frozenset({"network", "rate_limit", "timeout"})


@dataclass(frozen=True, slots=True)
class Escalation:
    """What came of an error check.

    decision: the replan to carry out, or None. inner_decision: what the controller decided when
    it was asked, None when a gate before it said no. fallback_observed: the fallback was handed to
    the controller because it had no snapshot; a disabled controller takes nothing from it.
    """

    decision: CapacityDecision | None
    inner_decision: CapacityDecision | None = None
    fallback_observed: bool = False


def escalate_errors(
    controller: CapacityController,
    turn_index: int,
    fallback_observation: CapacityObservation,
    step_error_count: int,
    consecutive_tool_error_steps: int,
    error_categories: Sequence[str],
) -> Escalation:
    """Whether the errors of a step call for a replan.

    Nothing is marked; the caller marks the replan once it is carried out. The observation is made
    only when the gates are passed and the controller has seen nothing yet, and then it stays.

    step_error_count: errors of this step. consecutive_tool_error_steps: steps in a row with one.
    error_categories: of this step's errors, in their order; "invalid_input" is a context overflow,
        "network", "rate_limit" and "timeout" pass by themselves.
    """
    errors = check_count("step_error_count", step_error_count)
    steps = check_count("consecutive_tool_error_steps", consecutive_tool_error_steps)
    if not _calls_for_a_look(errors, steps, error_categories):
        return Escalation(None)
    snapshot = controller.last_snapshot
    observed = snapshot is None
    if snapshot is None:
        snapshot = controller.observe(fallback_observation)
    if snapshot is None:  # a disabled controller sees nothing
        return Escalation(None, None, observed)
    if errors >= 2 or steps >= 2:
        snapshot = replace(snapshot, risk_band="high", severe=True)
    inner = controller.decide(turn_index, snapshot)
    if inner.action != "verify_and_replan":
        return Escalation(None, inner, observed)
    reason = (
        f"error_escalation: step_errors={errors}, consecutive_steps={steps}, "
        f"categories={','.join(error_categories)}"
    )
    return Escalation(replace(inner, reason=reason), inner, observed)


def _calls_for_a_look(errors: int, steps: int, categories: Sequence[str]) -> bool:
    if errors == 0 and steps < 2:
        return False
    if _OVERFLOW in categories:
        return True
    if categories and _TRANSIENT.issuperset(categories):
        return False
    return steps >= 2
