"""The three zones of a request: pinned prefix, append-only log, turn scratch."""

from codesmith_lab.zones.append_log import AppendLog
from codesmith_lab.zones.prefix import FrozenPrefix, PinnedPrefix, PrefixChange, PrefixDrift
from codesmith_lab.zones.rebuild import RebuildReason, RebuildRecord, TranscriptRebuilt
from codesmith_lab.zones.reports import ZoneSession, cache_stats, cache_zones
from codesmith_lab.zones.request import ThreeZoneRequest, check_deterministic
from codesmith_lab.zones.scratch import TurnScratch
from codesmith_lab.zones.stability import PrefixStabilityManager

__all__ = [
    "AppendLog",
    "FrozenPrefix",
    "PinnedPrefix",
    "PrefixChange",
    "PrefixDrift",
    "PrefixStabilityManager",
    "RebuildReason",
    "RebuildRecord",
    "ThreeZoneRequest",
    "TranscriptRebuilt",
    "TurnScratch",
    "ZoneSession",
    "cache_stats",
    "cache_zones",
    "check_deterministic",
]
