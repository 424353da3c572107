"""A report without a word of the log: structure and lengths stay, texts and names go."""

from __future__ import annotations

import re
from dataclasses import replace

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.findings.diagnosis import Break
from codesmith_lab.sessions.findings.wire import WireDifference
from codesmith_lab.sessions.records import Scope, Session, Skipped

__all__ = ["labelled", "mask", "masked_break", "masked_wire"]

_KINDS = ("image", "audio", "file", "document", "thinking", "redacted thinking")
_SHOWN_PATH = re.compile(r"\A(system|tools|messages)?(\[\d+\])?")


def labelled(session: Session) -> Session:
    """The session with labels for names: "section 1", "tool 2", "tool result", "user".

    Texts stay, for the analysis; what a report shows of them is masked. Requests keep no body.
    """
    labels: dict[tuple[str, str], str] = {}
    memo: dict[int, tuple[Block, Block]] = {}

    def label(block: Block) -> Block:
        known = memo.get(id(block))
        if known is None:
            # The block is kept with its copy, so that its id stays taken.
            known = memo[id(block)] = (block, replace(block, name=_label(block, labels)))
        return known[1]

    requests = tuple(
        replace(
            request,
            body=b"",
            blocks=tuple(map(label, request.blocks)),
            output=None if request.output is None else tuple(map(label, request.output)),
            notes=(),
            scope=_scope(request.scope, labels),
            response_id="",
            file="",
        )
        for request in session.requests
    )
    skipped = tuple(Skipped(s.line, "not shown") for s in session.skipped)
    return replace(session, name="log", requests=requests, skipped=skipped)


def _scope(scope: Scope, labels: dict[tuple[str, str], str]) -> Scope:
    """The scope with numbers in place of accounts, keys and sessions."""

    def number(kind: str, name: str) -> str:
        count = sum(known == kind for known, _ in labels)
        return labels.setdefault((kind, name), f"{kind} {count + 1}") if name else ""

    return replace(
        scope,
        account=number("account", scope.account),
        cache_key=number("cache key", scope.cache_key),
        session=number("session", scope.session),
    )


def _label(block: Block, labels: dict[tuple[str, str], str]) -> str:
    if block.kind in ("tool", "section"):
        count = sum(kind == block.kind for kind, _ in labels)
        return labels.setdefault((block.kind, block.name), f"{block.kind} {count + 1}")
    if block.name in _KINDS:
        return block.name
    if block.role == "tool":
        return "tool result"
    return f"{block.role}, tool calls" if block.calls else block.role


def mask(text: str) -> str:
    """How long a text is, in place of it."""
    return f"{len(text)} characters" if len(text) != 1 else "1 character"


def masked_break(broken: Break | None) -> Break | None:
    """The break without the texts that differ."""
    if broken is None:
        return None
    return replace(broken, before=mask(broken.before), after=mask(broken.after))


def masked_wire(wire: WireDifference | None) -> WireDifference | None:
    """The difference without its texts, and without names in its path."""
    if wire is None:
        return None
    found = _SHOWN_PATH.match(wire.path)
    path = found.group() if found else ""
    return replace(wire, path=path, before=mask(wire.before), after=mask(wire.after))
