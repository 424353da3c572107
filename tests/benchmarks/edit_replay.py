"""What an edit costs in the kernel, and how that grows: python tests/benchmarks/edit_replay.py

A section of the system prompt gets another word, in every turn of an agent's session; timed is
what the workbench's kernel does then, from the edit to the bill of every turn. Processor time of
this process, the best of some runs; the wanted times are of the project's aims. Printed beside it:
the same with every turn put through the cache, and a plain Python loop of a million steps, by which
runs on other machines can be compared.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.samples.agent_log import agent_log_lines
from codesmith_lab.sessions.analysis import make_runner
from codesmith_lab.sessions.edits import TextEdit, apply_edits
from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.turns import TurnRunner

# turns, new tokens a turn, wanted milliseconds (None: no aim)
SIZES = ((200, 430, 5.0), (1000, 880, 25.0))
MODELS = ("deepseek-v4-flash", "gpt-5")
RUNS = 25


def best_ms(work: Callable[[int], object], runs: int = RUNS) -> float:
    """Least processor time of some runs, each told its number."""
    took = []
    for number in range(runs):
        start = time.process_time()
        work(number)
        took.append(time.process_time() - start)
    return min(took) * 1e3


def section_of(runner: TurnRunner) -> Block:
    return next(b for b in runner.session.requests[0].blocks if b.kind == "section")


def measure(turns: int, new_tokens: int, model: str) -> tuple[float, float, float, int]:
    """Milliseconds of an edit, of the same by the long way and of the first run; prompt tokens."""
    session = load_bytes(b"\n".join(agent_log_lines(turns, new_tokens)))
    runner = make_runner(session, model)
    first = best_ms(lambda _: runner.run(), 2)
    tokens = runner.run()[-1].prompt.total_tokens
    block, start = section_of(runner), runner.checkpoint(0)
    memo: dict[object, Block] = {}

    def edits(number: int) -> list[TextEdit]:
        old = block.text.rstrip("\r\n")
        return [TextEdit(0, block.name, "from_here", old, f"{old} word {number}")]

    def edit(number: int) -> object:
        return runner.run(apply_edits(session, edits(number), memo), start)

    def long_way(number: int) -> object:
        blocks = apply_edits(session, edits(number), memo)
        return runner.run({at: tuple(changed) for at, changed in blocks.items()}, start)

    return best_ms(edit), best_ms(long_way, 2), first, tokens


def loop(_: int) -> None:
    total = 0
    for number in range(1_000_000):
        total += number


def main() -> None:
    unit = best_ms(loop, 5)
    print(f"Python {platform.python_version()}; a loop of a million steps {unit:.0f} ms")
    for model in MODELS:
        print(f"\n{model}")
        per_turn = []
        for turns, new_tokens, wanted in SIZES:
            ms, long_ms, first, tokens = measure(turns, new_tokens, model)
            per_turn.append(ms / turns)
            aim = "no aim" if wanted is None else f"{ms / wanted:.2f} of the {wanted:.0f} ms wanted"
            print(
                f"  {turns:>5} turns, {tokens:>9,} tokens: an edit {ms:6.1f} ms ({aim}), "
                f"{ms / unit:.2f} loops; through the cache {long_ms / ms:5.1f} times as long; "
                f"first run {first:6.0f} ms"
            )
        print(
            f"  a turn of {SIZES[-1][0]} costs {per_turn[-1] / per_turn[0]:.2f} times one of "
            f"{SIZES[0][0]} (1 is growth with the new content alone)"
        )


if __name__ == "__main__":
    main()
