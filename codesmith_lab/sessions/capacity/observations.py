"""Capacity observations derived from an imported session.

The counts follow the reference's engine, as far as a log shows what it counts:

- actions: one, plus the requests and the tool results since a person last spoke;
- tools: tool calls and tool results in the newest 3 * max(8, window) messages;
- references: distinct call ids in them, and distinct words of their texts that hold a slash or a
  full stop, outer punctuation taken off. The engine also counts the paths of its own working set,
  which no log has;
- context: the prompt's tokens over the model's context window;
- model: the one that the request is billed as, whose prior then holds.

A request is observed before it is sent and, where the next request brings tool results, after its
tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from codesmith_lab.billing.price_tables import catalog_window_tokens
from codesmith_lab.capacity.formulas import CapacityObservation, Phase
from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.errors import LabError
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.analysis import make_runner
from codesmith_lab.sessions.records import Session
from codesmith_lab.sessions.turns import TurnRunner

__all__ = [
    "DEFAULT_WINDOW_TOKENS",
    "Numbering",
    "Point",
    "SessionObserver",
    "has_result",
    "messages_of",
    "observe_session",
    "runner_of",
]

DEFAULT_WINDOW_TOKENS = 128_000
"""Context window of a model that the price catalog has none for, as in the reference."""
Numbering = Literal["request", "person"]
Message = tuple[Block, ...]

_OUTER = ",.;:()[]{}"
_CALL_TYPES = ("tool_use", "server_tool_use", "mcp_tool_use")


@dataclass(frozen=True, slots=True)
class Point:
    """A moment of observation.

    request: the request whose blocks are looked at. phase: before it was sent, or after the
    tools of the one before it. turn_index, actions: as observed.
    """

    request: int
    phase: Phase
    turn_index: int
    actions: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one block adds to the counts."""

    calls: int
    results: int
    references: frozenset[str]


class SessionObserver:
    """Counts what the controller looks at, on the session as recorded or as rewritten.

    runner: the session under a model. window: the controller's `profile_window`.
    turns: "request" numbers turns by request, "person" by what a person said, as the reference's
        engine does; a long tool loop is then one turn.
    context_window_tokens: None takes the catalog's for the model, else `DEFAULT_WINDOW_TOKENS`.

    Raises LabError for a window that is no positive number, another numbering, and a session of
    whose requests no content is known: counters alone say nothing of tools and references.
    """

    def __init__(
        self,
        runner: TurnRunner,
        window: int = 8,
        turns: Numbering = "request",
        context_window_tokens: int | None = None,
    ) -> None:
        if turns not in ("request", "person"):
            raise LabError(f"turns is {turns!r}; choose request or person")
        requests = runner.session.requests
        self.without_content = sum(request.content == "none" for request in requests)
        if self.without_content == len(requests):
            raise LabError(
                f"{runner.session.name} holds no messages, so tool calls and references cannot be "
                "counted; take a log with the requests' bodies"
            )
        known = catalog_window_tokens(runner.model.price_ref)
        tokens = context_window_tokens or known or DEFAULT_WINDOW_TOKENS
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise LabError(f"context_window_tokens is {tokens!r}; pass a whole number from 1 on")
        self.runner = runner
        self.context_window_tokens = tokens
        self.window_known = context_window_tokens is not None or known is not None
        self._newest = 3 * max(8, window)
        self._numbering = turns
        self._seen: dict[int, tuple[Block, _Seen]] = {}

    def points(self) -> Iterator[Point]:
        """Every moment of observation, in order."""
        requests = self.runner.session.requests
        persons, steps, calls = -1, 0, 0
        for i, request in enumerate(requests):
            scratch = [m for m in messages_of(request.blocks) if m[0].zone == "scratch"]
            spoke = any(m[0].role == "user" and not self.results(m) for m in scratch)
            if spoke or persons < 0:
                persons, steps, calls = persons + 1, 0, 0
            else:
                steps += 1
            turn = i if self._numbering == "request" else persons
            yield Point(i, "pre_turn", turn, steps + calls + 1)
            if i + 1 == len(requests):
                return
            following = messages_of(requests[i + 1].blocks)
            results = sum(self.results(m) for m in following if m[0].zone == "scratch")
            if results:
                calls += results
                yield Point(i + 1, "post_tool", turn, steps + calls + 1)

    def notes(self) -> list[str]:
        """What is assumed, in sentences."""
        assumed = "" if self.window_known else ", assumed"
        notes = [f"Context window {self.context_window_tokens:,} tokens{assumed}."]
        if self.without_content:
            notes.append(
                f"{self.without_content} requests are known by their counters only: no tool call "
                "and no reference is counted there."
            )
        return notes

    def observe(self, point: Point, blocks: Sequence[Block], tokens: int) -> CapacityObservation:
        """The observation at a point, where the request holds these blocks and tokens.

        Where the log holds no content, the reported input tokens are taken.
        """
        request = self.runner.session.requests[point.request]
        if request.content == "none" and request.usage is not None:
            tokens = request.usage.input_tokens
        calls = results = 0
        references: set[str] = set()
        for message in messages_of(blocks)[-self._newest :]:
            for block in message:
                seen = self.look(block)
                calls += seen.calls
                results += seen.results
                references |= seen.references
        model = self.runner.model_of(point.request)
        return CapacityObservation(
            point.turn_index,
            model,
            point.actions,
            calls + results,
            len(references),
            tokens / self.context_window_tokens,
        )

    def results(self, message: Message) -> int:
        """Tool results in a message."""
        return sum(self.look(block).results for block in message)

    def look(self, block: Block) -> _Seen:
        """What a block adds to the counts; worked out once for each block."""
        known = self._seen.get(id(block))
        if known is None or known[0] is not block:
            known = self._seen[id(block)] = (block, _look(block))
        return known[1]


def messages_of(blocks: Sequence[Block]) -> list[Message]:
    """The messages behind the pinned prefix, each as its blocks."""
    found: list[list[Block]] = []
    for block in blocks:
        if block.zone == "pinned":
            continue
        if block.first or not found:
            found.append([])
        found[-1].append(block)
    return [tuple(message) for message in found]


def has_result(block: Block) -> bool:
    """Whether a block answers a tool call."""
    return _look(block).results > 0


def _look(block: Block) -> _Seen:
    try:
        value = json.loads(block.raw)
    except (ValueError, RecursionError):
        value = None
    answers: set[str] = set()
    ids: set[str] = set()
    texts: list[str] = []
    _gather(value, ids, answers, texts, 0)
    results = max(len(answers), int(block.role == "tool"))
    words = {
        word.strip(_OUTER)
        for text in ([] if results else texts)
        for word in text.split()
        if "/" in word or "." in word
    }
    return _Seen(block.calls, results, frozenset((ids | answers | words) - {""}))


def _gather(value: Any, ids: set[str], answers: set[str], texts: list[str], depth: int) -> None:
    """Call ids, answered ids and plain texts of a message or part, as any API writes them."""
    if depth > 4:
        return
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list):
        for item in value:
            _gather(item, ids, answers, texts, depth + 1)
    elif isinstance(value, dict):
        answered = value.get("tool_call_id", value.get("tool_use_id"))
        if isinstance(answered, str):
            answers.add(answered)
            return
        if value.get("type") in _CALL_TYPES or "function" in value:
            if isinstance(value.get("id"), str):
                ids.add(value["id"])
            return
        for key in ("tool_calls", "content", "text"):
            if key in value:
                _gather(value[key], ids, answers, texts, depth + 1)


def runner_of(
    source: Session | TurnRunner, model: str | None = None, rules: str | None = None
) -> TurnRunner:
    """A runner with exact counts for a session; a runner is given back as it is."""
    if isinstance(source, TurnRunner):
        return source
    return make_runner(source, model, rules)


def observe_session(
    source: Session | TurnRunner,
    window: int = 8,
    turns: Numbering = "request",
    context_window_tokens: int | None = None,
    model: str | None = None,
    rules: str | None = None,
) -> ObservationTable:
    """The observations of a session as it was recorded, one table without labels.

    source: a session, or one laid out already. window, turns, context_window_tokens: see
        `SessionObserver`. model, rules: as for `analyze`; they count the tokens.
    """
    runner = runner_of(source, model, rules)
    observer = SessionObserver(runner, window, turns, context_window_tokens)
    points = list(observer.points())
    rows = [
        observer.observe(
            point,
            runner.session.requests[point.request].blocks,
            runner.prompt_of(point.request, None).total_tokens,
        )
        for point in points
    ]
    return ObservationTable.from_rows(rows, [p.phase for p in points], runner.session.name)
