"""codesmith_lab: see what a prompt cache sees, and what it costs.

    import codesmith_lab as lab
    session = lab.load("requests.jsonl")
    lab.Workbench(session, model="deepseek-v4-flash")

Importing the package is light: names are fetched when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # The same names for type checkers and editors; a test holds the two lists equal.
    from codesmith_lab import errors as errors
    from codesmith_lab import samples as samples
    from codesmith_lab.cache.rule_files import load_rules as load_rules
    from codesmith_lab.capacity import CapacityConfig as CapacityConfig
    from codesmith_lab.capacity import CapacityController as CapacityController
    from codesmith_lab.capacity import CapacityObservation as CapacityObservation
    from codesmith_lab.errors import InputError as InputError
    from codesmith_lab.errors import LabError as LabError
    from codesmith_lab.errors import UnknownModelError as UnknownModelError
    from codesmith_lab.labs.capacity import CapacityLab as CapacityLab
    from codesmith_lab.labs.capacity_sweep import CapacitySweep as CapacitySweep
    from codesmith_lab.labs.log_picker import LogPicker as LogPicker
    from codesmith_lab.labs.section_order import SectionOrderLab as SectionOrderLab
    from codesmith_lab.labs.workbench import Workbench as Workbench
    from codesmith_lab.prompt import Block as Block
    from codesmith_lab.prompt import ParsedSection as ParsedSection
    from codesmith_lab.prompt import PromptBundle as PromptBundle
    from codesmith_lab.prompt import PromptSection as PromptSection
    from codesmith_lab.prompt import build_effective_prompt as build_effective_prompt
    from codesmith_lab.prompt import parse_rendered_sections as parse_rendered_sections
    from codesmith_lab.prompt import system_to_text as system_to_text
    from codesmith_lab.sessions.analysis import analyze as analyze
    from codesmith_lab.sessions.reading.load import load as load
    from codesmith_lab.sessions.reading.load import load_bytes as load_bytes
    from codesmith_lab.sessions.records import Request as Request
    from codesmith_lab.sessions.records import Session as Session
    from codesmith_lab.sessions.reports.report import Report as Report
    from codesmith_lab.zones import AppendLog as AppendLog
    from codesmith_lab.zones import FrozenPrefix as FrozenPrefix
    from codesmith_lab.zones import PinnedPrefix as PinnedPrefix
    from codesmith_lab.zones import PrefixChange as PrefixChange
    from codesmith_lab.zones import PrefixDrift as PrefixDrift
    from codesmith_lab.zones import PrefixStabilityManager as PrefixStabilityManager
    from codesmith_lab.zones import RebuildReason as RebuildReason
    from codesmith_lab.zones import RebuildRecord as RebuildRecord
    from codesmith_lab.zones import ThreeZoneRequest as ThreeZoneRequest
    from codesmith_lab.zones import TranscriptRebuilt as TranscriptRebuilt
    from codesmith_lab.zones import TurnScratch as TurnScratch
    from codesmith_lab.zones import ZoneSession as ZoneSession
    from codesmith_lab.zones import cache_stats as cache_stats
    from codesmith_lab.zones import cache_zones as cache_zones
    from codesmith_lab.zones import check_deterministic as check_deterministic

    __version__: str

_HOMES = {
    "AppendLog": "zones",
    "Block": "prompt",
    "CapacityConfig": "capacity",
    "CapacityController": "capacity",
    "CapacityLab": "labs.capacity",
    "CapacitySweep": "labs.capacity_sweep",
    "CapacityObservation": "capacity",
    "FrozenPrefix": "zones",
    "InputError": "errors",
    "LabError": "errors",
    "LogPicker": "labs.log_picker",
    "ParsedSection": "prompt",
    "PinnedPrefix": "zones",
    "PrefixChange": "zones",
    "PrefixDrift": "zones",
    "PrefixStabilityManager": "zones",
    "PromptBundle": "prompt",
    "PromptSection": "prompt",
    "RebuildReason": "zones",
    "RebuildRecord": "zones",
    "Report": "sessions.reports.report",
    "Request": "sessions.records",
    "SectionOrderLab": "labs.section_order",
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
    "load": "sessions.reading.load",
    "load_bytes": "sessions.reading.load",
    "load_rules": "cache.rule_files",
    "parse_rendered_sections": "prompt",
    "system_to_text": "prompt",
}
_MODULES = ("errors", "samples")

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
        raise AttributeError(f"module 'codesmith_lab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
