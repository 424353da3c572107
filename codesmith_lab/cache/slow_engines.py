"""Engines' memories again, slow and plain: every prefix is known by all of its tokens.

Meant for tests, beside `slow.py`. Nothing is shared with the fast versions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from codesmith_lab.cache.rules import CacheRule

__all__ = ["SlowMemory"]

Tokens = tuple[int, ...]
Key = tuple[str, Tokens]


@dataclass(slots=True)
class SlowMemory:
    """vLLM's blocks, SGLang's tree or llama.cpp's slots, by `rule.match`."""

    rule: CacheRule
    free: list[int] = field(default_factory=list)
    names: dict[int, Key] = field(default_factory=dict)
    used: dict[Key, int] = field(default_factory=dict)
    held: list[Tokens] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    tick: int = 0

    def __post_init__(self) -> None:
        if self.rule.match == "pool":
            self.free = list(range((self.rule.capacity_tokens or 0) // self.rule.step_tokens))
        self.held = [()] * self.rule.slots
        self.turns = [-1] * self.rule.slots

    def serve(self, prompt: Tokens, salt: str) -> int:
        """Tokens that are there for a prompt, its last one left out."""
        step = self.rule.step_tokens
        if self.rule.match == "slots":
            return _common(self.held[self._slot(prompt)], prompt)
        best = 0
        for end in range(step, len(prompt), step):
            if self.rule.match == "pool":
                there = (salt, prompt[:end]) in self.names.values()
            else:
                there = any(s == salt and t[:end] == prompt[:end] for s, t in self.used)
            if not there:
                break
            best = end
        return best

    def run(self, prompt: Tokens, computed: Tokens, salt: str) -> None:
        """What a request leaves."""
        if self.rule.match == "slots":
            at = self._slot(prompt)
            self.tick += 1
            self.held[at], self.turns[at] = computed, self.tick
        elif self.rule.match == "pool":
            self._run_pool(prompt, computed, salt)
        else:
            self._run_tree(prompt, computed, salt)

    # -- slots -----------------------------------------------------------------------------

    def _slot(self, prompt: Tokens) -> int:
        shares = [_common(held, prompt) for held in self.held]
        alike = [n for n in shares if n > self.rule.slot_similarity * len(prompt)]
        if alike:
            return shares.index(max(alike))
        return self.turns.index(min(self.turns))

    # -- blocks ----------------------------------------------------------------------------

    def _run_pool(self, prompt: Tokens, computed: Tokens, salt: str) -> None:
        step = self.rule.step_tokens
        served = self.serve(prompt, salt) // step
        mine: list[int] = []
        for at in range(served):
            key = (salt, prompt[: (at + 1) * step])
            mine.append(next(block for block, name in self.names.items() if name == key))
        need = -(-len(prompt) // step) - served
        if need > len([block for block in self.free if block not in mine]):
            return
        self.free = [block for block in self.free if block not in mine]
        need = -(-len(computed) // step) - served
        for _ in range(min(need, len(self.free))):
            block = self.free.pop(0)
            self.names.pop(block, None)
            mine.append(block)
        for at in range(served, min(len(mine), len(computed) // step)):
            self.names[mine[at]] = (salt, computed[: (at + 1) * step])
        back = mine[::-1]
        self.free = [b for b in back if b not in self.names] + self.free
        self.free += [b for b in back if b in self.names]

    # -- tree ------------------------------------------------------------------------------

    def _run_tree(self, prompt: Tokens, computed: Tokens, salt: str) -> None:
        """`used` holds the end of every node and the tick of its last use."""
        step = self.rule.step_tokens
        hit = self.serve(prompt, salt)
        kept = self._use(prompt[:hit], salt)
        if not self._room(len(prompt) - hit, kept, salt):
            return
        whole = prompt[: len(prompt) // step * step]
        kept = self._grow(whole, salt)
        if self._room(len(computed) - len(whole), kept, salt):
            self._grow(computed[: len(computed) // step * step], salt)

    def _use(self, key: Tokens, salt: str) -> Tokens:
        """Touch every node along `key`, cutting the one in which it ends; gives the known part."""
        self.tick += 1
        tick = self.tick
        step = self.rule.step_tokens
        known = 0
        for s, end in self.used:
            if s == salt:
                known = max(known, _common(end, key) // step * step)
        for s, end in list(self.used):
            if s == salt and end == key[: len(end)]:
                self.used[(s, end)] = tick
        below = [t for s, t in self.used if s == salt and t[:known] == key[:known]]
        if known and (salt, key[:known]) not in self.used:
            # The node that ends next below is the one that is cut; it counts as used, too.
            lower = min(below, key=len)
            self.used[(salt, lower)] = tick
            self.tick += 1
            self.used[(salt, key[:known])] = self.tick
        return key[:known]

    def _grow(self, key: Tokens, salt: str) -> Tokens:
        if len(self._use(key, salt)) < len(key):
            self.tick += 1
            self.used[(salt, key)] = self.tick
        return key

    def _room(self, need: int, kept: Tokens, salt: str) -> bool:
        step = self.rule.step_tokens
        need = -(-need // step) * step
        while (self.rule.capacity_tokens or 0) - self._size() < need:
            leaves = [
                key
                for key in self.used
                if not any(
                    k != key and k[0] == key[0] and k[1][: len(key[1])] == key[1] for k in self.used
                )
                and not (key[0] == salt and key[1] == kept[: len(key[1])])
            ]
            if not leaves:
                return False
            del self.used[min(leaves, key=self.used.__getitem__)]
        return True

    def _size(self) -> int:
        """Tokens in the tree: every page counts once for each prefix that it ends."""
        step = self.rule.step_tokens
        return step * len(
            {(s, t[:end]) for s, t in self.used for end in range(step, len(t) + 1, step)}
        )


def _common(a: Any, b: Any) -> int:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n
