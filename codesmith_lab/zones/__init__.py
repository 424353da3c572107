"""The three zones of a request: pinned prefix, append-only log, turn scratch."""

from codesmith_lab.zones.append_log import AppendLog
from codesmith_lab.zones.frozen import FrozenMapping, freeze, thaw
from codesmith_lab.zones.prefix import FrozenPrefix, PinnedPrefix, PrefixChange, PrefixDrift
from codesmith_lab.zones.rebuild import RebuildReason, RebuildRecord, TranscriptRebuilt
from codesmith_lab.zones.reports import ZoneSession, cache_stats, cache_zones
from codesmith_lab.zones.request import (
    PromptNondeterminismError,
    ThreeZoneRequest,
    check_deterministic,
    hand_assembly,
)
from codesmith_lab.zones.scratch import TurnScratch
from codesmith_lab.zones.stability import PrefixStabilityManager

__all__ = [
    "AppendLog",
    "FrozenMapping",
    "FrozenPrefix",
    "PinnedPrefix",
    "PrefixChange",
    "PrefixDrift",
    "PrefixStabilityManager",
    "PromptNondeterminismError",
    "RebuildReason",
    "RebuildRecord",
    "ThreeZoneRequest",
    "TranscriptRebuilt",
    "TurnScratch",
    "ZoneSession",
    "cache_stats",
    "cache_zones",
    "check_deterministic",
    "freeze",
    "hand_assembly",
    "thaw",
]
