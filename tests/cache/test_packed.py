"""Packed prompts: the same as plain ones at every place, and kept once where they repeat."""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from codesmith_lab.cache.growing import GrowingLayout
from codesmith_lab.cache.packed import PackedPrompt
from codesmith_lab.cache.pieces import PieceTable
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.chat_format import CHAT_FORMATS


def _table() -> PieceTable:
    return PieceTable(
        CHAT_FORMATS["deepseek"],
        lambda text: np.array([ord(c) for c in text], np.int32),
        lambda left, right: -1 if left[-1:] == right[:1] else 0,
        lambda texts: [len(text) for text in texts],
    )


def _block(text: str, kind: str = "message", role: str = "user") -> Block:
    zone = "log" if kind == "message" else "pinned"
    return Block(zone, kind, role, text[:8], text, b"")  # type: ignore[arg-type]


TOOLS = [_block(f'{{"tool": {n}}}', "tool", "") for n in range(40)]
SECTIONS = [_block(f"Section {n}.\n\n", "section", "system") for n in range(12)]
MESSAGES = [_block(f"message {n} " * (n % 5 + 1)) for n in range(900)]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_packed_prompt_is_the_plain_one(data: st.DataObject) -> None:
    table, check = _table(), _table()
    layout = GrowingLayout(table)
    blocks: list[Block] = []
    for _ in range(data.draw(st.integers(1, 6))):
        keep = data.draw(st.integers(0, len(blocks)))
        first = data.draw(st.integers(0, len(MESSAGES) - 1))
        tools = data.draw(st.integers(0, 40))
        sections = data.draw(st.integers(0, 12))
        if not blocks or data.draw(st.booleans()):
            front = [*TOOLS[:tools], *SECTIONS[:sections]]
            blocks = [*front, *(b for b in blocks[:keep] if b.kind == "message")]
        blocks += MESSAGES[first : first + data.draw(st.integers(0, 400))]
        packed, plain = layout.prompt(blocks), check.prompt(blocks)
        assert isinstance(packed, PackedPrompt)
        low = data.draw(st.integers(0, plain.size))
        high = data.draw(st.integers(low, plain.size))
        for made in (True, False):
            if not made:
                packed.drop()
            names = [check[n].full for n in plain.numbers(low, high).tolist()]
            assert [table[n].full for n in packed.numbers(low, high).tolist()] == names
            assert packed.tokens_before(low) == plain.tokens_before(low)
            assert packed.total_tokens == plain.total_tokens
            assert (packed.size, packed.pinned_pieces) == (plain.size, plain.pinned_pieces)
            assert packed.pinned_blocks == plain.pinned_blocks
            if low < plain.size - 1:
                assert packed.block_at(low) is plain.blocks[low]
        assert packed.blocks == plain.blocks
        assert packed.tokens.tolist() == plain.tokens.tolist()
        assert packed.ends.tolist() == plain.ends.tolist()
        assert packed.ends.dtype == plain.ends.dtype and packed.pieces.dtype == plain.pieces.dtype


def test_a_prompt_behind_another_front_keeps_its_history_once() -> None:
    """A clock in the system prompt: every prompt is laid out anew, and hardly anything is new."""
    layout = GrowingLayout(_table())
    packed = [
        layout.prompt([*TOOLS, _block(f"It is {n}.", "section", "system"), *MESSAGES[: 300 + n]])
        for n in range(200)
    ]
    parts = {id(part): part for prompt in packed for part in prompt.parts}
    rows = sum(len(part.pieces) for part in parts.values())
    assert sum(prompt.size for prompt in packed) > 80_000
    assert rows < 16_000


def test_one_message_again_and_again_is_cut_all_the_same() -> None:
    layout = GrowingLayout(_table())
    packed = layout.prompt([MESSAGES[0]] * 5000)
    assert len(packed.parts) >= 5000 // 256
    assert len({id(part) for part in packed.parts}) <= 4


def test_only_the_prompts_looked_at_last_hold_arrays() -> None:
    layout = GrowingLayout(_table())
    packed = [layout.prompt(MESSAGES[: 100 + n]) for n in range(50)]
    for prompt in packed:
        assert len(prompt.blocks) == prompt.size - 1
    held = [p for p in packed if p._made is not None or p._arrays is not None]
    assert 1 <= len(held) <= 16
    assert packed[0].ends[-1] == packed[0].total_tokens


def test_token_ids_that_were_let_go_come_back_the_same() -> None:
    kept, table = _table(), _table()
    kept.keep_keys()
    texts = [f"{n} " + "x" * 60_000 for n in range(60)]
    numbers = [table.number_of(_block(text), opens=False) for text in texts]
    assert numbers == [kept.number_of(_block(text), opens=False) for text in texts]
    assert len(table._keys) < 40 < len(kept._keys)
    for number in [*numbers, table.without_last_token(numbers[0])]:
        if number == numbers[-1] + 1:
            assert kept.without_last_token(numbers[0]) == number
            assert table.key(number) == table.key(numbers[0])[:-4]
        assert table.key(number) == kept.key(number)
        assert len(table.key(number)) == 4 * table[number].tokens


def test_threads_may_look_at_the_same_prompts() -> None:
    layout = GrowingLayout(_table())
    packed = [layout.prompt(MESSAGES[: 300 + n]) for n in range(40)]
    wanted = [(p.total_tokens, p.blocks, p.ends.tolist()) for p in packed]
    failures: list[object] = []

    def look(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(1500):
            n = rng.randrange(len(packed))
            prompt, (total, blocks, ends) = packed[n], wanted[n]
            at = rng.randrange(len(blocks))
            found = (prompt.total_tokens, prompt.block_at(at), prompt.tokens_before(at + 1))
            if found != (total, blocks[at], ends[at]) or prompt.blocks != blocks:
                failures.append((n, at, found))
            if int(prompt.ends[at] - prompt.tokens[at]) != (ends[at - 1] if at else 0):
                failures.append((n, at))

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(look, range(4)))
    finally:
        sys.setswitchinterval(switch)
    assert not failures
