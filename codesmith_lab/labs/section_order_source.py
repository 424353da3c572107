"""What a section-order board can be opened on, and what each of these can answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from codesmith_lab.billing.models import resolve_model
from codesmith_lab.billing.prices import default_price_date, rates_for
from codesmith_lab.cache.rule_files import get_rule
from codesmith_lab.errors import LabError
from codesmith_lab.labs.workbench import Workbench
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.bundle import PromptBundle
from codesmith_lab.prompt.ordering.breakpoints import BreakpointPlan, best_breakpoints
from codesmith_lab.prompt.ordering.constraints import OrderConstraints
from codesmith_lab.prompt.ordering.cost import CacheUnits
from codesmith_lab.prompt.ordering.stats import SectionStats
from codesmith_lab.prompt.sections import PromptSection
from codesmith_lab.sessions.edits import apply_edits, edited_settings
from codesmith_lab.sessions.order.board import BoardState, OrderBoard
from codesmith_lab.sessions.order.breakpoints import (
    model_prices,
    pauses_s,
    replay_plan,
)
from codesmith_lab.sessions.order.history import MOST_REQUESTS
from codesmith_lab.sessions.order.replay import (
    InputBill,
    order_blocks,
    order_request,
    replay_exactly,
)
from codesmith_lab.sessions.order.rewrites import Rewrite, apply_rewrites, has_clock
from codesmith_lab.sessions.order.source import (
    Laid,
    SectionSource,
    bundle_stats,
    laid_by_hand,
)
from codesmith_lab.sessions.records import Session
from codesmith_lab.wording import counted

__all__ = ["EXPORTS", "PLAN_MODELS", "BoardSource", "Source", "blocks_for"]

Source = Session | Workbench | PromptBundle | Sequence[SectionStats]
PLAN_MODELS = ("claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5")
EXPORTS = {"text": "rendered text", "json": "JSON", "toml": "TOML", "markdown": "Markdown report"}


class BoardSource:
    """A session, a workbench, a bundle or sections by hand, behind one face.

    bench: the workbench, where the board was opened from one.
    """

    def __init__(
        self, source: Source, model: str | None, rules: str | None, also: Sequence[Session] = ()
    ) -> None:
        self.bench = source if isinstance(source, Workbench) else None
        self._bundle = source if isinstance(source, PromptBundle) else None
        self._session: SectionSource | None = None
        self._memo: dict[Block, Block] = {}
        self._planned: dict[str, SectionSource] = {}
        self._clocks: dict[tuple[Rewrite, ...], dict[str, bool]] = {}
        if isinstance(source, Workbench):
            self._session = SectionSource(_edited(source), model or source.model, rules, also)
        elif isinstance(source, Session):
            self._session = SectionSource(source, model, rules, also)
        elif also:
            raise LabError(
                f"{len(also)} more sessions cannot be counted for sections by hand; "
                "open the board on one of the sessions"
            )
        else:
            self._hand, self._rule_title = _by_hand(source, model or "deepseek-v4-flash", rules)
        self.model = self._session.model if self._session else model or "deepseek-v4-flash"

    @property
    def title(self) -> str:
        """For people."""
        if self._session is not None:
            return self._session.title
        return "prompt bundle" if self._bundle is not None else "sections by hand"

    @property
    def subtitle(self) -> str:
        """How much of what, under which rules."""
        if self._session is None:
            return f"{len(self._hand.sections)} sections, {self.model}, {self._rule_title}"
        rule = self._session.runner.rule
        return (
            f"{counted(len(self._session.session.requests), 'request')}, {self.model}, {rule.title}"
        )

    @property
    def notes(self) -> list[str]:
        """How exact the figures are, in sentences."""
        notes = ["Closed form: changes are taken as independent."]
        if self._session is None:
            return [*notes, "Nothing is replayed: there is no session."]
        requests = len(self._session.session.requests)
        notes.append("Replay: every request against all earlier ones, as they were sent.")
        if self._session.also:
            notes.append(f"Change rates are counted over {len(self._session.also) + 1} sessions.")
        if not self._session.laid(()).plain:
            notes.append(
                "This cache serves no plain prefixes: orders are replayed by the cache engine, "
                "while closed form and search take it for one that does. Where breakpoints must "
                "be set, plan them below."
            )
        if requests > MOST_REQUESTS:
            notes.append(f"Live figures take the last {MOST_REQUESTS:,} of {requests:,} requests.")
        return notes

    @cached_property
    def has_turns(self) -> bool:
        """There are messages of the user's that could carry a section."""
        return self._session is not None and any(
            block.zone == "scratch" and block.role == "user"
            for request in self._session.session.requests
            for block in request.blocks
        )

    def lay(self, rewrites: tuple[Rewrite, ...]) -> Laid:
        """The sections after these rewrites."""
        if self._session is not None:
            return self._session.laid(rewrites)
        if rewrites:
            raise LabError(f"to {rewrites[-1]} needs its texts; open the board on a session")
        return self._hand

    def sections(self, rewrites: tuple[Rewrite, ...]) -> dict[str, PromptSection]:
        """The newest text of each section; LabError where there are no texts."""
        if self._session is not None:
            return self._session.sections(rewrites)
        if self._bundle is not None:
            return {section.id: section for section in self._bundle.sections}
        raise LabError(
            "sections by hand have no text that could be exported; open the board on a session "
            "or a PromptBundle"
        )

    def clocks(self, rewrites: tuple[Rewrite, ...]) -> dict[str, bool]:
        """Which sections show a time of day."""
        if self._session is None:
            return {}
        if rewrites not in self._clocks:
            texts = self._session.sections(rewrites)
            self._clocks[rewrites] = {name: has_clock(s.body) for name, s in texts.items()}
        return self._clocks[rewrites]

    def plan(self, board: OrderBoard, model: str) -> tuple[BreakpointPlan, InputBill | None]:
        """Order and breakpoints for a model with explicit caching, and the session billed so."""
        state, laid, source = board.state, board.laid, None
        if self._session is not None:
            source = self._planned.get(model)
            if source is None:
                source = self._planned[model] = SectionSource(self._session.session, model)
            laid = source.laid(state.rewrites)
        sections = [
            s.by_hand(state.rates[s.name]) if s.name in state.rates else s for s in laid.sections
        ]
        names = [s.name for s in sections]
        first, last = laid.fixed_first, laid.fixed_last
        pinned = {name: place + first for name, place in state.locked.items()}
        pinned |= {name: at for at, name in enumerate(names[:first])}
        pinned |= {name: at for at, name in enumerate(names) if at >= len(names) - last}
        pauses = [] if source is None else pauses_s(source.runner)
        plan = best_breakpoints(
            sections,
            model_prices(model, pauses, laid.units.minimum_tokens if source else 1024),
            OrderConstraints(state.before, pinned),
            round(laid.new_tokens),
        )
        return plan, None if source is None else replay_plan(source.runner, plan, laid.blocks)

    def bill_exactly(self, state: BoardState) -> InputBill:
        """The session's input with a state's order and rewrites, through the cache engine."""
        if self._session is None:
            raise LabError("there is no session to bill; open the board on one")
        blocks = self._session.laid(state.rewrites).blocks
        return replay_exactly(self._session.runner, state.order, blocks, self._memo)

    def try_bill(self, state: BoardState) -> InputBill | None:
        """The same, None without a session."""
        return None if self._session is None else self.bill_exactly(state)

    def changed_session(self, state: BoardState) -> Session:
        """The session with every request as this state would have sent it."""
        if self._session is None:
            raise LabError("there is no session to change; open the board on one")
        session, runner = self._session.session, self._session.runner
        blocks = order_blocks(
            runner, state.order, self._session.laid(state.rewrites).blocks, self._memo
        )
        return replace(
            session,
            requests=tuple(
                replace(r, blocks=blocks[r.index]) if r.index in blocks else r
                for r in session.requests
            ),
        )


def _edited(bench: Workbench) -> Session:
    """The workbench's session with its edits made."""
    blocks, settings = apply_edits(bench.session, bench.edits, {}), edited_settings(bench.edits)
    if not blocks and not settings:
        return bench.session
    requests = tuple(
        replace(
            r,
            blocks=tuple(blocks.get(r.index, r.blocks)),
            settings=settings.get(r.index, r.settings),
        )
        for r in bench.session.requests
    )
    return replace(bench.session, requests=requests)


def blocks_for(bench: Workbench, state: BoardState) -> dict[int, tuple[Block, ...]]:
    """What each turn of a workbench, edits included, would send under a board's state."""
    requests = _edited(bench).requests
    blocks = apply_rewrites(requests, state.rewrites)
    memo: dict[Block, Block] = {}
    return {
        request.index: order_request(blocks.get(request.index, request.blocks), state.order, memo)
        for request in requests
    }


def _by_hand(
    source: PromptBundle | Sequence[SectionStats], model: str, rules: str | None
) -> tuple[Laid, str]:
    info = resolve_model(model)
    if info.rules_id is None and rules is None:
        raise LabError(
            f"model {model!r} has no cache rules here; choose some with rules=..., "
            "for example openai-128"
        )
    rule = get_rule(rules or str(info.rules_id))
    stats = bundle_stats(source, info.tokenizer_id) if isinstance(source, PromptBundle) else source
    units = CacheUnits(rule.minimum_tokens, rule.step_tokens)
    rates = rates_for(info, None, default_price_date())
    return laid_by_hand(tuple(stats), units, rates, rule.match == "stored_units"), rule.title
