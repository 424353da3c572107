"""Zone 1: the pinned prefix, its fingerprint and its drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codesmith_lab.errors import LabError
from codesmith_lab.fingerprint import compact_json, sha256_hex

__all__ = ["FrozenPrefix", "PinnedPrefix", "PrefixChange", "PrefixDrift", "System", "tool_json"]

System = str | Sequence[Mapping[str, Any]] | None

_TOOL_FIELDS = (
    "type",
    "name",
    "description",
    "input_schema",
    "output_schema",
    "allowed_callers",
    "defer_loading",
    "input_examples",
    "strict",
    "cache_control",
)
_ALWAYS = ("name", "description", "input_schema")
SHORT_ID_CHARS = 12


def _system_text(system: System) -> str:
    if system is None:
        return ""
    if isinstance(system, str):
        return system
    return "".join(f"{block.get('text', '')}\n" for block in system)


def tool_json(tool: Mapping[str, Any]) -> str:
    """One tool in the reference's field order; absent and null optional fields vanish."""
    fields = {
        name: tool.get(name)
        for name in _TOOL_FIELDS
        if name in _ALWAYS or tool.get(name) is not None
    }
    return compact_json(fields)


@dataclass(frozen=True, slots=True)
class PrefixDrift:
    """The pinned prefix is not what was frozen. Hashes are combined SHA-256, hex."""

    frozen_hash: str
    current_hash: str
    system_changed: bool
    tools_changed: bool

    def __str__(self) -> str:
        what = _what(self.system_changed, self.tools_changed)
        frozen, current = self.frozen_hash[:SHORT_ID_CHARS], self.current_hash[:SHORT_ID_CHARS]
        return f"prefix drift: {what} changed (frozen={frozen}, current={current})"


@dataclass(frozen=True, slots=True)
class PrefixChange:
    """A drift that a `PrefixStabilityManager` saw and re-pinned."""

    old_sha256: str
    new_sha256: str
    system_changed: bool
    tools_changed: bool

    def description(self) -> str:
        """One sentence for people."""
        what = _what(self.system_changed, self.tools_changed)
        return f"prefix cache invalidated: {what} changed"

    def label(self) -> str:
        """ "sys", "tools" or "sys+tools"."""
        parts = (("sys", self.system_changed), ("tools", self.tools_changed))
        return "+".join(name for name, changed in parts if changed)


def _what(system_changed: bool, tools_changed: bool) -> str:
    if system_changed and tools_changed:
        return "system prompt and tool set"
    if system_changed:
        return "system prompt"
    return "tool set" if tools_changed else "unknown component"


@dataclass(frozen=True, slots=True)
class FrozenPrefix:
    """A pinned prefix and its hashes: SHA-256 over the system text, over the sorted compact JSON
    of the tools, and over both hex hashes joined by a colon."""

    system_text: str
    tool_catalog: str
    system_sha256: str
    tools_sha256: str
    combined_sha256: str

    @classmethod
    def from_texts(cls, system_text: str, tool_catalog: str) -> FrozenPrefix:
        """A frozen prefix from a system text and a catalog that is already sorted."""
        system_sha, tools_sha = sha256_hex(system_text), sha256_hex(tool_catalog)
        combined = sha256_hex(f"{system_sha}:{tools_sha}")
        return cls(system_text, tool_catalog, system_sha, tools_sha, combined)

    @property
    def short_id(self) -> str:
        """The first 12 hex digits of the combined hash."""
        return self.combined_sha256[:SHORT_ID_CHARS]

    def verify(self, system: System, tools: Sequence[Mapping[str, Any]]) -> PrefixDrift | None:
        """Compare with a current system prompt and tools; None while nothing drifted."""
        current = PinnedPrefix(system, tools).freeze()
        if current.combined_sha256 == self.combined_sha256:
            return None
        return PrefixDrift(
            self.combined_sha256,
            current.combined_sha256,
            current.system_sha256 != self.system_sha256,
            current.tools_sha256 != self.tools_sha256,
        )


@dataclass(frozen=True, slots=True)
class PinnedPrefix:
    """System prompt (text, blocks or None) and tool catalog, before freezing."""

    system: System = None
    tools: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    def freeze(self) -> FrozenPrefix:
        """Hash the prefix. Tools are sorted by their JSON bytes, so their order cannot drift.

        Raises LabError for values that JSON cannot hold.
        """
        for tool in self.tools:
            if not isinstance(tool, Mapping):
                raise LabError(f"a tool is a mapping with a name, not {type(tool).__name__}")
        text = _system_text(self.system)
        catalog = "\n".join(
            sorted((tool_json(tool) for tool in self.tools), key=lambda t: t.encode("utf-8"))
        )
        return FrozenPrefix.from_texts(text, catalog)
