"""Turns of an edited session that need no new look at the cache.

When an edit replaces the same pieces in every turn from some turn on, a later turn that follows one
of these turns behind the edit follows it just as it did in the recorded session: every place behind
the edit moves by the same number of tokens. Such a turn is the recorded one, shifted. All others go
through the cache; `TurnRunner` decides by `Chain.shift`, and tests hold both ways equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from codesmith_lab.cache.breakpoints import marked_end
from codesmith_lab.cache.causes import Causes, Span
from codesmith_lab.cache.match import EXPIRED, HIT, NEW, ROUNDING, Match
from codesmith_lab.cache.pieces import Prompt
from codesmith_lab.cache.plan import CachePlan
from codesmith_lab.cache.rules import CacheRule
from codesmith_lab.cache.swaps import Swap, SwappedPrompt

__all__ = ["Chain", "can_shift", "one_life", "shift"]

Segments = tuple[tuple[int, int], ...]


def can_shift(rule: CacheRule) -> bool:
    """Whether what a turn finds depends on the turns it follows alone."""
    return (
        rule.match in ("any_prefix", "stored_units", "breakpoints", "pool", "radix")
        and rule.capacity_tokens is None
    )


@dataclass(slots=True)
class Chain:
    """Turns of one scope that all carry the same change, since the first of them.

    anchor: the first one. swap: the change, None for turns as recorded. deepest: the last piece
    that any change in the scope has reached. waiting: turns that were shifted and that the cache
    has not seen yet. broken: a turn was changed in a way that is not followed here.
    """

    anchor: int = -1
    swap: Swap | None = None
    deepest: int = -1
    waiting: list[int] = field(default_factory=list)
    broken: bool = False

    def carries(self, index: int, swap: Swap | None, known: bool) -> bool:
        """Whether a turn carries the chain's change; if not, the chain starts anew with it.

        known: the change is a swap of pieces that no recorded turn holds, or none.
        """
        if swap is not None:
            self.deepest = max(self.deepest, swap.places[-1])
        if self.broken or not known:
            self.broken = True
            return False
        same = swap is self.swap or (
            swap is not None and self.swap is not None and swap.same_change(self.swap)
        )
        if self.anchor >= 0 and same:
            return True
        self.anchor, self.swap = index, swap
        return False

    def leads(self, parent: int, pieces: int) -> bool:
        """Whether a recorded turn followed `parent` within the chain, behind every change."""
        return parent >= self.anchor and pieces > self.deepest


def one_life(*plans: CachePlan) -> bool:
    """Whether all breakpoints of these requests live equally long."""
    return len({point.lifetime_s for plan in plans for point in plan.breakpoints}) <= 1


def shift(
    was: Prompt,
    match: Match,
    causes: Causes,
    prompt: Prompt,
    rule: CacheRule,
    plan: CachePlan,
    parent_ends: tuple[int, int],
    marked_pieces: int,
) -> tuple[Match, Causes] | None:
    """Match and causes of a turn whose recorded self followed a turn of the same chain.

    was, match, causes: of the recorded turn; prompt: as it is now.
    parent_ends: tokens of the parent's prompt, and of its prompt and stored output, as they are
        now. marked_pieces: where the parent's last breakpoint stands, 0 without one.
    None when the cache has to be asked.
    """
    if match.refused or plan.off or match.live_tokens != match.matched_tokens:
        return None
    extends = causes.break_tokens is None
    if rule.match != "breakpoints" and extends:
        return _shift_extending(was, match, prompt, rule, plan, parent_ends)
    moved = _mover(prompt, was)
    matched = moved(match.matched_tokens)
    if matched is None:
        return None
    if rule.match == "breakpoints":
        if not extends:
            return None
        found = _shift_breakpoints(was, match, prompt, plan, moved, marked_pieces)
        if found is None:
            return None
        hit, segments, written, stored = found
    else:
        hit = _hit(rule, plan, matched, prompt.total_tokens)
        if rule.match == "stored_units" and hit:
            return None
        segments = ((hit, HIT), (matched, ROUNDING), (matched, EXPIRED))
        written, stored = (hit, hit), 0
    shifted = _shift_causes(causes, segments, matched, match.matched_tokens, moved)
    if shifted is None:
        return None
    mark = marked_end(prompt, plan) if rule.match == "breakpoints" else None
    found_match = Match(
        match.parent,
        matched,
        matched,
        hit,
        match.pieces,
        segments,
        written,
        stored,
        match.stored_s,
        marked_end=mark,
    )
    return found_match, shifted


def _hit(rule: CacheRule, plan: CachePlan, matched: int, total: int) -> int:
    return rule.floor(min(matched, total - rule.keep_last_tokens), plan.minimum_tokens)


def _shift_extending(
    was: Prompt,
    match: Match,
    prompt: Prompt,
    rule: CacheRule,
    plan: CachePlan,
    parent_ends: tuple[int, int],
) -> tuple[Match, Causes] | None:
    """A turn that follows its parent to its end, under a rule of prefixes: the common case."""
    matched = match.matched_tokens
    if isinstance(prompt, SwappedPrompt):
        swap = prompt.swap
        if matched < was.tokens_before(swap.high):
            return None
        matched += swap.delta_tokens
    total = prompt.total_tokens
    hit = _hit(rule, plan, matched, total)
    if rule.match == "stored_units" and hit:
        least = plan.minimum_tokens
        # The greatest unit of all, if it was stored, is at an end of the parent.
        if hit != rule.floor(parent_ends[1], least) and hit != rule.floor(parent_ends[0], least):
            return None
    spans = [Span(0, hit, HIT)] if hit else []
    if matched > hit:
        spans.append(Span(hit, matched, ROUNDING))
    if total > matched:
        spans.append(Span(matched, total, NEW))
    tokens = (hit, total - matched, 0, matched - hit, 0, 0)
    segments = ((hit, HIT), (matched, ROUNDING), (matched, EXPIRED))
    return (
        Match(match.parent, matched, matched, hit, match.pieces, segments, (hit, hit)),
        Causes(tuple(spans), tokens, None, None),
    )


def _mover(prompt: Prompt, was: Prompt) -> Callable[[int], int | None]:
    """Where a place of the recorded prompt is now; None inside of what changed."""
    if not isinstance(prompt, SwappedPrompt):
        return lambda tokens: tokens
    swap = prompt.swap
    low, high = was.tokens_before(swap.low), was.tokens_before(swap.high)
    delta = swap.delta_tokens

    def moved(tokens: int) -> int | None:
        if tokens >= high:
            return tokens + delta
        return tokens if tokens <= low else None

    return moved


def _shift_breakpoints(
    was: Prompt,
    match: Match,
    prompt: Prompt,
    plan: CachePlan,
    moved: Callable[[int], int | None],
    marked_pieces: int,
) -> tuple[int, Segments, tuple[int, int], int] | None:
    """The recorded hit is the parent's last breakpoint, which the parent has just touched."""
    if not marked_pieces or was.tokens_before(marked_pieces) != match.hit_tokens:
        return None
    least = plan.minimum_tokens
    if not plan.breakpoints and (was.total_tokens < least) != (prompt.total_tokens < least):
        return None
    for pieces in (marked_pieces, *(point.pieces for point in plan.breakpoints)):
        if (was.tokens_before(pieces) < least) != (prompt.tokens_before(pieces) < least):
            return None
    hit, stored = moved(match.hit_tokens), moved(match.stored_tokens)
    long_end, end = moved(match.written[0]), moved(match.written[1])
    segments = tuple((moved(at), cause) for at, cause in match.segments)
    if None in (hit, stored, long_end, end) or any(at is None for at, _ in segments):
        return None
    kept = tuple((at or 0, cause) for at, cause in segments)
    return hit or 0, kept, (long_end or 0, end or 0), stored or 0


def _shift_causes(
    was: Causes,
    segments: Segments,
    matched: int,
    matched_was: int,
    moved: Callable[[int], int | None],
) -> Causes | None:
    """The matched part as the segments say, and behind it the recorded spans, moved."""
    spans: list[Span] = []
    start = 0
    for end, cause in segments:
        if end > start:
            if spans and spans[-1].cause == cause:
                spans[-1] = Span(spans[-1].start, end, cause)
            else:
                spans.append(Span(start, end, cause))
            start = end
    for span in was.spans:
        if span.end <= matched_was:
            continue
        low, high = moved(max(span.start, matched_was)), moved(span.end)
        if low is None or high is None:
            return None
        if spans and spans[-1].cause == span.cause:
            spans[-1] = Span(spans[-1].start, high, span.cause)
        else:
            spans.append(Span(low, high, span.cause))
    tokens = [0, 0, 0, 0, 0, 0]
    for span in spans:
        tokens[span.cause] += span.end - span.start
    at = None if was.break_tokens is None else matched
    return Causes(tuple(spans), tuple(tokens), was.break_piece, at)
