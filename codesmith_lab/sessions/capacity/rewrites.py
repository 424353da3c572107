"""What each capacity intervention makes of a history.

A *refresh* replaces all but the newest messages by a summary. A *replan* replaces everything by a
short state and the person's last message. A *replay* appends a note on the tool call it repeated.
The texts are stand-ins of the right length, taken from the messages themselves, so that they can be
counted; no model writes them. Source: the interventions of the reference's engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from codesmith_lab.capacity.controller import Action
from codesmith_lab.errors import LabError
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.capacity.observations import Message, SessionObserver, messages_of
from codesmith_lab.sessions.turns import TurnRunner

__all__ = ["InterventionRules", "Rewrite", "RewrittenHistory", "rewrite_history"]

SummaryCall = Literal["none", "cached", "fresh"]

_GOAL_CHARACTERS = 220
_FACT_CHARACTERS = 180
_FACTS = 4
_NAME_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class InterventionRules:
    """How interventions are carried out in a replay.

    keep_messages: newest messages that a refresh leaves as they are, besides this turn's own.
    compression_ratio: length of a summary over that of what it replaces, 0 to 1.
    summary_call: what writing the summary costs. "fresh": a request of its own, which reads the
        replaced messages at full price, as in the reference. "cached": one that repeats the
        conversation, so that they are cache hits. "none": nothing.

    Raises LabError for a value out of its range.
    """

    keep_messages: int = 4
    compression_ratio: float = 0.1
    summary_call: SummaryCall = "fresh"

    def __post_init__(self) -> None:
        keep = self.keep_messages
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 0:
            raise LabError(f"keep_messages is {keep!r}; pass a whole number from 0 on")
        ratio = self.compression_ratio
        if not (math.isfinite(ratio) and 0 <= ratio <= 1):
            raise LabError(f"compression_ratio is {ratio!r}, but it must be from 0 to 1")
        if self.summary_call not in ("none", "cached", "fresh"):
            raise LabError(
                f"summary_call is {self.summary_call!r}; choose one of none, cached, fresh"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Rewrite:
    """From a request on, `blocks` stand for the first messages that were recorded.

    request: the first request that sends it. covered: the recorded messages it stands for; a
    request that no longer begins with them has been rewritten by its own agent, and is left alone.
    settled: the same blocks once the turn is over: what was the turn's own is history then.
    replaced, summary: what a model that writes the summary reads and writes; empty for a replan
    and a replay, which need none.
    """

    request: int
    action: Action
    covered: tuple[Message, ...]
    blocks: tuple[Block, ...]
    settled: tuple[Block, ...]
    replaced: tuple[Message, ...]
    summary: tuple[Block, ...]


class RewrittenHistory:
    """A session with rewrites in force, request by request.

    rewrites: in the order of their requests. superseded: requests whose own agent had made
    something else of the history, so that earlier rewrites are void from there.
    """

    def __init__(self, runner: TurnRunner, shared: RewrittenHistory | None = None) -> None:
        self.runner = runner
        self.rewrites: list[Rewrite] = []
        self.superseded: list[int] = []
        self._void = 0
        # What a rewrite makes of a request does not depend on the other rewrites.
        self._known: dict[tuple[int, int], tuple[Block, ...] | None] = (
            {} if shared is None else shared._known
        )

    def blocks(self, request: int) -> tuple[Block, ...] | None:
        """A request as the newest rewrite has it; None where it is as recorded."""
        for rewrite in reversed(self.rewrites[self._void :]):
            if rewrite.request <= request:
                key = (request, id(rewrite))
                if key not in self._known:
                    recorded = self.runner.session.requests[request].blocks
                    self._known[key] = _rewritten(recorded, rewrite)
                return self._known[key]
        return None

    def enter(self, request: int) -> None:
        """From here on, rewrites that this request no longer fits are void."""
        live = sum(rewrite.request <= request for rewrite in self.rewrites)
        if live > self._void and self.blocks(request) is None:
            self._void = live
            self.superseded.append(request)

    def changed(self, first: int) -> dict[int, tuple[Block, ...]]:
        """What each request sends from `first` on, where it is not as recorded."""
        found: dict[int, tuple[Block, ...]] = {}
        for request in range(first, len(self.runner.session.requests)):
            self.enter(request)
            blocks = self.blocks(request)
            if blocks is not None:
                found[request] = blocks
        return found

    def upto(self, count: int) -> RewrittenHistory:
        """The same session under the first rewrites only."""
        history = RewrittenHistory(self.runner, self)
        history.rewrites = self.rewrites[:count]
        return history


def _rewritten(blocks: Sequence[Block], rewrite: Rewrite) -> tuple[Block, ...] | None:
    """A recorded request with a rewrite applied; None where it no longer fits."""
    messages = messages_of(blocks)
    size = len(rewrite.covered)
    if len(messages) < size or not all(map(_same, messages, rewrite.covered)):
        return None
    rest = [block for message in messages[size:] for block in message]
    own = {id(block) for block in blocks if block.zone == "scratch"}
    kept = (
        block if id(block) in own else settled
        for block, settled in zip(rewrite.blocks, rewrite.settled, strict=True)
    )
    return (*(b for b in blocks if b.zone == "pinned"), *kept, *rest)


def _same(one: Message, other: Message) -> bool:
    """The same message, whatever zone it stands in by now."""
    return len(one) == len(other) and all(
        a is b or (a.role, a.kind, a.text) == (b.role, b.kind, b.text)
        for a, b in zip(one, other, strict=True)
    )


def rewrite_history(
    action: Action,
    request: int,
    recorded: Sequence[Block],
    now: Sequence[Block],
    rules: InterventionRules,
    observer: SessionObserver,
) -> Rewrite | None:
    """Carry an intervention out on the messages a request is about to send.

    recorded: the request as recorded. now: as it stands after earlier rewrites.
    Gives None when nothing would become shorter: then nothing is done, as in the reference.
    """
    covered = tuple(messages_of(recorded))
    messages = messages_of(now)
    if not messages:
        return None
    summary: tuple[Block, ...] = ()
    replaced: tuple[Message, ...] = ()
    if action == "targeted_context_refresh":
        cut = _cut(messages, rules.keep_messages, observer)
        replaced, kept = tuple(messages[:cut]), messages[cut:]
        if not replaced:
            return None
        summary = (_summary(replaced, rules.compression_ratio),)
    elif action == "verify_and_replan":
        person = _last_person(messages, observer)
        kept = [] if person is None else [person]
        summary = (_state(messages, person, observer),)
    elif action == "verify_with_tool_replay":
        note = _note(messages, observer)
        if note is None:
            return None
        kept = [*messages, (note,)]
    else:
        raise LabError(f"{action} rewrites no history; pass an intervention")
    blocks = (*summary, *(block for message in kept for block in message))
    before = sum(len(block.text) for message in messages for block in message)
    if summary and sum(len(block.text) for block in blocks) >= before:
        return None
    cost = (replaced, summary) if action == "targeted_context_refresh" else ((), ())
    settled = tuple(b if b.zone == "log" else replace(b, zone="log") for b in blocks)
    return Rewrite(request, action, covered, blocks, settled, *cost)


def _cut(messages: Sequence[Message], keep: int, observer: SessionObserver) -> int:
    """How many messages go: all but the newest and this turn's own, never between a tool call and
    its results."""
    old = next((i for i, m in enumerate(messages) if m[0].zone == "scratch"), len(messages))
    cut = min(old, max(0, len(messages) - keep))
    while cut and cut < len(messages) and observer.results(messages[cut]):
        cut -= 1
    return cut


def _summary(replaced: Sequence[Message], ratio: float) -> Block:
    """The beginning of every replaced text, so that the whole has about the length asked for."""
    lines = [f"Summary of {len(replaced)} earlier messages:"]
    for message in replaced:
        for block in message:
            start = block.text[: math.ceil(ratio * len(block.text))]
            if start.strip():
                lines.append(start)
    return _message("user", "summary", "\n".join(lines))


def _state(messages: Sequence[Message], person: Message | None, observer: SessionObserver) -> Block:
    """Goal and last results, each cut short: its length does not grow with the history."""
    goal = "" if person is None else " ".join(block.text for block in person)
    facts = [
        block.text[:_FACT_CHARACTERS]
        for message in reversed(messages)
        for block in message
        if observer.look(block).results
    ][:_FACTS]
    lines = [
        "State kept by the capacity controller.",
        f"Goal: {goal[:_GOAL_CHARACTERS] or 'go on with the task'}",
        "Last results:",
        *(f"- {fact}" for fact in facts),
        "Plan again from this state, in small steps that can be checked.",
    ]
    return _message("user", "state", "\n".join(lines))


def _last_person(messages: Sequence[Message], observer: SessionObserver) -> Message | None:
    for message in reversed(messages):
        if message[0].role == "user" and not observer.results(message):
            return message
    return None


def _note(messages: Sequence[Message], observer: SessionObserver) -> Block | None:
    """The note on a replay of the last tool call; None when there is no call to repeat."""
    for message in reversed(messages):
        for block in reversed(message):
            if observer.look(block).results:
                name = block.name[:_NAME_CHARACTERS]
                return _message("user", "replay", f"Replay of {name}: the same result again.")
    return None


def _message(role: str, name: str, text: str) -> Block:
    return Block("log", "message", role, name, text, b"", -1)
