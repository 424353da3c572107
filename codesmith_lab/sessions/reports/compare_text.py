"""A comparison of two prompts as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from codesmith_lab.sessions.findings.wire import wire_sentence
from codesmith_lab.sessions.reports.compare import Comparison, Row
from codesmith_lab.sessions.reports.report_text import visible

__all__ = ["compare_text"]


def compare_text(found: Comparison) -> str:
    """The comparison for people; text from the files is escaped."""
    kind = "exact" if found.exact else "an estimate"
    lines = [
        f"{visible(found.names[0])}: {found.tokens[0]:,} tokens",
        f"{visible(found.names[1])}: {found.tokens[1]:,} tokens ({found.tokenizer}, {kind})",
        f"the same up to token {found.common_tokens:,}, byte {found.common_bytes:,} of the prompt",
    ]
    broken = found.broken
    if broken is not None:
        lines += [
            f"first difference: {visible(broken.block)}, line {broken.line}, column "
            f"{broken.column}: {', '.join(broken.classes)}",
            f"  - {visible(broken.before)}",
            f"  + {visible(broken.after)}",
        ]
        lines += [f"  also {visible(text)}" for text in broken.also]
    elif found.wire is not None:
        lines.append(visible(wire_sentence(found.wire)))
    else:
        lines.append("no difference" if found.same else "one is the beginning of the other")
    width = max((len(row.name) for row in found.rows), default=0)
    width = min(40, width)
    lines.append("")
    lines += [_line(row, width) for row in _folded(found.rows)]
    return "\n".join(lines) + "\n"


def _folded(rows: Sequence[Row]) -> list[Row]:
    """Runs of equal blocks in one row: a long history says nothing."""
    kept: list[Row] = []
    run: list[Row] = []

    def flush() -> None:
        if len(run) > 3:
            tokens = sum(row.after_tokens or 0 for row in run)
            kept.append(Row("", f"({len(run)} blocks)", tokens, tokens, "same"))
        else:
            kept.extend(run)
        run.clear()

    for row in rows:
        if row.change == "same":
            run.append(row)
            continue
        flush()
        kept.append(row)
    flush()
    return kept


def _line(row: Row, width: int) -> str:
    before = "" if row.before_tokens is None else f"{row.before_tokens:,}"
    after = "" if row.after_tokens is None else f"{row.after_tokens:,}"
    return f"  {row.change:<8} {visible(row.name)[:40]:<{width}} {before:>10} {after:>10}"
