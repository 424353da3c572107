"""Prompt sections: a named part of the system prompt with a stability and a header comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codesmith_lab.errors import LabError

__all__ = [
    "CACHE_POLICIES",
    "ParsedSection",
    "SOURCES",
    "STABILITIES",
    "PromptSection",
    "escape_attribute",
    "parse_rendered_sections",
    "section_starts",
    "system_to_text",
    "trim",
    "unescape_attribute",
]

STABILITIES = ("static", "workspace", "session", "dynamic")
CACHE_POLICIES = ("cacheable", "uncached", "cache_breaker")
SOURCES = (
    "builtin",
    "project_context",
    "skills",
    "mcp",
    "memory",
    "config",
    "handoff",
    "cli",
    "runtime_override",
    "debug",
)

HEADER_START = "<!-- prompt-section:"
HEADER_END = "-->"

# Unicode White_Space; str.strip() would also take U+001C to U+001F.
_WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def trim(text: str) -> str:
    """Text without Unicode White_Space at both ends, as the reference trims."""
    return text.strip(_WHITE_SPACE)


def escape_attribute(value: str) -> str:
    """Escape `&`, quotes and angle brackets for a header attribute; `&` goes first."""
    for plain, escaped in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        value = value.replace(plain, escaped)
    return value


def unescape_attribute(value: str) -> str:
    """The inverse of `escape_attribute`; `&amp;` goes last."""
    for plain, escaped in (('"', "&quot;"), ("<", "&lt;"), (">", "&gt;"), ("&", "&amp;")):
        value = value.replace(escaped, plain)
    return value


@dataclass(frozen=True, slots=True)
class PromptSection:
    """A section as declared. `body` is kept as given and trimmed when rendered.

    stability: one of STABILITIES. cache_policy: one of CACHE_POLICIES. source: one of SOURCES.
    Any other word raises LabError.
    """

    id: str
    title: str
    body: str
    stability: str = "static"
    cache_policy: str = "cacheable"
    source: str = "builtin"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("stability", self.stability, STABILITIES),
            ("cache_policy", self.cache_policy, CACHE_POLICIES),
            ("source", self.source, SOURCES),
        ):
            if value not in known:
                raise LabError(f"{name} {value!r} is unknown; use one of {', '.join(known)}")

    @property
    def is_stable(self) -> bool:
        """Static or workspace, and cacheable: part of the stable prefix."""
        return self.stability in ("static", "workspace") and self.cache_policy == "cacheable"

    def header(self) -> str:
        """The header comment that names the section in a rendered prompt."""
        return (
            f'{HEADER_START} id="{escape_attribute(self.id)}" '
            f'title="{escape_attribute(self.title)}" stability="{self.stability}" '
            f'cache="{self.cache_policy}" source="{self.source}" {HEADER_END}'
        )

    def render(self) -> str:
        """Header and trimmed body; the empty text when the body is blank."""
        body = trim(self.body)
        return f"{self.header()}\n{body}" if body else ""


def _attribute(header: str, name: str) -> str | None:
    """First substring match, as the reference does: `valid="x"` yields an id."""
    marker = f'{name}="'
    start = header.find(marker)
    if start < 0:
        return None
    start += len(marker)
    end = header.find('"', start)
    return unescape_attribute(header[start:end]) if end >= 0 else None


@dataclass(frozen=True, slots=True)
class ParsedSection:
    """A section read back from a rendered prompt; what a header does not say is None."""

    id: str | None
    title: str | None
    stability: str | None
    cache_policy: str | None
    source: str | None
    body: str


def section_starts(text: str) -> list[tuple[int, int]] | None:
    """(start of the header, end of the header) of each section, or None as in the parser."""
    at = text.find(HEADER_START)
    spans = []
    while at >= 0:
        close = text.find(HEADER_END, at)
        if close < 0:
            return None
        spans.append((at, close + len(HEADER_END)))
        at = text.find(HEADER_START, close + len(HEADER_END))
    return spans or None


def parse_rendered_sections(text: str) -> list[ParsedSection] | None:
    """Sections of a rendered prompt, or None when it has none or a header is not closed.

    Text before the first header is dropped; a label the reference does not know is None.
    """
    spans = section_starts(text)
    if spans is None:
        return None
    ends = [start for start, _ in spans[1:]] + [len(text)]
    return [
        _parsed(text[start:stop], text[stop:end])
        for (start, stop), end in zip(spans, ends, strict=True)
    ]


def _parsed(header: str, body: str) -> ParsedSection:
    return ParsedSection(
        _attribute(header, "id"),
        _attribute(header, "title"),
        _known(_attribute(header, "stability"), STABILITIES),
        _known(_attribute(header, "cache"), CACHE_POLICIES),
        _known(_attribute(header, "source"), SOURCES),
        trim(body.removeprefix("\n")),
    )


def _known(value: str | None, words: tuple[str, ...]) -> str | None:
    return value if value in words else None


def system_to_text(system: str | Sequence[Mapping[str, Any]] | None) -> str | None:
    """One text for a system prompt: blocks joined by a rule, None when nothing is left."""
    if system is None or isinstance(system, str):
        return system
    texts = [block.get("text") for block in system]
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise LabError(
                f"block {index} of the system prompt has no text but {text!r}; "
                'write it as {"type": "text", "text": "..."}'
            )
    return "\n\n---\n\n".join(text for text in texts if text is not None) or None
