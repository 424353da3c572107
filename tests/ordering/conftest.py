"""Random sections and constraints from a seed, and the slow clear way to a cost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from codesmith_lab.prompt.ordering.constraints import OrderConstraints
from codesmith_lab.prompt.ordering.cost import CacheUnits
from codesmith_lab.prompt.ordering.stats import SectionStats

Sections = list[SectionStats]


def random_sections(source: random.Random, count: int, heads: bool = True) -> Sections:
    """Sizes from 1 to 3,000; a third of the probabilities are 0, 1 or equal to another's."""
    sections = []
    for i in range(count):
        p = source.choice([0.0, 1.0, 0.25, source.random(), source.random(), source.random() ** 4])
        size = source.choice([1, 100, source.randint(1, 3000), source.randint(1, 3000)])
        head = source.randint(0, size) if heads and source.random() < 0.5 else 0
        sections.append(SectionStats(f"s{i}", size, p, head_tokens=head))
    return sections


def random_constraints(source: random.Random, count: int) -> OrderConstraints:
    """Constraints that some hidden order keeps, so that they never contradict each other."""
    hidden = list(range(count))
    source.shuffle(hidden)
    pairs = [(hidden[a], hidden[b]) for a in range(count) for b in range(a + 1, count)]
    before = [(f"s{a}", f"s{b}") for a, b in pairs if source.random() < 0.2]
    pinned = {f"s{i}": at for at, i in enumerate(hidden) if source.random() < 0.15}
    return OrderConstraints(tuple(before), pinned)


def slow_hit_tokens(order: Sequence[SectionStats], units: CacheUnits) -> float:
    """Expected hit tokens, summed over every combination of changed and unchanged sections."""
    total = 0.0
    for mask in range(1 << len(order)):
        chance, prefix, broken = 1.0, 0, False
        for i, section in enumerate(order):
            changed = bool(mask >> i & 1)
            p = section.change_probability
            chance *= p if changed else 1 - p
            if not broken:
                prefix += section.head_tokens if changed else section.size_tokens
            broken = broken or changed
        whole = prefix // units.step_tokens * units.step_tokens
        total += chance * (whole if prefix >= units.minimum_tokens else 0)
    return total


def keeps(order: Sequence[int], names: Sequence[str], constraints: OrderConstraints) -> bool:
    """Whether an order keeps the constraints, read off their definition."""
    at = {names[i]: place for place, i in enumerate(order)}
    n = len(order)
    return all(at[a] < at[b] for a, b in constraints.before) and all(
        at[name] == (wanted + n if wanted < 0 else wanted)
        for name, wanted in constraints.pinned.items()
    )


@pytest.fixture(scope="session")
def aid() -> SimpleNamespace:
    """The helpers above, for test modules, which cannot import a conftest."""
    helpers = (random_sections, random_constraints, slow_hit_tokens, keeps)
    return SimpleNamespace(**{helper.__name__: helper for helper in helpers})
