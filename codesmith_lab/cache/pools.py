"""Block pools of an engine: what vLLM keeps of its requests when memory is limited.

The rules, from vLLM's v1/core (0.33.0) and docs/design/prefix_caching.md: a block is known by its
tokens and all before it; only full blocks are kept; the last token of a prompt is always computed;
a request takes blocks from the head of the queue of free ones, and what they held is gone; at its
end its blocks join the tail, the last block first, those that never filled join the head; a block
computed twice is held twice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from codesmith_lab.cache.engine import PrefixIndex
from codesmith_lab.cache.match import IntArray, Match
from codesmith_lab.cache.pieces import PieceTable, Prompt, common_length
from codesmith_lab.cache.plan import CachePlan
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.cache.tree import Reach, Walk

__all__ = ["BlockPool", "PoolIndex"]

_WIDTH = 4  # bytes of a token id


class BlockPool:
    """`capacity_blocks` blocks of `block_tokens` tokens; requests come one after another."""

    def __init__(self, capacity_blocks: int, block_tokens: int) -> None:
        self.capacity_blocks = capacity_blocks
        self.block_tokens = block_tokens
        # Free blocks in the order in which they are taken; the values say nothing.
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(capacity_blocks))
        self._name_of: dict[int, int] = {}
        self._holders: dict[int, dict[int, None]] = {}
        # A block's name: a number for its parent's name and its tokens.
        self._names: dict[tuple[int, bytes], int] = {}
        self._recent: tuple[int, bytes, list[int]] = (-1, b"", [])
        self._salts: dict[str, int] = {}

    def copy(self) -> BlockPool:
        """A pool that can go on differently."""
        twin = BlockPool(0, self.block_tokens)
        twin.capacity_blocks = self.capacity_blocks
        twin._free, twin._name_of = self._free.copy(), self._name_of.copy()
        twin._holders = {name: held.copy() for name, held in self._holders.items()}
        # Names are only ever added.
        twin._names, twin._salts, twin._recent = self._names, self._salts, self._recent
        return twin

    def serve(self, tokens: bytes, salt: str = "") -> list[int]:
        """The blocks that hold the longest known prefix, at least one token left out."""
        most = (len(tokens) // _WIDTH - 1) // self.block_tokens
        found: list[int] = []
        for name in self._chain(tokens, salt)[: max(0, most)]:
            holders = self._holders.get(name)
            if not holders:
                break
            found.append(next(iter(holders)))
        return found

    def run(self, tokens: bytes, computed: bytes, salt: str = "") -> int | None:
        """Serve a prompt, compute what is missing, and free all of it again.

        tokens: the prompt. computed: prompt and output as far as it was computed. Gives the
        blocks that were served; None when the prompt does not fit, and then nothing has changed.
        """
        held = self.serve(tokens, salt)
        size = self.block_tokens * _WIDTH
        need = -(-len(tokens) // size)
        taken = len([block for block in held if block in self._free])
        if need - len(held) > len(self._free) - taken:
            return None
        for block in held:
            self._free.pop(block, None)
        blocks = held + [self._take() for _ in range(need - len(held))]
        # An output that does not fit is cut: the engine would have put the request off.
        more = -(-len(computed) // size) - need
        blocks += [self._take() for _ in range(min(more, len(self._free)))]
        chain = self._chain(computed, salt)[: len(blocks)]
        for at in range(len(held), len(chain)):
            self._name_of[blocks[at]] = chain[at]
            self._holders.setdefault(chain[at], {})[blocks[at]] = None
        self._give_back(blocks)
        return len(held)

    def _take(self) -> int:
        block, _ = self._free.popitem(last=False)
        name = self._name_of.pop(block, None)
        if name is not None:
            holders = self._holders[name]
            del holders[block]
            if not holders:
                del self._holders[name]
        return block

    def _give_back(self, blocks: Sequence[int]) -> None:
        nameless = [block for block in reversed(blocks) if block not in self._name_of]
        for block in reversed(nameless):
            self._free[block] = None
            self._free.move_to_end(block, last=False)
        for block in reversed(blocks):
            if block in self._name_of:
                self._free[block] = None

    def _chain(self, tokens: bytes, salt: str) -> list[int]:
        """Names of the full blocks; those of the request before are taken over."""
        root = self._salts.setdefault(salt, -1 - len(self._salts))
        size = self.block_tokens * _WIDTH
        last_root, last_tokens, last_chain = self._recent
        same = common_length(tokens, last_tokens) // size if last_root == root else 0
        chain = last_chain[:same]
        parent = chain[-1] if chain else root
        for start in range(len(chain) * size, len(tokens) - size + 1, size):
            key = (parent, tokens[start : start + size])
            parent = self._names.setdefault(key, len(self._names))
            chain.append(parent)
        self._recent = (root, tokens, chain)
        return chain


class PoolIndex(PrefixIndex):
    """A cache of limited blocks; without a limit any whole block of a common prefix hits."""

    def __init__(self, table: PieceTable, rule: CacheRule) -> None:
        super().__init__(table, rule)
        table.keep_keys()
        capacity = rule.capacity_tokens
        self._pool = (
            None if capacity is None else BlockPool(capacity // rule.step_tokens, rule.step_tokens)
        )

    def fork(self) -> PoolIndex:
        twin = super().fork()
        assert isinstance(twin, PoolIndex)
        twin._pool = None if self._pool is None else self._pool.copy()
        return twin

    def _serve(
        self, walk: Walk, reach: Reach, prompt: Prompt, plan: CachePlan, now: float
    ) -> Match:
        if self._pool is None:
            return super()._serve(walk, reach, prompt, plan, now)
        tokens = self.table.token_bytes(prompt.pieces)
        held = self._pool.serve(tokens, _salt(plan))
        live = len(held) * self.rule.step_tokens
        whole = self.rule.floor(min(reach.tokens, prompt.total_tokens - self.rule.keep_last_tokens))
        # Nothing was evicted as long as every whole block is there.
        live = reach.live_tokens if live >= whole else min(live, reach.live_tokens)
        return self._prefix_match(walk, reach, prompt, plan, live)

    def _keep(
        self, match: Match, prompt: Prompt, output: IntArray, plan: CachePlan, now: float
    ) -> None:
        if self._pool is not None:
            tokens = self.table.token_bytes(prompt.pieces)
            computed = self.table.computed_bytes(prompt.pieces, output)
            self._pool.run(tokens, computed, _salt(plan))


def _salt(plan: CachePlan) -> str:
    return repr(plan.salts)
