"""The twenty tools of the invented coding agent."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

__all__ = ["tool_definitions"]


def tool_definitions() -> list[dict[str, Any]]:
    """The tool list of an OpenAI chat-completions body; a fresh copy with every call."""
    data = resources.files("codesmith_lab.samples").joinpath("data", "tools.json")
    tools: list[dict[str, Any]] = json.loads(data.read_text("utf-8"))
    return tools
