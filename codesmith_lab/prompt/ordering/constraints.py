"""Constraints on an order: what stands before what, and what stands where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from codesmith_lab.errors import LabError

__all__ = ["OrderConstraints", "ResolvedConstraints"]


@dataclass(frozen=True, slots=True)
class OrderConstraints:
    """Constraints by name.

    before: pairs (first, second): the first stands somewhere before the second.
    pinned: a section's place from 0; a negative place counts from the end (-1 is the last).
    """

    before: tuple[tuple[str, str], ...] = ()
    pinned: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", tuple(dict.fromkeys(map(tuple, self.before))))
        object.__setattr__(self, "pinned", MappingProxyType(dict(self.pinned)))

    def resolve(self, names: Sequence[str]) -> ResolvedConstraints:
        """The constraints for these sections, numbered as given.

        Raises LabError for unknown names, places that are not there, two sections in one place,
        cycles, and whatever else no order can satisfy.
        """
        number = {name: i for i, name in enumerate(names)}
        for name in [*self.pinned, *(name for pair in self.before for name in pair)]:
            if name not in number:
                raise LabError(
                    f"a constraint names {name!r}, and no section has that name; "
                    "correct the name or drop the constraint"
                )
        after: list[int] = [0] * len(names)
        for first, second in self.before:
            after[number[second]] |= 1 << number[first]
        place = self._places(names, number)
        closed = _closure(after, names)
        resolved = ResolvedConstraints(len(names), closed, place)
        resolved.check_feasible(names)
        return resolved

    def _places(self, names: Sequence[str], number: Mapping[str, int]) -> tuple[int | None, ...]:
        place: list[int | None] = [None] * len(names)
        holder: dict[int, str] = {}
        for name, wanted in self.pinned.items():
            at = wanted + len(names) if wanted < 0 else wanted
            if not 0 <= at < len(names):
                raise LabError(
                    f"section {name!r} is pinned to place {wanted}, and {len(names)} sections have "
                    f"the places 0 to {len(names) - 1}; choose one of these"
                )
            if at in holder:
                raise LabError(
                    f"sections {holder[at]!r} and {name!r} are both pinned to place {at + 1}, and "
                    "a place holds one; release one of them"
                )
            holder[at] = name
            place[number[name]] = at
        return tuple(place)


@dataclass(frozen=True, slots=True)
class ResolvedConstraints:
    """Constraints by number.

    ancestors: for each section, the bit mask of all that must stand before it.
    place: for each section, its pinned place, or None.
    """

    count: int
    ancestors: tuple[int, ...]
    place: tuple[int | None, ...]

    @property
    def free(self) -> bool:
        """Nothing is constrained."""
        return not any(self.ancestors) and all(at is None for at in self.place)

    def allows(self, order: Sequence[int]) -> bool:
        """Whether an order of all sections keeps every constraint."""
        placed = 0
        for at, i in enumerate(order):
            if self.place[i] not in (None, at) or self.ancestors[i] & ~placed:
                return False
            placed |= 1 << i
        return len(order) == self.count

    def complete(self, start: Sequence[int]) -> list[int] | None:
        """An order that begins with `start` and keeps every constraint, or None.

        Each section has an earliest and a latest place, tightened along the constraints; the one
        with the earliest deadline goes first. For jobs of one length on one machine that finds an
        order whenever there is one (B. Simons, 1978, for release times; J. R. Jackson, 1955).
        """
        placed = 0
        for at, i in enumerate(start):
            if self.place[i] not in (None, at) or self.ancestors[i] & ~placed:
                return None
            placed |= 1 << i
        window = self._windows()
        rest = [i for i in range(self.count) if not placed >> i & 1]
        order = list(start)
        for at in range(len(start), self.count):
            ready = [i for i in rest if window[i][0] <= at and not self.ancestors[i] & ~placed]
            if not ready:
                return None
            chosen = min(ready, key=lambda i: (window[i][1], i))
            if window[chosen][1] < at:
                return None
            rest.remove(chosen)
            order.append(chosen)
            placed |= 1 << chosen
        return order

    def check_feasible(self, names: Sequence[str]) -> None:
        """Raise LabError when no order keeps every constraint, naming what contradicts."""
        for i, (early, late) in enumerate(self._windows()):
            at = self.place[i]
            if at is not None and early > at:
                raise LabError(
                    f"section {names[i]!r} is locked to place {at + 1}, and the constraints put it "
                    f"at place {early + 1} or later; release the lock or drop a constraint"
                )
            if at is not None and late < at:
                raise LabError(
                    f"section {names[i]!r} is locked to place {at + 1}, and the constraints put it "
                    f"at place {late + 1} or earlier; release the lock or drop a constraint"
                )
        if self.complete(()) is None:
            locked = ", ".join(
                repr(names[i]) for i in range(self.count) if self.place[i] is not None
            )
            raise LabError(
                f"the locks of {locked} and the constraints contradict each other and leave no "
                "order; release a lock or drop a constraint"
            )

    def _windows(self) -> list[tuple[int, int]]:
        early = [self.ancestors[i].bit_count() for i in range(self.count)]
        late = [self.count - 1] * self.count
        for mask in self.ancestors:
            for j in _bits(mask):
                late[j] -= 1
        for i, at in enumerate(self.place):
            if at is not None:
                early[i], late[i] = max(early[i], at), min(late[i], at)
        order = sorted(range(self.count), key=lambda i: self.ancestors[i].bit_count())
        for i in order:
            for j in _bits(self.ancestors[i]):
                early[i] = max(early[i], early[j] + 1)
        for i in reversed(order):
            for j in _bits(self.ancestors[i]):
                late[j] = min(late[j], late[i] - 1)
        return list(zip(early, late, strict=True))


def _bits(mask: int) -> Iterable[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _closure(direct: Sequence[int], names: Sequence[str]) -> tuple[int, ...]:
    """All ancestors of each section; a cycle is an error that names its sections."""
    state = [0] * len(direct)  # 0 unseen, 1 on the path, 2 done
    closed = list(direct)
    for root in range(len(direct)):
        path: list[int] = []
        stack = [(root, False)]
        while stack:
            i, leaving = stack.pop()
            if leaving:
                path.pop()
                state[i] = 2
                for j in _bits(direct[i]):
                    closed[i] |= closed[j]
                continue
            if state[i] == 2:
                continue
            if state[i] == 1:
                circle = [*path[path.index(i) :], i]
                shown = " before ".join(repr(names[k]) for k in reversed(circle))
                raise LabError(
                    f"the constraints form a circle, {shown}, and no order keeps a circle; "
                    "drop one of them"
                )
            state[i] = 1
            path.append(i)
            stack.append((i, True))
            stack += [(j, False) for j in _bits(direct[i])]
    return tuple(closed)
