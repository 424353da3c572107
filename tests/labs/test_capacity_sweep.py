"""The progress bar of a sweep, and its button."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from codesmith_lab.capacity import CapacityConfig, SweepCancelled, draw_labels, sweep, synthetic
from codesmith_lab.errors import LabError
from codesmith_lab.labs.capacity_sweep import CapacitySweep

TABLE = draw_labels(synthetic("burst", 40), CapacityConfig())
GRID = {"low_risk_max": np.linspace(0, 0.6, 40), "bias": np.linspace(-2, 2, 30)}


def test_a_sweep_in_the_background_gives_what_a_plain_one_gives() -> None:
    run = CapacitySweep(TABLE, GRID)
    found = run.result()
    assert run.done
    assert np.array_equal(found.money_usd, sweep(TABLE, GRID).money_usd)
    assert (run._bar.value, run._bar.max, run._bar.bar_style) == (1200, 1200, "success")
    assert run._told.value == "done: 1,200 configurations"
    assert run._button.disabled


def test_the_button_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first piece waits until the button is pressed, so that the end is no race."""
    pressed = threading.Event()
    tell = CapacitySweep._progress

    def wait(self: CapacitySweep, done: int, total: int) -> None:
        assert pressed.wait(60)
        tell(self, done, total)

    monkeypatch.setattr(CapacitySweep, "_progress", wait)
    run = CapacitySweep(TABLE, GRID)
    run._button.click()
    pressed.set()
    with pytest.raises(SweepCancelled) as caught:
        run.result()
    assert caught.value.done < caught.value.total == 1200
    assert run._told.value.startswith("stopped after ")
    assert run._bar.bar_style == "warning"


def test_an_interrupt_ends_the_sweep_too(monkeypatch: pytest.MonkeyPatch) -> None:
    run = CapacitySweep(TABLE, GRID)
    joins: list[Any] = []
    join = run._thread.join

    def interrupted() -> None:
        joins.append(1)
        if len(joins) == 1:
            raise KeyboardInterrupt
        join()

    monkeypatch.setattr(run._thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.result()
    assert run.done
    assert run._stop.is_set()


def test_what_is_wrong_is_told_where_the_result_is_asked_for() -> None:
    run = CapacitySweep(TABLE, {"low_risk": [0.5]})
    with pytest.raises(LabError, match="'low_risk' is no capacity setting"):
        run.result()
    assert run._bar.bar_style == "danger"
    assert "'low_risk' is no capacity setting" in run._told.value
