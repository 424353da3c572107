"""A request put together from the three zones, with deterministic wire bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codesmith_lab.errors import LabError
from codesmith_lab.fingerprint import compact_json, float32_text, sha256_hex
from codesmith_lab.zones.append_log import AppendLog, LogEntry, Message
from codesmith_lab.zones.frozen import freeze
from codesmith_lab.zones.messages import ordered_message, ordered_system_block, ordered_tool
from codesmith_lab.zones.prefix import FrozenPrefix, PinnedPrefix
from codesmith_lab.zones.scratch import TurnScratch

__all__ = ["PromptNondeterminismError", "ThreeZoneRequest", "check_deterministic", "hand_assembly"]

_TOKENS_BOUND = 2**32  # the reference holds max_tokens in a u32
_BODY_FIELDS = (
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "metadata",
    "thinking",
    "reasoning_effort",
    "stream",
    "temperature",
    "top_p",
)


class PromptNondeterminismError(LabError):
    """Two assemblies of one request differ; `byte` is the first differing byte, 0-based."""

    def __init__(self, byte: int) -> None:
        self.byte = byte
        super().__init__(f"prompt construction is non-deterministic: first diff at byte {byte}")


@dataclass(frozen=True, slots=True)
class ThreeZoneRequest:
    """Pinned prefix, log and scratch: the messages can only be the log and the scratch tail.

    The zones are read once, when the request is made: later pushes, rebuilds and turns do not
    reach it, so that a retry sends the same bytes. temperature, top_p: 32-bit floats on the wire.
    None fields are left out. tools_given: whether the body has a tool list, which may be empty.
    log_end: how many messages of the log are sent (all by default). Raises LabError for a field
    that the wire cannot hold.
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
    _entries: tuple[LogEntry, ...] = field(init=False, repr=False, compare=False)
    _head: str = field(init=False, repr=False, compare=False)
    _tail: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, kind in (("prefix", PinnedPrefix), ("log", AppendLog), ("scratch", TurnScratch)):
            if not isinstance(getattr(self, name), kind):
                given = type(getattr(self, name)).__name__
                raise LabError(f"the {name} of a request is a {kind.__name__}, not {given}")
        for name in ("tool_choice", "metadata", "thinking"):
            object.__setattr__(self, name, freeze(getattr(self, name)))
        tail = self.scratch.entry
        entries = self.log.entries(self.log_end) + (() if tail is None else (tail,))
        object.__setattr__(self, "_entries", entries)
        object.__setattr__(self, "_head", f'{{"model":{_text("model", self.model)},"messages":')
        rest = _fields_behind_messages(self)
        object.__setattr__(self, "_tail", "".join(f',"{name}":{text}' for name, text in rest) + "}")

    def messages(self) -> tuple[Message, ...]:
        """The log slice, then the scratch user message if there is one."""
        return tuple(entry.message for entry in self._entries)

    def messages_json(self) -> str:
        """The messages as compact JSON."""
        return "[" + ",".join(entry.wire.decode("utf-8") for entry in self._entries) + "]"

    def freeze_prefix(self) -> FrozenPrefix:
        """The fingerprint of the pinned zone."""
        return self.prefix.freeze()

    def wire_json(self) -> str:
        """The body, compact, in the reference's field order."""
        return f"{self._head}{self.messages_json()}{self._tail}"

    def wire_bytes(self) -> bytes:
        """The body as sent, UTF-8."""
        return self.wire_json().encode("utf-8")

    def wire_sha256(self) -> str:
        """SHA-256 of the wire bytes, 64 hex digits."""
        return sha256_hex(self.wire_json())


def _fields_behind_messages(request: ThreeZoneRequest) -> list[tuple[str, str]]:
    system: Any = request.prefix.system
    if system is not None and not isinstance(system, str):
        system = [ordered_system_block(block) for block in system]
    tools = [ordered_tool(tool) for tool in request.prefix.tools] if request.tools_given else None
    fields = [
        ("max_tokens", _token_limit(request.max_tokens)),
        ("system", _optional(system)),
        ("tools", _optional(tools)),
        ("tool_choice", _optional(request.tool_choice)),
        ("metadata", _optional(request.metadata)),
        ("thinking", _optional(request.thinking)),
    ]
    if request.reasoning_effort is not None:
        fields.append(("reasoning_effort", _text("reasoning_effort", request.reasoning_effort)))
    if request.stream is not None:
        if not isinstance(request.stream, bool):
            raise LabError(f"stream is True, False or None, not {request.stream!r}")
        fields.append(("stream", compact_json(request.stream)))
    for name, number in (("temperature", request.temperature), ("top_p", request.top_p)):
        if number is not None:
            fields.append((name, float32_text(number)))
    return [(name, text) for name, text in fields if text is not None]


def _optional(value: Any) -> str | None:
    return None if value is None else compact_json(value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise LabError(f"{name} is text, not {value!r}")
    return compact_json(value)


def _token_limit(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _TOKENS_BOUND:
        raise LabError(f"max_tokens is a whole number from 0 to 4294967295, not {value!r}")
    return compact_json(value)


def hand_assembly(body: Mapping[str, Any]) -> bytes:
    """The wire bytes of a plain body: one mapping, as a person writes a request without zones.

    `body` holds model, messages, max_tokens and any other field of the reference; null fields are
    left out, the order of its keys is no matter. Nothing is cached and no zone is read: this is
    the slow, clear twin of `ThreeZoneRequest.wire_bytes`. Raises LabError for a field the
    reference does not send.
    """
    unknown = [name for name in body if name not in _BODY_FIELDS]
    if unknown:
        raise LabError(
            f"the body has an unknown field {unknown[0]!r}; use {', '.join(_BODY_FIELDS)}"
        )
    texts = {}
    for name in _BODY_FIELDS:
        value: Any = body.get(name)
        if value is None:
            continue
        if name == "messages":
            value = [ordered_message(message) for message in value]
        elif name == "tools":
            value = [ordered_tool(tool) for tool in value]
        elif name == "system" and not isinstance(value, str):
            value = [ordered_system_block(block) for block in value]
        narrow = name in ("temperature", "top_p")
        texts[name] = float32_text(value) if narrow else compact_json(value)
    return ("{" + ",".join(f'"{name}":{text}' for name, text in texts.items()) + "}").encode()


def check_deterministic(zoned: bytes, plain: bytes) -> None:
    """The boundary stone: two assemblies of one request must be the same bytes.

    Raises PromptNondeterminismError, a LabError that says
    `prompt construction is non-deterministic: first diff at byte N` (0-based); where one is a
    prefix of the other, N is the shorter one's length.
    """
    if zoned == plain:
        return
    shorter = min(len(zoned), len(plain))
    raise PromptNondeterminismError(
        next((at for at in range(shorter) if zoned[at] != plain[at]), shorter)
    )
