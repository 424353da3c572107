"""Which changes are worth a replay, from what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.sessions.findings.collect import Finding
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.remedies.history_rewrites import (
    Histories,
    append_only,
    resend_output,
    skip_compactions,
)
from codesmith_lab.sessions.remedies.rewrites import (
    Blocks,
    hold_values,
    keep_section_order,
    keep_tool_json,
    keep_tools,
    move_section_last,
    move_section_to_turn,
    sort_tools,
)
from codesmith_lab.sessions.remedies.settings_rewrites import (
    Settings,
    keep_setting,
    longer_life,
    mark_between,
    mark_last,
    mark_pinned,
    mark_stable,
    pin_provider,
)

__all__ = ["Candidate", "candidates"]

Parents = Sequence[int | None]
Rewrite = Callable[[Sequence[Request], Parents], tuple[Blocks, Settings]]

_VALUES = (
    *("volatile_date", "volatile_counter", "volatile_id", "volatile_nonce", "volatile_path"),
    "volatile_timestamp",
)
_SECTION = (*_VALUES, "section_edited", "section_added", "section_removed", "section_moved")
_JSON = ("json_key_order", "json_array_order", "whitespace", "unicode_escape", "number_format")
_HISTORY = (
    *("message_edited", "message_removed", "message_inserted", "block_moved", "image_changed"),
    *(*_JSON, *_VALUES, "reasoning_dropped", "shape_change"),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change to be tried. `message` is a sentence without its full stop."""

    action: str
    block: str
    message: str
    rewrite: Rewrite

    @property
    def id(self) -> str:
        """Names the change within its session."""
        return f"{self.action}:{self.block}"


class _Known:
    """The histories of what is sent now: several candidates look at the same ones."""

    def __init__(self) -> None:
        self._of: Sequence[Request] = ()
        self._made: Histories | None = None

    def histories(self, requests: Sequence[Request], parents: Parents) -> Histories:
        if self._made is None or self._of is not requests:
            self._of, self._made = requests, Histories(requests, parents)
        return self._made


def candidates(
    findings: Sequence[Finding], rule: CacheRule, requests: Sequence[Request]
) -> list[Candidate]:
    """Changes that answer the findings and what was listed under them, the costliest first."""
    known = _Known()
    sections = {b.name for r in requests for b in r.blocks if b.kind == "section"}
    found: dict[str, Candidate] = {}
    for finding in findings:
        for cls, zone, block in finding.causes:
            for candidate in _answers(cls, zone, block, block in sections, requests, rule, known):
                found.setdefault(candidate.id, candidate)
    return list(found.values())


def _answers(
    cls: str,
    zone: str,
    block: str,
    section: bool,
    requests: Sequence[Request],
    rule: CacheRule,
    known: _Known,
) -> Iterator[Candidate]:
    if not zone or cls in ("setting_change", "tool_choice_change"):
        yield from _for_settings(cls, block, rule)
    elif zone == "pinned" and section:
        yield from _for_section(cls, block)
    elif zone == "pinned":
        yield from _for_tools(cls, block)
    elif cls in ("compaction", "rebuild"):
        yield from _for_compaction(len(requests), known)
    elif cls in _HISTORY:
        yield _blocks(
            "append_only",
            "history",
            "Append to the history and leave earlier messages as they were sent",
            lambda requests, parents: append_only(known.histories(requests, parents)),
        )
        yield _blocks(
            "resend_output",
            "assistant",
            "Send the model's replies back as it gave them, reasoning included",
            resend_output,
        )


def _blocks(
    action: str, block: str, message: str, rewrite: Callable[[Sequence[Request], Parents], Blocks]
) -> Candidate:
    return Candidate(action, block, message, lambda requests, p: (rewrite(requests, p), {}))


def _for_section(cls: str, name: str) -> Iterator[Candidate]:
    if cls not in _SECTION and cls not in _JSON:
        return
    yield _blocks(
        "move_section_last",
        name,
        f"Move {name} behind the other sections of the system prompt",
        lambda requests, _: move_section_last(requests, name),
    )
    yield _blocks(
        "move_section_to_turn",
        name,
        f"Put {name} into the turn's own message instead of the system prompt",
        lambda requests, _: move_section_to_turn(requests, name),
    )
    if cls == "section_moved":
        yield _blocks(
            "keep_section_order",
            "sections",
            "Send the sections in the same order each time",
            lambda requests, _: keep_section_order(requests),
        )
    yield from _for_values(cls, "section", name)


def _for_values(cls: str, kind: str, name: str) -> Iterator[Candidate]:
    if cls == "volatile_timestamp":
        yield _blocks(
            "coarsen_clock",
            name,
            f"Write the clock in {name} by the hour",
            lambda requests, _: hold_values(requests, kind, name, hours=True),
        )
    if cls in _VALUES:
        what = "clock" if cls == "volatile_timestamp" else cls.removeprefix("volatile_")
        yield _blocks(
            "freeze_value",
            name,
            f"Keep the {what} in {name} as it was first written",
            lambda requests, _: hold_values(requests, kind, name),
        )


def _for_tools(cls: str, name: str) -> Iterator[Candidate]:
    if cls == "tool_order":
        yield _blocks(
            "sort_tools",
            "tools",
            "Sort the tools by name",
            lambda requests, _: sort_tools(requests),
        )
    if cls in ("tool_added", "tool_removed"):
        yield _blocks(
            "keep_tools",
            "tools",
            "Offer every tool from the first request on and never take one away",
            lambda requests, _: keep_tools(requests),
        )
    if cls in _JSON:
        yield _blocks(
            "keep_tool_json",
            "tools",
            "Serialise each tool definition the same way every time",
            lambda requests, _: keep_tool_json(requests),
        )
    yield from _for_values(cls, "tool", name)


def _for_compaction(count: int, known: _Known) -> Iterator[Candidate]:
    def skipped(requests: Sequence[Request], parents: Parents, later: int | None = None) -> Blocks:
        return skip_compactions(known.histories(requests, parents), later)

    yield _blocks("no_compaction", "history", "Do not compact the history at all", skipped)
    for later in (2, 5, 10):
        if later < count:
            yield _blocks(
                f"compact_later_{later}",
                "history",
                f"Compact the history {later} requests later",
                partial(skipped, later=later),
            )


def _settings(
    action: str, block: str, message: str, rewrite: Callable[[Sequence[Request]], Settings]
) -> Candidate:
    return Candidate(action, block, message, lambda requests, _: ({}, rewrite(requests)))


def _for_settings(cls: str, block: str, rule: CacheRule) -> Iterator[Candidate]:
    """Answers to causes that fields of the request decide."""
    if cls == "expired":
        yield _settings(
            "longer_life",
            "requests",
            "Ask for the longest lifetime",
            lambda requests: longer_life(requests, rule),
        )
    elif cls == "provider_change":
        yield _settings(
            "pin_provider",
            "requests",
            "Have every request served by the provider that serves most of them",
            pin_provider,
        )
    elif cls == "routing":
        for name in rule.scope_fields:
            yield _settings(
                "pin_key",
                name,
                f"Send the same {name} with every request",
                partial(keep_setting, name=name),
            )
    elif cls in ("setting_change", "tool_choice_change"):
        for name in block.split(", "):
            yield _settings(
                "keep_setting", name, f"Keep {name} as it was", partial(keep_setting, name=name)
            )
    elif rule.match == "breakpoints":
        yield from _for_breakpoints(cls, rule)


def _for_breakpoints(cls: str, rule: CacheRule) -> Iterator[Candidate]:
    if cls not in ("unmarked", "lookback_exceeded", "breakpoint_after_volatile"):
        return
    yield Candidate(
        "mark_stable",
        "breakpoint",
        "Put the cache breakpoint behind what stays the same, and none behind what changes",
        lambda requests, parents: ({}, mark_stable(requests, parents, rule)),
    )
    for action, message, rewrite in (
        ("mark_pinned", "Add a cache breakpoint behind tools and system prompt", mark_pinned),
        ("mark_last", "Add a cache breakpoint on the last block of every request", mark_last),
        (
            "mark_between",
            "Add cache breakpoints within long runs of blocks, each in reach of the next",
            mark_between,
        ),
    ):
        yield _settings(action, "breakpoint", message, partial(rewrite, rule=rule))
