"""A system prompt, cut into sections."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from codesmith_lab.prompt.blocks import SectionMeta
from codesmith_lab.prompt.sections import parse_rendered_sections, section_starts

__all__ = ["split_sections"]

_OPEN_TAG = re.compile(r"<([A-Za-z][\w.-]*)(?:\s[^<>]*)?>")
_CLOSE_TAG = re.compile(r"</([A-Za-z][\w.-]*)>")
_NAME_CHARACTERS = 80

_Cut = tuple[int, str, str]  # first line, id, title


def split_sections(text: str) -> list[tuple[SectionMeta, str]]:
    """Sections and their texts; joined with "", the texts are the system prompt exactly.

    Rendered section headers decide. Without one, Markdown headings of the first two levels (outside
    code fences) and tagged blocks whose tags stand alone on their lines do. Sections own their
    trailing blank lines; text before the first is a section "preamble"; a text with neither is one
    section "system". An id that stands again gets " (2)". Without a header the stability is
    assumed to be static (`declared` is false), for people to adjust.
    """
    if not text:
        return []
    pieces = _declared(text) or _assumed(text)
    seen: dict[str, int] = {}
    named = []
    for meta, part in pieces:
        count = seen[meta.id] = seen.get(meta.id, 0) + 1
        named.append((meta if count == 1 else replace(meta, id=f"{meta.id} ({count})"), part))
    return named


def _guess(name: str, title: str = "") -> SectionMeta:
    return SectionMeta(name, title or name, "static", "cacheable", "unknown", False)


def _declared(text: str) -> list[tuple[SectionMeta, str]] | None:
    spans = section_starts(text)
    parsed = parse_rendered_sections(text)
    if not spans or parsed is None:
        return None
    pieces = []
    if spans[0][0] > 0:
        pieces.append((_guess("preamble"), text[: spans[0][0]]))
    ends = [start for start, _ in spans[1:]] + [len(text)]
    for (start, _), end, section in zip(spans, ends, parsed, strict=True):
        meta = SectionMeta(
            section.id or "section",
            section.title or section.id or "section",
            section.stability or "static",
            section.cache_policy or "cacheable",
            section.source or "unknown",
            True,
        )
        pieces.append((meta, text[start:end]))
    return pieces


def _assumed(text: str) -> list[tuple[SectionMeta, str]]:
    lines = text.split("\n")
    lines = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    cuts = _cuts(lines)
    if not cuts:
        return [(_guess("system"), text)]
    if cuts[0][0] > 0 and "".join(lines[: cuts[0][0]]).strip():
        cuts.insert(0, (0, "preamble", "preamble"))
    # Blank lines before the first section have nobody else to belong to.
    starts = [0, *(cut[0] for cut in cuts[1:]), len(lines)]
    return [
        (_guess(name, title), "".join(lines[starts[i] : starts[i + 1]]))
        for i, (_, name, title) in enumerate(cuts)
    ]


def _cuts(lines: list[str]) -> list[_Cut]:
    """Where sections start: headings, tagged blocks, and text that goes on behind such a block."""
    fenced = _fenced(lines)
    closing = _closing_lines(lines, fenced)
    cuts: list[_Cut] = []
    heading: tuple[str, str] | None = None
    at = 0
    while at < len(lines):
        title = None if fenced[at] else _heading(lines[at])
        if title is not None:
            heading = (_slug(title), title)
            cuts.append((at, *heading))
        elif at in closing:
            found = _OPEN_TAG.fullmatch(lines[at].rstrip())
            name = _short(found[1]) if found else "block"
            cuts.append((at, name, name))
            at = closing[at] + 1
            while at < len(lines) and not lines[at].strip():
                at += 1
            if at < len(lines) and at not in closing and (fenced[at] or not _is_heading(lines[at])):
                cuts.append((at, *(heading or ("text", "text"))))
            else:
                continue
        at += 1
    return cuts


def _fenced(lines: list[str]) -> list[bool]:
    """Whether each line stands in a code fence, its own two lines included (CommonMark 4.5)."""
    inside: list[bool] = []
    fence, opened = "", 0
    for i, line in enumerate(lines):
        stripped = line.lstrip(" ")
        mark = stripped[:1]
        run = len(stripped) - len(stripped.lstrip(mark)) if mark in ("`", "~") else 0
        shallow = len(line) - len(stripped) <= 3
        inside.append(bool(fence))
        if fence:
            if shallow and mark == fence[0] and run >= len(fence) and not stripped[run:].strip():
                fence = ""
        elif run >= 3 and shallow and "`" not in stripped[run:]:
            fence, opened = mark * run, i
            inside[i] = True
    # A fence that never closes is taken for ordinary text, or it would hide all that follows.
    if fence:
        inside[opened:] = [False] * (len(inside) - opened)
    return inside


def _closing_lines(lines: list[str], fenced: list[bool]) -> dict[int, int]:
    """The line that closes each tagged block, by the line that opens it."""
    opened: dict[str, list[int]] = {}
    closing: dict[int, int] = {}
    for i, line in enumerate(lines):
        if fenced[i] or line[:1] != "<":
            continue
        bare = line.rstrip()
        if found := _OPEN_TAG.fullmatch(bare):
            opened.setdefault(found[1], []).append(i)
        elif (found := _CLOSE_TAG.fullmatch(bare)) and opened.get(found[1]):
            closing[opened[found[1]].pop()] = i
    return closing


def _is_heading(line: str) -> bool:
    return _heading(line) is not None


def _heading(line: str) -> str | None:
    """The title of a Markdown heading of level 1 or 2 (CommonMark 4.2), or None."""
    bare = line.rstrip()
    level = len(bare) - len(bare.lstrip("#"))
    if level not in (1, 2) or bare[level : level + 1] not in ("", " ", "\t"):
        return None
    title = bare[level:].strip()
    unclosed = title.rstrip("#")
    return unclosed.rstrip() if unclosed.endswith((" ", "\t")) or not unclosed else title


def _slug(title: str) -> str:
    """Lower case, words joined by "-"; letters, marks and digits of every script are kept."""
    kept = "".join(
        c if c.isalnum() or c in "_-" or unicodedata.category(c)[0] == "M" else " "
        for c in title[:1000].lower()
    )
    return _short("-".join(kept.split())) or "section"


def _short(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS else name[: _NAME_CHARACTERS - 1] + "…"
