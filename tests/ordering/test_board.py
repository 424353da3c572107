"""The board's state: moving, locks, constraints, rewrites, undo and variants; and what goes out."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import codesmith_lab as lab
from codesmith_lab.errors import InputError, LabError
from codesmith_lab.prompt.ordering.cost import CacheUnits
from codesmith_lab.prompt.ordering.stats import SectionStats
from codesmith_lab.sessions.order.board import BoardState, OrderBoard
from codesmith_lab.sessions.order.export import (
    ExportedOrder,
    order_from_text,
    read_order,
    to_json,
    to_text,
    to_toml,
)
from codesmith_lab.sessions.order.rewrites import Rewrite
from codesmith_lab.sessions.order.source import SectionSource, bundle_stats, laid_by_hand

ABCDE = tuple("abcde")


@pytest.fixture
def board() -> OrderBoard:
    sections = [SectionStats(name, 100 * (at + 1), 0.1) for at, name in enumerate(ABCDE)]
    laid = laid_by_hand(sections, CacheUnits(128, 128), None)
    return OrderBoard(lambda rewrites: laid)


@pytest.fixture(scope="module")
def source() -> SectionSource:
    return SectionSource(lab.samples.clock_story())


def test_a_section_moves_to_a_place(board: OrderBoard) -> None:
    board.move("a", 2)
    assert board.state.order == tuple("bcade")
    board.move("e", 0)
    assert board.state.order == tuple("ebcad")
    board.move("b", 99)
    assert board.state.order == tuple("ecadb")


def test_locked_sections_keep_their_places(board: OrderBoard) -> None:
    board.lock("c")
    for name, to in (("a", 4), ("e", 0), ("b", 2), ("d", 3)):
        board.move(name, to)
        assert board.state.order[2] == "c"
        assert sorted(board.state.order) == list(ABCDE)
    with pytest.raises(LabError, match="'c' is locked to its place"):
        board.move("c", 0)
    board.lock("c", False)
    board.move("c", 0)
    assert board.state.order[0] == "c"


def test_a_constraint_mends_the_order_or_is_refused(board: OrderBoard) -> None:
    board.constrain("d", "b")
    assert board.state.order == tuple("adbce")
    before = board.state
    with pytest.raises(LabError, match="'d' must stand before 'b'"):
        board.move("b", 0)
    with pytest.raises(LabError, match="circle"):
        board.constrain("b", "d")
    board.lock("a")
    with pytest.raises(LabError, match="'a' is locked to place 1"):
        board.constrain("e", "a")
    assert board.state == BoardState(
        before.order, before.before, {"a": 0}, before.rates, before.rewrites
    )
    board.constrain("d", "b", on=False)
    board.move("b", 1)
    assert board.state.order == tuple("abdce")


def test_undo_and_redo_walk_through_states(board: OrderBoard) -> None:
    """Random changes, then all the way back and forth: the same states, exactly."""
    source = random.Random(2)
    states = [board.state]
    for _ in range(60):
        name, kind = source.choice(ABCDE), source.randrange(4)
        try:
            if kind == 0:
                board.move(name, source.randrange(5))
            elif kind == 1:
                board.lock(name, source.random() < 0.5)
            elif kind == 2:
                board.constrain(name, source.choice(ABCDE), source.random() < 0.6)
            else:
                board.set_rate(name, source.choice([None, 0.0, 0.5, 1.0]))
        except LabError:
            assert board.state == states[-1]
        if board.state != states[-1]:
            states.append(board.state)
    assert len(states) > 15
    for state in reversed(states[:-1]):
        board.undo()
        assert board.state == state
    assert not board.can_undo
    for state in states[1:]:
        board.redo()
        assert board.state == state
    board.undo()
    assert board.can_redo
    board.reset()
    assert not board.can_redo


def test_bad_input_keeps_the_last_good_state(board: OrderBoard) -> None:
    before = board.state
    for bad, words in (
        (lambda: board.move("x", 0), "no movable section 'x'"),
        (lambda: board.set_order("abc"), "names each of the 5 sections once"),
        (lambda: board.set_rate("a", 1.5), "between 0 and 1"),
        (lambda: board.set_rate("x", 0.5), "no section 'x'"),
        (lambda: board.constrain("a", "a"), "circle"),
        (lambda: board.keep("  "), "needs a name"),
        (lambda: board.use("mine"), "no variant is named 'mine'"),
        (lambda: board.session_best(), "no session to replay"),
    ):
        with pytest.raises(LabError, match=words):
            bad()
        assert board.state == before
    assert not board.can_undo


def test_sections_that_cannot_be_one_prompt_are_refused() -> None:
    twice = [SectionStats("a", 5, 0.1), SectionStats("a", 6, 0.1)]
    with pytest.raises(LabError, match="two sections are named 'a'"):
        laid_by_hand(twice, CacheUnits(), None)
    large = laid_by_hand([SectionStats("a", 500, 0.1)], CacheUnits(), None)
    with pytest.raises(LabError, match="the window holds 400"):
        OrderBoard(lambda rewrites: large, 400)


def test_four_variants_are_kept(board: OrderBoard) -> None:
    for at in range(4):
        board.move("a", at)
        board.keep(f"v{at}")
    with pytest.raises(LabError, match="4 variants are kept"):
        board.keep("v4")
    board.keep("v3")
    board.drop("v0")
    board.keep("v4")
    board.use("v1")
    assert board.state.order == tuple("bacde")
    board.undo()
    assert board.state.order == tuple("bcdae")


def test_a_best_order_uses_rates_by_hand(board: OrderBoard) -> None:
    assert board.closed_best().names == tuple("edcba")
    board.set_rate("e", 1.0)
    assert board.closed_best().names == tuple("dcbae")
    board.set_rate("e", None)
    board.lock("b")
    assert board.closed_best().names[1] == "b"


def test_a_session_is_weighed_both_ways(source: SectionSource) -> None:
    board = OrderBoard(source.laid)
    today = board.weigh()
    assert today.replay is not None
    assert today.replayed_usd is not None
    board.move("environment", 4)
    now = board.weigh()
    assert now.replayed_usd is not None
    assert now.replayed_usd < today.replayed_usd
    assert now.cost.hit_tokens > today.cost.hit_tokens
    month = now.month_usd(2000)
    assert month == now.replayed_usd * 2000 * 30
    assert sum(now.sizes) == sum(today.sizes) == now.cost.total_tokens


def test_a_split_section_stands_behind_its_rest(source: SectionSource) -> None:
    board = OrderBoard(source.laid)
    board.lock("environment")
    board.move("memory", 0)
    board.rewrite(Rewrite("split", "environment"))
    order = board.state.order
    at = order.index("environment")
    assert order[at + 1] == "environment (changing)"
    assert board.state.locked == {"environment": at}
    assert set(board.sections()) >= set(order)
    board.rewrite(Rewrite("turn", "environment (changing)"))
    assert "environment (changing)" not in board.state.order
    board.undo()
    assert board.state.order == order
    board.reset()
    assert board.state == board.original
    board.undo()
    assert board.state.order == order


def exported(source: SectionSource) -> ExportedOrder:
    sections = source.sections()
    names = ("skills", "constitution", "memory", "environment", "project_context")
    stats = {s.name: s for s in source.laid().sections}
    return ExportedOrder(
        tuple(sections[n] for n in names), (("skills", "memory"),), {"skills": 0}, stats
    )


def test_text_json_and_toml_make_the_round_trip(source: SectionSource) -> None:
    order = exported(source)
    text = to_text(order)
    assert order_from_text(text) == order.names
    parsed = lab.parse_rendered_sections(text)
    assert parsed is not None
    for section, one in zip(order.sections, parsed, strict=True):
        assert (one.id, one.title, one.stability) == (section.id, section.title, section.stability)
        assert one.body == section.body.strip()
    for written in (to_json(order), to_toml(order)):
        back = read_order(written)
        assert back.sections == order.sections
        assert (back.before, dict(back.locked or {})) == (order.before, order.locked)
        assert to_text(back) == text
        assert to_json(order) == to_json(order)
    assert json.loads(to_json(order))["sections"][3]["changes"] == 33


def test_odd_text_survives_the_round_trip() -> None:
    body = 'tabs\t, "quotes", \\back, é, 漢字, 🦆, <b>&amp;\r\nline\n\n---\n\x7f'
    section = lab.PromptSection('a "b" <c>', "T & t", body, "dynamic", "uncached", "memory")
    order = ExportedOrder((section, lab.PromptSection("z", "Z", "z")))
    for written in (to_json(order), to_toml(order)):
        assert read_order(written).sections == order.sections
    assert order_from_text(to_text(order)) == ('a "b" <c>', "z")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "neither JSON nor TOML"),
        ("= 1", "neither JSON nor TOML"),
        ("[" * 100_000, "neither JSON nor TOML"),
        ("{}", "the format is None"),
        ('format = "codesmith-lab section order"\nversion = 9', "the version is 9"),
        ("SECTIONS", "section 0 is 5"),
        ("BEFORE", "before has"),
        ("LOCKED", "locked is"),
        ("TWICE", "have one id"),
        ("STABILITY", "section 0: stability 'solid' is unknown"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, words: str) -> None:
    good = json.loads(to_json(ExportedOrder((lab.PromptSection("a", "A", "x"),))))
    changes: dict[str, Any] = {
        "SECTIONS": {"sections": [5]},
        "BEFORE": {"before": [["a", "nowhere"]]},
        "LOCKED": {"locked": {"a": 7}},
        "TWICE": {"sections": good["sections"] * 2},
        "STABILITY": {"sections": [good["sections"][0] | {"stability": "solid"}]},
    }
    if text in changes:
        text = json.dumps(good | changes[text])
    with pytest.raises(InputError) as caught:
        read_order(text)
    assert words in str(caught.value)


def test_headers_without_ids_are_refused() -> None:
    for text, words in (
        ("no headers", "has no section headers"),
        ("<!-- prompt-section: -->\nx", "needs an id of its own"),
        ('<!-- prompt-section: id="a" -->\nx\n<!-- prompt-section: id="a" -->', "id of its own"),
    ):
        with pytest.raises(LabError, match=words):
            order_from_text(text)


def test_a_bundle_is_measured_by_its_stabilities() -> None:
    bundle = lab.PromptBundle.from_sections(
        [lab.PromptSection("a", "A", "word " * 50), lab.PromptSection("b", "B", "x", "dynamic")]
    )
    stats = bundle_stats(bundle, "deepseek")
    assert [(s.name, s.source, s.change_probability) for s in stats] == [
        ("a", "by stability", 0.001),
        ("b", "by stability", 0.9),
    ]
    assert stats[0].size_tokens > 50
    bundle.push(lab.PromptSection("c", "C", " \n"))
    with pytest.raises(LabError, match="section 'c' is empty"):
        bundle_stats(bundle, "deepseek")


def test_expected_dollars_have_no_price_where_none_is_known(board: OrderBoard) -> None:
    weighed = board.weigh()
    assert weighed.expected_usd is None
    assert weighed.month_usd(10) is None
