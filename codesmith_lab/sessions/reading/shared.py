"""Sequences that take over parts of earlier ones, kept once for all who share them.

A log repeats its history in every request. Kept as tuples, a thousand requests of a thousand
messages are a million references; here each request is a few views of common runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

__all__ = ["Shared"]

T = TypeVar("T")

_MOST_VIEWS = 64
"""A sequence of more views is copied into one run, so that reading it stays quick."""


class Shared(Generic[T]):
    """An immutable sequence: views (run, start, stop) of lists that only ever grow at their end."""

    __slots__ = ("_views", "length")

    def __init__(self, views: tuple[tuple[list[T], int, int], ...] = ()) -> None:
        self._views = views
        self.length: int = sum(stop - start for _, start, stop in views)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> T:
        """One item, 0 <= index < length."""
        for run, start, stop in self._views:
            if index < stop - start:
                return run[start + index]
            index -= stop - start
        raise IndexError(index)

    def items(self) -> list[T]:
        """A list of the items."""
        found: list[T] = []
        for run, start, stop in self._views:
            found += run[start:stop]
        return found

    def slice(self, first: int, last: int) -> Shared[T]:
        """Items `first` to `last` (exclusive); 0 <= first <= last <= length."""
        views = []
        for run, start, stop in self._views:
            size = stop - start
            if last <= 0:
                break
            if first < size:
                views.append((run, start + max(first, 0), start + min(last, size)))
            first -= size
            last -= size
        return Shared(tuple(views))

    def joined(self, other: Shared[T]) -> Shared[T]:
        """These items, then those of `other`."""
        if not self._views or not other._views:
            return self if self._views else other
        (run, start, stop), (after, begin, end) = self._views[-1], other._views[0]
        if run is after and stop == begin:
            return Shared((*self._views[:-1], (run, start, end), *other._views[1:]))._flat()
        return Shared(self._views + other._views)._flat()

    def plus(self, new: Sequence[T]) -> Shared[T]:
        """These items, then new ones; the run behind the last view grows where it ends there."""
        if not new:
            return self
        if self._views:
            run, start, stop = self._views[-1]
            if stop == len(run):
                run.extend(new)
                return Shared((*self._views[:-1], (run, start, len(run))))
        return Shared((*self._views, (list(new), 0, len(new))))._flat()

    def _flat(self) -> Shared[T]:
        if len(self._views) <= _MOST_VIEWS:
            return self
        items = self.items()
        return Shared(((items, 0, len(items)),))
