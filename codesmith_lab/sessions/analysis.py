"""From a session to causes, bill and findings: the analysis that every face of the lab shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timezone
from types import MappingProxyType

from codesmith_lab.billing.models import ModelInfo, resolve_model
from codesmith_lab.billing.prices import default_price_date
from codesmith_lab.cache.rule_files import claimed_rule, get_rule, known_rules
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.errors import LabError, UnknownModelError
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.findings.collect import collect_findings
from codesmith_lab.sessions.findings.diagnosis import Break, find_break
from codesmith_lab.sessions.findings.reconcile import reconcile
from codesmith_lab.sessions.findings.wire import find_wire
from codesmith_lab.sessions.records import Request, Session
from codesmith_lab.sessions.reports.redact import labelled, masked_break, masked_wire
from codesmith_lab.sessions.reports.report import Report
from codesmith_lab.sessions.turns import Turn, TurnRunner

__all__ = ["analyze", "breaks_of", "make_runner", "report_of", "session_model"]


def session_model(session: Session) -> str:
    """The model most requests of a session name; "" when none does."""
    named = Counter(request.model for request in session.requests if request.model)
    return named.most_common(1)[0][0] if named else ""


def make_runner(session: Session, model: str | None = None, rules: str | None = None) -> TurnRunner:
    """A runner for a session.

    model: whose tokenizer, rules and prices to apply to every request; None takes the model that
        most requests name. rules: a rule's id in place of the model's own.

    Raises UnknownModelError for a model nobody has rules for, unless `rules` names some: then
    tokens are an estimate and nothing is priced.
    """
    if not session.requests:
        raise LabError(f"{session.name} holds no request, so there is nothing to analyse")
    name = model or session_model(session)
    info = _model(name, rules)
    rule = get_rule(rules) if rules else _own_rule(info)
    as_sent = model is None
    known: dict[str, tuple[ModelInfo, CacheRule]] = {"": (info, rule)}

    place = _places(session)

    def scope(request: Request) -> str:
        return place(request) if as_sent else name

    def own(request: Request) -> tuple[ModelInfo, CacheRule]:
        if not as_sent:
            return info, rule
        if request.model not in known:
            known[request.model] = _own_of(request.model, rules, (info, rule))
        return known[request.model]

    return TurnRunner(session, info, rule, scope, _price_date(session), own)


def _places(session: Session) -> Callable[[Request], str]:
    """Names the cache of a request: provider, account and model as far as the log says.

    Where the log names one provider or account only, requests without one are taken to be its:
    what is not known parts no caches. A remedy may have pinned the provider.
    """
    scopes = [request.scope for request in session.requests]
    providers = {scope.provider for scope in scopes if scope.provider}
    accounts = {scope.account for scope in scopes if scope.account}
    provider = next(iter(providers)) if len(providers) == 1 else ""
    account = next(iter(accounts)) if len(accounts) == 1 else ""

    def place(request: Request) -> str:
        given = request.scope
        served = request.settings.get("_provider") or given.provider or provider
        return "\0".join((served, given.account or account, request.model))

    return place


def _own_of(
    name: str, rules: str | None, main: tuple[ModelInfo, CacheRule]
) -> tuple[ModelInfo, CacheRule]:
    """Model and rule of a request that names another model than most; the main ones if unknown."""
    try:
        info = _model(name, rules)
        return info, main[1] if rules else _own_rule(info)
    except LabError:
        return main


def _model(name: str, rules: str | None) -> ModelInfo:
    claimed = None if rules else claimed_rule(name)
    try:
        return resolve_model(name)
    except UnknownModelError:
        if rules is None and claimed is None:
            raise
        rule = claimed or get_rule(rules or "")
        return ModelInfo(name, rule.provider, "estimate", rule.id, None, "plain")


def _own_rule(info: ModelInfo) -> CacheRule:
    claimed = claimed_rule(info.name)
    if claimed is not None:
        return claimed
    if info.rules_id is None:
        names = ", ".join(rule.id for rule in known_rules())
        raise LabError(
            f"model {info.name!r} ({info.provider}) has no cache rules here; "
            f"choose the nearest with rules=..., one of {names}"
        )
    return get_rule(info.rules_id)


def _price_date(session: Session) -> date:
    times: list[datetime] = [r.time for r in session.requests if r.time is not None]
    return times[-1].astimezone(timezone.utc).date() if times else default_price_date()


def breaks_of(
    runner: TurnRunner,
    turns: Sequence[Turn],
    edited: Mapping[int, Sequence[Block]] = MappingProxyType({}),
) -> list[Break | None]:
    """The break of each turn. edited: blocks of requests (by index) that edits changed."""
    requests = runner.session.requests
    return [
        find_break(
            turn,
            runner.table,
            rebuild_reason(requests[turn.index]),
            edited.get(turn.index, requests[turn.index].blocks),
        )
        for turn in turns
    ]


def rebuild_reason(request: Request) -> str | None:
    """The signed reason of a rebuild recorded with a request, as written there."""
    if request.rebuild is None:
        return None
    return str(request.rebuild.get("reason", "unnamed"))


def analyze(
    session: Session, model: str | None = None, rules: str | None = None, redact: bool = False
) -> Report:
    """Analyse a session: where every input token went, what broke, and what it cost.

    Parameters
    ----------
    session: from `load` or a recording.
    model: analyse as if this model had served every request; None follows the session.
    rules: id of a cache rule to apply in place of the model's own.
    redact: keep structure and lengths, and show no text or name from the log.

    Raises UnknownModelError when nobody has rules for the model, LabError for an empty session.
    """
    runner = make_runner(labelled(session) if redact else session, model, rules)
    turns = runner.run()
    breaks = breaks_of(runner, turns)
    if redact:
        breaks = [masked_break(broken) for broken in breaks]
    return report_of(runner, turns, breaks, redact=redact)


def report_of(
    runner: TurnRunner,
    turns: Sequence[Turn],
    breaks: Sequence[Break | None],
    requests: Sequence[Request] | None = None,
    redact: bool = False,
) -> Report:
    """Everything that is known of a run; remedies are worked out when they are asked for.

    requests: as they are sent, where edits changed the session's own.
    """
    sent = runner.session.requests if requests is None else requests
    rule = runner.rule
    wires = tuple(find_wire(turn, sent) for turn in turns)
    if redact:
        wires = tuple(map(masked_wire, wires))
    rows = tuple(reconcile(turns, sent, rule.step_tokens, runner.tokenizer.exact))
    findings = collect_findings(sent, turns, breaks, wires, rows, rule, runner.tokenizer.exact)
    own = None if requests is None else tuple(requests)
    return Report(runner, tuple(turns), tuple(breaks), tuple(findings), None, wires, rows, own)
