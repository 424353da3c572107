"""Labelled data in, fits, scores, thresholds and searches out."""

from __future__ import annotations

import io
import random
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from codesmith_lab.capacity import CapacityConfig, config_from_toml, config_to_toml
from codesmith_lab.capacity.arrays import observe_all
from codesmith_lab.capacity.calibration import calibrate
from codesmith_lab.capacity.config import COEFFICIENTS
from codesmith_lab.capacity.labelled import COLUMNS, labelled_frame, read_labelled
from codesmith_lab.capacity.observations import ObservationTable, join_tables
from codesmith_lab.capacity.scores import Scores
from codesmith_lab.capacity.search import search_thresholds
from codesmith_lab.capacity.shapes import draw_labels, drawn, synthetic
from codesmith_lab.capacity.simulation import simulate
from codesmith_lab.capacity.sweep import sweep
from codesmith_lab.capacity.sweep_result import SweepCosts
from codesmith_lab.errors import InputError, LabError

TRUTH = CapacityConfig(
    final_slack_coefficient=-1.2,
    min_slack_coefficient=-0.5,
    violation_ratio_coefficient=2.0,
    slack_volatility_coefficient=0.4,
    slack_drop_coefficient=0.9,
    bias=-0.6,
)


def world(seed: int, sessions: int = 40, turns: int = 40) -> ObservationTable:
    """Wandering loads, and failures drawn from a configuration that is not the default."""
    source = random.Random(seed)
    parts = []
    for number in range(sessions):
        load, loads = source.random() / 2, []
        for _ in range(turns):
            load += source.gauss(0, 0.08) if source.random() < 0.9 else source.random() - 0.5
            load = min(1.0, max(0.0, load))
            loads.append(load)
        parts.append(drawn(loads, session=f"s{number}"))
    return draw_labels(join_tables(parts), TRUTH, seed)


@pytest.fixture(scope="module")
def table() -> ObservationTable:
    return world(1)


def test_a_fit_recovers_what_the_labels_were_drawn_from() -> None:
    """Over 12 worlds the 95 % intervals hold the truth about as often as they promise."""
    inside = 0
    for seed in range(12):
        fit = calibrate(world(seed, 30, 30), folds=2)
        for name in COEFFICIENTS:
            low, high = fit.interval(name)
            inside += low <= getattr(TRUTH, name) <= high
    assert inside >= 0.88 * 12 * len(COEFFICIENTS)


def test_the_intervals_are_of_use(table: ObservationTable) -> None:
    """Narrow enough to tell the truth from the default where these lie apart."""
    fit = calibrate(table)
    low, high = fit.interval("final_slack_coefficient")
    assert low <= -1.2 <= high < -0.8
    assert high - low < 1.0
    assert fit.after.log_loss < fit.before.log_loss
    assert fit.after.brier < fit.before.brier
    assert fit.after.calibration_error() < fit.before.calibration_error()
    assert 0.5 < fit.after.roc_area < 1.0
    assert fit.after.average_precision > np.mean(fit.after.failed)


def test_the_fit_is_the_maximum_and_its_errors_are_those_of_its_curvature(
    table: ObservationTable,
) -> None:
    """Slope and curvature of the log likelihood, the latter taken numerically."""
    fit = calibrate(table)
    x = np.column_stack([*observe_all(fit.base, table).profile.columns(), np.ones(len(table))])
    best = np.array([fit.coefficients[name] for name in COEFFICIENTS])

    def slope(weights: np.ndarray) -> np.ndarray:
        p = 1 / (1 + np.exp(-x @ weights))
        return np.asarray(x.T @ (np.asarray(table.failed) - p))

    assert np.abs(slope(best)).max() < 1e-2
    steps = 1e-5 * np.eye(6)
    curvature = np.array([(slope(best - s) - slope(best + s)) / 2e-5 for s in steps])
    smooth = np.sqrt(np.diag(np.linalg.inv(curvature)))
    errors = np.array([fit.standard_errors[name] for name in COEFFICIENTS])
    assert np.all(errors >= smooth * 0.999)
    assert np.all(errors < smooth * 1.6)  # labels are drawn row by row: clusters add little


def test_a_feature_that_never_varies_gets_no_weight(table: ObservationTable) -> None:
    fit = calibrate(table, CapacityConfig(profile_window=1))
    assert fit.coefficients["slack_drop_coefficient"] == 0.0
    assert fit.standard_errors["slack_drop_coefficient"] == np.inf
    assert any("never varies" in note for note in fit.notes)
    assert any("rise and fall together" in note for note in fit.notes)


def test_no_session_is_on_both_sides(
    table: ObservationTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn import model_selection

    splits = []

    class Spy(model_selection.GroupKFold):  # type: ignore[misc]
        def split(self, features: object, labels: object, groups: np.ndarray) -> object:
            for seen, unseen in super().split(features, labels, groups):
                splits.append((set(groups[seen]), set(groups[unseen])))
                yield seen, unseen

    monkeypatch.setattr(model_selection, "GroupKFold", Spy)
    calibrate(table, folds=4)
    assert len(splits) == 4
    assert all(seen.isdisjoint(unseen) for seen, unseen in splits)
    assert set.union(*(unseen for _, unseen in splits)) == set(range(len(table.sessions)))


def test_scores_by_hand() -> None:
    scores = Scores("x", np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    assert scores.roc_area == pytest.approx(0.75)
    assert scores.average_precision == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert scores.brier == pytest.approx((0.01 + 0.16 + 0.4225 + 0.04) / 4)
    # Bins of 0.5: (0.1, 0.4, 0.35) says 0.2833 and 1/3 came; (0.8) says 0.8 and 1 came.
    assert scores.calibration_error(2) == pytest.approx((3 * (1 / 3 - 0.85 / 3) + 0.2) / 4)
    assert scores.reliability(2).counts.tolist() == [3, 1]
    edge = Scores("x", np.array([0.0, 1.0]), np.array([False, True]))
    assert edge.calibration_error() == 0.0
    assert edge.log_loss < 1e-9


def test_the_threshold_of_least_cost_by_hand() -> None:
    """Misses cost 4, false alarms 1: better to bear one false alarm than one miss."""
    scores = Scores("x", np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    curve = scores.cost_curve(4.0, 1.0)
    assert curve.thresholds.tolist() == pytest.approx([0.0, 0.225, 0.375, 0.6, 0.8])
    assert curve.expected_usd.tolist() == pytest.approx([0.5, 0.25, 1.25, 1.0, 2.0])
    assert curve.best_threshold == pytest.approx(0.225)
    assert scores.cost_curve(1.0, 4.0).best_threshold == pytest.approx(0.6)
    for missed, false_alarm in ((0, 0), (-1, 1), (float("nan"), 1), (1, float("inf"))):
        with pytest.raises(LabError):
            scores.cost_curve(missed, false_alarm)


def test_every_threshold_costs_what_counting_says(table: ObservationTable) -> None:
    scores = calibrate(table).after
    curve = scores.cost_curve(7.0, 2.0)
    for at in range(0, len(curve.thresholds), 97):
        alarm = scores.p_fail > curve.thresholds[at]
        missed = (scores.failed & ~alarm).sum()
        false_alarms = (~scores.failed & alarm).sum()
        assert (curve.missed[at], curve.false_alarms[at]) == (missed, false_alarms)
        money = (7.0 * missed + 2.0 * false_alarms) / len(scores.failed)
        assert curve.expected_usd[at] == pytest.approx(money)


def test_the_fit_goes_to_toml_and_back(table: ObservationTable) -> None:
    fit = calibrate(table)
    config = fit.config(missed_usd=5.0, false_alarm_usd=1.0)
    assert config_from_toml(config_to_toml(config)) == config
    assert config.bias == fit.coefficients["bias"]
    assert config.low_risk_max == fit.after.cost_curve(5.0, 1.0).best_threshold
    assert config.low_risk_max <= config.medium_risk_max
    dear = fit.config(missed_usd=1.0, false_alarm_usd=500.0)
    assert dear.medium_risk_max == dear.low_risk_max > 0.62
    assert fit.config().low_risk_max == 0.5
    with pytest.raises(LabError, match="give both"):
        fit.config(missed_usd=1.0)


def test_bad_labels_and_tables_are_refused(table: ObservationTable) -> None:
    n = len(table)
    for labels, says in (
        (None, "have no labels"),
        ([False] * n, "all 3200 labels are 0"),
        ([True] * n, "all 3200 labels are 1"),
        ([True] * 9 + [False] * (n - 9), "there are 9 failures and 3191 others"),
    ):
        with pytest.raises(LabError, match=says):
            calibrate(table.with_labels(labels))
    ten = synthetic("slow burn", 5)
    with pytest.raises(LabError, match="5 failures and 5 others in 10 rows, and a fit needs 10"):
        calibrate(ten.with_labels([0, 1] * 5))
    one = synthetic("slow burn", 40)
    with pytest.raises(LabError, match="there is one session only"):
        calibrate(one.with_labels([0, 1] * 40))
    apart = join_tables([one.with_labels([1] * 80), one.with_labels([0] * 80)])
    with pytest.raises(LabError, match="all failures .* lie in one part"):
        calibrate(apart)
    sure = table.with_labels(observe_all(TRUTH, table).profile.final_slack < 0)
    with pytest.raises(LabError, match="separated perfectly"):
        calibrate(sure)
    assert calibrate(sure, ridge=1.0).after.roc_area > 0.99
    broken = world(1)
    broken.context_used_ratio[7] = np.nan
    with pytest.raises(LabError, match="the profile of row 7 is not finite"):
        calibrate(broken)
    for values in ({"folds": 1}, {"folds": 2.5}, {"ridge": -1}, {"ridge": float("nan")}):
        with pytest.raises(LabError):
            calibrate(table, **values)


def test_what_is_missing_is_named_with_its_remedy(
    table: ObservationTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(LabError, match=r'scikit-learn; run: pip install "codesmith-lab\[cap'):
        calibrate(table)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(LabError, match=r'Optuna; run: pip install "codesmith-lab\[search'):
        search_thresholds(table)


def same(one: ObservationTable, other: ObservationTable) -> bool:
    assert one.failed is not None
    assert other.failed is not None
    return (
        one.sessions == other.sessions
        and list(one.rows()) == list(other.rows())
        and [one.phase(row) for row in range(len(one))]
        == [other.phase(row) for row in range(len(other))]
        and np.array_equal(one.failed, other.failed)
        and np.array_equal(one.replay_fails, other.replay_fails)
    )


def test_files_and_frames_hold_the_same(table: ObservationTable, tmp_path: Path) -> None:
    frame = labelled_frame(table)
    assert same(read_labelled(frame), table)
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert same(read_labelled(tmp_path / "a.csv"), table)
    frame.to_parquet(tmp_path / "a.parquet")
    assert same(read_labelled(str(tmp_path / "a.parquet")), table)
    told = frame.assign(failed=frame["failed"].astype(bool), other="ignored")
    assert same(read_labelled(told[sorted(told.columns)]), table)


GOOD = """session,turn_index,model,action_count_this_turn,tool_calls_recent_window,\
unique_reference_ids_recent_window,context_used_ratio,failed
a,0,m,1,1,1,0.1,0
a,1,m,1,1,1,0.1,1
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (",failed", ",label", "the columns failed are missing; the columns needed are session"),
        ("a,1,m", "a,-1,m", "turn_index in row 1 is -1"),
        ("a,0,m", "a,5,m", "turn_index in row 1 is 1, but the row before it"),
        ("a,1,m,1", "a,1,m,many", "action_count_this_turn holds .* but it counts"),
        ("0.1,1", "0.1,maybe", "failed in row 0|failed in row 1"),
        ("0.1,1", "0.1,", "failed in row 1 is empty; fill it in"),
        ("0.1,0", "x,0", "context_used_ratio holds"),
        ("a,1,m", ",1,m", "session in row 1 is empty"),
        ("a,0", 'a,"0', "the file cannot be read"),
        (GOOD, "", "the file cannot be read"),
        (GOOD[GOOD.index("\n") + 1 :], "", "there is no observation"),
    ],
)
def test_bad_files_are_refused_with_their_name(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(InputError, match=says) as caught:
        read_labelled(path)
    assert str(caught.value).startswith("labels.csv: ")
    assert "\n" not in str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and then nothing")
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00 \x80")
    for name in ("a.parquet", "a.csv", "missing.csv", "a.xlsx", "http://example.org/a.csv"):
        with pytest.raises(InputError):
            read_labelled(tmp_path / name)
    frame = pd.read_csv(io.StringIO(GOOD))
    twice = pd.concat([frame, frame[["failed"]]], axis=1)
    with pytest.raises(InputError, match="the column failed is there twice"):
        read_labelled(twice)
    assert set(frame.columns) == set(COLUMNS)


COSTS = SweepCosts(1.0, 0.5, 2.0, missed_failure_usd=4.0)


def test_a_search_beats_the_default_and_says_so_on_unseen_sessions(table: ObservationTable) -> None:
    found = search_thresholds(table, costs=COSTS, trials=96)
    again = search_thresholds(table, costs=COSTS, trials=96)
    assert found == again
    assert len(found.trials) == 96
    assert found.searched_usd < found.base_searched_usd
    assert found.held_out_usd < found.base_held_out_usd
    assert set(found.searched) | set(found.held_out) == set(table.sessions)
    assert set(found.searched).isdisjoint(found.held_out)
    config = found.config
    assert config.low_risk_max <= config.medium_risk_max
    far = table.take_sessions([table.sessions.index(name) for name in found.held_out])
    cell = sweep(far, {"low_risk_max": [config.low_risk_max]}, config, COSTS)
    assert cell.money_usd[0] == pytest.approx(found.held_out_usd)
    prices = {
        "targeted_context_refresh": 1.0,
        "verify_with_tool_replay": 0.5,
        "verify_and_replan": 2.0,
        "no_intervention": 0.0,
    }
    paid = sum(prices[step.done] for step in simulate(config, far))
    assert cell.missed_failures is not None
    assert found.held_out_usd == pytest.approx(paid + 4.0 * cell.missed_failures[0])


def test_a_search_can_be_stopped_and_refuses_what_it_cannot_use(table: ObservationTable) -> None:
    cancel = threading.Event()
    cancel.set()
    assert len(search_thresholds(table, costs=COSTS, cancel=cancel).trials) == 1
    told: list[tuple[int, int]] = []
    search_thresholds(table, trials=40, progress=lambda *seen: told.append(seen))
    assert told == [(33, 40), (40, 40)]
    for values in (
        {"trials": 0},
        {"held_out_share": 1.0},
        {"costs": SweepCosts(refresh_usd=np.ones(len(table)))},
    ):
        with pytest.raises(LabError):
            search_thresholds(table, **values)
    with pytest.raises(LabError, match="have no labels"):
        search_thresholds(table.with_labels(None))
    with pytest.raises(LabError, match="one session only"):
        search_thresholds(table.take_sessions([0]))
