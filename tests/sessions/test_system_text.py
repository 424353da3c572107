"""A system prompt is cut where a person would cut it, and nothing of it is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.prompt.sections import PromptSection
from codesmith_lab.sessions.reading.system_text import split_sections

PIECES = st.sampled_from(
    [
        *("# Rules\n", "## Rules\n", "### Deep\n", "#no\n", "# \n", "text\n", "\n", "  \n", "\r\n"),
        *("<env>\n", "</env>\n", "<env a='1'>\n", "<b>", "</b>\n", "```\n", "~~~~\n", "```py\n"),
        *("<!-- prompt-section:", ' id="x" ', "-->", "\x0b", "\u2028", "# a\x85b\n", "é", "\x00"),
    ]
)


def names(text: str) -> list[str]:
    return [meta.id for meta, _ in split_sections(text)]


@given(st.lists(PIECES | st.text(max_size=5), max_size=25))
def test_the_sections_joined_are_the_prompt(pieces: list[str]) -> None:
    text = "".join(pieces)
    sections = split_sections(text)
    assert "".join(part for _, part in sections) == text
    assert all(part for _, part in sections)
    assert len({meta.id for meta, _ in sections}) == len(sections)


def test_headings_and_tagged_blocks() -> None:
    text = (
        "You are an agent.\n\n# Core rules\nBe brief.\n### Detail\n\n<environment>\n# no\n"
        "</environment>\n\nMore rules.\n## Tools & skills\n```\n# not a heading\n```\nend\n"
    )
    assert [(meta.id, meta.title, part) for meta, part in split_sections(text)] == [
        ("preamble", "preamble", "You are an agent.\n\n"),
        ("core-rules", "Core rules", "# Core rules\nBe brief.\n### Detail\n\n"),
        ("environment", "environment", "<environment>\n# no\n</environment>\n\n"),
        ("core-rules (2)", "Core rules", "More rules.\n"),
        (
            "tools-skills",
            "Tools & skills",
            "## Tools & skills\n```\n# not a heading\n```\nend\n",
        ),
    ]
    assert all(not meta.declared and meta.stability == "static" for meta, _ in split_sections(text))


def test_plain_text_is_one_section() -> None:
    assert names("You are helpful.") == ["system"]
    assert names("") == []
    assert names("\n\n# A\nx") == ["a"]


def test_same_names_are_numbered() -> None:
    assert names("# A\n# A\n# A\n") == ["a", "a (2)", "a (3)"]


def test_tags_must_open_and_close_on_lines_of_their_own() -> None:
    assert names("<a>\nx\n") == ["system"]
    assert names("see <a>\nx\n</a>\n") == ["system"]
    assert names("<a>\n<a>\nx\n</a>\n</a>\ny\n") == ["a", "text"]
    assert names("<a>\r\nx\r\n</a>\r\n<b x='1'>\r\n</b>\r\n") == ["a", "b"]


def test_a_fence_that_never_closes_hides_nothing() -> None:
    assert names("# A\n```\n# B\n") == ["a", "b"]
    assert names("# A\n````\n```\n# no\n````\n# B\n") == ["a", "b"]


def test_names_keep_every_script_and_no_markup() -> None:
    title = "<script>alert('x')</script> हिन्दी é 😀"
    meta, part = split_sections(f"# {title}\nx")[0]
    assert meta.title == title
    assert meta.id == "script-alert-x-script-हिन्दी-é"
    assert part == f"# {title}\nx"
    assert names("# 😀\n") == ["section"]
    assert len(names("# " + "x" * 5000)[0]) == 80


def test_rendered_headers_decide() -> None:
    one = PromptSection("core", 'A "title"', "# not a cut\n\nBe brief.", "static")
    two = PromptSection("env", "Environment", "now", "dynamic", "uncached", "config")
    text = f"before\n{one.render()}\n\n{two.render()}\n"
    sections = split_sections(text)
    assert [part for _, part in sections] == [
        "before\n",
        one.render() + "\n\n",
        two.render() + "\n",
    ]
    core, env = sections[1][0], sections[2][0]
    assert (core.id, core.title, core.declared) == ("core", 'A "title"', True)
    assert (env.stability, env.cache_policy, env.source) == ("dynamic", "uncached", "config")


def test_a_header_that_is_not_closed_is_text() -> None:
    assert names('<!-- prompt-section: id="a"\n# B\nx') == ["preamble", "b"]


def test_cutting_is_linear() -> None:
    """Sizes at which anything quadratic would take minutes."""
    n = 60_000
    for text in ("<a>\n" * n, "<a>\n" * n + "</a>\n", "```\n" * n, "# a\n" * n, "#" * n, "`" * n):
        assert "".join(part for _, part in split_sections(text)) == text
