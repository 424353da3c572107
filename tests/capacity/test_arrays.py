"""The array form against the scalar one, and observation tables against bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.capacity import CapacityConfig, CapacityController, CapacityObservation
from codesmith_lab.capacity.arrays import observe_all
from codesmith_lab.capacity.observations import ObservationTable, join_tables
from codesmith_lab.errors import LabError

CLOSE = 1e-12
BANDS = ("low", "medium", "high")
MODELS = ("deepseek-v4-pro", "deepseek-v4-flash", "deepseek-chat", "deepseek-r1", "who knows")

ratios = st.one_of(st.floats(-1, 3), st.sampled_from([0.0, 2.0, math.nan, math.inf, -math.inf]))
rows = st.tuples(
    st.sampled_from(MODELS),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    ratios,
)


@st.composite
def tables(draw: st.DrawFn) -> ObservationTable:
    sessions = draw(st.lists(st.lists(rows, min_size=1, max_size=25), min_size=1, max_size=4))
    flat = [(f"s{i}", turn, *row) for i, s in enumerate(sessions) for turn, row in enumerate(s)]
    session, turn, model, actions, tools, references, ratio = zip(*flat, strict=True)
    return ObservationTable.from_columns(
        session=session,
        turn_index=turn,
        model=model,
        action_count_this_turn=actions,
        tool_calls_recent_window=tools,
        unique_reference_ids_recent_window=references,
        context_used_ratio=ratio,
    )


def near(ours: float, theirs: float) -> bool:
    return (math.isnan(ours) and math.isnan(theirs)) or ours == theirs or abs(ours - theirs) < CLOSE


@given(
    tables(),
    st.integers(0, 20),
    st.floats(-3, 3),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(-3, 3),
)
def test_arrays_equal_the_scalar_form(
    table: ObservationTable, window: int, final: float, low: float, medium: float, severe: float
) -> None:
    config = CapacityConfig(
        enabled=True,
        profile_window=window,
        final_slack_coefficient=final,
        low_risk_max=low,
        medium_risk_max=medium,
        severe_min_slack=severe,
    )
    arrays = observe_all(config, table)
    row = 0
    for start, end in zip(table.starts, table.ends, strict=True):
        controller = CapacityController(config)
        for row in range(start, end):
            snapshot = controller.observe(table.observation(row))
            assert snapshot is not None
            assert near(float(arrays.h_hat[row]), snapshot.h_hat)
            assert arrays.c_hat[row] == snapshot.c_hat
            for name in ("final_slack", "min_slack", "slack_volatility", "slack_drop"):
                ours = float(getattr(arrays.profile, name)[row])
                assert near(ours, getattr(snapshot.profile, name)), name
            assert near(float(arrays.p_fail[row]), snapshot.p_fail)
            if min(abs(snapshot.p_fail - low), abs(snapshot.p_fail - medium)) > CLOSE:
                assert BANDS[arrays.band[row]] == snapshot.risk_band
            edge = min((abs(s) for s in controller.slack_window if not math.isnan(s)), default=1)
            if edge > CLOSE and not abs(snapshot.profile.min_slack - severe) < CLOSE:
                assert arrays.profile.violation_ratio[row] == snapshot.profile.violation_ratio
                assert arrays.severe[row] == snapshot.severe
    assert row == len(table) - 1


def test_blocks_do_not_show() -> None:
    """More rows than are computed at a time, with a session border in the middle of a block."""
    n = 10_000
    source = np.random.default_rng(7)
    table = ObservationTable.from_columns(
        session=["a"] * 4_999 + ["b"] * (n - 4_999),
        turn_index=[*range(4_999), *range(n - 4_999)],
        model=["deepseek-v4-pro"] * n,
        action_count_this_turn=source.integers(0, 50, n),
        tool_calls_recent_window=source.integers(0, 50, n),
        unique_reference_ids_recent_window=source.integers(0, 50, n),
        context_used_ratio=source.random(n),
    )
    config = CapacityConfig(enabled=True)
    whole = observe_all(config, table)
    apart = [observe_all(config, table.take_sessions([s])) for s in (0, 1)]
    assert np.array_equal(whole.p_fail, np.concatenate([part.p_fail for part in apart]))
    scalar = CapacityController(config)
    for row in range(4_999):
        snapshot = scalar.observe(table.observation(row))
    assert snapshot is not None
    assert near(float(whole.p_fail[4_998]), snapshot.p_fail)


def columns(**changed: object) -> dict[str, object]:
    plain: dict[str, object] = {
        "session": ["a", "a", "b"],
        "turn_index": [0, 1, 0],
        "model": ["m"] * 3,
        "action_count_this_turn": [1, 2, 3],
        "tool_calls_recent_window": [1, 2, 3],
        "unique_reference_ids_recent_window": [1, 2, 3],
        "context_used_ratio": [0.1, 0.2, 0.3],
    }
    return plain | changed


def test_sessions_are_gathered_in_their_order() -> None:
    table = ObservationTable.from_columns(
        **columns(session=["b", "a", "b"], turn_index=[3, 0, 3], failed=[1, 0, 0])
    )
    assert table.sessions == ("b", "a")
    assert table.turn_index.tolist() == [3, 3, 0]
    assert table.actions.tolist() == [1, 3, 2]
    assert table.failed is not None
    assert table.failed.tolist() == [True, False, False]
    assert table.session_of.tolist() == [0, 0, 1]
    assert table.observation(1) == CapacityObservation(3, "m", 3, 3, 3, 0.3)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"turn_index": [1, 0, 0]}, "turn_index in row 1 is 0, but the row before .* 'a' has 1"),
        ({"turn_index": [0, 1]}, "turn_index has 2 rows, but session has 3"),
        ({"action_count_this_turn": [1, -2, 3]}, "action_count_this_turn in row 1 is -2"),
        ({"tool_calls_recent_window": [1, 2.5, 3]}, "tool_calls_recent_window in row 1 is 2.5"),
        ({"tool_calls_recent_window": [1, math.nan, 3]}, "in row 1 is nan, but it counts"),
        ({"tool_calls_recent_window": [1, math.inf, 3]}, "in row 1 is inf, but it counts"),
        ({"unique_reference_ids_recent_window": ["1", "2", "3"]}, "but it counts; convert"),
        ({"context_used_ratio": ["x", "y", "z"]}, "but it is a number; convert it"),
        ({"phase": ["pre_turn", "later", "pre_turn"]}, "phase in row 1 is 'later'; write one of"),
        ({"failed": [0, 2, 1]}, "failed in row 1 is .*2.*, but a label is 0 or 1"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused(changed: dict[str, object], says: str) -> None:
    with pytest.raises(LabError, match=says):
        ObservationTable.from_columns(**columns(**changed))  # type: ignore[arg-type]


def test_nothing_is_refused_and_one_is_enough() -> None:
    with pytest.raises(LabError, match="there is no observation"):
        ObservationTable.from_rows([])
    one = ObservationTable.from_rows([CapacityObservation(3, "m", 1, 1, 1, 0.5)])
    arrays = observe_all(CapacityConfig(), one)
    assert arrays.profile.slack_volatility.tolist() == [0.0]
    with pytest.raises(LabError, match="there is no table to join"):
        join_tables([])
    with pytest.raises(LabError, match="label all of them or none"):
        join_tables([one, one.with_labels([True])])


def test_joined_tables_keep_their_rows() -> None:
    first = ObservationTable.from_columns(**columns())
    second = ObservationTable.from_columns(**columns(model=["m", "n", "m"]))
    both = join_tables([first, second])
    assert both.sessions == ("a", "b", "a (2)", "b (2)")
    assert list(both.rows()) == [*first.rows(), *second.rows()]
    assert both.take_sessions([3, 0]).sessions == ("b (2)", "a")
