"""The traits of the capacity lab, each made from the state behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from codesmith_lab.capacity.arrays import SnapshotArrays
from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.controller import (
    ACTIONS,
    Action,
    CapacityController,
    CapacityDecision,
    CapacitySnapshot,
)
from codesmith_lab.capacity.formulas import CapacityObservation, h_terms, z_terms
from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.capacity.simulation import decision_text

__all__ = ["Seen", "chart_view", "detail_view", "figures_view"]

Dict = dict[str, Any]
Seen = Sequence[tuple[CapacityDecision, Action]]

_DIGITS = 5
_H_NAMES = ("actions", "tools", "references", "context")
_Z_NAMES = ("final slack", "minimum", "violations", "volatility", "drop", "bias")
_PHASE_TEXT = {"pre_turn": "before its request", "post_tool": "after its tools"}
_MINUS = "−"


def numbers(values: npt.NDArray[np.float64]) -> list[float | None]:
    """Floats for the view: short, and None where there is no number."""
    return [v if math.isfinite(v) else None for v in np.round(values, _DIGITS).tolist()]


def short(value: float, digits: int = 2) -> str:
    """A number for people, with a true minus."""
    text = f"{value:.{digits}f}"
    return text.replace("-", _MINUS) if float(text) else text.lstrip("-")


def signed(value: float, digits: int = 2) -> str:
    """The same with its sign, and none at zero."""
    text = short(value, digits)
    return text if text.startswith(_MINUS) or not float(f"{value:.{digits}f}") else f"+{text}"


def chart_view(
    table: ObservationTable,
    config: CapacityConfig,
    seen: SnapshotArrays,
    decided: Seen,
    other: tuple[CapacityConfig, SnapshotArrays] | None,
) -> Dict:
    """The curves and marks. other: settings to compare with, and what they see."""
    return {
        "turn": table.turn_index.tolist(),
        "post": table.post_tool.astype(int).tolist(),
        "pressure": numbers(seen.h_hat),
        "capacity": numbers(seen.c_hat),
        "p_fail": numbers(seen.p_fail),
        "low": config.low_risk_max,
        "medium": config.medium_risk_max,
        "marks": _marks(decided),
        "other": None
        if other is None
        else {
            "pressure": numbers(other[1].h_hat),
            "p_fail": numbers(other[1].p_fail),
            "low": other[0].low_risk_max,
            "medium": other[0].medium_risk_max,
        },
    }


def _marks(decided: Seen) -> list[list[int]]:
    """[row, intervention 1 to 3, 0 done / 1 throttled / 2 not at this point] of every wish."""
    marks = []
    for row, (decision, done) in enumerate(decided):
        wanted = ACTIONS.index(decision.wanted)
        if wanted:
            state = (
                0 if done != "no_intervention" else 1 if decision.action != decision.wanted else 2
            )
            marks.append([row, wanted, state])
    return marks


def figures_view(seen: SnapshotArrays, decided: Seen) -> list[Dict]:
    """The numbers at the top."""
    done = [action for _, action in decided if action != "no_intervention"]
    wished = [d for d, action in decided if d.wanted != "no_intervention"]
    finite = seen.p_fail[np.isfinite(seen.p_fail)]
    highest = f"{finite.max():.2f}" if len(finite) else "none"
    return [
        {"value": f"{len(decided):,}", "label": "observations"},
        {"value": highest, "label": "highest p_fail"},
        {"value": f"{len(wished):,}", "label": "wanted to act"},
        {"value": f"{len(done):,}", "label": "interventions done"},
    ]


def snapshots_at(
    config: CapacityConfig, table: ObservationTable, row: int
) -> tuple[CapacitySnapshot | None, CapacitySnapshot]:
    """The scalar snapshots of the row before, in the same session, and of a row."""
    start = int(table.starts[table.session_of[row]])
    controller = CapacityController(config.with_values(enabled=True))
    before: CapacitySnapshot | None = None
    # One row more than the window holds, so that the row before is whole as well.
    for i in range(max(start, row - config.profile_window - 1), row + 1):
        snapshot = controller.observe(table.observation(i))
        if i == row - 1:
            before = snapshot
    if snapshot is None:
        raise AssertionError("an enabled controller always observes")
    return before, snapshot


def detail_view(
    config: CapacityConfig,
    table: ObservationTable,
    row: int,
    decided: Seen,
    other: CapacityConfig | None,
) -> Dict:
    """One observation taken apart. other: settings to compare with."""
    before, now = snapshots_at(config, table, row)
    seen = table.observation(row)
    compared = None if other is None else snapshots_at(other, table, row)[1]
    decision, done = decided[row]
    z_now = z_terms(config, now.profile)
    z_before = None if before is None else z_terms(config, before.profile)
    z_other = None if compared is None or other is None else z_terms(other, compared.profile)
    return {
        "row": row,
        "title": f"Turn {seen.turn_index + 1}, {_PHASE_TEXT[table.phase(row)]}",
        "place": f"observation {row + 1} of {len(table)}",
        "why": decision_text(decision, done),
        "band": now.risk_band,
        "p_text": f"{now.p_fail:.4f}",
        "p_other_text": "" if compared is None else f"{compared.p_fail:.4f} with the reference's",
        "h_rows": _h_rows(config, seen),
        "h_text": short(now.h_hat),
        "c_text": short(now.c_hat),
        "slack_text": short(now.slack),
        "z_rows": _z_rows(config, now, z_now, z_before, z_other),
        "z_text": signed(sum(z_now)),
        "moved": _moved(z_now, z_before, before, now),
    }


def _h_rows(config: CapacityConfig, seen: CapacityObservation) -> list[Dict]:
    ratio = min(2.0, max(0.0, seen.context_used_ratio))
    facts = (
        f"{seen.action_count_this_turn:,}",
        f"{seen.tool_calls_recent_window:,}",
        f"{seen.unique_reference_ids_recent_window:,}",
        f"{ratio:.1%}",
    )
    weights = (
        config.action_weight,
        config.tool_weight,
        config.reference_weight,
        config.context_weight,
    )
    terms = h_terms(config, seen)
    rows = []
    for name, fact, weight, term in zip(_H_NAMES, facts, weights, terms, strict=True):
        bits = term / weight if weight else 0.0
        rows.append(
            {
                "name": name,
                "fact": fact,
                "sum": f"{weight:g} × {short(bits)}",
                "value": term if math.isfinite(term) else 0.0,
                "text": short(term),
            }
        )
    return rows


def _z_rows(
    config: CapacityConfig,
    now: CapacitySnapshot,
    z_now: Sequence[float],
    z_before: Sequence[float] | None,
    z_other: Sequence[float] | None,
) -> list[Dict]:
    profile = now.profile
    facts = (
        profile.final_slack,
        profile.min_slack,
        profile.violation_ratio,
        profile.slack_volatility,
        profile.slack_drop,
    )
    weights = (
        config.final_slack_coefficient,
        config.min_slack_coefficient,
        config.violation_ratio_coefficient,
        config.slack_volatility_coefficient,
        config.slack_drop_coefficient,
    )
    sums = [f"{short(w)} × {short(f)}" for w, f in zip(weights, facts, strict=True)] + [""]
    return [
        {
            "name": name,
            "sum": sums[i],
            "value": z_now[i] if math.isfinite(z_now[i]) else 0.0,
            "text": signed(z_now[i]),
            "change": "" if z_before is None else signed(z_now[i] - z_before[i]),
            "other": "" if z_other is None else signed(z_other[i]),
        }
        for i, name in enumerate(_Z_NAMES)
    ]


def _moved(
    z_now: Sequence[float],
    z_before: Sequence[float] | None,
    before: CapacitySnapshot | None,
    now: CapacitySnapshot,
) -> str:
    """Which term moved p_fail since the observation before."""
    if z_before is None or before is None:
        return "This is the first observation: nothing has moved yet."
    changes = [a - b for a, b in zip(z_now, z_before, strict=True)]
    if not all(map(math.isfinite, changes)):
        return "A context share that is no number makes every term unknown, and the risk high."
    most = max(range(len(changes)), key=lambda i: abs(changes[i]))
    if abs(changes[most]) < 5e-4:
        return "No term has moved since the observation before."
    verb = (
        "rose" if now.p_fail > before.p_fail else "fell" if now.p_fail < before.p_fail else "stayed"
    )
    return (
        f"p_fail {verb} from {before.p_fail:.3f} to {now.p_fail:.3f}; most of it is "
        f"{_Z_NAMES[most]} ({signed(changes[most])} in z)."
    )
