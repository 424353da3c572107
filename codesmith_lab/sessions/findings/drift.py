"""The reference's own view of a session: pinned fingerprints and drift, turn by turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.zones import FrozenPrefix, PinnedPrefix, PrefixStabilityManager

__all__ = ["DriftStep", "DriftWatcher"]

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DriftStep:
    """One check of the pinned prefix.

    label: "sys", "tools", "sys+tools", or "" while it is stable. before, after: short ids.
    """

    label: str
    description: str
    before: str
    after: str


class DriftWatcher:
    """Freezes the pinned blocks of each turn and checks them against the pinned prefix.

    Frozen prefixes are remembered by their texts, so that a replay costs one look-up a turn.
    """

    def __init__(self) -> None:
        self._frozen: dict[tuple[str, Key], FrozenPrefix] = {}
        self._catalogs: dict[Key, str] = {}

    def freeze(self, blocks: Sequence[Block]) -> FrozenPrefix:
        """The frozen prefix of one request's blocks."""
        system = "".join(block.text for block in blocks if block.kind == "section")
        tools = tuple(block.text for block in blocks if block.kind == "tool")
        known = self._frozen.get((system, tools))
        if known is None:
            known = FrozenPrefix.from_texts(system, self._catalog(tools))
            self._frozen[(system, tools)] = known
        return known

    def steps(self, pinned: Sequence[Sequence[Block]]) -> list[DriftStep]:
        """One step a turn: first pin, stable, or drift with an automatic re-pin."""
        manager = PrefixStabilityManager()
        steps = []
        for blocks in pinned:
            frozen = self.freeze(blocks)
            before = manager.pinned_short_id or frozen.short_id
            change = manager.check_and_update(frozen)
            if change is None:
                steps.append(DriftStep("", "prefix stable", before, frozen.short_id))
            else:
                text = change.description()
                steps.append(DriftStep(change.label(), text, before, frozen.short_id))
        return steps

    def _catalog(self, tools: Key) -> str:
        known = self._catalogs.get(tools)
        if known is None:
            frozen = PinnedPrefix(None, [_reference_tool(text) for text in tools]).freeze()
            known = self._catalogs[tools] = frozen.tool_catalog
        return known


def _reference_tool(text: str) -> dict[str, Any]:
    """A tool definition under the reference's field names, whatever API it was written for."""
    tool = json.loads(text)
    if not isinstance(tool, dict):
        return {"name": "", "description": "", "input_schema": tool}
    known = dict(tool)
    if "parameters" in known and "input_schema" not in known:
        known["input_schema"] = known.pop("parameters")
    known.setdefault("name", "")
    known.setdefault("description", "")
    known.setdefault("input_schema", None)
    return known
