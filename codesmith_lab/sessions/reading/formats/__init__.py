"""Log formats: how each one's records give the calls that were made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from codesmith_lab.sessions.reading.calls import Opener
from codesmith_lab.sessions.reading.formats.bedrock_log import BedrockLogOpener
from codesmith_lab.sessions.reading.formats.cassettes import CassetteOpener
from codesmith_lab.sessions.reading.formats.claude_code import ClaudeCodeOpener
from codesmith_lab.sessions.reading.formats.codex import CodexOpener
from codesmith_lab.sessions.reading.formats.har import HarOpener
from codesmith_lab.sessions.reading.formats.litellm import LiteLlmOpener
from codesmith_lab.sessions.reading.formats.openrouter import OpenRouterOpener
from codesmith_lab.sessions.reading.formats.otel import OtelOpener
from codesmith_lab.sessions.reading.formats.plain import PlainOpener

__all__ = ["OPENERS", "CassetteOpener"]

OPENERS: Final[dict[str, Callable[[], Opener]]] = {
    opener.name: opener
    for opener in (
        ClaudeCodeOpener,
        CodexOpener,
        HarOpener,
        CassetteOpener,
        OtelOpener,
        LiteLlmOpener,
        OpenRouterOpener,
        BedrockLogOpener,
        PlainOpener,
    )
}
"""New openers by the name of their format; the last takes what no other claims."""
