"""The index for a rule."""

from __future__ import annotations

from codesmith_lab.cache.breakpoints import BreakpointIndex
from codesmith_lab.cache.engine import PrefixIndex
from codesmith_lab.cache.pieces import PieceTable
from codesmith_lab.cache.pools import PoolIndex
from codesmith_lab.cache.radix import RadixIndex
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.cache.slots import SlotIndex
from codesmith_lab.cache.units import StoredUnitIndex

__all__ = ["make_index"]

_KINDS: dict[str, type[PrefixIndex]] = {
    "breakpoints": BreakpointIndex,
    "stored_units": StoredUnitIndex,
    "pool": PoolIndex,
    "radix": RadixIndex,
    "slots": SlotIndex,
}


def make_index(table: PieceTable, rule: CacheRule) -> PrefixIndex:
    """An empty cache under `rule`."""
    return _KINDS.get(rule.match, PrefixIndex)(table, rule)
