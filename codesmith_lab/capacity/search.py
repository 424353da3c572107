"""A search of thresholds and throttles against expected cost, with Optuna."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.capacity.sweep import money_of
from codesmith_lab.capacity.sweep_result import Cancel, SweepCosts
from codesmith_lab.errors import LabError

__all__ = ["SearchResult", "search_thresholds"]

_BATCH = 32  # trials that are computed side by side
_COOLDOWN_MOST = 20


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found.

    config: the base with the cheapest settings. searched_usd, held_out_usd: what it costs on the
    sessions that were searched and on those that were not; base_searched_usd, base_held_out_usd:
    the same for the base. trials: settings and cost of every trial, in order.
    searched, held_out: names of the sessions.
    """

    config: CapacityConfig
    searched_usd: float
    base_searched_usd: float
    held_out_usd: float
    base_held_out_usd: float
    trials: tuple[tuple[dict[str, float], float], ...]
    searched: tuple[str, ...]
    held_out: tuple[str, ...]


def search_thresholds(
    table: ObservationTable,
    base: CapacityConfig | None = None,
    costs: SweepCosts | None = None,
    trials: int = 256,
    seed: int = 0,
    answer_turns: int = 3,
    held_out_share: float = 0.3,
    progress: Callable[[int, int], None] | None = None,
    cancel: Cancel | None = None,
) -> SearchResult:
    """Search thresholds and cooldowns for the least cost; judge them on sessions kept aside.

    table: labelled; two sessions at least. base: the other settings; it is the first trial, so
        that the result is never worse where it was searched.
    costs: one price a kind of intervention (not one a row), and the price of a missed failure.
        None: an intervention costs 1, a missed failure 10.
    cancel: set, the search ends with what it has found so far.

    The same arguments give the same result. Raises LabError without Optuna or labels.
    """
    optuna = _optuna()
    base = replace(base or CapacityConfig(), enabled=True)
    costs = costs or SweepCosts(1.0, 1.0, 1.0, 10.0)
    if any(hasattr(c, "shape") for c in (costs.refresh_usd, costs.replay_usd, costs.replan_usd)):
        raise LabError("a search takes one price a kind of intervention; pass numbers, no arrays")
    searched, held_out = _split(table, seed, held_out_share)
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise LabError(f"trials is {trials!r}; pass a whole number from 1 on")
    near, far = table.take_sessions(searched), table.take_sessions(held_out)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    first = _settings_of(base)
    history = [(first, float(money_of(near, base, [first], costs, answer_turns)[0]))]
    while len(history) < trials and not (cancel is not None and cancel.is_set()):
        asked = [study.ask() for _ in range(min(_BATCH, trials - len(history)))]
        settings = [_suggest(trial) for trial in asked]
        money = money_of(near, base, settings, costs, answer_turns)
        for trial, values, cost in zip(asked, settings, money.tolist(), strict=True):
            study.tell(trial, cost)
            history.append((values, cost))
        if progress is not None:
            progress(len(history), trials)
    best, best_usd = min(history, key=lambda entry: entry[1])
    outside = money_of(far, base, [best, first], costs, answer_turns).tolist()
    return SearchResult(
        base.with_values(**best),
        best_usd,
        history[0][1],
        outside[0],
        outside[1],
        tuple(history),
        near.sessions,
        far.sessions,
    )


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise LabError(
            'the search needs Optuna; run: pip install "codesmith-lab[search]"'
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _split(table: ObservationTable, seed: int, share: float) -> tuple[list[int], list[int]]:
    if table.failed is None:
        raise LabError("the observations have no labels; add a column named failed, 0 or 1")
    sessions = list(range(len(table.sessions)))
    if len(sessions) < 2:
        raise LabError(
            "there is one session only, and the result is judged on sessions kept aside; "
            "add another session"
        )
    if not 0 < share < 1:
        raise LabError(f"held_out_share is {share!r}; pass a share between 0 and 1")
    random.Random(f"split {seed}").shuffle(sessions)
    aside = min(len(sessions) - 1, max(1, round(share * len(sessions))))
    return sorted(sessions[aside:]), sorted(sessions[:aside])


_NAMES = (
    "low_risk_max",
    "medium_risk_max",
    "severe_min_slack",
    "severe_violation_ratio",
    "refresh_cooldown_turns",
    "replan_cooldown_turns",
)


def _settings_of(config: CapacityConfig) -> dict[str, float]:
    return {name: getattr(config, name) for name in _NAMES}


def _suggest(trial: Any) -> dict[str, float]:
    """Settings of one trial; the medium band is suggested by its width, so order is kept."""
    low = trial.suggest_float("low_risk_max", 0.0, 1.0)
    width = trial.suggest_float("medium_width", 0.0, 1.0)
    return {
        "low_risk_max": low,
        "medium_risk_max": low + width * (1.0 - low),
        "severe_min_slack": trial.suggest_float("severe_min_slack", -3.0, 2.0),
        "severe_violation_ratio": trial.suggest_float("severe_violation_ratio", 0.0, 1.05),
        "refresh_cooldown_turns": trial.suggest_int("refresh_cooldown_turns", 0, _COOLDOWN_MOST),
        "replan_cooldown_turns": trial.suggest_int("replan_cooldown_turns", 0, _COOLDOWN_MOST),
    }
