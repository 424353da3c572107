"""A system prompt, cut into sections."""

from __future__ import annotations

import re
from functools import lru_cache

from codesmith_lab.prompt.blocks import SectionMeta
from codesmith_lab.prompt.sections import parse_rendered_sections, section_starts

__all__ = ["split_sections"]

_HEADING = re.compile(r"#{1,2} +(\S.*)")
_OPEN_TAG = re.compile(r"<([A-Za-z][\w.-]*)(?: [^<>]*)?>\s*")
_FENCE = re.compile(r" {0,3}(```|~~~)")


@lru_cache(maxsize=512)
def split_sections(text: str) -> tuple[tuple[SectionMeta, str], ...]:
    """Sections and their texts; joined, the texts are the system prompt exactly.

    Rendered section headers decide; without one, Markdown headings of the first two levels
    (outside code fences) and tagged blocks that open and close on lines of their own do. Sections
    own their trailing blank lines; text before the first is a section called "preamble".
    """
    if not text:
        return ()
    declared = _declared(text)
    pieces = declared if declared is not None else _assumed(text)
    seen: dict[str, int] = {}
    named = []
    for meta, part in pieces:
        seen[meta.id] = seen.get(meta.id, 0) + 1
        name = meta.id if seen[meta.id] == 1 else f"{meta.id} ({seen[meta.id]})"
        renamed = SectionMeta(
            name, meta.title, meta.stability, meta.cache_policy, meta.source, meta.declared
        )
        named.append((renamed, part))
    return tuple(named)


def _guess(name: str) -> SectionMeta:
    return SectionMeta(name, name, "static", "cacheable", "unknown", False)


def _declared(text: str) -> list[tuple[SectionMeta, str]] | None:
    spans = section_starts(text)
    parsed = parse_rendered_sections(text)
    if spans is None or parsed is None:
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
    lines = text.splitlines(keepends=True)
    closing = {line.strip(): i for i, line in enumerate(lines) if line.startswith("</")}
    cuts: list[tuple[int, str]] = []
    fenced = False
    inside = -1
    for i, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        if fenced or i <= inside:
            continue
        heading = _HEADING.match(line)
        tag = _OPEN_TAG.fullmatch(line)
        if heading:
            cuts.append((i, heading.group(1).strip().lower()))
        elif tag and closing.get(f"</{tag.group(1)}>", -1) > i:
            inside = closing[f"</{tag.group(1)}>"]
            cuts.append((i, tag.group(1)))
            if inside + 1 < len(lines):
                cuts.append((inside + 1, ""))
    return _cut(lines, cuts)


def _cut(lines: list[str], cuts: list[tuple[int, str]]) -> list[tuple[SectionMeta, str]]:
    if not cuts:
        return [(_guess("system"), "".join(lines))]
    starts = dict(cuts) if cuts[0][0] == 0 else {0: "preamble", **dict(cuts)}
    at = sorted(starts)
    pieces: list[tuple[SectionMeta, str]] = []
    for start, end in zip(at, [*at[1:], len(lines)], strict=True):
        part = "".join(lines[start:end])
        name = starts[start] or "text"
        if not part.strip() and pieces:
            # Blank lines belong to the section before them.
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + part)
        elif start + 1 < end and starts[start] == "" and part[:1] in "\r\n" and pieces:
            blank = part[: len(part) - len(part.lstrip("\r\n"))]
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + blank)
            pieces.append((_guess(name), part[len(blank) :]))
        else:
            pieces.append((_guess(name), part))
    return pieces
