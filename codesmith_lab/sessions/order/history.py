"""The sections of a session as numbered versions, and how often each of them changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from codesmith_lab.cache.pieces import PieceTable, Prompt, common_length
from codesmith_lab.errors import LabError
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.ordering.cost import CacheUnits
from codesmith_lab.prompt.ordering.history import ContentHistory, Surroundings, least_between
from codesmith_lab.prompt.ordering.stats import SectionStats, measured
from codesmith_lab.sessions.edits import split_separator
from codesmith_lab.sessions.turns import TurnRunner

__all__ = [
    "HISTORY",
    "MOST_REQUESTS",
    "TOOLS",
    "cache_units",
    "is_plain_prefix",
    "measure_sections",
    "pool_sections",
    "section_history",
    "section_stabilities",
]

TOOLS = "tool definitions"
"""Name of what a provider reads before the system prompt, where it does."""
HISTORY = "history"
"""Name of all that follows the system prompt."""
MOST_REQUESTS = 1000
"""Histories compare every request with every earlier one: of longer sessions the last are taken."""

Longs = npt.NDArray[np.int64]
Blocks = Mapping[int, Sequence[Block]]


def cache_units(runner: TurnRunner) -> CacheUnits:
    """The rounding of the newest request's rule and model, as the closed form takes it."""
    rule, _, plan = runner.cache_of(len(runner.session.requests) - 1)
    return CacheUnits(plan.minimum_tokens, rule.step_tokens)


def is_plain_prefix(runner: TurnRunner) -> bool:
    """Whether every request's cache serves plain prefixes, so that `ContentHistory.replay` holds.

    Breakpoints, engines' pools and fields that part the cache need the cache engine.
    """
    caches = [runner.cache_of(i) for i in range(len(runner.session.requests))]
    return len({rule.id for rule, _, _ in caches}) == 1 and all(
        rule.match in ("any_prefix", "stored_units")
        and rule.refreshes
        and not (rule.keep_last_tokens or plan.salts or plan.off or plan.refused)
        for rule, _, plan in caches
    )


def section_history(runner: TurnRunner, blocks: Blocks | None = None) -> ContentHistory:
    """The sections of a session's requests, compared text by text.

    blocks: what changed requests send instead. Token counts are those in today's order: in
    another order a joint may differ by a token.

    Raises LabError when no request has a section.
    """
    requests = runner.session.requests
    first = max(0, len(requests) - MOST_REQUESTS)
    indexes = range(first, len(requests))
    prompts = [runner.prompt_of(i, None if blocks is None else blocks.get(i)) for i in indexes]
    layouts = [_layout(runner.table, prompt) for prompt in prompts]
    names = _names([layout.texts for layout in layouts])
    if not names:
        raise LabError(
            f"{runner.session.name} has no request with a system prompt, so there is no section to "
            "order; open a log whose requests have one"
        )
    n = len(prompts)
    versions = np.zeros((n, len(names)), np.int32)
    tokens = np.zeros((n, len(names)), np.int64)
    heads = []
    for at, name in enumerate(names):
        texts = [layout.texts.get(name) for layout in layouts]
        numbers = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        versions[:, at] = [numbers[text] for text in texts]
        tokens[:, at] = [layout.tokens.get(name, 0) for layout in layouts]
        heads.append(_heads([b"" if t is None else _key(runner, t, name) for t in numbers]))
    scopes = [runner.cache_of(i)[1] for i in indexes]
    around = _surroundings(runner, prompts, layouts, list(indexes), scopes)
    newest: dict[str, int] = {}
    previous = np.full(n, -1, np.int64)
    for k, name in enumerate(scopes):
        previous[k], newest[name] = newest.get(name, -1), k
    fixed = 1 if names[0] == TOOLS else 0
    return ContentHistory(tuple(names), fixed, versions, tokens, tuple(heads), around, previous)


class _Layout:
    """One prompt: texts and tokens of its sections, and where the tail starts."""

    def __init__(self, lead_tokens: int, tail: int) -> None:
        self.lead_tokens = lead_tokens
        self.tail = tail
        self.close_tokens = 0
        self.texts: dict[str, str | bytes] = {}
        self.tokens: dict[str, int] = {}


def _layout(table: PieceTable, prompt: Prompt) -> _Layout:
    chat = table.chat_format
    kinds = [block.kind for block in prompt.blocks]
    inside = ("tool", "section") if chat.tools_first else ("section",)
    end = next((i for i, kind in enumerate(kinds) if kind not in inside), len(kinds))
    layout = _Layout(0, end)
    tools = kinds[:end].count("tool")
    if tools:
        layout.texts[TOOLS] = b"".join(table.key(int(p)) for p in prompt.pieces[:tools])
        layout.tokens[TOOLS] = int(prompt.ends[tools - 1])
    for i in range(tools, end):
        block = prompt.blocks[i]
        frame = chat.frame(block, False)
        before = len(frame.before) + (len(chat.opening) if i == 0 else 0)
        layout.lead_tokens += before
        layout.close_tokens += len(frame.after)
        layout.texts[block.name] = split_separator(block.text)[0]
        layout.tokens[block.name] = int(prompt.tokens[i]) - before - len(frame.after)
    return layout


def _names(texts: Sequence[Mapping[str, object]]) -> list[str]:
    """Section names in the order of the newest requests; older ones join behind their neighbour."""
    names: list[str] = []
    for found in reversed(texts):
        at = -1
        for name in found:
            if name in names:
                at = names.index(name)
            else:
                at += 1
                names.insert(at, name)
    return names if any(name != TOOLS for name in names) else []


def _key(runner: TurnRunner, text: str | bytes, name: str) -> bytes:
    if isinstance(text, bytes):
        return text
    return runner.tokenizer.ids(text).astype(">i4").tobytes() if text else b""


def _heads(keys: Sequence[bytes]) -> npt.NDArray[np.int32]:
    """Leading tokens that any two versions share, as int32[versions, versions]."""
    order = np.array(sorted(range(len(keys)), key=lambda i: keys[i]), np.int64)
    near = [common_length(keys[a], keys[b], 4) for a, b in pairwise(order.tolist())]
    own = np.array([len(key) // 4 for key in keys], np.int64)
    return least_between(order, np.array(near, np.int64), own).astype(np.int32)


def _surroundings(
    runner: TurnRunner,
    prompts: Sequence[Prompt],
    layouts: Sequence[_Layout],
    indexes: Sequence[int],
    scopes: Sequence[str],
) -> Surroundings:
    n = len(prompts)
    table, requests = runner.table, runner.session.requests
    paths: list[tuple[npt.NDArray[np.int32], Longs]] = []
    for prompt, layout in zip(prompts, layouts, strict=True):
        paths.append((prompt.pieces[layout.tail :], np.cumsum(prompt.tokens[layout.tail :])))
    reply = table[int(prompts[0].pieces[-1])].tokens
    grown = np.zeros(n, np.int64)
    for k, prompt in enumerate(prompts):
        output = runner.output_of(indexes[k]) if runner.rule.output_reuse else None
        pieces = prompt.pieces[:-1]
        if output is not None and len(output):
            whole = table.assemble(prompt.blocks, np.concatenate([pieces, output]))
            grown[k] = int(whole.ends[-1]) - prompt.total_tokens
            at = layouts[k].tail
            paths.append((whole.pieces[at:], np.cumsum(whole.tokens[at:])))
        else:
            grown[k] = -reply
            at = layouts[k].tail
            paths.append((pieces[at:], np.cumsum(prompt.tokens[at:-1])))
    shared = _shared_paths(table, paths)
    close = np.array([layout.close_tokens for layout in layouts], np.int64)
    lead = np.array([layout.lead_tokens for layout in layouts], np.int64)
    tail = np.array([int(ends[-1]) if len(ends) else 0 for _, ends in paths[:n]], np.int64)
    times = [requests[i].time for i in indexes]
    start = np.array([np.nan if t is None else t.timestamp() for t in times])
    life = [runner.cache_of(i)[2].lifetime_s for i in indexes]
    limit = start - np.array([np.inf if x is None else x for x in life])
    number = {name: k for k, name in enumerate(dict.fromkeys(scopes))}
    scope = np.array([number[name] for name in scopes])
    earlier = np.tri(n, n, -1, bool) & (scope[:, None] == scope[None, :])
    # Unknown start times count as live: what is not known is not blamed.
    live = earlier & ~(start[None, :] < limit[:, None])
    both = close[:, None]
    return Surroundings(
        lead, tail + close, shared[:n, :n] + both, shared[:n, n:] + both, grown, live, earlier
    )


def _shared_paths(table: PieceTable, paths: Sequence[tuple[npt.NDArray[np.int32], Longs]]) -> Longs:
    """int64[paths, paths]: leading tokens that two rows of pieces share."""
    used = np.unique(np.concatenate([pieces for pieces, _ in paths]))
    by_key = sorted(used.tolist(), key=table.key)
    rank = np.zeros(int(used.max()) + 1, np.int64)
    rank[by_key] = np.arange(1, len(by_key) + 1)
    rows = [rank[pieces].astype(">i4").tobytes() for pieces, _ in paths]
    order = np.array(sorted(range(len(rows)), key=lambda i: rows[i]), np.int64)
    near = []
    for a, b in pairwise(order.tolist()):
        k = common_length(rows[a], rows[b], 4)
        (mine, ends), (theirs, _) = paths[a], paths[b]
        tokens = int(ends[k - 1]) if k else 0
        if k < min(len(mine), len(theirs)):
            tokens += common_length(table.key(int(mine[k])), table.key(int(theirs[k])), 4)
        near.append(tokens)
    own = np.array([int(ends[-1]) if len(ends) else 0 for _, ends in paths], np.int64)
    return least_between(order, np.array(near, np.int64), own)


def section_stabilities(runner: TurnRunner, blocks: Blocks | None = None) -> dict[str, str]:
    """The declared or assumed stability of each section, the newest request's first."""
    found: dict[str, str] = {}
    for request in reversed(runner.session.requests):
        own = request.blocks if blocks is None else blocks.get(request.index, request.blocks)
        for block in own:
            if block.kind == "section" and block.section is not None:
                found.setdefault(block.name, block.section.stability)
    return found


def measure_sections(
    history: ContentHistory, stabilities: Mapping[str, str] | None = None
) -> tuple[SectionStats, ...]:
    """Size, change probability, count and interval of every section, in today's order.

    A section that comes or goes has changed. Sizes are means over the requests that have it;
    the kept head is the mean of what two versions in a row share. Behind the sections of the
    system prompt stands `HISTORY`: what an earlier request had already sent of the rest, which
    changes when it is rewritten instead of extended. stabilities: see `section_stabilities`.

    Raises LabError for fewer than two requests of one cache.
    """
    pairs = np.flatnonzero(history.previous >= 0)
    before = history.previous[pairs]
    if not len(pairs):
        raise LabError(
            "the session has no two requests of one cache, so changes cannot be counted; "
            "set probabilities by hand or by stability"
        )
    changed = history.changed
    rows = []
    for at, name in enumerate(history.names):
        there = history.tokens[:, at] > 0
        size = max(1, round(float(history.tokens[there, at].mean()))) if there.any() else 1
        now, was = history.versions[pairs, at], history.versions[before, at]
        heads = history.heads[at][now, was][changed[:, at]]
        head = min(size, round(float(heads.mean()))) if len(heads) else 0
        stable = (stabilities or {}).get(name, "")
        rows.append(measured(name, size, int(changed[:, at].sum()), len(pairs), head, stable))
    around = history.around
    shared = np.maximum(around.shared_prompt, around.shared_output)[pairs, before]
    whole = around.tail_tokens[before] + around.output_tokens[before]
    broken = shared < whole
    size = max(1, round(float(shared[~broken].mean()))) if (~broken).any() else 1
    head = min(size, round(float(shared[broken].mean()))) if broken.any() else 0
    rows.append(measured(HISTORY, size, int(broken.sum()), len(pairs), head))
    return tuple(rows)


def pool_sections(parts: Sequence[Sequence[SectionStats]]) -> tuple[SectionStats, ...]:
    """Rates over several sessions: counts are added, sizes weighed by them.

    A session without a section says nothing of it. Order and stability are the first session's
    that has it. Raises LabError for statistics that were not counted.
    """
    found: dict[str, list[SectionStats]] = {}
    for part in parts:
        for section in part:
            if section.trials is None:
                raise LabError(
                    f"section {section.name!r} was set {section.source}, and only counts can be "
                    "pooled; measure it in each session"
                )
            found.setdefault(section.name, []).append(section)
    pooled = []
    for name, rows in found.items():
        trials = sum(row.trials or 0 for row in rows)
        changes = sum(row.changes or 0 for row in rows)
        size = round(sum(row.size_tokens * (row.trials or 0) for row in rows) / trials)
        weight = changes or 1
        head = round(sum(row.head_tokens * (row.changes or 0) for row in rows) / weight)
        one = measured(name, max(1, size), changes, trials, min(head, max(1, size)))
        pooled.append(replace(one, stability=rows[0].stability))
    history = [row for row in pooled if row.name == HISTORY]
    return (*(row for row in pooled if row.name != HISTORY), *history)
