"""codesmith_lab: see what a prompt cache sees, and what it costs.

    import codesmith_lab as lab
    session = lab.load("requests.jsonl")
    lab.Workbench(session, model="deepseek-v4-flash")

Importing the package is light: names are fetched when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "AppendLog": "zones",
    "Block": "prompt",
    "FrozenPrefix": "zones",
    "InputError": "errors",
    "LabError": "errors",
    "PinnedPrefix": "zones",
    "PrefixChange": "zones",
    "PrefixDrift": "zones",
    "PrefixStabilityManager": "zones",
    "PromptBundle": "prompt",
    "PromptSection": "prompt",
    "RebuildReason": "zones",
    "RebuildRecord": "zones",
    "Report": "sessions.report",
    "Request": "sessions.records",
    "Session": "sessions.records",
    "ThreeZoneRequest": "zones",
    "TranscriptRebuilt": "zones",
    "TurnScratch": "zones",
    "UnknownModelError": "errors",
    "Workbench": "labs.workbench",
    "ZoneSession": "zones",
    "analyze": "sessions.analysis",
    "build_effective_prompt": "prompt",
    "cache_stats": "zones",
    "cache_zones": "zones",
    "check_deterministic": "zones",
    "load": "sessions.load",
    "load_bytes": "sessions.load",
    "parse_rendered_sections": "prompt",
    "system_to_text": "prompt",
}
_MODULES = ("samples",)

__all__ = [*_HOMES, *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"codesmith_lab.{_HOMES[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"codesmith_lab.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("codesmith-lab")
    else:
        raise AttributeError(f"codesmith_lab has no name {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
