"""An order handed out: as rendered text, JSON, TOML or a report; and read back."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codesmith_lab.errors import InputError, LabError
from codesmith_lab.prompt.bundle import PromptBundle
from codesmith_lab.prompt.ordering.stats import SectionStats
from codesmith_lab.prompt.sections import PromptSection, parse_rendered_sections

__all__ = ["ExportedOrder", "order_from_text", "read_order", "to_json", "to_text", "to_toml"]

FORMAT = "codesmith-lab section order"
VERSION = 1
_TEXT_KEYS = ("id", "title", "body", "stability", "cache_policy", "source")


@dataclass(frozen=True, slots=True)
class ExportedOrder:
    """Sections in order, with what was demanded of the order.

    sections: declared sections with their texts. before, locked: as on the board. stats: sizes
    and rates where they are known.
    """

    sections: tuple[PromptSection, ...]
    before: tuple[tuple[str, str], ...] = ()
    locked: Mapping[str, int] | None = None
    stats: Mapping[str, SectionStats] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The order."""
        return tuple(section.id for section in self.sections)

    def bundle(self) -> PromptBundle:
        """The sections as a bundle, which knows the dynamic boundary."""
        return PromptBundle.from_sections(self.sections)


def to_text(order: ExportedOrder) -> str:
    """The system prompt in this order, every section under its header."""
    return order.bundle().render_text()


def order_from_text(text: str) -> tuple[str, ...]:
    """The order of a rendered prompt, by its section headers.

    Raises LabError when there are no headers, one has no id, or two have the same.
    """
    parsed = parse_rendered_sections(text)
    if parsed is None:
        raise LabError(
            "the text has no section headers, so its order cannot be read; paste a prompt whose "
            'sections begin with <!-- prompt-section: id="..." -->'
        )
    names = [section.id for section in parsed]
    if None in names or len(set(names)) < len(names):
        raise LabError(
            f"the headers name the sections {names!r}, and each needs an id of its own; "
            "correct the headers"
        )
    return tuple(name for name in names if name is not None)


def _plain(order: ExportedOrder) -> dict[str, Any]:
    rows = []
    for section in order.sections:
        row: dict[str, Any] = {key: getattr(section, key) for key in _TEXT_KEYS}
        stats = (order.stats or {}).get(section.id)
        if stats is not None:
            row["size_tokens"] = stats.size_tokens
            row["change_probability"] = stats.change_probability
            row["rate_source"] = stats.source
            if stats.trials is not None and stats.changes is not None:
                row["changes"], row["trials"] = stats.changes, stats.trials
        rows.append(row)
    return {
        "format": FORMAT,
        "version": VERSION,
        "before": [list(pair) for pair in order.before],
        "locked": dict(order.locked or {}),
        "sections": rows,
    }


def to_json(order: ExportedOrder) -> str:
    """The order as one JSON object."""
    return json.dumps(_plain(order), ensure_ascii=False, indent=2) + "\n"


def to_toml(order: ExportedOrder) -> str:
    """The same as TOML."""
    import tomli_w

    return tomli_w.dumps(_plain(order), multiline_strings=False)


def read_order(text: str) -> ExportedOrder:
    """An order from `to_json` or `to_toml`.

    Raises InputError for anything else, saying what is wrong. Sizes and rates are not read back:
    they belong to the session they were measured in.
    """
    try:
        value = json.loads(text) if text.lstrip()[:1] == "{" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"this is neither JSON nor TOML ({error}); export the order again"
        ) from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        found = value.get("format") if isinstance(value, dict) else value
        raise InputError(f"the format is {found!r}, and {FORMAT!r} is read here; export it again")
    if value.get("version") != VERSION:
        raise InputError(f"the version is {value.get('version')!r}, and {VERSION} is read here")
    sections = tuple(_section(row, at) for at, row in enumerate(_list(value, "sections")))
    names = [section.id for section in sections]
    if len(set(names)) < len(names):
        raise InputError(f"two of the sections {names!r} have one id; give each its own")
    before = []
    for pair in _list(value, "before"):
        if not (isinstance(pair, list) and len(pair) == 2 and set(pair) <= set(names)):
            raise InputError(f"before has {pair!r}, and it holds pairs of the sections' ids")
        before.append((pair[0], pair[1]))
    locked = value.get("locked", {})
    if not isinstance(locked, dict) or not all(
        name in names and type(place) is int and 0 <= place < len(names)
        for name, place in locked.items()
    ):
        raise InputError(f"locked is {locked!r}, and it gives sections' ids their places from 0")
    return ExportedOrder(sections, tuple(before), locked)


def _list(value: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = value.get(key, [])
    if not isinstance(found, list):
        raise InputError(f"{key} is {found!r}, and it is a list; export the order again")
    return found


def _section(row: Any, at: int) -> PromptSection:
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in _TEXT_KEYS):
        raise InputError(f"section {at} is {row!r}, and it has the texts {', '.join(_TEXT_KEYS)}")
    try:
        return PromptSection(*(row[key] for key in _TEXT_KEYS))
    except LabError as error:
        raise InputError(f"section {at}: {error}") from None
