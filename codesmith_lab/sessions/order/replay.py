"""An order of sections, applied to every request of a session and billed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.edits import reorder_sections
from codesmith_lab.sessions.turns import Turn, TurnRunner

__all__ = [
    "InputBill",
    "bill_turns",
    "order_blocks",
    "order_request",
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
    memo = {} if memo is None else memo
    changed = {}
    for request in runner.session.requests:
        own = request.blocks if blocks is None else tuple(blocks.get(request.index, request.blocks))
        moved = order_request(own, names, memo)
        if len(moved) != len(request.blocks) or any(
            a is not b for a, b in zip(moved, request.blocks, strict=True)
        ):
            changed[request.index] = moved
    return changed


def order_request(
    blocks: Sequence[Block], names: Sequence[str], memo: dict[Block, Block]
) -> tuple[Block, ...]:
    """One request's blocks with its sections in this order; see `order_blocks`."""
    rank = {name: at for at, name in enumerate(names)}
    sections = [block.name for block in blocks if block.kind == "section"]
    order = sorted(range(len(sections)), key=lambda i: rank.get(sections[i], len(rank)))
    moved = reorder_sections(blocks, order)
    return tuple(
        new if new is old else memo.setdefault(new, new)
        for new, old in zip(moved, blocks, strict=True)
    )


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
