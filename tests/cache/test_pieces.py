"""Layouts: a prompt made from a neighbour equals one made from scratch."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from codesmith_lab.billing.tokens import get_tokenizer, joint_delta, run_counts
from codesmith_lab.cache.growing import GrowingLayout
from codesmith_lab.cache.pieces import PieceTable
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.chat_format import CHAT_FORMATS

TEXTS = st.sampled_from(["a", "b c", " d", "e\n\n", "\nf", "12", "34", "déjà vu", ""])
KINDS = st.sampled_from(
    [("section", "system"), ("message", "user"), ("message", "assistant"), ("message", "tool")]
)


@st.composite
def edits(draw):
    """Blocks of a prompt and the same with some replaced by blocks of any kind."""
    name = draw(st.sampled_from(sorted(CHAT_FORMATS)))
    kinds = [("section", "system")] * draw(st.integers(0, 4))
    kinds += draw(st.lists(KINDS.filter(lambda k: k[0] == "message"), max_size=8))
    blocks = [
        Block(
            "pinned" if kind == "section" else "log",
            kind,
            role,
            f"n{i}",
            draw(TEXTS),
            b"",
            first=draw(st.booleans()),
            last=draw(st.booleans()),
        )
        for i, (kind, role) in enumerate(kinds)
    ]
    changed = list(blocks)
    for i, block in enumerate(blocks):
        if draw(st.booleans()):
            changed[i] = replace(
                block, text=draw(TEXTS), first=draw(st.booleans()), last=draw(st.booleans())
            )
    return name, tuple(blocks), tuple(changed), draw(st.booleans())


@settings(max_examples=300, deadline=None)
@given(edits())
def test_a_varied_prompt_equals_one_laid_out_from_scratch(case):
    name, blocks, changed, exact = case
    tokenizer = get_tokenizer("o200k_base")
    table = PieceTable(
        CHAT_FORMATS[name],
        tokenizer.ids,
        lambda a, b: joint_delta(a, b, tokenizer),
        lambda texts: run_counts(texts, tokenizer),
    )
    base = table.prompt(blocks)
    if exact:
        base = table.exact(base)
    varied, plain = table.vary(base, changed), table.prompt(changed)
    assert varied.blocks == plain.blocks
    np.testing.assert_array_equal(varied.pieces, plain.pieces)
    np.testing.assert_array_equal(varied.tokens, plain.tokens)
    np.testing.assert_array_equal(varied.ends, plain.ends)


@st.composite
def growing(draw):
    """Requests that extend, cut, edit or replace the one before, and that share its blocks."""
    name = draw(st.sampled_from(sorted(CHAT_FORMATS)))
    pinned = [("tool", "")] * draw(st.integers(0, 2)) + [("section", "system")] * draw(
        st.integers(0, 2)
    )

    def block(kind, role, i):
        zone = "log" if kind == "message" else "pinned"
        ends = {"first": draw(st.booleans()), "last": draw(st.booleans())}
        return Block(zone, kind, role, f"n{i}", draw(TEXTS), b"", **ends)

    blocks = tuple(block(kind, role, i) for i, (kind, role) in enumerate(pinned))
    requests = []
    for _ in range(draw(st.integers(1, 6))):
        change = draw(st.integers(0, 5))
        if change == 0 and blocks:
            at = draw(st.integers(0, len(blocks) - 1))
            blocks = (*blocks[:at], replace(blocks[at], text=draw(TEXTS)), *blocks[at + 1 :])
        elif change == 1 and blocks:
            blocks = blocks[: draw(st.integers(0, len(blocks)))]
        more = draw(st.lists(KINDS.filter(lambda k: k[0] == "message"), max_size=4))
        blocks = (*blocks, *(block(kind, role, len(blocks)) for kind, role in more))
        requests.append(blocks)
    return name, requests, draw(st.booleans())


@settings(max_examples=400, deadline=None)
@given(growing())
def test_growing_requests_are_laid_out_as_each_alone(case):
    name, requests, exact = case
    tokenizer = get_tokenizer("o200k_base")
    parts = (
        CHAT_FORMATS[name],
        tokenizer.ids,
        lambda a, b: joint_delta(a, b, tokenizer),
        lambda texts: run_counts(texts, tokenizer),
    )
    table = PieceTable(*parts)
    layout = GrowingLayout(table, exact)
    for blocks in requests:
        found = layout.prompt(blocks)
        alone = PieceTable(*parts)
        plain = alone.exact(alone.prompt(blocks)) if exact else alone.prompt(blocks)
        assert found.blocks == plain.blocks
        np.testing.assert_array_equal(found.tokens, plain.tokens)
        np.testing.assert_array_equal(found.ends, plain.ends)
        np.testing.assert_array_equal(found.pieces, table.prompt(blocks).pieces)
