"""Zone 1: the pinned prefix, its fingerprint and its drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codesmith_lab.errors import LabError
from codesmith_lab.fingerprint import check_text, sha256_hex
from codesmith_lab.zones.frozen import freeze_mapping
from codesmith_lab.zones.messages import tool_json

__all__ = ["FrozenPrefix", "PinnedPrefix", "PrefixChange", "PrefixDrift", "System"]

System = str | Sequence[Mapping[str, Any]] | None

SHORT_ID_CHARS = 12


def _system_text(system: System) -> str:
    """Null, "" and [] are all the empty text; each block's text gets a trailing newline."""
    if system is None:
        return ""
    if isinstance(system, str):
        return system
    return "".join(f"{block['text']}\n" for block in system)


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
        if not (self.system_changed or self.tools_changed):
            return "unknown (fingerprint mismatch but no component detected)"
        what = _what(self.system_changed, self.tools_changed)
        return f"prefix cache invalidated: {what} changed"

    def label(self) -> str:
        """ "sys", "tools" or "sys+tools"; "prefix" when neither part is known to have changed."""
        parts = (("sys", self.system_changed), ("tools", self.tools_changed))
        return "+".join(name for name, changed in parts if changed) or "prefix"


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

    def verify(
        self,
        system: System | PinnedPrefix | FrozenPrefix,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> PrefixDrift | None:
        """Compare with a current system prompt and tools, or with a whole prefix.

        None while nothing drifted. Tools beside a whole prefix raise LabError: it has its own.
        """
        if isinstance(system, PinnedPrefix | FrozenPrefix):
            if tools is not None:
                raise LabError("a prefix brings its own tools; pass either it or system and tools")
            current = system.freeze() if isinstance(system, PinnedPrefix) else system
        else:
            current = PinnedPrefix(system, tools or ()).freeze()
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
    """System prompt (text, blocks or None) and tool catalog, before freezing.

    Blocks and tools are copied and frozen on the way in: what the caller still holds has no
    effect. Raises LabError for a block without text and for what JSON cannot hold.
    """

    system: System = None
    tools: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        object.__setattr__(self, "system", _frozen_system(self.system))
        if isinstance(self.tools, str | bytes | Mapping):
            raise LabError(f"the tools are a list of mappings, not {type(self.tools).__name__}")
        frozen = tuple(freeze_mapping(tool, "a tool") for tool in self.tools or ())
        object.__setattr__(self, "tools", frozen)

    def freeze(self) -> FrozenPrefix:
        """Hash the prefix. Tools are sorted by their JSON bytes, so their order cannot drift.

        Raises LabError for values that JSON cannot hold.
        """
        # Sorting texts by code point is sorting their UTF-8 bytes.
        catalog = "\n".join(sorted(tool_json(tool) for tool in self.tools))
        return FrozenPrefix.from_texts(_system_text(self.system), catalog)


def _frozen_system(system: System) -> System:
    if system is None:
        return None
    if isinstance(system, str):
        return check_text(system)
    if isinstance(system, bytes | Mapping):
        raise LabError(
            f"a system prompt is text, a list of blocks or None, not {type(system).__name__}"
        )
    blocks = tuple(freeze_mapping(block, "a block of the system prompt") for block in system)
    for index, block in enumerate(blocks):
        if not isinstance(block.get("text"), str):
            raise LabError(
                f"block {index} of the system prompt has no text but {block.get('text')!r}; "
                'write it as {"type": "text", "text": "..."}'
            )
    return blocks
