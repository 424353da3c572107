"""Ways to send a session's cache markers and other fields otherwise.

Each takes the requests as they are sent and gives the settings of those that would change. Markers
count the blocks of the request as it is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from codesmith_lab.cache.plan import carry_markers
from codesmith_lab.cache.rules import CacheRule, setting_at
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.records import Request

__all__ = [
    "Settings",
    "carried",
    "keep_setting",
    "longer_life",
    "mark_between",
    "mark_last",
    "mark_pinned",
    "mark_stable",
    "pin_provider",
]

Settings = dict[int, Mapping[str, Any]]
Parents = Sequence[int | None]
_STEP_BLOCKS = 15
_SHORT = "5m"


def carried(request: Request, blocks: Sequence[Block]) -> Mapping[str, Any]:
    """The request's settings with its markers on other blocks that it would send."""
    markers = request.settings.get("_markers")
    if not markers:
        return request.settings
    return {**request.settings, "_markers": carry_markers(markers, request.blocks, blocks)}


def mark_pinned(requests: Sequence[Request], rule: CacheRule) -> Settings:
    """A marker on the last block of tools and system prompt."""

    def places(request: Request) -> list[int]:
        pinned = [i for i, block in enumerate(request.blocks) if block.zone == "pinned"]
        return pinned[-1:]

    return _marked(requests, rule, places)


def mark_last(requests: Sequence[Request], rule: CacheRule) -> Settings:
    """A marker on the last block of every request, which moves on with the conversation."""
    return _marked(requests, rule, lambda request: _ends(request, rule)[:1])


def mark_between(requests: Sequence[Request], rule: CacheRule) -> Settings:
    """Markers close enough to each other that each one's lookback reaches the one before."""
    return _marked(requests, rule, lambda request: _ends(request, rule))


def _ends(request: Request, rule: CacheRule) -> list[int]:
    """The last block and those some way before it, as far as the request's own history goes."""
    start = sum(block.zone == "pinned" for block in request.blocks)
    found, at = [], len(request.blocks) - 1
    while at >= start:
        place = at
        while place >= start and request.blocks[place].name in rule.unmarkable:
            place -= 1
        if place >= start:
            found.append(place)
        at -= _STEP_BLOCKS
    return found


def mark_stable(requests: Sequence[Request], parents: Parents, rule: CacheRule) -> Settings:
    """A marker at the end of what a request shares with its neighbours, and none behind it."""
    shared: dict[int, int] = {}
    for request in requests:
        parent = parents[request.index]
        if parent is None:
            continue
        common = _common(request.blocks, requests[parent].blocks)
        for i in (request.index, parent):
            shared[i] = min(shared.get(i, common), common)
    changed: Settings = {}
    for request in requests:
        end = shared.get(request.index, 0)
        kept = [(at, life) for at, life in _markers(request) if at < end]
        while end and request.blocks[end - 1].name in rule.unmarkable:
            end -= 1
        if end:
            kept = _with_places(kept, [end - 1], rule)
        _put(changed, request, kept)
    return changed


def _common(a: Sequence[Block], b: Sequence[Block]) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    differs = (i for i, (x, y) in pairs if x is not y and (x.role, x.text) != (y.role, y.text))
    return next(differs, min(len(a), len(b)))


def longer_life(requests: Sequence[Request], rule: CacheRule) -> Settings:
    """The longest lifetime that the rule knows, on every marker or in its own field."""
    name = max(rule.lifetimes_s, key=lambda key: (rule.lifetimes_s[key], key != ""), default="")
    changed: Settings = {}
    if not name or rule.lifetimes_s[name] <= rule.lifetimes_s.get("", 0):
        return changed
    for request in requests:
        settings = dict(request.settings)
        if "_markers" in settings:
            settings["_markers"] = tuple((at, name) for at, _ in _markers(request))
        if rule.lifetime_field:
            _set(settings, rule.lifetime_field, name)
        asked = settings.get(rule.automatic_field) if rule.automatic_field else None
        if isinstance(asked, Mapping):
            settings[rule.automatic_field] = {**asked, "ttl": name}
        if settings != request.settings:
            changed[request.index] = settings
    return changed


def keep_setting(requests: Sequence[Request], name: str) -> Settings:
    """A field as the first request that has it sent it; `name` is a dotted path."""
    values = (setting_at(request.settings, name) for request in requests)
    first = next((value for value in values if value is not None), None)
    changed: Settings = {}
    for request in requests:
        if first is not None and setting_at(request.settings, name) != first:
            settings = dict(request.settings)
            _set(settings, name, first)
            changed[request.index] = settings
    return changed


def pin_provider(requests: Sequence[Request]) -> Settings:
    """Every request served by the provider that served most of them."""
    served = Counter(r.scope.provider for r in requests if r.scope.provider)
    if len(served) < 2:
        return {}
    best = min(served, key=lambda name: (-served[name], name))
    return {r.index: {**r.settings, "_provider": best} for r in requests}


def _set(settings: dict[str, Any], path: str, value: Any) -> None:
    key, _, rest = path.partition(".")
    if not rest:
        settings[key] = value
        return
    inner = settings.get(key)
    inner = dict(inner) if isinstance(inner, Mapping) else {}
    _set(inner, rest, value)
    settings[key] = inner


def _markers(request: Request) -> list[tuple[int, str]]:
    return list(request.settings.get("_markers", ()))


def _marked(
    requests: Sequence[Request], rule: CacheRule, places: Callable[[Request], list[int]]
) -> Settings:
    changed: Settings = {}
    for request in requests:
        _put(changed, request, _with_places(_markers(request), places(request), rule))
    return changed


def _with_places(
    markers: Iterable[tuple[int, str]], places: Sequence[int], rule: CacheRule
) -> list[tuple[int, str]]:
    """Markers with these places added, the first places first, as far as the rule allows.

    What is marked already stays; a new one takes the life of the markers behind it, for longer
    lives have to come first.
    """
    kept = dict(markers)
    most = rule.max_breakpoints if rule.max_breakpoints is not None else len(kept) + len(places)
    for place in places:
        if place not in kept and len(kept) < most:
            behind = [life for at, life in sorted(kept.items()) if at > place]
            kept[place] = behind[0] if behind else _SHORT
    return sorted(kept.items())


def _put(changed: Settings, request: Request, markers: Sequence[tuple[int, str]]) -> None:
    if list(markers) != _markers(request):
        changed[request.index] = {**request.settings, "_markers": tuple(markers)}
