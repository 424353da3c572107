"""Where a board's sections come from: a session with its history, or sections by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

import numpy as np

from codesmith_lab.billing.prices import Rates, cost_usd
from codesmith_lab.billing.tokens import get_tokenizer
from codesmith_lab.errors import LabError
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.bundle import PromptBundle
from codesmith_lab.prompt.ordering.cost import CacheUnits
from codesmith_lab.prompt.ordering.history import ContentHistory, OrderReplay
from codesmith_lab.prompt.ordering.stats import SectionStats, by_stability, check_sections
from codesmith_lab.prompt.sections import HEADER_END, HEADER_START, PromptSection
from codesmith_lab.sessions.analysis import make_runner
from codesmith_lab.sessions.order.history import (
    HISTORY,
    MOST_REQUESTS,
    cache_units,
    is_plain_prefix,
    measure_sections,
    pool_sections,
    section_history,
    section_stabilities,
)
from codesmith_lab.sessions.order.replay import bill_turns, order_blocks
from codesmith_lab.sessions.order.rewrites import Rewrite, apply_rewrites
from codesmith_lab.sessions.records import Session
from codesmith_lab.sessions.turns import TurnRunner

__all__ = ["Laid", "SectionSource", "bundle_stats", "laid_by_hand"]

MILLION = Decimal(1_000_000)


@dataclass(frozen=True, eq=False)
class Laid:
    """Sections ready to be ordered, under one model.

    sections: in today's order, fixed ones at the ends included.
    fixed_first, fixed_last: how many at each end never move (tool definitions, history).
    units, stored_units: the provider's rule. rates: prices of the newest request, or None.
    history: what the session sent, or None for sections by hand. blocks: what rewrites changed.
    plain: the cache serves plain prefixes; otherwise orders are replayed by the cache engine.
    """

    sections: tuple[SectionStats, ...]
    fixed_first: int
    fixed_last: int
    units: CacheUnits
    stored_units: bool
    rates: Rates | None
    history: ContentHistory | None = None
    blocks: dict[int, tuple[Block, ...]] | None = None
    runner: TurnRunner | None = None
    plain: bool = True

    @property
    def movable(self) -> tuple[str, ...]:
        """Names of the sections that can be ordered, in today's order."""
        names = [section.name for section in self.sections]
        return tuple(names[self.fixed_first : len(names) - self.fixed_last])

    @cached_property
    def new_tokens(self) -> float:
        """Mean tokens a request has beyond its sections: its own message."""
        if self.history is None:
            return 0.0
        total = float(self.history.total_tokens[1:].mean()) if self.history.requests > 1 else 0.0
        return max(0.0, total - sum(section.size_tokens for section in self.sections))

    @cached_property
    def _prices(self) -> list[tuple[np.ndarray, Rates]] | None:
        """Requests by their prices: totals do not depend on the order, so neither do these."""
        if self.history is None or self.runner is None:
            return None
        first = max(0, len(self.runner.session.requests) - MOST_REQUESTS)
        groups: dict[Rates, list[int]] = {}
        for at, total in enumerate(self.history.total_tokens.tolist()):
            rates = self.runner.rates_of(first + at, total)
            if rates is None:
                return None
            groups.setdefault(rates, []).append(at)
        return [(np.array(rows), rates) for rates, rows in groups.items()]

    def replay(
        self, names: Sequence[str], memo: dict[Block, Block]
    ) -> tuple[OrderReplay, Decimal | None] | None:
        """What an order of the movable sections would have kept, and its input cost in all.

        None without a history. memo: see `order_blocks`.
        """
        if self.history is None or self.runner is None:
            return None
        if self.plain:
            first = [section.name for section in self.sections[: self.fixed_first]]
            order = self.history.positions([*first, *names])
            replay = self.history.replay(order, self.units, self.stored_units)
            return replay, self.replayed_usd(replay)
        turns = self.runner.run(order_blocks(self.runner, names, self.blocks, memo))
        turns = turns[-self.history.requests :]
        replay = OrderReplay(
            np.array([turn.match.hit_tokens for turn in turns], np.int64),
            np.array([turn.match.live_tokens for turn in turns], np.int64),
            np.array([turn.prompt.total_tokens for turn in turns], np.int64),
        )
        return replay, bill_turns(turns).usd

    def replayed_usd(self, replay: OrderReplay) -> Decimal | None:
        """Input cost of the whole session under a replayed order; None without prices."""
        if self._prices is None:
            return None
        usd = Decimal(0)
        for rows, rates in self._prices:
            hit = int(replay.hit_tokens[rows].sum())
            total = int(replay.total_tokens[rows].sum())
            usd += cost_usd(hit, rates.cache_read) + cost_usd(total - hit, rates.input)
        return usd

    def expected_usd(self, hit_tokens: float, total_tokens: float) -> Decimal | None:
        """Input cost of one request with so many hit tokens, at the newest prices."""
        if self.rates is None:
            return None
        rates = self.rates
        hit, total = Decimal(repr(hit_tokens)), Decimal(repr(total_tokens))
        return (hit * rates.cache_read + (total - hit) * rates.input) / MILLION


class SectionSource:
    """A session under one model; lays its sections out after any rewrites, and remembers them.

    also: further sessions of the same prompt, whose counts are added to the change rates.
    """

    def __init__(
        self,
        session: Session,
        model: str | None = None,
        rules: str | None = None,
        also: Sequence[Session] = (),
    ) -> None:
        self.session = session
        self.runner = make_runner(session, model, rules)
        self.also = tuple(SectionSource(other, model, rules) for other in also)
        self._laid: dict[tuple[Rewrite, ...], Laid] = {}

    @property
    def title(self) -> str:
        """For people."""
        return self.session.name

    @property
    def model(self) -> str:
        """The model whose tokens, rules and prices hold."""
        return self.runner.model.name

    def laid(self, rewrites: tuple[Rewrite, ...] = ()) -> Laid:
        """The sections after these rewrites, measured."""
        if rewrites not in self._laid:
            runner = self.runner
            blocks = apply_rewrites(self.session.requests, rewrites) or None
            history = section_history(runner, blocks)
            stats = _measured(history, section_stabilities(runner, blocks))
            if self.also:
                stats = _pooled(stats, [other.laid(rewrites).sections for other in self.also])
            last = len(self.session.requests) - 1
            self._laid[rewrites] = Laid(
                stats,
                history.fixed_first,
                1,
                cache_units(runner),
                runner.rule.match == "stored_units",
                runner.rates_of(last, int(history.total_tokens[-1])),
                history,
                blocks,
                runner,
                is_plain_prefix(runner),
            )
        return self._laid[rewrites]

    def sections(self, rewrites: tuple[Rewrite, ...] = ()) -> dict[str, PromptSection]:
        """The newest text of each section, as declared sections, for exports."""
        blocks = self.laid(rewrites).blocks or {}
        found: dict[str, PromptSection] = {}
        for request in reversed(self.session.requests):
            for block in blocks.get(request.index, request.blocks):
                if block.kind == "section" and block.name not in found:
                    found[block.name] = _declared(block)
        return found


def _measured(history: ContentHistory, stabilities: dict[str, str]) -> tuple[SectionStats, ...]:
    """Measured rates; of a single request only sizes, with the rates of each stability."""
    if (history.previous >= 0).any():
        return measure_sections(history, stabilities)
    rows = []
    for at, name in enumerate(history.names):
        size = max(1, int(history.tokens[-1, at]))
        rows.append(by_stability(name, size, stabilities.get(name, "static")))
    tail = max(1, int(history.around.tail_tokens[-1]))
    return (*rows, SectionStats(HISTORY, tail, 0.0, "by stability"))


def _pooled(
    own: tuple[SectionStats, ...], others: Sequence[Sequence[SectionStats]]
) -> tuple[SectionStats, ...]:
    """This session's sections with the rates of all sessions that counted them."""
    counted = [[s for s in part if s.trials is not None] for part in (own, *others)]
    rates = {s.name: s for s in pool_sections([part for part in counted if part])}
    return tuple(
        replace(
            rates[s.name],
            size_tokens=s.size_tokens,
            head_tokens=min(rates[s.name].head_tokens, s.size_tokens),
            stability=s.stability,
        )
        if s.name in rates
        else s
        for s in own
    )


def _declared(block: Block) -> PromptSection:
    """A section's declaration and its body without the header."""
    meta, text = block.section, block.text
    if meta is None:
        return PromptSection(block.name, block.name, text)
    if meta.declared and text.startswith(HEADER_START):
        text = text.partition(HEADER_END)[2]
    source = "builtin" if meta.source == "unknown" else meta.source
    return PromptSection(block.name, meta.title, text, meta.stability, meta.cache_policy, source)


def bundle_stats(bundle: PromptBundle, tokenizer_id: str) -> tuple[SectionStats, ...]:
    """Sizes of a bundle's rendered sections, with the assumed rates of their stabilities.

    Raises LabError for a blank section, which is not rendered.
    """
    tokenizer = get_tokenizer(tokenizer_id)
    rows = []
    for section in bundle.sections:
        if not section.render():
            raise LabError(
                f"section {section.id!r} is empty, and an empty section has no place in an order; "
                "leave it out"
            )
        size = tokenizer.count(section.render() + "\n\n")
        rows.append(by_stability(section.id, max(1, size), section.stability))
    check_sections(rows)
    return tuple(rows)


def laid_by_hand(
    sections: Sequence[SectionStats],
    units: CacheUnits,
    rates: Rates | None,
    stored_units: bool = False,
) -> Laid:
    """Sections without a history: everything can be moved, nothing can be replayed."""
    check_sections(sections)
    known = tuple(replace(section) for section in sections)
    return Laid(known, 0, 0, units, stored_units, rates)
