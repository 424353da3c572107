"""Recorded cassettes in YAML, read interaction by interaction.

The parser's events are built into plain values here and nothing else: no tag makes an object, an
alias is the value it names and never a copy. Limits: nesting, the bytes of one interaction, and how
far aliases would blow a value up; an alias inside the value that it names is refused.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import yaml

from codesmith_lab.sessions.reading.cutting import MAX_RECORD_BYTES
from codesmith_lab.sessions.reading.json_spans import MAX_DEPTH, BadJson

__all__ = ["MAX_ALIASED_VALUES", "is_cassette", "read_interactions"]

MAX_ALIASED_VALUES: Final = 1_000_000
"""An interaction whose aliases stand for more values than that is refused."""

_HEAD: Final = re.compile(
    rb"(?:\s|#[^\n]*\n|%YAML[^\n]*\n|---[^\n]*\n)*"
    rb"(?:-\s|[\w\"']*interactions[\"']?:|version:|recorded_with:)"
)
_NAMED: Final = re.compile(rb"""^["']?(?:http_)?interactions["']?:""", re.MULTILINE)
_LISTS: Final = ("interactions", "http_interactions")
_BINARY: Final = ("!binary", "!!binary", "tag:yaml.org,2002:binary")


def is_cassette(head: bytes) -> bool:
    """Whether a file starts like a cassette in YAML, or soon names its interactions."""
    if _HEAD.match(head):
        return True
    return head.lstrip()[:1] not in (b"{", b"[") and bool(_NAMED.search(head))


class _Counted:
    """The stream, ended with an error where one interaction takes too many bytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.since = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        piece = self._stream.read(size)
        self.since += len(piece)
        if self.since > MAX_RECORD_BYTES:
            raise BadJson(f"an interaction is longer than {MAX_RECORD_BYTES >> 20} MiB")
        return piece


@dataclass(slots=True)
class _Frame:
    """A mapping or sequence that is being read.

    weight: values in it, aliases counted in full; aliased: how many of them aliases stand for.
    """

    value: dict[str, Any] | list[Any]
    line: int
    anchor: str | None
    key: str | None = None
    weight: int = 1
    aliased: int = 0
    records: bool = False


@dataclass(slots=True)
class _Builder:
    """Values out of events."""

    stack: list[_Frame] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    open_anchors: set[str] = field(default_factory=set)
    done: list[tuple[int, Any]] = field(default_factory=list)

    def start(self, value: dict[str, Any] | list[Any], anchor: str | None, line: int) -> None:
        """A mapping or sequence begins."""
        if len(self.stack) >= MAX_DEPTH:
            raise _too_deep()
        frame = _Frame(value, line, anchor)
        if isinstance(value, list):
            top = self.stack[-1] if self.stack else None
            frame.records = top is None or (len(self.stack) == 1 and top.key in _LISTS)
        if anchor:
            self.open_anchors.add(anchor)
        self.stack.append(frame)

    def end(self) -> None:
        """The innermost one ends."""
        frame = self.stack.pop()
        if frame.anchor:
            self.open_anchors.discard(frame.anchor)
        self.add(frame.value, frame.weight, frame.anchor, frame.line, frame.aliased)

    def alias(self, name: str, line: int) -> None:
        """A value that was named before."""
        if name in self.open_anchors:
            raise BadJson(f"the alias on line {line} stands inside itself")
        if name not in self.anchors:
            raise BadJson(f"the alias on line {line} names nothing")
        value, weight = self.anchors[name]
        self.add(value, weight, None, line, weight)

    def add(self, value: Any, weight: int, anchor: str | None, line: int, aliased: int = 0) -> None:
        """A complete value goes into the one around it."""
        if anchor:
            self.anchors[anchor] = (value, weight)
        if not self.stack:
            return
        frame = self.stack[-1]
        frame.weight += weight
        frame.aliased += aliased
        if frame.records:
            frame.weight, frame.aliased = 1, 0
            self.done.append((line, value))
        elif frame.aliased > MAX_ALIASED_VALUES:
            raise BadJson(
                f"its aliases stand for more than {MAX_ALIASED_VALUES:,} values by line {line}"
            )
        elif isinstance(frame.value, list):
            frame.value.append(value)
        elif len(self.stack) == 1 and frame.key in _LISTS and isinstance(value, list):
            # The whole list is an alias of one that stood elsewhere.
            self.done += [(line, record) for record in value]
            frame.key = None
        elif frame.key is None:
            frame.key = value if isinstance(value, str) else str(value)[:200]
        else:
            frame.value[frame.key] = value
            frame.key = None


def _too_deep() -> BadJson:
    return BadJson(f"it nests deeper than {MAX_DEPTH} levels")


def read_interactions(stream: BinaryIO) -> Iterator[tuple[int, Any]]:
    """Line and value of each interaction of a cassette. Raises BadJson where it cannot go on."""
    counted = _Counted(stream)
    builder = _Builder()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    scalars = _Scalars()
    try:
        events: Iterator[Any] = yaml.parse(counted, Loader=loader)
        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.ScalarEvent):
                builder.add(scalars.value(event), 1, event.anchor, line)
            elif isinstance(event, yaml.MappingStartEvent):
                builder.start({}, event.anchor, line)
            elif isinstance(event, yaml.SequenceStartEvent):
                builder.start([], event.anchor, line)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                builder.end()
            elif isinstance(event, yaml.AliasEvent):
                builder.alias(event.anchor or "", line)
            elif isinstance(event, yaml.DocumentStartEvent):
                # A name holds within its document.
                builder.anchors.clear()
            if builder.done:
                counted.since = 0
                done, builder.done = builder.done, []
                yield from done
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = getattr(mark, "line", None)
        line = "" if place is None else f" on line {place + 1}"
        problem = str(getattr(error, "problem", None) or "characters that YAML does not allow")
        if "nesting" in problem:
            raise _too_deep() from None
        raise BadJson(f"it is not YAML{line} ({problem})") from None
    except RecursionError:
        raise _too_deep() from None


class _Scalars:
    """Plain values out of scalars, by YAML 1.1's core tags; any other tag is read as text."""

    def __init__(self) -> None:
        self._resolver: Any = yaml.resolver.Resolver()
        self._constructor: Any = yaml.constructor.SafeConstructor()

    def value(self, event: Any) -> Any:
        """The value of a scalar."""
        if event.tag in _BINARY:
            try:
                return base64.b64decode(event.value)
            except (binascii.Error, ValueError):
                return event.value
        if event.tag is not None or event.style or not event.implicit[0]:
            return event.value
        tag = self._resolver.resolve(yaml.ScalarNode, event.value, (True, False))
        kind = tag.rpartition(":")[2]
        node = yaml.ScalarNode(tag, event.value)
        try:
            if kind == "null":
                return None
            if kind == "bool":
                return self._constructor.construct_yaml_bool(node)
            if kind == "int":
                return self._constructor.construct_yaml_int(node)
            if kind == "float":
                return self._constructor.construct_yaml_float(node)
        except (ValueError, OverflowError, KeyError):
            return event.value
        return event.value
