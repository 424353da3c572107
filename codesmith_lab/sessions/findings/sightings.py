"""One cause on one request: what bytes and rules prove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from codesmith_lab.billing.prices import cost_usd
from codesmith_lab.cache.causes import EXPIRED, NEW, REPAID, ROUNDING, UNMARKED
from codesmith_lab.cache.pieces import Prompt
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.findings.diagnosis import Break
from codesmith_lab.sessions.findings.events import Event
from codesmith_lab.sessions.findings.history import history_events
from codesmith_lab.sessions.findings.wire import WireDifference, wire_sentence
from codesmith_lab.sessions.records import Request
from codesmith_lab.sessions.turns import Turn

__all__ = [
    "Sighting",
    "common_tokens",
    "lost_usd",
    "on_break",
    "on_breakpoints",
    "on_output",
    "on_rules",
    "on_wire",
    "weighed",
]

_UNRELATED = "its conversation is another too, so it may be another agent's prompt"
_FREE = ("new_conversation", "branch", "message_removed")


@dataclass(frozen=True, slots=True)
class Sighting:
    """One cause on one request; the fields are those of `Finding`.

    remark: more than the class says, for the message. also: what else changed, in words.
    event: the difference itself; behind: the further ones. measured: the tokens are from counters.
    in_block_tokens: those of `tokens` that lie in the changed block, where the bill calls them new.
    """

    cls: str
    zone: str
    block: str
    request: int
    tokens: int = 0
    cost_usd: Decimal | None = None
    certainty: str = "certain"
    intended: bool = False
    given_up_tokens: int = 0
    at_risk_tokens: int = 0
    remark: str = ""
    also: tuple[str, ...] = ()
    event: Event | None = None
    behind: tuple[Event, ...] = ()
    measured: bool = False
    in_block_tokens: int = 0


def lost_usd(turn: Turn, tokens: int, cause: int | None = None) -> Decimal | None:
    """What tokens cost above a cache read when they were paid as input.

    cause: one of `CAUSES` by its number, whose tokens they are, for what was really paid for them
        (a written token costs more than a plain one); None takes plain input.
    """
    if turn.rates is None:
        return None
    paid = cost_usd(tokens, turn.rates.input)
    if cause is not None and turn.cause_costs_usd is not None and turn.causes.tokens[cause]:
        paid = turn.cause_costs_usd[cause]
        if tokens != turn.causes.tokens[cause]:
            paid = paid * tokens / turn.causes.tokens[cause]
    return paid - cost_usd(tokens, turn.rates.cache_read)


def on_break(request: Request, turn: Turn, broken: Break, turns: Sequence[Turn]) -> list[Sighting]:
    """The first cause of a break, with what else changed; an intended one behind it too."""
    if not broken.events or turn.parent is None:
        return []
    first = broken.events[0]
    if first.intended and first.cls in _FREE:
        return []
    parent = turns[turn.parent]
    gone = max(0, parent.prompt.total_tokens - turn.match.matched_tokens)
    repaid = turn.causes.tokens[REPAID]
    rest = 0 if first.intended else broken.same_rest_tokens
    setting = first.cls in ("setting_change", "tool_choice_change")
    name = first.block if setting or first.zone == "pinned" else broken.block
    unrelated = not first.intended and _may_be_unrelated(turn, first)
    guessed = unrelated or (first.intended and request.rebuild is None)
    sighting = Sighting(
        first.cls,
        broken.zone,
        name,
        turn.index,
        repaid + rest,
        _sum(turn.repaid_usd, lost_usd(turn, rest, NEW)),
        "likely" if guessed else "certain",
        first.intended,
        max(0, gone - repaid) if first.intended else 0,
        0,
        _UNRELATED if unrelated else _shrunk(turn, first),
        _also(broken),
        first,
        broken.events[1:],
        in_block_tokens=rest,
    )
    found = [sighting if first.intended else _acquitted(request, turn, sighting)]
    for event in broken.events:
        if event.intended and not first.intended and event.cls not in _FREE:
            certainty = "certain" if request.rebuild is not None else "likely"
            dropped = max(0, gone - repaid)
            found.append(
                Sighting(
                    event.cls,
                    "log",
                    "history",
                    turn.index,
                    0,
                    None,
                    certainty,
                    True,
                    dropped,
                    remark=f"the prefix had broken before it, in {name}",
                )
            )
    return found


def _may_be_unrelated(turn: Turn, first: Event) -> bool:
    """Whether both the pinned part and the whole conversation are others than the parent's.

    Then no byte says whether somebody changed a prompt, or another agent has another one.
    """
    if first.zone != "pinned" or not first.cls.startswith(("section_", "tool_")):
        return False
    mine, theirs = (_first_message(blocks) for blocks in (turn.prompt.blocks, _parents(turn)))
    return mine is not None and theirs is not None and mine != theirs


def _parents(turn: Turn) -> Sequence[Block]:
    return () if turn.parent_prompt is None else turn.parent_prompt.blocks


def _first_message(blocks: Sequence[Block]) -> str | None:
    return next((b.text for b in blocks if b.kind not in ("section", "tool")), None)


def _also(broken: Break) -> tuple[str, ...]:
    """What else changed: classes in the same place, then "block: class" for what lies behind."""
    behind = (event for event in broken.events if event.at != broken.events[0].at)
    texts = (f"{event.block}: {event.cls.replace('_', ' ')}" for event in behind)
    return tuple(dict.fromkeys((*broken.classes[1:], *texts)))


def _sum(a: Decimal | None, b: Decimal | None) -> Decimal | None:
    return None if a is None or b is None else a + b


def _acquitted(request: Request, turn: Turn, sighting: Sighting) -> Sighting:
    """Usage that shows reads behind the break says that the provider does not count it."""
    read = None if request.usage is None else request.usage.cache_read_tokens
    if read is None or not sighting.tokens:
        return sighting
    beyond = read - turn.match.hit_tokens
    if 2 * beyond < sighting.tokens:
        return sighting
    remark = f"usage reports {read:,} cached tokens all the same, so it did no harm here"
    return replace(
        sighting,
        tokens=0,
        cost_usd=None,
        certainty="possible",
        remark=remark,
        in_block_tokens=0,
    )


def _shrunk(turn: Turn, event: Event) -> str:
    """An old message cut short saves tokens on every later request, and costs once."""
    if event.was is None or event.has is None or event.zone == "pinned" or not turn.rates:
        return ""
    was, now = len(event.was.text), len(event.has.text)
    if event.cls != "message_edited" or now * 2 > was or not turn.repaid_usd:
        return ""
    saved = turns_saved_tokens(turn, event)
    if saved <= 0:
        return ""
    each = cost_usd(saved, turn.rates.cache_read)
    if not each:
        return ""
    back = -(-turn.repaid_usd // each)
    return (
        f"the prompt got {saved:,} tokens shorter, which as cache reads pays the loss back after "
        f"{back:,} further requests"
    )


def turns_saved_tokens(turn: Turn, event: Event) -> int:
    """Tokens by which the edited block is shorter than it was."""
    parent = turn.parent_prompt
    if parent is None:
        return 0
    for i, block in enumerate(parent.blocks):
        if block is event.was and event.at < len(turn.prompt.tokens):
            return int(parent.tokens[i]) - int(turn.prompt.tokens[event.at])
    return 0


def on_wire(request: Request, turn: Turn, wire: WireDifference, slack: int) -> Sighting:
    """Equal text in other bytes: usage, where there is any, says whether it counted."""
    sighting = Sighting(
        wire.classes[0],
        wire.zone,
        wire.block,
        turn.index,
        certainty="possible",
        at_risk_tokens=wire.at_risk_tokens,
        remark=wire_sentence(wire),
    )
    return weighed(request, turn, sighting, slack)


def weighed(request: Request, turn: Turn, sighting: Sighting, slack: int) -> Sighting:
    """A possible cause in the light of usage: likely where reads are missing, harmless if not."""
    usage, risk = request.usage, sighting.at_risk_tokens
    if usage is None or usage.cache_read_tokens is None:
        return sighting
    missing = turn.match.hit_tokens - usage.cache_read_tokens
    if risk and missing > max(slack, risk // 2):
        lost = min(missing, risk)
        more = f"usage reports {missing:,} fewer cached tokens than the text allows"
        return replace(
            sighting,
            tokens=lost,
            cost_usd=lost_usd(turn, lost),
            certainty="likely",
            at_risk_tokens=0,
            remark=_joined(sighting.remark, more),
            measured=True,
        )
    return replace(
        sighting, at_risk_tokens=0, remark=_joined(sighting.remark, "usage shows no loss")
    )


def _joined(*remarks: str) -> str:
    return "; ".join(r for r in remarks if r)


def on_rules(
    request: Request, turn: Turn, requests: Sequence[Request], turns: Sequence[Turn]
) -> list[Sighting]:
    """Expiry, and prompts too short to be cached."""
    least = turn.plan.minimum_tokens
    lifetime_s = turn.plan.lifetime_s
    if turn.parent is not None and turns[turn.parent].plan.breakpoints:
        lifetime_s = turns[turn.parent].plan.breakpoints[-1].lifetime_s
    found = []
    expired = turn.causes.tokens[EXPIRED]
    if expired:
        found.append(
            Sighting(
                "expired",
                "",
                "",
                turn.index,
                expired,
                lost_usd(turn, expired, EXPIRED),
                "likely",
                remark=_gap(request, turn, requests, lifetime_s),
            )
        )
    short = turn.prompt.total_tokens < least
    if short and not turn.match.hit_tokens and 2 * turn.match.live_tokens > least // 2:
        lost = min(turn.causes.tokens[ROUNDING], turn.match.live_tokens)
        if 2 * lost > turn.prompt.total_tokens:
            found.append(
                Sighting(
                    "below_minimum",
                    "",
                    "",
                    turn.index,
                    lost,
                    lost_usd(turn, lost, ROUNDING),
                    remark=f"hits begin at {least:,} tokens",
                )
            )
    return found


def _gap(
    request: Request, turn: Turn, requests: Sequence[Request], lifetime_s: float | None
) -> str:
    parent = None if turn.parent is None else requests[turn.parent].time
    if parent is None or request.time is None or lifetime_s is None:
        return ""
    seconds = (request.time - parent).total_seconds()
    return f"{seconds:,.0f} s start to start, where an entry lives {lifetime_s:,.0f} s"


def on_output(
    request: Request, turn: Turn, turns: Sequence[Turn], requests: Sequence[Request]
) -> list[Sighting]:
    """A reply that was not sent back as it was generated: what follows its prompt is no hit.

    The request is still a perfect extension of the earlier one; only the stored output is left.
    """
    parent = turn.parent_prompt
    if turn.parent is None or parent is None or turn.causes.break_piece is not None:
        return []
    at, output = len(parent.blocks), requests[turn.parent].output
    if not output or turn.match.pieces > at or at >= len(turn.prompt.blocks):
        return []
    mine = turn.prompt.blocks[at : at + len(output)]
    if not mine or mine[0].role != "assistant":
        return []
    events = [e for e in history_events(output, mine, at, None) if not e.intended]
    if not events or events[0].cls in ("message_inserted", "block_moved"):
        return []
    end = at + sum(block.role == "assistant" for block in mine)
    start = max(turn.match.matched_tokens, int(turn.prompt.ends[at - 1]) if at else 0)
    lost = max(0, int(turn.prompt.ends[end - 1]) - start)
    return [
        Sighting(
            events[0].cls,
            mine[0].zone,
            mine[0].name,
            turn.index,
            lost,
            lost_usd(turn, lost),
            remark="the prompt is kept, only the stored reply behind it is not hit",
            also=tuple(dict.fromkeys(e.cls for e in events[1:])),
            event=events[0],
        )
    ]


def on_breakpoints(turn: Turn, turns: Sequence[Turn], rule: CacheRule) -> list[Sighting]:
    """Refused requests, and matching tokens that no breakpoint covers, with the reason why."""
    if turn.match.refused:
        reason = turn.match.refused
        many = "markers" in reason and ("at most" in reason or "too many" in reason)
        cls = "too_many_breakpoints" if many else "request_refused"
        return [Sighting(cls, "", "", turn.index, remark=f"{reason}; nothing is billed")]
    lost = turn.causes.tokens[UNMARKED]
    if not lost or turn.parent is None or rule.match != "breakpoints":
        return []
    cls, remark = _why_unmarked(turn, turns[turn.parent], rule)
    usd = lost_usd(turn, lost, UNMARKED)
    return [Sighting(cls, "", "", turn.index, lost, usd, remark=remark)]


def _why_unmarked(turn: Turn, parent: Turn, rule: CacheRule) -> tuple[str, str]:
    hit, common = turn.match.hit_tokens, turn.match.pieces
    numbers, ends = turn.plan.block_numbers, turn.prompt.ends
    written = [point.pieces for point in parent.plan.breakpoints]
    # Entries of the earlier request that this one still has in its prompt, and did not read.
    within = [at for at in written if at <= common and int(ends[at - 1]) > hit]
    if within and turn.plan.breakpoints and numbers is not None and rule.lookback_blocks:
        after = [point.pieces for point in turn.plan.breakpoints if point.pieces >= within[-1]]
        back = numbers[after[0] - 1] - numbers[within[-1] - 1] if after else 0
        if back > rule.lookback_blocks:
            return "lookback_exceeded", (
                f"it lies {back} blocks back, and a breakpoint looks back {rule.lookback_blocks}"
            )
    if not within and any(at > common for at in written):
        return "breakpoint_after_volatile", "the stable part in front of it was never written"
    return "unmarked", "" if within or written else "the request before it marks nothing"


def common_tokens(a: Prompt, b: Prompt) -> int:
    """Tokens of the whole blocks that two prompts begin with."""
    n = min(len(a.pieces), len(b.pieces)) - 1
    if n <= 0:
        return 0
    differs = np.flatnonzero(a.pieces[:n] != b.pieces[:n])
    at = int(differs[0]) if len(differs) else n
    return int(a.ends[at - 1]) if at else 0
