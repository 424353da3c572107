"""Causes that settings, scopes, usage counters and times show, and prompts do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from codesmith_lab.cache.rules import CacheRule, setting_at
from codesmith_lab.sessions.findings.reconcile import Reconciled
from codesmith_lab.sessions.findings.sightings import Sighting, common_tokens, lost_usd, weighed
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.turns import Turn

__all__ = ["on_counters", "on_scope", "on_settings", "unexplained", "without_content"]

_NEIGHBOURS = 8
# Fields that change what a provider caches, where its rule does not name its own.
_SETTINGS: Mapping[str, str] = {
    "tool_choice": "messages",
    "thinking": "messages",
    "reasoning_effort": "messages",
    "reasoning": "messages",
    "output_config": "messages",
    "response_format": "system",
    "speed": "system",
}
# No loss is documented there (OpenAI's cookbook recommends allowed_tools for this very reason).
_HARMLESS = {"openai": ("tool_choice",)}
_SERVER_SIDE = ("anthropic",)


def _scope(request: Request) -> tuple[str, str, str]:
    """Provider, account and cache key as far as the log says."""
    scope = request.scope
    return request.settings.get("_provider") or scope.provider, scope.account, scope.cache_key


def on_scope(
    turn: Turn, turns: Sequence[Turn], requests: Sequence[Request], rule: CacheRule
) -> list[Sighting]:
    """A cache of another model, provider or key held more of this prompt than its own does."""
    request = requests[turn.index]
    least = turn.plan.minimum_tokens
    best: tuple[int, str, str] | None = None
    for other in turns[max(0, turn.index - _NEIGHBOURS) : turn.index]:
        found = _parted(request, requests[other.index], rule)
        if found is None:
            continue
        lost = common_tokens(turn.prompt, other.prompt) - turn.match.matched_tokens
        # The newest of several: that is where the conversation came from.
        if lost >= max(least, 1) and (best is None or lost >= best[0]):
            best = (lost, *found)
    if best is None:
        return []
    lost, cls, remark = best
    return [
        Sighting(
            cls,
            "",
            request.model if cls == "model_change" else "",
            turn.index,
            lost,
            lost_usd(turn, lost),
            remark=remark,
        )
    ]


def _parted(request: Request, other: Request, rule: CacheRule) -> tuple[str, str] | None:
    if request.model != other.model:
        return "model_change", f"from {other.model or 'none'} to {request.model or 'none'}"
    mine, theirs = _scope(request), _scope(other)
    if mine[0] != theirs[0] and mine[0] and theirs[0]:
        return "provider_change", f"from {theirs[0]} to {mine[0]}"
    if mine[1] != theirs[1] and mine[1] and theirs[1]:
        return "routing", "it was sent with another account's key"
    for name in rule.scope_fields:
        if setting_at(request.settings, name) != setting_at(other.settings, name):
            return "routing", f"it was sent with another {name}"
    if mine[2] != theirs[2]:
        return "routing", "it was sent with another cache key"
    return None


def on_settings(
    turn: Turn, requests: Sequence[Request], rule: CacheRule, slack: int
) -> list[Sighting]:
    """Settings that differ from the best earlier request and may be part of what is cached."""
    if turn.parent is None:
        return []
    mine, theirs = requests[turn.index], requests[turn.parent]
    found = []
    for name, level in _SETTINGS.items():
        # What the rule knows of has its place in the prompt, and its break there.
        if name in rule.invalidates or name in _HARMLESS.get(rule.provider, ()):
            continue
        if setting_at(mine.settings, name) == setting_at(theirs.settings, name):
            continue
        cls = "tool_choice_change" if name == "tool_choice" else "setting_change"
        risk = max(0, turn.match.hit_tokens - _kept(turn, level))
        sighting = Sighting(cls, "", name, turn.index, certainty="possible", at_risk_tokens=risk)
        found.append(weighed(mine, turn, sighting, slack))
    found += _on_parting(turn, mine, theirs, rule, slack)
    # What usage shows to be harmless is not worth a line.
    return [s for s in found if s.tokens or s.at_risk_tokens]


def _on_parting(
    turn: Turn, mine: Request, theirs: Request, rule: CacheRule, slack: int
) -> list[Sighting]:
    found = _parted(mine, theirs, rule)
    if found is None or found[0] == "model_change":
        return []
    cls, remark = found
    sighting = Sighting(
        cls,
        "",
        "",
        turn.index,
        certainty="possible",
        at_risk_tokens=turn.match.hit_tokens,
        remark=remark,
    )
    return [weighed(mine, turn, sighting, slack)]


def _kept(turn: Turn, level: str) -> int:
    """Tokens before the level that a setting loses: tools, then system, then messages."""
    kinds = {"tools": (), "system": ("tool",), "messages": ("tool", "section")}
    kept = kinds.get(level, ())
    return sum(
        int(n)
        for block, n in zip(turn.prompt.blocks, turn.prompt.tokens[:-1], strict=True)
        if block.kind in kept
    )


def unexplained(
    turn: Turn, request: Request, row: Reconciled | None, known: int, provider: str
) -> list[Sighting]:
    """Reads that are missing and that nothing in the payload explains.

    known: missing tokens that other causes of this request already stand for.
    """
    missing = 0 if row is None else row.unexplained - known
    if row is None or missing <= 0 or 20 * missing < row.reported_input:
        return []
    own = provider in _SERVER_SIDE
    why = "eviction, routing or a change on the server"
    remark = f"{missing:,} cached tokens fewer than predicted; {why}, not the prompt"
    if own and any(block.name.endswith("thinking") for block in turn.prompt.blocks):
        remark += "; earlier thinking in the history may have been dropped by the server"
    return [
        Sighting(
            "server_side" if own else "routing",
            "",
            "",
            turn.index,
            missing,
            lost_usd(turn, missing),
            "possible",
            remark=remark,
            measured=True,
        )
    ]


def on_counters(request: Request) -> list[Sighting]:
    """What is wrong with the counters themselves."""
    found = []
    usage, flags = request.usage, set(request.flags)
    if usage is not None:
        parts = (
            usage.cache_read_tokens,
            usage.cache_write_5m_tokens,
            usage.cache_write_1h_tokens,
        )
        over = sum(n or 0 for n in parts) - usage.input_tokens
        if over > 0 or "usage_overlap" in flags:
            remark = f"{over:,} tokens more than the input" if over > 0 else ""
            found.append(Sighting("usage_overlap", "", "", request.index, remark=remark))
    if "duplicate_usage" in flags:
        found.append(
            Sighting("duplicate_usage", "", "", request.index, remark="it is counted once")
        )
    return found


def without_content(
    requests: Sequence[Request], turns: Sequence[Turn], lifetime_s: float
) -> list[Sighting]:
    """What counters and times prove of requests whose prompts the log does not hold.

    lifetime_s: of an entry whose writes were not told apart by lifetime. A request is compared with
    the one before it in the log.
    """
    found: list[Sighting] = []
    lives_s = lifetime_s
    for i in range(1, len(requests)):
        before, request = requests[i - 1], requests[i]
        if request.blocks or before.blocks or before.usage is None or request.usage is None:
            continue
        lives_s = _written_life_s(before, lives_s, lifetime_s)
        sighting = _compared(before, request, turns[i], lives_s)
        if sighting is not None:
            found.append(sighting)
    return found


def _written_life_s(request: Request, lives_s: float, default_s: float) -> float:
    usage = request.usage
    if usage is None:
        return lives_s
    if usage.cache_write_1h_tokens:
        return 3600.0
    return default_s if usage.cache_write_5m_tokens else lives_s


def _compared(before: Request, request: Request, turn: Turn, lives_s: float) -> Sighting | None:
    was, now = before.usage, request.usage
    if was is None or now is None or now.cache_read_tokens is None:
        return None
    held = sum(
        n or 0
        for n in (was.cache_read_tokens, was.cache_write_5m_tokens, was.cache_write_1h_tokens)
    )
    # Automatic caches report no writes: what was sent may be read again.
    held = held if was.cache_write_5m_tokens is not None else was.input_tokens
    lost = min(held, now.input_tokens) - now.cache_read_tokens
    shrunk = 5 * now.input_tokens < 4 * was.input_tokens
    if lost < 1024 or (4 * lost < held and not shrunk):
        return None
    # An answer that never came left an entry that was never readable: a retry, no expiry.
    aborted = was.output_tokens == 0
    usd = lost_usd(turn, lost)
    place = ("server_side", "", "", request.index)
    sighting = Sighting(*place, lost, usd, "possible", measured=True)
    gap_s = None
    if before.time is not None and request.time is not None:
        gap_s = (request.time - before.time).total_seconds()
    if before.model != request.model:
        remark = f"from {before.model or 'none'} to {request.model or 'none'}"
        return replace(
            sighting, cls="model_change", block=request.model, certainty="likely", remark=remark
        )
    if shrunk:
        return replace(
            sighting,
            cls="compaction",
            zone="log",
            block="history",
            tokens=0,
            cost_usd=None,
            certainty="likely",
            intended=True,
            given_up_tokens=max(0, held - now.cache_read_tokens),
            remark=f"{now.input_tokens - now.cache_read_tokens:,} tokens were read anew",
        )
    if gap_s is not None and gap_s > lives_s:
        remark = f"{gap_s:,.0f} s start to start, where an entry lives {lives_s:,.0f} s"
        return replace(sighting, cls="expired", certainty="likely", remark=remark)
    if aborted:
        return None
    remark = "the log holds no prompt, so that a change of it cannot be told from the server's"
    return replace(sighting, remark=remark)
