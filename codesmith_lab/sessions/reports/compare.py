"""Two requests or two prompt files, compared by byte, token and section."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codesmith_lab.errors import InputError
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.analysis import make_runner
from codesmith_lab.sessions.findings.diagnosis import Break, find_break
from codesmith_lab.sessions.findings.wire import WireDifference, find_wire
from codesmith_lab.sessions.reading.load import load
from codesmith_lab.sessions.reading.system_text import split_sections
from codesmith_lab.sessions.records import Request, Session
from codesmith_lab.sessions.turns import Turn

__all__ = ["Comparison", "Row", "compare", "read_side"]

_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Row:
    """One block in both prompts; tokens are None where it is missing.

    change: "same", "changed", "moved", "added" or "removed".
    """

    zone: str
    name: str
    before_tokens: int | None
    after_tokens: int | None
    change: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the second prompt differs from the first.

    tokens: of both. common_tokens, common_bytes: shared from the start, in prompt order.
    """

    names: tuple[str, str]
    tokens: tuple[int, int]
    common_tokens: int
    common_bytes: int
    broken: Break | None
    wire: WireDifference | None
    rows: tuple[Row, ...]
    tokenizer: str
    exact: bool

    @property
    def same(self) -> bool:
        """No byte that matters differs: neither text nor its spelling on the wire."""
        return self.broken is None and self.wire is None and self.tokens[0] == self.tokens[1]

    def to_json(self) -> dict[str, Any]:
        """Plain values; bytes and tokens 0-based, lines and columns 1-based."""
        from codesmith_lab.sessions.reports.report_json import break_json, wire_json

        return {
            "before": {"name": self.names[0], "tokens": self.tokens[0]},
            "after": {"name": self.names[1], "tokens": self.tokens[1]},
            "common_tokens": self.common_tokens,
            "common_bytes": self.common_bytes,
            "tokenizer": self.tokenizer,
            "tokens_exact": self.exact,
            "break": None if self.broken is None else break_json(self.broken),
            "wire": None if self.wire is None else wire_json(self.wire),
            "blocks": [
                {
                    "zone": row.zone,
                    "name": row.name,
                    "before_tokens": row.before_tokens,
                    "after_tokens": row.after_tokens,
                    "change": row.change,
                }
                for row in self.rows
            ],
        }


def read_side(given: str) -> tuple[str, Request]:
    """A request or a prompt from "FILE" or "FILE:N" (the N-th request of a log, from 1).

    A file that holds no requests is one prompt, whose headings cut it into sections.
    Raises InputError.
    """
    path, _, number = given.rpartition(":")
    # A drive letter or a name with a colon is no number.
    if not path or not number.isdecimal() or Path(given).exists():
        path, number = given, ""
    try:
        session = load(path)
    except InputError:
        if number or not Path(path).is_file():
            raise
        return given, _prompt(path)
    requests = session.requests
    if not number and len(requests) > 1:
        raise InputError(
            f"it holds {len(requests)} requests; name one as {path}:N, from 1 on", path
        )
    at = int(number[:9]) if number else 1
    if not 1 <= at <= len(requests):
        raise InputError(f"it holds {len(requests)} requests, so there is no request {at}", path)
    return given, requests[at - 1]


def _prompt(path: str) -> Request:
    with Path(path).open("rb") as stream:
        raw = stream.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise InputError(f"it is longer than {_MOST_BYTES >> 20} MiB", path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"it holds no request, and byte {error.start + 1} is no UTF-8 text", path
        ) from None
    if "\0" in text:
        raise InputError("it holds no request, and is binary data, not text", path)
    blocks = tuple(
        Block("pinned", "section", "system", meta.id, part, b"", section=meta)
        for meta, part in split_sections(text)
    )
    return Request(0, 1, "", None, b"", blocks)


def compare(
    before: tuple[str, Request],
    after: tuple[str, Request],
    model: str | None = None,
    rules: str | None = None,
) -> Comparison:
    """The second prompt against the first, as the model's provider reads both.

    model: None takes the model that either request names, else an estimate of tokens.
    Raises UnknownModelError for a model nobody has rules for.
    """
    named = model or after[1].model or before[1].model or "plain text"
    if named == "plain text" and rules is None:
        rules = "openai-128"
    pair = tuple(
        replace(side[1], index=i, time=None, output=None, usage=None, rebuild=None)
        for i, side in enumerate((before, after))
    )
    runner = make_runner(Session("comparison", "", pair), named, rules)
    # Here every common token counts, whatever units a provider caches.
    runner.rule = replace(runner.rule, match="any_prefix", minimum_tokens=1, step_tokens=1)
    first, second = runner.run()
    broken = find_break(second, runner.table)
    common = second.match.matched_tokens
    size = [sum(runner.table[int(p)].n_bytes for p in t.prompt.pieces) for t in (first, second)]
    return Comparison(
        (before[0], after[0]),
        (first.prompt.total_tokens, second.prompt.total_tokens),
        common,
        min(size) if broken is None else broken.byte,
        broken,
        find_wire(second, pair),
        tuple(_rows(first, second)),
        runner.tokenizer.name,
        runner.tokenizer.exact,
    )


def _rows(first: Turn, second: Turn) -> list[Row]:
    """Blocks of both, paired by zone, kind, role, name and turn, in the order of the second."""
    left: dict[tuple[str, ...], list[int]] = {}
    for i, block in enumerate(first.prompt.blocks):
        left.setdefault(_key(block), []).append(i)
    rows: list[tuple[int, Row]] = []
    order: list[int] = []
    for j, block in enumerate(second.prompt.blocks):
        tokens = int(second.prompt.tokens[j])
        same = left.get(_key(block))
        if not same:
            rows.append((j, Row(block.zone, block.name, None, tokens, "added")))
            continue
        texts = [first.prompt.blocks[i].text for i in same]
        i = same.pop(texts.index(block.text) if block.text in texts else 0)
        change = "same" if first.prompt.blocks[i].text == block.text else "changed"
        if change == "same" and order and i < max(order):
            change = "moved"
        order.append(i)
        rows.append((j, Row(block.zone, block.name, int(first.prompt.tokens[i]), tokens, change)))
    for i in sorted(i for same in left.values() for i in same):
        block = first.prompt.blocks[i]
        tokens = int(first.prompt.tokens[i])
        rows.append((min(i, len(rows)), Row(block.zone, block.name, tokens, None, "removed")))
    return [row for _, row in sorted(rows, key=lambda item: item[0])]


def _key(block: Block) -> tuple[str, ...]:
    return (block.kind, block.role, block.name)
