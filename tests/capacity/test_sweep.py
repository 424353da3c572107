"""Sweeps against the clear form, on one process, on several, and on a cluster."""

from __future__ import annotations

import random
import sys
import threading
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesmith_lab.capacity import CapacityConfig
from codesmith_lab.capacity.arrays import observe_all
from codesmith_lab.capacity.observations import ObservationTable, join_tables
from codesmith_lab.capacity.shapes import SHAPES, draw_labels, drawn, synthetic
from codesmith_lab.capacity.simulation import Step, decide_all, simulate
from codesmith_lab.capacity.sweep import sweep
from codesmith_lab.capacity.sweep_result import SweepCancelled, SweepCosts
from codesmith_lab.errors import LabError

NAMES = ("refreshes", "replays", "replans", "missed_failures", "false_alarms", "money_usd")
BUSY = CapacityConfig(enabled=True, model_priors={"deepseek_v4_pro": 4.5})


def busy_table(seed: int = 0, labels: bool = True) -> ObservationTable:
    """Sessions of different length and shape, some of whose replays fail."""
    parts = [synthetic(shape, 20 + 7 * i, seed=seed) for i, shape in enumerate(SHAPES)]
    table = join_tables([draw_labels(part, BUSY, seed) for part in parts])
    source = random.Random(seed)
    table = ObservationTable(
        *(getattr(table, name) for name in ObservationTable.__dataclass_fields__)
    )
    table.replay_fails[:] = [source.random() < 0.3 for _ in range(len(table))]
    return table if labels else table.with_labels(None)


def tally(
    steps: list[Step], table: ObservationTable, costs: SweepCosts, answer_turns: int
) -> dict[str, float]:
    """The sums of a sweep's cell, in plain words."""
    prices = costs.rows(len(table))
    rank = {
        "targeted_context_refresh": 0,
        "verify_with_tool_replay": 1,
        "verify_and_replan": 2,
    }
    found = dict.fromkeys(NAMES, 0.0)
    for row, step in enumerate(steps):
        if step.done in rank:
            found[NAMES[rank[step.done]]] += 1
            found["money_usd"] += prices[rank[step.done], row]
            found["false_alarms"] += not any(
                other_step.session == step.session
                and 0 <= turns_later <= answer_turns
                and other >= row
                and table.failed[other]
                for other, other_step in enumerate(steps)
                for turns_later in [other_step.observation.turn_index - step.observation.turn_index]
            )
        if table.failed[row]:
            answered = any(
                other.session == step.session
                and other.done != "no_intervention"
                and other.observation.turn_index >= step.observation.turn_index - answer_turns
                for other in steps[: row + 1]
            )
            found["missed_failures"] += not answered
    found["money_usd"] += costs.missed_failure_usd * found["missed_failures"]
    return found


GRIDS: list[dict[str, list[float]]] = [
    {"low_risk_max": [0.1, 0.5, 0.9], "medium_risk_max": [0.3, 0.62, 0.95]},
    {"bias": [-2, -0.12, 3], "severe_min_slack": [-2, 0], "profile_window": [0, 1, 2, 8]},
    {"refresh_cooldown_turns": [0, 3], "replan_cooldown_turns": [0, 2, 9], "prior.x": [1, 2]},
    {"max_replay_per_turn": [0, 1, 2], "min_turns_before_guardrail": [0, 4, 30]},
    {"prior.deepseek_v4_pro": [2.0, 5.0], "action_weight": [0, 0.35], "low_risk_max": [0.2]},
]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: " ".join(grid))
def test_every_cell_equals_the_clear_form(grid: dict[str, list[float]]) -> None:
    table = busy_table()
    prices = np.linspace(-0.5, 1.0, len(table))
    costs = SweepCosts(prices, 0.25, prices * 2, missed_failure_usd=3.0)
    result = sweep(table, grid, BUSY, costs, answer_turns=2)
    acted = 0.0
    for at in np.ndindex(result.money_usd.shape):
        config = result.config(*at)
        for name, values in zip(grid, at, strict=True):
            key = name.removeprefix("prior.")
            got = config.model_priors[key] if key != name else getattr(config, name)
            assert got == grid[name][values]
        expected = tally(simulate(config, table), table, costs, 2)
        seen = {name: float(getattr(result, name)[at]) for name in NAMES}
        assert seen == pytest.approx(expected, abs=1e-9), (at, config)
        acted += sum(expected[name] for name in NAMES[:3])
    assert acted > 0
    assert result.steps == result.money_usd.size * len(table)


@settings(max_examples=60)
@given(st.data())
def test_random_cells_equal_the_clear_form(data: st.DataObject) -> None:
    loads = st.lists(st.floats(0, 1), min_size=1, max_size=25)
    parts = data.draw(st.lists(loads, min_size=1, max_size=3))
    table = join_tables([drawn(part, session="s") for part in parts])
    table = table.with_labels([data.draw(st.booleans()) for _ in range(len(table))])
    turns = [2 * turn if data.draw(st.booleans()) else turn for turn in table.turn_index.tolist()]
    for start, end in zip(table.starts, table.ends, strict=True):
        turns[start:end] = sorted(turns[start:end])
    table.turn_index[:] = turns
    table.replay_fails[:] = [data.draw(st.booleans()) for _ in range(len(table))]
    grid = {
        "low_risk_max": [data.draw(st.floats(0, 1)), 0.5],
        "severe_min_slack": [data.draw(st.floats(-2, 2))],
        "refresh_cooldown_turns": [data.draw(st.integers(0, 5))],
        "replan_cooldown_turns": [data.draw(st.integers(0, 5))],
        "max_replay_per_turn": [data.draw(st.integers(0, 2))],
        "min_turns_before_guardrail": [data.draw(st.integers(0, 5))],
    }
    result = sweep(table, grid, BUSY, answer_turns=data.draw(st.integers(0, 3)))
    for at in np.ndindex(result.money_usd.shape):
        config = result.config(*at)
        edges = (config.low_risk_max, config.medium_risk_max)
        p_fail = observe_all(config, table).p_fail
        if min(np.abs(p_fail - edge).min() for edge in edges) < 1e-12:
            continue
        expected = tally(simulate(config, table), table, SweepCosts(), result.answer_turns)
        seen = {name: float(getattr(result, name)[at]) for name in NAMES}
        assert seen == expected


def equal(one: Any, other: Any) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in NAMES)


WIDE = {"low_risk_max": np.linspace(0, 0.6, 40), "bias": np.linspace(-2, 2, 30)}


def test_two_processes_give_the_same(tmp_path: Path) -> None:
    table = busy_table()
    told: list[tuple[int, int]] = []
    with joblib.parallel_config(temp_folder=str(tmp_path)):
        both = sweep(table, WIDE, BUSY, n_jobs=2, progress=lambda *seen: told.append(seen))
    assert equal(sweep(table, WIDE, BUSY), both)
    assert told[-1] == (1200, 1200)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same(tmp_path: Path) -> None:
    """The call is the same; only what stands around it differs."""
    distributed = pytest.importorskip("distributed")
    table = busy_table()
    told: list[tuple[int, int]] = []
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        far = sweep(table, WIDE, BUSY, progress=lambda *seen: told.append(seen))
        cancel = threading.Event()

        def stop(done: int, total: int) -> None:
            cancel.set()

        with pytest.raises(SweepCancelled):
            sweep(table, WIDE, BUSY, progress=stop, cancel=cancel)
    assert equal(sweep(table, WIDE, BUSY), far)
    assert told[-1] == (1200, 1200)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_cancelled_sweep_stops_and_says_where(n_jobs: int | None) -> None:
    cancel = threading.Event()
    told: list[int] = []

    def stop(done: int, total: int) -> None:
        told.append(done)
        cancel.set()

    with pytest.raises(SweepCancelled) as caught:
        sweep(busy_table(), WIDE, BUSY, progress=stop, cancel=cancel, n_jobs=n_jobs)
    assert told == [caught.value.done]
    assert 0 < caught.value.done < caught.value.total == 1200
    assert equal(sweep(busy_table(), WIDE, BUSY, n_jobs=n_jobs), sweep(busy_table(), WIDE, BUSY))
    with pytest.raises(SweepCancelled, match="stopped after 0 of 1,200 configurations"):
        sweep(busy_table(), WIDE, BUSY, cancel=cancel, n_jobs=n_jobs)
    cancel.clear()

    def late(done: int, total: int) -> None:
        if done == total:
            cancel.set()

    whole = sweep(busy_table(), WIDE, BUSY, progress=late, cancel=cancel, n_jobs=n_jobs)
    assert equal(whole, sweep(busy_table(), WIDE, BUSY))


def test_without_joblib_one_process_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = sweep(busy_table(), WIDE, BUSY)
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert equal(sweep(busy_table(), WIDE, BUSY), expected)
    with pytest.raises(
        LabError, match=r'needs joblib; run: pip install "codesmith-lab\[capacity\]"'
    ):
        sweep(busy_table(), WIDE, BUSY, n_jobs=2)


def test_without_labels_nothing_is_judged() -> None:
    result = sweep(busy_table(labels=False), {"low_risk_max": [0.1, 0.5]}, BUSY)
    assert result.missed_failures is None
    assert result.false_alarms is None
    assert set(result.table()) == {
        *("low_risk_max", "refreshes", "replays", "replans"),
        "money_usd",
    }


def test_the_table_has_one_row_a_combination_and_the_cheapest_is_found() -> None:
    costs = SweepCosts(1.0, 1.0, 1.0, missed_failure_usd=0.01)
    result = sweep(busy_table(), WIDE, BUSY, costs)
    table = result.table()
    assert {len(column) for column in table.values()} == {1200}
    best = int(table["money_usd"].argmin())
    index, config = result.cheapest()
    assert config.low_risk_max == table["low_risk_max"][best]
    assert config.bias == table["bias"][best]
    assert result.money_usd[index] == result.money_usd.min()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"parameters": {}}, "there is no parameter to sweep"),
        ({"parameters": {"low_risk": [0.5]}}, "'low_risk' is no capacity setting"),
        ({"parameters": {"low_risk_max": []}}, "low_risk_max has no values to try"),
        ({"parameters": {"low_risk_max": [0.5, 1.5]}}, "low_risk_max is 1.5, but it must be from"),
        ({"parameters": {"bias": [float("nan")]}}, "bias is nan"),
        ({"parameters": {"enabled": [0]}}, "enabled is no number"),
        (
            {
                "parameters": {
                    n: range(9_000) for n in ("max_replay_per_turn", "replan_cooldown_turns")
                }
            },
            "has 81,000,000 combinations, and at most 50,000,000",
        ),
        ({"answer_turns": -1}, "answer_turns is -1"),
        ({"costs": SweepCosts(refresh_usd=float("nan"))}, "refresh_usd holds a value"),
        ({"costs": SweepCosts(replay_usd=np.zeros(3))}, r"replay_usd has the shape \(3,\)"),
        ({"costs": SweepCosts(missed_failure_usd=float("inf"))}, "missed_failure_usd is inf"),
    ],
)
def test_a_sweep_that_cannot_be_meant_is_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(LabError, match=says):
        sweep(busy_table(), **({"parameters": {"low_risk_max": [0.5]}} | values))


def test_shapes_are_what_they_are_called() -> None:
    ends = {}
    for shape in SHAPES:
        table = synthetic(shape, 60)
        assert list(table.rows()) == list(synthetic(shape, 60).rows())
        assert list(table.rows()) != list(synthetic(shape, 60, seed=1).rows())
        p_fail = observe_all(CapacityConfig(), table).p_fail
        third = len(p_fail) // 3
        ends[shape] = [float(np.mean(part)) for part in np.split(p_fail, [third, 2 * third])]
    assert max(ends["calm"]) < 0.1
    assert ends["slow burn"][0] < ends["slow burn"][1] < ends["slow burn"][2]
    assert ends["slow burn"][2] > 0.9
    assert ends["burst"][1] > max(ends["burst"][0], ends["burst"][2])
    recovery = observe_all(CapacityConfig(), synthetic("recovery", 60)).p_fail
    assert recovery[60] > 0.9
    assert recovery[-1] < 0.5
    flips = np.diff(observe_all(CapacityConfig(), synthetic("thrash", 60)).slack > 0) != 0
    assert flips.sum() >= 8
    for bad in ("bust", ""):
        with pytest.raises(LabError, match="choose one of calm"):
            synthetic(bad)
    for turns in (0, -1, 1.5, 10**9):
        with pytest.raises(LabError, match="turns is"):
            synthetic("calm", turns)  # type: ignore[arg-type]
    for loads in ([], [0.5, float("nan")]):
        with pytest.raises(LabError):
            drawn(loads)


def test_a_step_says_what_was_wanted_and_what_stood_in_the_way() -> None:
    words = {step.why() for shape in SHAPES for step in simulate(BUSY, synthetic(shape, 40))}
    assert "Wanted and did nothing: the risk is low (low_risk_no_intervention)." in words
    assert any("Wanted a replan and did it" in word for word in words)
    assert any("the last replan was too few turns ago" in word for word in words)
    assert any("only carried out after a tool" in word for word in words)


@pytest.mark.parametrize("low", [0.05, 0.3, 0.5])
def test_the_quick_decisions_are_the_clear_ones(low: float) -> None:
    table = busy_table()
    for enabled in (True, False):
        config = BUSY.with_values(low_risk_max=low, max_replay_per_turn=2, enabled=enabled)
        steps = simulate(config, table)
        quick = decide_all(config, table, observe_all(config, table))
        assert quick == [(step.decision, step.done) for step in steps]
        assert enabled == any(done != "no_intervention" for _, done in quick)
