"""How fast the section-order lab answers: run it as a script, it prints times against its goals.

python tests/benchmarks/section_order.py
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable

import codesmith_lab as lab
from codesmith_lab.prompt.ordering.best import best_order
from codesmith_lab.prompt.ordering.constraints import OrderConstraints
from codesmith_lab.prompt.ordering.cost import CacheUnits
from codesmith_lab.prompt.ordering.stats import SectionStats

SECTIONS, REQUESTS, ROUNDS = 200, 200, 60
REORDER_GOAL_MS, EXACT_GOAL_MS = 10.0, 2000.0
WORDS = ("anchor", "basin", "beacon", "buoy", "cargo", "channel", "compass", "crane")


def made_log() -> bytes:
    """A session of 200 requests with 200 sections, of which a third changes often."""
    source, versions, lines = random.Random(1), [0] * SECTIONS, []
    for turn in range(REQUESTS):
        for k in range(SECTIONS):
            versions[k] += source.random() < (0.02 if k % 3 else 0.2)
        system = lab.PromptBundle.from_sections(
            lab.PromptSection(f"s{k}", f"S{k}", body(k, versions[k])) for k in range(SECTIONS)
        ).render_text()
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": f"step {turn}"},
        ]
        lines.append(json.dumps({"model": "deepseek-v4-flash", "messages": messages}))
    return "\n".join(lines).encode()


def body(section: int, version: int) -> str:
    chosen = random.Random(f"{section} {version}").choices(WORDS, k=60)
    return f"Version {version}. {' '.join(chosen)}"


def times_ms(what: Callable[[], object], rounds: int) -> list[float]:
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        what()
        found.append((time.perf_counter() - start) * 1000)
    return sorted(found)


def show(name: str, times: list[float], goal_ms: float) -> bool:
    median, worst = times[len(times) // 2], times[-1]
    print(
        f"{name}: median {median:.2f} ms ({median / goal_ms:.0%} of {goal_ms:,.0f} ms), "
        f"worst {worst:.2f} ms ({worst / goal_ms:.0%})"
    )
    return median < goal_ms


def reorders() -> list[bool]:
    """The kernel's share of a drag and of a drop: computing, and writing what goes to the view."""
    board = lab.SectionOrderLab(lab.load_bytes(made_log(), "made.jsonl"))
    source = random.Random(2)

    def step(action: str) -> None:
        name, to = f"s{source.randrange(SECTIONS)}", source.randrange(SECTIONS)
        board.request = {"seq": board.ack + 1, "action": action, "name": name, "to": to}
        if board.error:
            raise SystemExit(board.error)
        json.dumps([board.head, board.shown, board.table])
        if action == "move":
            json.dumps([board.sections, board.detail])

    what = f"{SECTIONS} sections, {REQUESTS} requests"
    return [
        show(f"{action} ({what})", times_ms(lambda a=action: step(a), ROUNDS), REORDER_GOAL_MS)  # type: ignore[misc]
        for action in ("drag", "move")
    ]


def exact_search() -> bool:
    """16 sections with constraints, locks and whole units."""
    source = random.Random(3)

    def search() -> None:
        sections = [
            SectionStats(f"s{i}", source.randint(10, 4000), source.random()) for i in range(16)
        ]
        pairs = tuple((f"s{i}", f"s{i + 3}") for i in range(0, 12, 2))
        found = best_order(sections, OrderConstraints(pairs, {"s0": 0}), CacheUnits(1024, 128))
        if found.method != "subsets":
            raise SystemExit(f"the search was no exact one but {found.method!r}")

    return show("exact search (16 sections, constrained)", times_ms(search, 10), EXACT_GOAL_MS)


if __name__ == "__main__":
    sys.exit(0 if all([*reorders(), exact_search()]) else 1)
