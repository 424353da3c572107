"""Plots: what stands on the axes is what was computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest

from codesmith_lab.capacity import CapacityConfig, Scores, draw_labels, simulate, sweep, synthetic
from codesmith_lab.capacity.break_even import BreakEven
from codesmith_lab.errors import LabError
from codesmith_lab.plots import capacity as plots

matplotlib.use("Agg")
ON = CapacityConfig(enabled=True)


@pytest.fixture
def ax() -> Iterator[Any]:
    from matplotlib.figure import Figure

    figure = Figure()
    yield figure.add_subplot()
    figure.canvas.draw()


@pytest.fixture(scope="module")
def scores() -> Scores:
    source = np.random.default_rng(3)
    p = source.random(400)
    return Scores("true", p, source.random(400) < p)


def labels(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_timelines_show_every_step(ax: Any) -> None:
    steps = simulate(ON, synthetic("slow burn", 40))
    assert plots.slack_timeline(ax, steps) is ax
    pressure = ax.lines[0].get_ydata()
    assert pressure.tolist() == [step.snapshot.h_hat for step in steps if step.snapshot]
    ax.clear()
    plots.risk_timeline(ax, steps, ON)
    assert len(ax.lines[0].get_ydata()) == 80
    done = sum(step.done == "verify_and_replan" for step in steps)
    shown = {line.get_label(): len(line.get_xdata()) for line in ax.lines}
    assert shown["replan done"] == done > 0
    assert "low up to 0.5" in shown


def test_a_heat_map_shows_the_sweeps_numbers(ax: Any) -> None:
    table = draw_labels(synthetic("burst", 40), ON)
    grid = {"low_risk_max": [0.1, 0.5], "medium_risk_max": [0.6, 0.7, 0.8]}
    result = sweep(table, grid)
    plots.heat_map(ax, result, "missed_failures")
    assert np.array_equal(ax.collections[0].get_array(), result.missed_failures)
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("low_risk_max", "medium_risk_max")
    with pytest.raises(LabError, match="what is 'colour'; choose one of interventions"):
        plots.heat_map(ax, result, "colour")
    with pytest.raises(LabError, match="has 1 parameters, and a heat map shows two"):
        plots.heat_map(ax, sweep(table, {"bias": [0.1]}))
    with pytest.raises(LabError, match="missed failures need labels"):
        plots.heat_map(ax, sweep(table.with_labels(None), grid), "missed_failures")


def test_curves_carry_their_figures(ax: Any, scores: Scores) -> None:
    plots.roc_line(ax, scores)
    assert labels(ax) == [f"true, area {scores.roc_area:.3f}"]
    ax.clear()
    plots.precision_recall_line(ax, scores, scores)
    assert labels(ax)[0] == f"true, average {scores.average_precision:.3f}"
    assert ax.lines[0].get_linestyle() != ax.lines[1].get_linestyle()
    ax.clear()
    plots.reliability_diagram(ax, scores)
    assert ax.lines[1].get_ydata().tolist() == scores.reliability().observed.tolist()
    assert f"ECE {scores.calibration_error():.3f}" in labels(ax)[0]
    ax.clear()
    curve = scores.cost_curve(3.0, 1.0)
    plots.cost_line(ax, curve)
    assert ax.lines[1].get_xdata()[0] == curve.best_threshold


def test_break_even_plots_show_the_formula(ax: Any) -> None:
    plots.break_even_lines(ax, 50.0, [20_000], fixed_tokens=500)
    x, y = ax.lines[0].get_data()
    at = 40
    assert y[at] == pytest.approx(BreakEven(20_000, float(x[at]), 50.0, 500).exact)
    ax.clear()
    plots.break_even_map(ax)
    assert "50,000 tokens" in ax.get_title()
