"""A whole analysis of a made agent log, beside the least that anybody would have to do.

    python tests/benchmarks/analyze_log.py             # 200, 1,000 and 5,000 turns
    python tests/benchmarks/analyze_log.py --turns 200 # one of them

The least is: decode every line with orjson, and tokenize each distinct text once. Each part runs in
processes of its own, in turns with the others: the least time of some and the largest peak memory.
Logs without compaction grow with the square of their turns: 1,000 turns are 2.7 GB on disk. The
5,000 turns are compacted every 250.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MODEL = "deepseek-v4-flash"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, action="append", help="200, 1000 and 5000 without it")
    options = parser.parse_args()
    print(
        f"{'turns':>6}{'file MB':>9}{'distinct MB':>13}{'decode s':>10}{'tokenize s':>12}"
        f"{'analyze s':>11}{'ratio':>7}{'to decode':>11}{'peak MB':>9}{'allowed':>9}"
    )
    for turns in options.turns or [200, 1000, 5000]:
        with tempfile.TemporaryDirectory() as folder:
            measure(turns, Path(folder) / "log.jsonl")
    return 0


def measure(turns: int, path: Path) -> None:
    from codesmith_lab.samples.agent_log import agent_log_lines

    compact = 250 if turns > 1000 else None
    with path.open("wb") as out:
        for line in agent_log_lines(turns, compact_every=compact, drift_every=50):
            out.write(line + b"\n")
    parts: list[list[tuple[float, int, int]]] = [[], [], []]
    for _ in range(7 if turns <= 200 else 2):
        for runs, work in zip(parts, (decode, tokenize, analyze), strict=True):
            runs.append(apart(work, path))
    decode_s, tokenize_s, analyze_s = (min(run[0] for run in runs) for runs in parts)
    distinct_bytes = parts[1][0][2]
    peak_bytes = max(run[1] for run in parts[2])
    allowed = 3 * distinct_bytes + 150_000_000
    print(
        f"{turns:>6}{path.stat().st_size / 1e6:>9,.0f}{distinct_bytes / 1e6:>13.1f}"
        f"{decode_s:>10.2f}{tokenize_s:>12.2f}{analyze_s:>11.2f}"
        f"{analyze_s / (decode_s + tokenize_s):>7.2f}{analyze_s / decode_s:>11.2f}"
        f"{peak_bytes / 1e6:>9.0f}{allowed / 1e6:>9.0f}",
        flush=True,
    )


def apart(work: Callable[[Path], tuple[float, int]], path: Path) -> tuple[float, int, int]:
    """Seconds, peak resident bytes and the result of a function in a fresh process."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=run, args=(work, path, answers))
    process.start()
    answer: tuple[float, int, int] = answers.get()
    process.join()
    return answer


def run(work: Callable[[Path], tuple[float, int]], path: Path, answers: Any) -> None:
    seconds, result = work(path)
    answers.put((seconds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, result))


def decode(path: Path) -> tuple[float, int]:
    import orjson

    start = time.perf_counter()
    with path.open("rb") as lines:
        for line in lines:
            orjson.loads(line)
    return time.perf_counter() - start, 0


def tokenize(path: Path) -> tuple[float, int]:
    """Each distinct text once; what gathers them is not timed."""
    import orjson

    from codesmith_lab.billing.tokens import get_tokenizer

    distinct: dict[str, None] = {}
    with path.open("rb") as lines:
        for line in lines:
            body = orjson.loads(line)
            distinct.update(dict.fromkeys(texts(body.get("request", body))))
    tokenizer = get_tokenizer("deepseek")
    tokenizer.count("warm")
    start = time.perf_counter()
    for text in distinct:
        tokenizer.ids(text)
    return time.perf_counter() - start, sum(len(text.encode()) for text in distinct)


def texts(body: Any) -> Iterator[str]:
    for tool in body.get("tools", ()):
        yield json.dumps(tool)
    for message in body["messages"]:
        content = message.get("content")
        if isinstance(content, str):
            yield content
        for call in message.get("tool_calls") or ():
            yield call["function"]["arguments"]


def analyze(path: Path) -> tuple[float, int]:
    import codesmith_lab as lab
    from codesmith_lab.billing.tokens import get_tokenizer

    get_tokenizer("deepseek").count("warm")
    # Loads the tables of prices and tokens, which do not depend on the log.
    lab.analyze(lab.load_bytes(b'{"model":"deepseek-v4-flash","messages":[{"role":"user"}]}'))
    start = time.perf_counter()
    report = lab.analyze(lab.load(path), MODEL)
    assert report.totals.requests > 0
    return time.perf_counter() - start, 0


if __name__ == "__main__":
    sys.exit(main())
