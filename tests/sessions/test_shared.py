"""Shared sequences are the lists they stand for, whatever is taken over from whom."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.sessions.reading.shared import Shared

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["plus", "slice", "joined"]),
        st.integers(0, 9),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    max_size=120,
)


@given(STEPS)
def test_shared_sequences_are_lists(steps: list[tuple[str, int, int, int]]) -> None:
    """The slow clear way beside the fast one; earlier sequences never change."""
    made: list[tuple[Shared[int], list[int]]] = [(Shared(), [])]
    for kind, pick, a, b in steps:
        shared, plain = made[pick % len(made)]
        if kind == "plus":
            new = list(range(a, a + b % 5))
            made.append((shared.plus(new), plain + new))
        elif kind == "slice":
            first, last = sorted((min(a, len(plain)), min(b, len(plain))))
            made.append((shared.slice(first, last), plain[first:last]))
        else:
            other, other_plain = made[a % len(made)]
            if len(plain) + len(other_plain) < 2000:
                made.append((shared.joined(other), plain + other_plain))
    for shared, plain in made:
        assert (shared.items(), shared.length) == (plain, len(plain))


def test_a_history_that_grows_is_one_run() -> None:
    versions = [Shared[int]()]
    for turn in range(1000):
        versions.append(versions[-1].plus([turn]))
    assert len({id(version._views[0][0]) for version in versions[1:]}) == 1
    fork = versions[500].plus([-1])
    assert fork.items() == [*range(500), -1]
    assert versions[501].items() == list(range(501))


def test_a_sequence_of_many_views_is_put_together() -> None:
    whole = Shared[int]().plus(list(range(10)))
    scattered = Shared[int]()
    for at in range(500):
        scattered = scattered.joined(whole.slice(at % 10, at % 10 + 1))
    assert scattered.items() == [at % 10 for at in range(500)]
    assert len(scattered._views) <= 65
