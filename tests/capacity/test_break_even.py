"""The break-even formula: by hand, against plain adding up, and at its edges."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from codesmith_lab.capacity.break_even import BreakEven, break_even_requests, break_even_table
from codesmith_lab.errors import LabError


def test_worked_by_hand() -> None:
    """100,000 tokens of history, a fifth remains, a hit costs $0.02 and a miss $1.00 a million.

    Each request without: 100,000 hits, $0.002. With: the first pays 20,000 misses, $0.020, each
    later one 20,000 hits, $0.0004. After 12 requests $0.0240 against $0.0244, after 13 $0.0260
    against $0.0248. By the formula: (50 - 1) 20,000 / 80,000 = 12.25, so 13.
    """
    hit, miss = Decimal("0.02") / 1_000_000, Decimal("1.00") / 1_000_000
    without = [100_000 * hit * n for n in (12, 13)]
    with_it = [20_000 * miss + 20_000 * hit * (n - 1) for n in (12, 13)]
    assert without == [Decimal("0.0240"), Decimal("0.0260")]
    assert with_it == [Decimal("0.0244"), Decimal("0.0248")]
    found = BreakEven(100_000, 0.2, 50)
    assert (found.exact, found.requests) == (12.25, 13)
    assert found.sentence(30) == (
        "At these prices, compacting at turn 30 pays back after 13 turns."
    )


def test_the_words_of_the_docstring() -> None:
    assert break_even_requests(80_000, 0.1, 50) == 6
    assert break_even_requests(80_000, 0.1, 1) == 1
    # Read as new by the model that writes the summary: about rho / (1 - r) more.
    fresh = BreakEven(80_000, 0.1, 50, summary_cost=50 * 80_000)
    assert fresh.exact - BreakEven(80_000, 0.1, 50).exact == pytest.approx(50 / 0.9)


def test_never() -> None:
    assert break_even_requests(1000, 1.0, 10) is None
    assert break_even_requests(1000, 0.5, 10, fixed_tokens=500) is None
    assert BreakEven(1000, 1.0, 10).sentence(3) == (
        "At these prices, compacting at turn 3 never pays back."
    )
    assert "after 1 turn." in BreakEven(1000, 0.0, 10).sentence(3)


@given(
    st.floats(1, 1e7),
    st.floats(0, 1),
    st.floats(1, 100),
    st.floats(0, 2000),
    st.floats(0, 1e8),
)
def test_it_is_where_the_two_sums_cross(
    history: float, ratio: float, rho: float, fixed: float, summary: float
) -> None:
    found = BreakEven(history, ratio, rho, fixed, summary)
    if found.requests is None:
        assert found.cost_difference(1000) >= 0
        return
    assume(found.requests < 1e9)
    slack = 1e-6 * (history + found.after_tokens + summary)
    assert found.cost_difference(found.requests) <= slack
    if found.requests > 1:
        assert found.cost_difference(found.requests - 1) >= -slack


@given(st.floats(1, 1e6), st.floats(0, 0.99), st.floats(1, 60))
def test_more_compression_and_dearer_hits_never_hurt(
    history: float, ratio: float, rho: float
) -> None:
    assert BreakEven(history, ratio * 0.5, rho).exact <= BreakEven(history, ratio, rho).exact
    assert (
        BreakEven(history, ratio, 1 + (rho - 1) / 2).exact <= BreakEven(history, ratio, rho).exact
    )


def test_arrays_give_the_same() -> None:
    histories, ratios, rhos = [1e3, 5e4], [0.0, 0.1, 0.9, 1.0], [1.0, 10.0, 50.0]
    table = break_even_table(
        np.array(histories)[:, None, None], np.array(ratios)[:, None], np.array(rhos), 200.0, 7.0
    )
    for i, history in enumerate(histories):
        for j, ratio in enumerate(ratios):
            for k, rho in enumerate(rhos):
                assert table[i, j, k] == BreakEven(history, ratio, rho, 200.0, 7.0).exact


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((0, 0.5, 10), "history_tokens is 0, but it must be more than 0"),
        ((math.nan, 0.5, 10), "history_tokens is nan"),
        ((10, 1.5, 10), "ratio is 1.5, but it must be 0 to 1"),
        ((10, -0.1, 10), "ratio is -0.1"),
        ((10, 0.5, 0.5), "miss_to_hit is 0.5, but it must be 1 or more"),
        ((10, 0.5, math.inf), "miss_to_hit is inf"),
        ((10, 0.5, 10, -1), "fixed_tokens is -1"),
        ((10, 0.5, 10, 0, -1), "summary_cost is -1"),
    ],
)
def test_numbers_out_of_their_range_are_refused(values: tuple[float, ...], says: str) -> None:
    with pytest.raises(LabError, match=says):
        BreakEven(*values)
