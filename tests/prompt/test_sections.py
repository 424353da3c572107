"""Sections and bundles beyond the golden vectors: what holds for any text."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codesmith_lab.errors import LabError
from codesmith_lab.prompt import (
    PromptBundle,
    PromptSection,
    build_effective_prompt,
    parse_rendered_sections,
    system_to_text,
)
from codesmith_lab.prompt.sections import (
    CACHE_POLICIES,
    HEADER_START,
    SOURCES,
    STABILITIES,
    escape_attribute,
    trim,
    unescape_attribute,
)

texts = st.text(max_size=12) | st.sampled_from(['a"b', "<x>", "&amp;", "-->", "a\nb", "\x1cx\x1c"])
sections = st.builds(
    PromptSection,
    id=texts,
    title=texts,
    body=texts,
    stability=st.sampled_from(STABILITIES),
    cache_policy=st.sampled_from(CACHE_POLICIES),
    source=st.sampled_from(SOURCES),
).filter(lambda section: HEADER_START not in section.body)


@given(st.lists(sections, max_size=5))
def test_what_is_rendered_reads_back(drawn: list[PromptSection]) -> None:
    shown = [section for section in drawn if trim(section.body)]
    parsed = parse_rendered_sections(PromptBundle.from_sections(drawn).render_text())
    if not shown:
        assert parsed is None
        return
    assert parsed is not None
    read = [(p.id, p.title, p.body, p.stability, p.cache_policy, p.source) for p in parsed]
    assert read == [
        (s.id, s.title, trim(s.body), s.stability, s.cache_policy, s.source) for s in shown
    ]


@given(st.lists(sections, max_size=6))
def test_the_boundary_is_the_first_unstable_section(drawn: list[PromptSection]) -> None:
    unstable = [
        index
        for index, section in enumerate(drawn)
        if section.stability in ("session", "dynamic") or section.cache_policy != "cacheable"
    ]
    boundary = PromptBundle.from_sections(drawn).dynamic_boundary_index
    assert boundary == (unstable[0] if unstable else None)


@given(st.lists(sections, max_size=5))
def test_the_stable_prefix_does_not_depend_on_unstable_sections(
    drawn: list[PromptSection],
) -> None:
    stable = [
        section
        for section in drawn
        if section.stability in ("static", "workspace") and section.cache_policy == "cacheable"
    ]
    bundle = PromptBundle.from_sections(drawn)
    assert bundle.stable_prefix_text() == PromptBundle.from_sections(stable).render_text()


@given(st.text())
@example("&lt;&amp;lt;&quot;")
def test_escaping_is_undone_and_leaves_no_markup(text: str) -> None:
    escaped = escape_attribute(text)
    assert unescape_attribute(escaped) == text
    assert not set('"<>') & set(escaped)


def test_trim_takes_unicode_white_space_and_nothing_else() -> None:
    # White_Space is the separators (Zs, Zl, Zp) with U+0009..U+000D and U+0085 (PropList.txt).
    letters = [chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000]
    white = {letter for letter in letters if unicodedata.category(letter) in ("Zs", "Zl", "Zp")}
    white |= {*"\t\n\x0b\x0c\r\x85"}
    assert {letter for letter in letters if not trim(letter)} == white


@given(st.text())
def test_any_text_parses_to_sections_or_none(text: str) -> None:
    parsed = parse_rendered_sections(f"{text}{HEADER_START} {text}-->{text}")
    assert parsed is None or all(trim(section.body) == section.body for section in parsed)


@pytest.mark.parametrize(
    ("field", "words"),
    [("stability", STABILITIES), ("cache_policy", CACHE_POLICIES), ("source", SOURCES)],
)
def test_an_unknown_word_is_refused_with_the_known_ones(field: str, words: tuple[str, ...]) -> None:
    changes: dict[str, Any] = {field: 'x" -->'}
    with pytest.raises(LabError, match=f"{field} .* is unknown; use one of {', '.join(words)}"):
        PromptSection("i", "t", "b", **changes)


def test_the_most_special_prompt_wins_and_blank_ones_are_absent() -> None:
    default, extra = PromptSection("d", "D", "d"), PromptSection("e", "E", "e")
    ranks = ("override", "coordinator", "agent", "custom")
    for rank, name in enumerate(ranks):
        prompts = {each: " \n" if at < rank else f" {each} " for at, each in enumerate(ranks)}
        bundle = build_effective_prompt([default], append=[extra], **prompts)
        assert [section.body for section in bundle.sections] == [name, "e"]
    bundle = build_effective_prompt([default], append=[extra], override="\u2003")
    assert bundle.sections == [default, extra]


def test_a_system_prompt_of_blocks_has_texts() -> None:
    assert system_to_text(None) is None
    assert system_to_text([{"text": "a"}, {"text": "b"}]) == "a\n\n---\n\nb"
    for block in ({"type": "image"}, {"text": None}, {"text": 1}):
        with pytest.raises(LabError, match="block 0 of the system prompt has no text"):
            system_to_text([block])
