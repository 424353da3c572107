"""Plots of the capacity controller, its sweeps, its calibration and its break-even.

Every function draws on the Axes it is given and gives them back. Colours are the Okabe-Ito set,
which colour-blind people can tell apart; lines differ in their dashes too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from codesmith_lab.capacity.break_even import break_even_table
from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.scores import CostCurve, Scores
from codesmith_lab.capacity.simulation import Step
from codesmith_lab.capacity.sweep_result import SweepResult
from codesmith_lab.errors import LabError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "break_even_lines",
    "break_even_map",
    "cost_line",
    "heat_map",
    "precision_recall_line",
    "reliability_diagram",
    "risk_timeline",
    "roc_line",
    "slack_timeline",
]

_BLUE, _ORANGE, _GREEN, _RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"
_DASHES = ("-", "--", "-.", ":")
_MARKS = {
    "targeted_context_refresh": ("o", "refresh"),
    "verify_with_tool_replay": ("^", "tool replay"),
    "verify_and_replan": ("s", "replan"),
}
_WHAT = {
    "interventions": "interventions",
    "refreshes": "refreshes",
    "replays": "tool replays",
    "replans": "replans",
    "missed_failures": "missed failures",
    "false_alarms": "false alarms",
    "money_usd": "money (USD)",
}


def slack_timeline(ax: Axes, steps: Sequence[Step]) -> Axes:
    """Pressure h_hat against capacity c_hat (bits); where it is above, slack is negative."""
    seen = [step.snapshot for step in steps]
    at = [i for i, snapshot in enumerate(seen) if snapshot is not None]
    pressure = np.array([s.h_hat for s in seen if s is not None])
    capacity = np.array([s.c_hat for s in seen if s is not None])
    ax.plot(at, pressure, color=_BLUE, label="pressure h_hat")
    ax.plot(at, capacity, color=_ORANGE, linestyle="--", label="capacity c_hat")
    ax.fill_between(
        at,
        pressure,
        capacity,
        where=(pressure > capacity).tolist(),
        color=_RED,
        alpha=0.25,
        label="negative slack",
        interpolate=True,
    )
    ax.set(xlabel="observation", ylabel="bits")
    ax.legend(loc="best")
    return ax


def risk_timeline(ax: Axes, steps: Sequence[Step], config: CapacityConfig) -> Axes:
    """p_fail over its bands, with what was done as filled marks and what was only wanted as
    hollow ones."""
    seen = [(i, step.snapshot) for i, step in enumerate(steps) if step.snapshot is not None]
    ax.plot([i for i, _ in seen], [s.p_fail for _, s in seen], color=_BLUE, label="p_fail")
    for height, dash, name in (
        (config.low_risk_max, "--", "low up to"),
        (config.medium_risk_max, ":", "medium up to"),
    ):
        ax.axhline(height, color=_ORANGE, linestyle=dash, label=f"{name} {height:g}")
    for action, (mark, name) in _MARKS.items():
        wanted = [(i, step) for i, step in enumerate(steps) if step.decision.wanted == action]
        for done in (True, False):
            points = [
                (i, step.snapshot.p_fail)
                for i, step in wanted
                if step.snapshot is not None and (step.done == action) == done
            ]
            if points:
                ax.plot(
                    *zip(*points, strict=True),
                    linestyle="none",
                    marker=mark,
                    color=_RED,
                    markerfacecolor=_RED if done else "none",
                    label=f"{name} {'done' if done else 'wanted'}",
                )
    ax.set(xlabel="observation", ylabel="p_fail", ylim=(-0.02, 1.02))
    ax.legend(loc="best")
    return ax


def heat_map(ax: Axes, result: SweepResult, what: str = "interventions") -> Axes:
    """One quantity of a sweep over two parameters; each cell a combination.

    what: "interventions", "refreshes", "replays", "replans", "missed_failures", "false_alarms" or
        "money_usd".

    Raises LabError for a sweep over one parameter or more than two, and for a quantity that needs
    labels where there are none.
    """
    if what not in _WHAT:
        raise LabError(f"what is {what!r}; choose one of {', '.join(_WHAT)}")
    if len(result.names) != 2:
        raise LabError(
            f"the sweep has {len(result.names)} parameters, and a heat map shows two; "
            "sweep two, or plot result.table() in another way"
        )
    values: Any = getattr(result, what)
    if values is None:
        raise LabError(f"{_WHAT[what]} need labels, and the observations have none; add failed")
    mesh = ax.pcolormesh(*_cells(result), values, cmap="cividis", shading="nearest")
    ax.figure.colorbar(mesh, ax=ax, label=_WHAT[what])
    ax.set(xlabel=result.names[1], ylabel=result.names[0])
    return ax


def _cells(result: SweepResult) -> tuple[Any, Any]:
    return np.array(result.values[1]), np.array(result.values[0])


def roc_line(ax: Axes, *scores: Scores) -> Axes:
    """ROC curves, each with its area, against the diagonal of guessing."""
    for dash, score in zip(_cycle(scores), scores, strict=True):
        false_alarms, hits, _ = score.roc
        ax.plot(false_alarms, hits, dash, label=f"{score.name}, area {score.roc_area:.3f}")
    ax.plot([0, 1], [0, 1], color="gray", linewidth=0.8)
    ax.set(xlabel="false alarm rate", ylabel="hit rate")
    ax.legend(loc="lower right")
    return ax


def precision_recall_line(ax: Axes, *scores: Scores) -> Axes:
    """Precision against recall, each with its average precision."""
    for dash, score in zip(_cycle(scores), scores, strict=True):
        precision, recall, _ = score.precision_recall
        name = f"{score.name}, average {score.average_precision:.3f}"
        ax.plot(recall, precision, dash, drawstyle="steps-post", label=name)
    ax.set(xlabel="recall", ylabel="precision", ylim=(-0.02, 1.02))
    ax.legend(loc="lower left")
    return ax


def reliability_diagram(ax: Axes, *scores: Scores, bins: int = 10) -> Axes:
    """What was said against what came, with Brier score and expected calibration error."""
    ax.plot([0, 1], [0, 1], color="gray", linewidth=0.8)
    for dash, score in zip(_cycle(scores), scores, strict=True):
        diagram = score.reliability(bins)
        error = score.calibration_error(bins)
        name = f"{score.name}, Brier {score.brier:.3f}, ECE {error:.3f}"
        ax.plot(diagram.predicted, diagram.observed, dash, marker="o", label=name)
    ax.set(xlabel="p_fail said", ylabel="share that failed")
    ax.legend(loc="upper left")
    return ax


def cost_line(ax: Axes, curve: CostCurve) -> Axes:
    """Expected cost of every threshold, with the cheapest marked."""
    ax.plot(curve.thresholds, curve.expected_usd, color=_BLUE, label="expected cost")
    best = curve.best_threshold
    ax.axvline(best, color=_RED, linestyle="--", label=f"cheapest: {best:.3f}")
    ax.set(xlabel="low_risk_max", ylabel="USD an observation")
    ax.legend(loc="best")
    return ax


def break_even_lines(
    ax: Axes,
    miss_to_hit: float,
    history_tokens: Sequence[float] = (5_000, 20_000, 100_000),
    fixed_tokens: float = 500.0,
    summary_cost_share: float = 0.0,
) -> Axes:
    """Requests until a compaction pays back, over the compression ratio, a line a history length.

    miss_to_hit: price of a missed token over that of a cached one. fixed_tokens: come with every
        summary. summary_cost_share: what writing it costs, as a share of reading the history as
        misses (1: read in full as new).
    """
    ratios = np.linspace(0.0, 0.95, 96)
    for dash, history in zip(_cycle(history_tokens), history_tokens, strict=True):
        summary = summary_cost_share * miss_to_hit * history
        found = break_even_table(history, ratios, miss_to_hit, fixed_tokens, summary)
        found = np.where(np.isfinite(found), np.maximum(found, 1.0), np.nan)
        ax.plot(ratios, found, dash, label=f"{history:,.0f} tokens")
    ax.set(xlabel="share that remains", ylabel="requests until it pays back", yscale="log")
    ax.set_title(f"a miss costs {miss_to_hit:g} times a hit")
    ax.legend(loc="upper left")
    return ax


def break_even_map(ax: Axes, history_tokens: float = 50_000, fixed_tokens: float = 500.0) -> Axes:
    """Requests until a compaction pays back, over compression ratio and miss-to-hit price ratio."""
    ratios, prices = np.linspace(0.0, 0.9, 46), np.geomspace(1.0, 100.0, 41)
    found = break_even_table(history_tokens, ratios, prices[:, None], fixed_tokens)
    levels = [1, 2, 5, 10, 20, 50, 100, 200, 500]
    drawn = ax.contour(ratios, prices, np.maximum(found, 1e-3), levels=levels, colors=_BLUE)
    ax.clabel(drawn, fmt=lambda value: f"{value:g}")
    ax.set(xlabel="share that remains", ylabel="miss price over hit price", yscale="log")
    ax.set_title(f"requests until compacting {history_tokens:,.0f} tokens pays back")
    return ax


def _cycle(items: Sequence[Any]) -> list[str]:
    return [_DASHES[i % len(_DASHES)] for i in range(len(items))]
