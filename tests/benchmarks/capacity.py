"""How fast the array form and the sweeps are: python tests/benchmarks/capacity.py

Prints ratios. The compiled reference takes 210 to 350 ns for an observation; a sweep is meant to
reach 60 million steps (observations times configurations) a minute on two cores.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable

import numpy as np

from codesmith_lab.capacity import CapacityConfig, CapacityController
from codesmith_lab.capacity.arrays import observe_all
from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.capacity.simulation import simulate
from codesmith_lab.capacity.sweep import sweep
from codesmith_lab.labs.capacity import CapacityLab

REFERENCE_NS = (210, 350)
WANTED_M_PER_MINUTE = 60
RUNS = 3


def table(sessions: int, rows: int) -> ObservationTable:
    source = np.random.default_rng(3)
    n = sessions * rows
    return ObservationTable.from_columns(
        session=[f"s{i // rows}" for i in range(n)],
        turn_index=np.tile(np.arange(rows) // 2, sessions),
        model=["deepseek-v4-pro"] * n,
        action_count_this_turn=source.integers(0, 30, n),
        tool_calls_recent_window=source.integers(0, 30, n),
        unique_reference_ids_recent_window=source.integers(0, 60, n),
        context_used_ratio=source.random(n) / 2,
        phase=["pre_turn", "post_tool"] * (n // 2),
        failed=source.random(n) < 0.1,
    )


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Median and best of some runs, the first one thrown away."""
    took = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return statistics.median(took[1:]), min(took[1:])


def main() -> None:
    config = CapacityConfig(enabled=True)
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}")
    print("\nprofile, p_fail and band, nanoseconds an observation (median, best)")
    for sessions, rows in ((2000, 500), (1, 500), (20_000, 50)):
        many = table(sessions, rows)
        median, best = (s / len(many) * 1e9 for s in seconds(lambda m=many: observe_all(config, m)))
        print(
            f"  {sessions:>6} sessions of {rows:>3}: {median:6.0f} {best:6.0f}; the reference "
            f"takes {REFERENCE_NS[0] / median:.1f} to {REFERENCE_NS[1] / median:.1f} times as long"
        )
    one = table(1, 500)
    rows = [one.observation(row) for row in range(500)]

    def scalar() -> None:
        controller = CapacityController(config)
        for row in rows:
            controller.observe(row)

    print(f"  scalar form: {seconds(scalar)[0] / 500 * 1e9:.0f}")
    decided_ms = seconds(lambda: simulate(config, one))[0] * 1e3
    print(f"  500 observations with decisions, scalar: {decided_ms:.1f} ms")

    bench = CapacityLab(one)
    seq = iter(range(1, 1000))

    def slide() -> None:
        number = next(seq)
        values = {**bench.values, "bias": -1 + number / 100}
        bench.asked = {"seq": number, "values": values}

    print(f"  a slider of the lab, the kernel's share: {seconds(slide)[0] * 1e3:.1f} ms")

    print("\nsweeps with decisions and throttles, two processes, million steps a minute (median)")
    grids = {
        "two thresholds": {
            n: np.linspace(0.1, 0.9, 150) for n in ("low_risk_max", "medium_risk_max")
        },
        "two coefficients": {
            n: np.linspace(-2, 0, 100) for n in ("bias", "final_slack_coefficient")
        },
        "weight and window": {
            "action_weight": np.linspace(0, 1, 60),
            "profile_window": range(2, 32),
        },
        "two cooldowns": {
            n: range(80) for n in ("refresh_cooldown_turns", "replan_cooldown_turns")
        },
    }
    for sessions, rows_each in ((1, 500), (40, 500)):
        some = table(sessions, rows_each)
        for name, grid in grids.items():
            found = sweep(some, grid, n_jobs=2)
            median, _ = seconds(lambda s=some, g=grid: sweep(s, g, n_jobs=2))
            speed = found.steps / median * 60 / 1e6
            print(
                f"  {sessions:>3} sessions, {name:<18} {found.money_usd.size:>6} configurations: "
                f"{speed:8.0f}, {speed / WANTED_M_PER_MINUTE:.1f} times what is wanted"
            )


if __name__ == "__main__":
    main()
