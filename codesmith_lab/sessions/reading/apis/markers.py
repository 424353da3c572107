"""Cache markers on tools, messages and parts: where a sender asked for a cache breakpoint."""

from __future__ import annotations

from typing import Any

from codesmith_lab.sessions.reading.apis.drafts import Draft

__all__ = ["marker_of"]


def marker_of(value: Any, draft: Draft) -> str:
    """Lifetime of the cache marker on a JSON object: "5m", "1h", ...; "" without one.

    A marker is `cache_control`, or OpenAI's `prompt_cache_breakpoint`. Five minutes is the default
    (Anthropic's documentation on prompt caching; OpenAI's lifetime is the request's). A marker that
    is no object is noted in the draft and counts as none.
    """
    if not isinstance(value, dict):
        return ""
    name = "cache_control" if "cache_control" in value else "prompt_cache_breakpoint"
    marker = value.get(name)
    if marker is None:
        return ""
    if not isinstance(marker, dict):
        draft.note(f"a {name} that is not an object was passed over")
        return ""
    lifetime = marker.get("ttl")
    return draft.clean(lifetime[:20]) if isinstance(lifetime, str) and lifetime else "5m"
