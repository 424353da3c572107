"""An order of sections, applied to every request of a session and billed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from codesmith_lab.billing.prices import cost_usd
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.ordering.history import ContentHistory, OrderReplay
from codesmith_lab.sessions.edits import reorder_sections
from codesmith_lab.sessions.section_history import MOST_REQUESTS
from codesmith_lab.sessions.turns import Turn, TurnRunner

__all__ = [
    "InputBill",
    "bill_replay",
    "bill_turns",
    "expected_usd",
    "order_blocks",
    "replay_exactly",
]

Blocks = Mapping[int, Sequence[Block]]
ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class InputBill:
    """The input of a session under an order, output not counted.

    requests: how many requests it adds up. usd: None where any of them has no price.
    repaid_tokens: unchanged content behind a change; None where the replay does not tell it
        apart from what is new.
    """

    requests: int
    input_tokens: int
    hit_tokens: int
    repaid_tokens: int | None
    usd: Decimal | None

    @property
    def usd_per_request(self) -> Decimal | None:
        """Mean input cost of a request."""
        return None if self.usd is None else self.usd / self.requests


def order_blocks(
    runner: TurnRunner,
    names: Sequence[str],
    blocks: Blocks | None = None,
    memo: dict[Block, Block] | None = None,
) -> dict[int, tuple[Block, ...]]:
    """What every request would send with its sections in this order.

    Sections that `names` does not list (or a request does not have) are left where the order of
    the others puts them: behind the listed ones. `memo` keeps blocks, so that equal ones are
    tokenized once.
    """
    rank = {name: at for at, name in enumerate(names)}
    memo = {} if memo is None else memo
    changed = {}
    for request in runner.session.requests:
        own = request.blocks if blocks is None else tuple(blocks.get(request.index, request.blocks))
        sections = [block.name for block in own if block.kind == "section"]
        order = sorted(range(len(sections)), key=lambda i: rank.get(sections[i], len(rank)))
        moved = reorder_sections(own, order)
        if any(a is not b for a, b in zip(moved, request.blocks, strict=False)) or len(
            moved
        ) != len(request.blocks):
            changed[request.index] = tuple(memo.setdefault(block, block) for block in moved)
    return changed


def replay_exactly(
    runner: TurnRunner,
    names: Sequence[str],
    blocks: Blocks | None = None,
    memo: dict[Block, Block] | None = None,
) -> InputBill:
    """The session with this order, through the cache engine, every joined text counted whole."""
    return bill_turns(runner.run(order_blocks(runner, names, blocks, memo), exact=True))


def bill_turns(turns: Sequence[Turn]) -> InputBill:
    """The input of played turns."""
    costs = [
        None if t.cost_usd is None or t.output_usd is None else t.cost_usd - t.output_usd
        for t in turns
    ]
    known = [cost for cost in costs if cost is not None]
    return InputBill(
        len(turns),
        sum(t.prompt.total_tokens for t in turns),
        sum(t.causes.tokens[0] for t in turns),
        sum(t.causes.tokens[2] for t in turns),
        sum(known, ZERO) if len(known) == len(costs) else None,
    )


def bill_replay(runner: TurnRunner, history: ContentHistory, replay: OrderReplay) -> InputBill:
    """The input of a replayed order, at each request's own prices."""
    first = max(0, len(runner.session.requests) - MOST_REQUESTS)
    usd: Decimal | None = ZERO
    for at, (hit, total) in enumerate(
        zip(replay.hit_tokens.tolist(), replay.total_tokens.tolist(), strict=True)
    ):
        rates = runner.rates_of(first + at, total)
        if rates is None or usd is None:
            usd = None
            continue
        usd += cost_usd(hit, rates.cache_read) + cost_usd(total - hit, rates.input)
    return InputBill(
        history.requests,
        int(replay.total_tokens.sum()),
        int(replay.hit_tokens.sum()),
        None,
        usd,
    )


def expected_usd(runner: TurnRunner, hit_tokens: float, total_tokens: float) -> Decimal | None:
    """Input cost of a request with so many hit and total tokens, at the newest request's prices."""
    last = len(runner.session.requests) - 1
    rates = runner.rates_of(last, round(total_tokens))
    if rates is None:
        return None
    hit, total = Decimal(str(hit_tokens)), Decimal(str(total_tokens))
    return (hit * rates.cache_read + (total - hit) * rates.input) / 1_000_000
