"""A radix tree of an engine: what SGLang keeps of its requests when memory is limited.

The rules, from SGLang's mem_cache/radix_cache.py and evict_policy.py (0.5.23): the tree holds
prompts and outputs in whole pages; a match cuts a node where it ends; when a request does not fit,
whole leaves go, the least recently used first, until it does; the path of a running request
stays. The prompt enters the tree before its output, which so becomes a leaf of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from codesmith_lab.cache.engine import PrefixIndex
from codesmith_lab.cache.match import IntArray, Match
from codesmith_lab.cache.pieces import PieceTable, Prompt, common_length
from codesmith_lab.cache.plan import CachePlan
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.cache.tree import Reach, Walk

__all__ = ["RadixIndex", "RadixPool"]

_WIDTH = 4  # bytes of a token id


@dataclass(slots=True, eq=False)
class _Node:
    """tokens: of the edge into it. used: tick of its last use."""

    tokens: bytes
    parent: _Node | None
    used: int
    children: dict[bytes, _Node] = field(default_factory=dict)


class RadixPool:
    """`capacity_tokens` tokens in pages of `page_tokens`; requests come one after another."""

    def __init__(self, capacity_tokens: int, page_tokens: int) -> None:
        self.capacity_tokens = capacity_tokens
        self.page_bytes = page_tokens * _WIDTH
        self.held_bytes = 0
        self._tick = 0
        self._roots: dict[str, _Node] = {}

    def copy(self) -> RadixPool:
        """A pool that can go on differently."""
        twin = RadixPool(self.capacity_tokens, self.page_bytes // _WIDTH)
        twin.held_bytes, twin._tick = self.held_bytes, self._tick
        for salt, root in self._roots.items():
            twin._roots[salt] = _Node(b"", None, root.used)
            todo = [(root, twin._roots[salt])]
            while todo:
                old, new = todo.pop()
                for key, child in old.children.items():
                    new.children[key] = _Node(child.tokens, new, child.used)
                    todo.append((child, new.children[key]))
        return twin

    def peek(self, tokens: bytes, salt: str = "") -> int:
        """Tokens of the longest known prefix in whole pages, at least one token left out."""
        node, at, key = self._roots.get(salt), 0, self._aligned(tokens[:-_WIDTH])
        while node is not None and at < len(key):
            node = node.children.get(key[at : at + self.page_bytes])
            if node is not None:
                same = self._same(node.tokens, key[at:])
                at += same
                if same < len(node.tokens):
                    break
        return at // _WIDTH

    def run(self, tokens: bytes, computed: bytes, salt: str = "") -> int | None:
        """Serve a prompt, compute what is missing, and put prompt and output into the tree.

        computed: prompt and output as far as it was computed. Gives the tokens that were served;
        None when the prompt does not fit.
        """
        path = self._path(self._aligned(tokens[:-_WIDTH]), salt)
        hit = sum(len(node.tokens) for node in path)
        if not self._make_room(len(tokens) - hit, path):
            return None
        grown = self._insert(self._aligned(tokens), salt)
        rest = len(computed) - len(self._aligned(tokens))
        if self._make_room(rest, grown):
            self._insert(self._aligned(computed), salt)
        return hit // _WIDTH

    def _aligned(self, tokens: bytes) -> bytes:
        return tokens[: len(tokens) // self.page_bytes * self.page_bytes]

    def _same(self, a: bytes, b: bytes) -> int:
        """Bytes of the common prefix, in whole pages."""
        return common_length(a, b, self.page_bytes) * self.page_bytes

    def _path(self, key: bytes, salt: str) -> list[_Node]:
        """The nodes of the longest known prefix, the last one cut where it ends."""
        self._tick += 1
        tick = self._tick
        node = self._roots.setdefault(salt, _Node(b"", None, tick))
        path: list[_Node] = []
        while key:
            child = node.children.get(key[: self.page_bytes])
            if child is None:
                break
            child.used = tick
            same = self._same(child.tokens, key)
            key = key[same:]
            if same < len(child.tokens):
                path.append(self._cut(child, same))
                break
            path.append(child)
            node = child
        return path

    def _cut(self, node: _Node, at: int) -> _Node:
        parent = node.parent
        assert parent is not None
        self._tick += 1
        upper = _Node(node.tokens[:at], parent, self._tick)
        parent.children[upper.tokens[: self.page_bytes]] = upper
        node.tokens, node.parent = node.tokens[at:], upper
        upper.children[node.tokens[: self.page_bytes]] = node
        return upper

    def _insert(self, key: bytes, salt: str) -> list[_Node]:
        path = self._path(key, salt)
        rest = key[sum(len(node.tokens) for node in path) :]
        if rest:
            parent = path[-1] if path else self._roots[salt]
            self._tick += 1
            leaf = _Node(rest, parent, self._tick)
            parent.children[rest[: self.page_bytes]] = leaf
            self.held_bytes += len(rest)
            path.append(leaf)
        return path

    def _make_room(self, need_bytes: int, kept: list[_Node]) -> bool:
        """Let leaves go until so many bytes fit; False when they cannot."""
        pages = -(-need_bytes // self.page_bytes) * self.page_bytes
        free = self.capacity_tokens * _WIDTH - self.held_bytes
        locked = {id(node) for node in kept}
        while free < pages:
            leaves = [node for node in self._nodes() if not node.children]
            oldest = min(
                (node for node in leaves if id(node) not in locked),
                key=lambda node: node.used,
                default=None,
            )
            if oldest is None or oldest.parent is None:
                return False
            del oldest.parent.children[oldest.tokens[: self.page_bytes]]
            self.held_bytes -= len(oldest.tokens)
            free += len(oldest.tokens)
        return True

    def _nodes(self) -> list[_Node]:
        """Every node but the roots."""
        found: list[_Node] = []
        todo = list(self._roots.values())
        while todo:
            children = todo.pop().children.values()
            found += children
            todo += children
        return found


class RadixIndex(PrefixIndex):
    """A cache of limited tokens; without a limit any whole page of a common prefix hits."""

    def __init__(self, table: PieceTable, rule: CacheRule) -> None:
        super().__init__(table, rule)
        table.keep_keys()
        capacity = rule.capacity_tokens
        self._pool = None if capacity is None else RadixPool(capacity, rule.step_tokens)

    def fork(self) -> RadixIndex:
        twin = super().fork()
        assert isinstance(twin, RadixIndex)
        twin._pool = None if self._pool is None else self._pool.copy()
        return twin

    def _serve(
        self, walk: Walk, reach: Reach, prompt: Prompt, plan: CachePlan, now: float
    ) -> Match:
        if self._pool is None:
            return super()._serve(walk, reach, prompt, plan, now)
        held = self._pool.peek(self.table.token_bytes(prompt.pieces), repr(plan.salts))
        whole = self.rule.floor(min(reach.tokens, prompt.total_tokens - self.rule.keep_last_tokens))
        live = reach.live_tokens if held >= whole else min(held, reach.live_tokens)
        return self._prefix_match(walk, reach, prompt, plan, live)

    def _keep(
        self, match: Match, prompt: Prompt, output: IntArray, plan: CachePlan, now: float
    ) -> None:
        if self._pool is not None:
            tokens = self.table.token_bytes(prompt.pieces)
            computed = self.table.computed_bytes(prompt.pieces, output)
            self._pool.run(tokens, computed, repr(plan.salts))
