"""The replay of an order against a slow clear one, and the search against brute force."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.ordering.constraints import OrderConstraints
from codesmith_lab.prompt.ordering.cost import ANY_LENGTH, CacheUnits
from codesmith_lab.prompt.ordering.history import ContentHistory, Surroundings
from codesmith_lab.prompt.ordering.history_search import search_history

UNITS = CacheUnits(8, 4)


def random_history(seed: int) -> tuple[ContentHistory, list[dict[str, Any]]]:
    """A history with made token lists, and those lists: sections, tail and output of a request."""
    chance = np.random.default_rng(seed)
    n, width = int(chance.integers(2, 9)), int(chance.integers(1, 5))
    texts = [
        [chance.integers(0, 2, chance.integers(0, 6)).tolist() for _ in range(3)]
        for _ in range(width)
    ]
    versions = chance.integers(0, 3, (n, width)).astype(np.int32)
    tails = [[1, 2] * int(chance.integers(0, 3)) + [9, i % 3] for i in range(n)]
    outputs = [[5] * int(chance.integers(0, 4)) for _ in range(n)]
    requests = [
        {"sections": [texts[k][v] for k, v in enumerate(row)], "tail": tail, "output": output}
        for row, tail, output in zip(versions, tails, outputs, strict=True)
    ]
    stored = [tail[:-1] + output for tail, output in zip(tails, outputs, strict=True)]
    earlier = np.tri(n, n, -1, bool)
    live = earlier & (chance.random((n, n)) < 0.8)
    around = Surroundings(
        np.full(n, 3),
        np.array([len(tail) for tail in tails]),
        np.array([[common(a, b) for b in tails] for a in tails]),
        np.array([[common(a, b) for b in stored] for a in tails]),
        np.array([len(b) - len(a) for a, b in zip(tails, stored, strict=True)]),
        live,
        earlier,
    )
    heads = tuple(np.array([[common(a, b) for b in t] for a in t], np.int32) for t in texts)
    tokens = np.array([[len(text) for text in r["sections"]] for r in requests])
    names = tuple(f"s{k}" for k in range(width))
    previous = np.arange(n) - 1
    return ContentHistory(names, 0, versions, tokens, heads, around, previous), requests


def common(a: list[int], b: list[int]) -> int:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def slow_replay(
    history: ContentHistory, requests: list[dict[str, Any]], order: tuple[int, ...], stored: bool
) -> list[int]:
    """Hit tokens request by request: whole prompts, compared token by token."""
    hits = []
    for i in range(len(requests)):
        matched, places = 0, []
        for j in range(i):
            in_prompt, in_output = (shared(history, requests, order, i, j, end) for end in (0, 1))
            if history.around.live[i, j]:
                matched = max(matched, in_prompt, in_output)
            total = int(history.total_tokens[j])
            grown = total + int(history.around.output_tokens[j])
            revealed = slow_matched(history, requests, order, j)
            places += [(UNITS.floor(revealed), in_prompt), (UNITS.floor(total), in_prompt)]
            places += [(UNITS.floor(grown), in_output)]
        if stored:
            hits.append(max([end for end, reach in places if end <= min(reach, matched)] + [0]))
        else:
            hits.append(UNITS.floor(matched))
    return hits


def slow_matched(
    history: ContentHistory, requests: list[dict[str, Any]], order: tuple[int, ...], i: int
) -> int:
    return max(
        (
            shared(history, requests, order, i, j, end)
            for j in range(i)
            if history.around.live[i, j]
            for end in (0, 1)
        ),
        default=0,
    )


def shared(
    history: ContentHistory,
    requests: list[dict[str, Any]],
    order: tuple[int, ...],
    i: int,
    j: int,
    output: int,
) -> int:
    total = 3
    for k in order:
        a, b = requests[i]["sections"][k], requests[j]["sections"][k]
        if history.versions[i, k] != history.versions[j, k]:
            return total + common(a, b)
        total += len(a)
    other = requests[j]["tail"]
    return total + common(
        requests[i]["tail"], other[:-1] + requests[j]["output"] if output else other
    )


@pytest.mark.parametrize("stored", [False, True])
def test_the_replay_equals_the_slow_one(stored: bool) -> None:
    for seed in range(150):
        history, requests = random_history(seed)
        width = len(history.names)
        order = tuple(np.random.default_rng(seed + 1).permutation(width).tolist())
        found = history.replay(order, UNITS, stored)
        assert found.hit_tokens.tolist() == slow_replay(history, requests, order, stored)


@pytest.mark.parametrize("stored", [False, True])
def test_the_search_tells_its_gap_to_brute_force(stored: bool) -> None:
    """The best of all orders is the one brute force reports, on histories with correlation."""
    gaps = []
    for seed in range(60):
        history, _ = random_history(seed)
        start = tuple(range(len(history.names)))
        found = search_history(history, start, units=ANY_LENGTH, stored_units=stored)
        values = [
            history.replay(order, ANY_LENGTH, stored).mean_hit_tokens
            for order in permutations(start)
        ]
        assert found.brute_hit_tokens is not None
        assert found.gap_tokens is not None
        if not stored:  # a section that never changes loses nothing in front
            assert found.brute_hit_tokens == pytest.approx(max(values))
        assert found.hit_tokens >= found.start_hit_tokens == values[0]
        assert found.hit_tokens == pytest.approx(
            history.replay(found.order, ANY_LENGTH, stored).mean_hit_tokens
        )
        gaps.append(found.gap_tokens)
    assert sum(gap == 0 for gap in gaps) > 0.7 * len(gaps)


def test_the_search_keeps_constraints_and_its_limit() -> None:
    for seed in range(40):
        history, _ = random_history(seed)
        names = history.names
        if len(names) < 3:
            continue
        constraints = OrderConstraints(((names[0], names[2]),), {names[1]: 1})
        found = search_history(history, range(len(names)), constraints, UNITS)
        assert found.order.index(0) < found.order.index(2)
        assert found.order[1] == 1
        short = search_history(
            history, range(len(names)), most_replays=3, brute_force=False, units=UNITS
        )
        assert short.replays <= 3
        assert short.gap_tokens is None


def test_an_order_by_name_names_each_section_once() -> None:
    history, _ = random_history(1)
    names = list(history.names)
    assert history.positions(names) == tuple(range(len(names)))
    for bad, words in (
        (["x", *names[1:]], "no section 'x'"),
        (names[:-1], "missing are"),
        ([*names, names[0]], "stands twice"),
    ):
        with pytest.raises(LabError, match=words):
            history.positions(bad)
