"""The capacity controller let loose on a session, and billed.

The loop is closed: what an intervention does to the history changes the tokens, the tool calls and
the references that the controller sees next. The messages that follow stay as they were recorded,
since nobody knows what the model would have said instead; figures are simulated, and say so.
"""

from __future__ import annotations

from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.controller import Action
from codesmith_lab.capacity.simulation import Step, Trial
from codesmith_lab.errors import LabError
from codesmith_lab.sessions.capacity.bills import ControlledSession, InterventionCost, bill_history
from codesmith_lab.sessions.capacity.observations import (
    Numbering,
    Point,
    SessionObserver,
    runner_of,
)
from codesmith_lab.sessions.capacity.rewrites import (
    InterventionRules,
    RewrittenHistory,
    rewrite_history,
)
from codesmith_lab.sessions.records import Session
from codesmith_lab.sessions.turns import TurnRunner

__all__ = [
    "ControlledSession",
    "InterventionCost",
    "compact_at",
    "replay_controller",
]


def replay_controller(
    source: Session | TurnRunner,
    config: CapacityConfig,
    rules: InterventionRules | None = None,
    turns: Numbering = "request",
    context_window_tokens: int | None = None,
    model: str | None = None,
) -> ControlledSession:
    """Run a session under a controller, carry its interventions out, and bill what comes of it.

    source: a session, or one laid out already under a model, its cache rule and prices. config:
        off or on. turns, context_window_tokens: see `SessionObserver`. model: whose rules and
        prices to apply; None follows the session.
    """
    runner = runner_of(source, model)
    rules = rules or InterventionRules()
    observer = SessionObserver(runner, config.profile_window, turns, context_window_tokens)
    history, trial, steps = RewrittenHistory(runner), Trial(config), []
    for point in observer.points():
        history.enter(point.request)
        steps.append(_step(point, history, trial, rules, observer))
    return bill_history(history, steps, rules)


def compact_at(
    source: Session | TurnRunner,
    request: int,
    action: Action = "targeted_context_refresh",
    rules: InterventionRules | None = None,
    model: str | None = None,
) -> ControlledSession:
    """One intervention before a request (0-based), whatever a controller would say.

    Raises LabError for a request that the session does not have, and where there is nothing to
    make shorter.
    """
    runner = runner_of(source, model)
    requests = runner.session.requests
    whole = isinstance(request, int) and not isinstance(request, bool)
    if not whole or not 0 <= request < len(requests):
        raise LabError(f"request is {request!r}; pass a whole number from 0 to {len(requests) - 1}")
    rules = rules or InterventionRules()
    history = RewrittenHistory(runner)
    blocks = requests[request].blocks
    rewrite = rewrite_history(action, request, blocks, blocks, rules, SessionObserver(runner))
    if rewrite is None:
        raise LabError(
            f"turn {request + 1} has no history that would become shorter; choose a later turn"
        )
    history.rewrites.append(rewrite)
    for later in range(request, len(requests)):
        history.enter(later)
    return bill_history(history, (), rules)


def _step(
    point: Point,
    history: RewrittenHistory,
    trial: Trial,
    rules: InterventionRules,
    observer: SessionObserver,
) -> Step:
    runner = history.runner
    recorded = runner.session.requests[point.request].blocks
    blocks = history.blocks(point.request)
    tokens = runner.prompt_of(point.request, blocks).total_tokens
    now = recorded if blocks is None else blocks

    def carry_out(action: Action) -> bool:
        rewrite = rewrite_history(action, point.request, recorded, now, rules, observer)
        if rewrite is not None:
            history.rewrites.append(rewrite)
        return rewrite is not None

    return trial.step(observer.observe(point, now, tokens), point.phase, carry_out=carry_out)
