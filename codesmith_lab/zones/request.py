"""A request put together from the three zones, with deterministic wire bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codesmith_lab.errors import LabError
from codesmith_lab.fingerprint import compact_json, float32_text
from codesmith_lab.zones.append_log import AppendLog, Message
from codesmith_lab.zones.messages import message_json
from codesmith_lab.zones.prefix import FrozenPrefix, PinnedPrefix, System, tool_json
from codesmith_lab.zones.scratch import TurnScratch

__all__ = ["ThreeZoneRequest", "check_deterministic"]


@dataclass(frozen=True, slots=True)
class ThreeZoneRequest:
    """Pinned prefix, log and scratch: the messages can only be the log and the scratch tail.

    temperature, top_p: 32-bit floats on the wire. None fields are left out; an empty tool list is
    kept. log_end: how many messages of the log are sent (all by default).
    """

    model: str
    max_tokens: int
    prefix: PinnedPrefix
    log: AppendLog
    scratch: TurnScratch = field(default_factory=TurnScratch)
    tools_given: bool = True
    tool_choice: Any = None
    metadata: Any = None
    thinking: Any = None
    reasoning_effort: str | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    log_end: int | None = None

    def messages(self) -> tuple[Message, ...]:
        """The log slice, then the scratch user message if there is one."""
        tail = self.scratch.user_message
        return self.log[: self.log_end] + (() if tail is None else (tail,))

    def messages_json(self) -> str:
        """The messages as compact JSON."""
        return "[" + ",".join(message_json(message) for message in self.messages()) + "]"

    def freeze_prefix(self) -> FrozenPrefix:
        """The fingerprint of the pinned zone."""
        return self.prefix.freeze()

    def wire_json(self) -> str:
        """The body, compact, in the reference's field order."""
        tools = "[" + ",".join(tool_json(tool) for tool in self.prefix.tools) + "]"
        fields = [
            ("model", compact_json(self.model)),
            ("messages", self.messages_json()),
            ("max_tokens", compact_json(self.max_tokens)),
            ("system", _optional(_system(self.prefix.system))),
            ("tools", tools if self.tools_given else None),
            ("tool_choice", _optional(self.tool_choice)),
            ("metadata", _optional(self.metadata)),
            ("thinking", _optional(self.thinking)),
            ("reasoning_effort", _optional(self.reasoning_effort)),
            ("stream", _optional(self.stream)),
            ("temperature", None if self.temperature is None else float32_text(self.temperature)),
            ("top_p", None if self.top_p is None else float32_text(self.top_p)),
        ]
        present = [f'"{name}":{text}' for name, text in fields if text is not None]
        return "{" + ",".join(present) + "}"

    def wire_bytes(self) -> bytes:
        """The body as sent, UTF-8."""
        return self.wire_json().encode("utf-8")


def _optional(value: Any) -> str | None:
    return None if value is None else compact_json(value)


def _system(system: System) -> Any:
    if system is None or isinstance(system, str):
        return system
    order = ("type", "text", "cache_control")
    return [
        {name: block[name] for name in order if block.get(name) is not None} for block in system
    ]


def check_deterministic(zoned: bytes, plain: bytes) -> None:
    """The boundary stone: two assemblies of one request must be the same bytes.

    Raises LabError `prompt construction is non-deterministic: first diff at byte N` (0-based).
    """
    if zoned == plain:
        return
    n = min(len(zoned), len(plain))
    at = next((i for i in range(n) if zoned[i] != plain[i]), n)
    raise LabError(f"prompt construction is non-deterministic: first diff at byte {at}")


def hand_assembled(fields: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    """Fields of a body in the given order, None left out: the plain way to build a request."""
    return {name: value for name, value in fields if value is not None}
