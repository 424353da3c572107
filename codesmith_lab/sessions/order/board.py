"""The order board: an order with its locks, constraints and rewrites, weighed; undo and variants.

Every change makes a new state. What contradicts itself is refused, and the last good state stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType

from codesmith_lab.errors import LabError
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.ordering.best import BestOrder, best_order
from codesmith_lab.prompt.ordering.constraints import OrderConstraints
from codesmith_lab.prompt.ordering.cost import OrderCost, order_cost
from codesmith_lab.prompt.ordering.history import OrderReplay
from codesmith_lab.prompt.ordering.history_search import HistoryOrder, search_history
from codesmith_lab.prompt.ordering.stats import SectionStats, check_sections
from codesmith_lab.sessions.order.rewrites import Rewrite
from codesmith_lab.sessions.order.source import Laid

__all__ = ["DAYS_A_MONTH", "MOST_COMPARED", "BoardState", "OrderBoard", "Weighed", "month_usd"]

DAYS_A_MONTH = 30
MOST_COMPARED = 4
_MOST_UNDO = 500


@dataclass(frozen=True, slots=True)
class BoardState:
    """All that a person chose.

    order: the movable sections. before: pairs (first, second). locked: a section's place among
    the movable ones, from 0. rates: change probabilities set by hand.
    """

    order: tuple[str, ...]
    before: tuple[tuple[str, str], ...] = ()
    locked: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    rewrites: tuple[Rewrite, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "locked", MappingProxyType(dict(self.locked)))
        object.__setattr__(self, "rates", MappingProxyType(dict(self.rates)))

    @property
    def rules(self) -> tuple[object, ...]:
        """All but the order, as a key: what decides which order is best."""
        locked, rates = sorted(self.locked.items()), sorted(self.rates.items())
        return self.before, tuple(locked), tuple(rates), self.rewrites

    @property
    def key(self) -> tuple[object, ...]:
        """All of it, as a key."""
        return (self.order, *self.rules)


@dataclass(frozen=True, slots=True)
class Weighed:
    """An order with its cost a request, both ways; None where there is no price or no history.

    sizes: tokens of all sections in this order, the fixed ones included.
    """

    order: tuple[str, ...]
    sizes: tuple[int, ...]
    cost: OrderCost
    expected_usd: Decimal | None
    replay: OrderReplay | None
    replayed_usd: Decimal | None

    def month_usd(self, requests_a_day: int) -> Decimal | None:
        """Input cost of a month of 30 days: from the replay where there is one."""
        one = self.expected_usd if self.replayed_usd is None else self.replayed_usd
        return month_usd(one, requests_a_day)


def month_usd(usd: Decimal | None, requests_a_day: int) -> Decimal | None:
    """What a month of 30 days costs at so much a request."""
    return None if usd is None else usd * requests_a_day * DAYS_A_MONTH


class OrderBoard:
    """The state that a person changes, what it costs, and the way back.

    lay: gives the sections after rewrites (`SectionSource.laid`, or one fixed `Laid`).
    """

    def __init__(
        self, lay: Callable[[tuple[Rewrite, ...]], Laid], window_tokens: int | None = None
    ) -> None:
        self._lay = lay
        self._window_tokens = window_tokens
        laid = lay(())
        check_sections(laid.sections, window_tokens)
        self.original = BoardState(laid.movable)
        self.state = self.original
        self._undo: list[BoardState] = []
        self._redo: list[BoardState] = []
        self.variants: dict[str, BoardState] = {}
        self._memo: dict[Block, Block] = {}

    # -- what it is ------------------------------------------------------------------------

    @property
    def laid(self) -> Laid:
        """The sections as they are now laid out."""
        return self._lay(self.state.rewrites)

    def sections(self, state: BoardState | None = None) -> dict[str, SectionStats]:
        """All sections by name, with the rates set by hand."""
        state = state or self.state
        known = {s.name: s for s in self._lay(state.rewrites).sections}
        for name, rate in state.rates.items():
            if name in known:
                known[name] = known[name].by_hand(rate)
        return known

    def weigh(self, state: BoardState | None = None) -> Weighed:
        """What a state's order costs, in expectation and replayed."""
        state = state or self.state
        laid = self._lay(state.rewrites)
        known = self.sections(state)
        names = _whole(laid, state.order)
        sizes = tuple(known[name].size_tokens for name in names)
        cost = order_cost([known[name] for name in names], laid.units, laid.stored_units)
        expected = laid.expected_usd(cost.hit_tokens, cost.total_tokens + laid.new_tokens)
        replayed = laid.replay(state.order, self._memo)
        if replayed is None or laid.history is None:
            return Weighed(state.order, sizes, cost, expected, None, None)
        replay, usd = replayed
        each = None if usd is None else usd / laid.history.requests
        return Weighed(state.order, sizes, cost, expected, replay, each)

    def closed_best(self) -> BestOrder:
        """The best order in closed form, with locks and constraints. Names all sections."""
        laid, known = self.laid, self.sections()
        sections = [known[s.name] for s in laid.sections]
        return best_order(sections, _constraints(laid, self.state), laid.units)

    def session_best(self, most_replays: int = 3000, brute_force: bool = True) -> HistoryOrder:
        """The best order found on the real history; LabError where there is none."""
        laid = self.laid
        if laid.history is None:
            raise LabError(
                "there is no session to replay, so that only the closed form knows a best order; "
                "open the board on a session"
            )
        best = self.closed_best().names
        start = laid.history.positions(best[: len(best) - laid.fixed_last])
        constraints = _constraints(laid, self.state, tail=False)
        return search_history(
            laid.history, start, constraints, laid.units, laid.stored_units, most_replays,
            brute_force,
        )  # fmt: skip

    # -- changes ---------------------------------------------------------------------------

    def moved(self, name: str, to: int) -> BoardState:
        """The state with a section moved to a place (0-based, clamped); locked ones stay put."""
        self._movable(name)
        return self._checked(_moved(self.state, name, to))

    def move(self, name: str, to: int) -> None:
        """Move a section; see `moved`. Raises LabError when a constraint forbids the place."""
        self._put(self.moved(name, to))

    def with_order(self, names: Sequence[str]) -> BoardState:
        """The state with another order of all movable sections; see `set_order`."""
        if sorted(names) != sorted(self.state.order):
            raise LabError(
                f"an order names each of the {len(self.state.order)} sections once, "
                f"not {list(names)!r}"
            )
        return self._checked(replace(self.state, order=tuple(names)))

    def set_order(self, names: Sequence[str]) -> None:
        """Put all movable sections into an order; locks and constraints must allow it."""
        self._put(self.with_order(names))

    def lock(self, name: str, locked: bool = True) -> None:
        """Lock a section to the place it has, or release it."""
        self._movable(name)
        places = {k: v for k, v in self.state.locked.items() if k != name}
        if locked:
            places[name] = self.state.order.index(name)
        self._put(self._checked(replace(self.state, locked=places)))

    def constrain(self, first: str, second: str, on: bool = True) -> None:
        """Demand that one section stands before another, or drop that demand.

        Refused while the order on the board breaks it, unless moving `first` directly in front
        of `second` mends it.
        """
        for name in (first, second):
            self._movable(name)
        pairs = tuple(pair for pair in self.state.before if pair != (first, second))
        if not on:
            self._put(replace(self.state, before=pairs))
            return
        state = replace(self.state, before=(*pairs, (first, second)))
        self._resolve(state)
        if state.order.index(first) > state.order.index(second):
            state = _moved(state, first, state.order.index(second))
        self._put(self._checked(state))

    def set_rate(self, name: str, rate: float | None) -> None:
        """Set a change probability by hand; None goes back to what was measured or assumed."""
        if name not in self.sections():
            raise LabError(f"there is no section {name!r}; choose one of the board's")
        rates = {k: v for k, v in self.state.rates.items() if k != name}
        if rate is not None:
            self.sections()[name].by_hand(rate)  # refuses what is no probability
            rates[name] = rate
        self._put(replace(self.state, rates=rates))

    def rewrite(self, rewrite: Rewrite) -> None:
        """Apply a rewrite to every request; new sections stand behind the one they came from."""
        rewrites = (*self.state.rewrites, rewrite)
        laid = self._lay(rewrites)
        order = [name for name in self.state.order if name in laid.movable]
        for at, name in enumerate(laid.movable):
            if name not in order:
                behind = laid.movable[at - 1] if at else None
                order.insert(order.index(behind) + 1 if behind in order else 0, name)
        kept = set(order)
        self._put(
            self._checked(
                replace(
                    self.state,
                    rewrites=rewrites,
                    order=tuple(order),
                    before=tuple(p for p in self.state.before if set(p) <= kept),
                    locked={n: order.index(n) for n in self.state.locked if n in kept},
                )
            )
        )

    def undo(self) -> None:
        """One step back; without one nothing happens."""
        if self._undo:
            self._redo.append(self.state)
            self.state = self._undo.pop()

    def redo(self) -> None:
        """The last undone step again; without one nothing happens."""
        if self._redo:
            self._undo.append(self.state)
            self.state = self._redo.pop()

    def reset(self) -> None:
        """Back to today's prompt; can be undone."""
        self._put(self.original)

    @property
    def can_undo(self) -> bool:
        """There is a step back."""
        return bool(self._undo)

    @property
    def can_redo(self) -> bool:
        """There is an undone step."""
        return bool(self._redo)

    # -- variants --------------------------------------------------------------------------

    def keep(self, name: str) -> None:
        """Keep the state under a name; a known name is overwritten. At most four are kept."""
        name = name.strip()
        if not name:
            raise LabError("a variant needs a name, and '' is none; write one")
        if name not in self.variants and len(self.variants) >= MOST_COMPARED:
            raise LabError(
                f"{MOST_COMPARED} variants are kept and compared at most; drop one before {name!r}"
            )
        self.variants[name] = self.state

    def use(self, name: str) -> None:
        """Go to a kept variant; can be undone."""
        self._put(self._variant(name))

    def drop(self, name: str) -> None:
        """Forget a kept variant."""
        self._variant(name)
        del self.variants[name]

    def _variant(self, name: str) -> BoardState:
        if name not in self.variants:
            raise LabError(f"no variant is named {name!r}; known are {[*self.variants]!r}")
        return self.variants[name]

    # -- rules -----------------------------------------------------------------------------

    def _put(self, state: BoardState) -> None:
        if state == self.state:
            return
        self._undo.append(self.state)
        del self._undo[:-_MOST_UNDO]
        self._redo.clear()
        self.state = state

    def _movable(self, name: str) -> None:
        if name not in self.state.order:
            raise LabError(f"the board has no movable section {name!r}; choose one of its blocks")

    def _resolve(self, state: BoardState) -> None:
        laid = self._lay(state.rewrites)
        _constraints(laid, state).resolve([s.name for s in laid.sections])

    def _checked(self, state: BoardState) -> BoardState:
        """The state, unless its order breaks a lock or a constraint."""
        check_sections(self._lay(state.rewrites).sections, self._window_tokens)
        at = {name: place for place, name in enumerate(state.order)}
        for first, second in state.before:
            if at[first] > at[second]:
                raise LabError(
                    f"{first!r} must stand before {second!r}, and this order puts it behind; "
                    "drop the constraint or choose another place"
                )
        for name, place in state.locked.items():
            if at[name] != place:
                raise LabError(
                    f"section {name!r} is locked to place {place + 1}, and this order puts it at "
                    f"{at[name] + 1}; release the lock or choose another order"
                )
        return state


def _moved(state: BoardState, name: str, to: int) -> BoardState:
    """The section at the free place nearest to `to`; the other free ones keep their order."""
    if name in state.locked:
        raise LabError(f"section {name!r} is locked to its place; release the lock first")
    taken = set(state.locked.values())
    free = [place for place in range(len(state.order)) if place not in taken]
    others = [n for n in state.order if n not in state.locked and n != name]
    others.insert(min(range(len(free)), key=lambda i: abs(free[i] - to)), name)
    order = list(state.order)
    for place, other in zip(free, others, strict=True):
        order[place] = other
    return replace(state, order=tuple(order))


def _whole(laid: Laid, order: Sequence[str]) -> tuple[str, ...]:
    """All sections in order: fixed ones around the movable."""
    names = [section.name for section in laid.sections]
    return (*names[: laid.fixed_first], *order, *names[len(names) - laid.fixed_last :])


def _constraints(laid: Laid, state: BoardState, tail: bool = True) -> OrderConstraints:
    """Locks and constraints among all sections, the fixed ones locked to their ends."""
    names = [section.name for section in laid.sections]
    pinned = {name: place + laid.fixed_first for name, place in state.locked.items()}
    pinned |= {name: at for at, name in enumerate(names[: laid.fixed_first])}
    if tail and laid.fixed_last:
        last = names[len(names) - laid.fixed_last :]
        pinned |= {name: len(names) - laid.fixed_last + at for at, name in enumerate(last)}
    return OrderConstraints(state.before, pinned)
