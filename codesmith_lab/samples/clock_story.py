"""The story of the clock: forty turns of a coding agent, and one careless line.

An agent hunts a double reminder in a small invented project. With turn 8 an update of the agent
begins to write the current minute into the system prompt, so that from there on every request
differs from the one before it near its front. After turn 30 the history is compacted by hand.
Nothing here was measured at a provider, so there are no usage counters.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codesmith_lab.prompt import PromptBundle, PromptSection
from codesmith_lab.samples import story_texts as texts
from codesmith_lab.samples.harbour_log import harbour_log
from codesmith_lab.samples.story_turns import COMPACTION_TURN, LOG_PATH, Turn, story_turns
from codesmith_lab.samples.tools import tool_definitions
from codesmith_lab.samples.workspace import Workspace

if TYPE_CHECKING:
    from codesmith_lab.sessions.records import Session

__all__ = ["CLOCK_TURN", "clock_story", "clock_story_lines", "write_clock_story"]

CLOCK_TURN = 8
"""1-based turn with whose request the current minute enters the system prompt."""

DEFAULT_SEED = 3
MODEL = "deepseek-v4-flash"
MAX_OUTPUT_TOKENS = 8192
_START = datetime(2026, 8, 25, 22, 14, 8, tzinfo=timezone.utc)
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 120, 360
_KEPT_MESSAGES = 4  # of the old history behind the summary: the last diff and the milestone
_ID_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PROJECT = {
    "pyproject.toml": "pyproject",
    "docs/delivery.md": "delivery",
    **{
        f"tests/{name}.py": name
        for name in ("test_backoff", "test_dispatch", "test_windows", "world")
    },
    **{
        f"tidegate/{name}.py": name
        for name in (
            *("backoff", "cli", "clock", "dispatch", "gateway"),
            *("schedule", "senders", "store", "windows"),
        )
    },
}
Message = dict[str, Any]


def clock_story_lines(seed: int = DEFAULT_SEED) -> Iterator[bytes]:
    """The log, one JSON object a line without its newline: time, request, response, rebuild.

    seed: varies pauses, ids and the log that the agent reads, never what happens. The same seed
    gives the same bytes on every machine: no clock, no time zone, no hash order is used.

    The rebuild of turn 31 counts messages without the system prompt: `before` as the history
    stood when it was compacted, `after` as the next request sends it, its own message included.
    """
    source = random.Random(seed)
    log = harbour_log(source)
    files = {path: _data(f"project/{name}.txt") for path, name in _PROJECT.items()}
    workspace = Workspace({**files, LOG_PATH: log.text})
    tools = tool_definitions()
    messages: list[Message] = []
    now = _START
    for number, turn in enumerate(story_turns(log), start=1):
        before = len(messages)
        if number == COMPACTION_TURN:
            messages = [{"role": "user", "content": texts.SUMMARY}, *messages[-_KEPT_MESSAGES:]]
        if turn.person is not None:
            messages.append({"role": "user", "content": turn.person})
        answer = _answer(turn, source)
        line = _line(number, now, messages, tools, answer)
        if number == COMPACTION_TURN:
            line["rebuild"] = {
                "reason": "manual_compaction",
                "before": before,
                "after": len(messages),
            }
        yield json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        messages += [answer, *_results(turn, answer, workspace)]
        pause_s = _SHORTEST_PAUSE_S + source.random() * (_LONGEST_PAUSE_S - _SHORTEST_PAUSE_S)
        now += timedelta(seconds=int(pause_s))


def clock_story(seed: int = DEFAULT_SEED) -> Session:
    """The bundled session, read as any log is."""
    from codesmith_lab.sessions.reading.load import load_bytes

    return load_bytes(_log_bytes(seed), "clock_story.jsonl")


def write_clock_story(path: str | Path, seed: int = DEFAULT_SEED) -> Path:
    """Write the log to a file, to try the command line on it; returns the path."""
    target = Path(path)
    target.write_bytes(_log_bytes(seed))
    return target


def _log_bytes(seed: int) -> bytes:
    return b"".join(line + b"\n" for line in clock_story_lines(seed))


def _data(name: str) -> str:
    root = resources.files("codesmith_lab.samples").joinpath("data")
    return root.joinpath(*name.split("/")).read_text("utf-8")


def _system_prompt(number: int, now: datetime) -> str:
    clock = f"Current time: {now:%Y-%m-%d %H:%M}\n" if number >= CLOCK_TURN else ""
    environment = (
        f"<environment>\nPlatform: linux\nWorking directory: /workspace\n{clock}</environment>"
    )
    sections = (
        ("constitution", "Constitution", _data("constitution.md"), "static", "builtin"),
        (
            *("project_context", "Project context", _data("project_context.md")),
            *("workspace", "project_context"),
        ),
        ("environment", "Environment", environment, "dynamic", "builtin"),
        ("skills", "Skills", _data("skills.md"), "workspace", "skills"),
        ("memory", "Memory", _data("memory.md"), "session", "memory"),
    )
    return PromptBundle.from_sections(
        PromptSection(ident, title, body, stability, source=source)
        for ident, title, body, stability, source in sections
    ).render_text()


def _line(
    number: int,
    now: datetime,
    messages: list[Message],
    tools: list[dict[str, Any]],
    answer: Message,
) -> dict[str, Any]:
    system = {"role": "system", "content": _system_prompt(number, now)}
    finish_reason = "tool_calls" if "tool_calls" in answer else "stop"
    return {
        "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "request": {
            "model": MODEL,
            "messages": [system, *messages],
            "tools": tools,
            "max_tokens": MAX_OUTPUT_TOKENS,
            "temperature": 0,
            "stream": False,
        },
        "response": {
            "object": "chat.completion",
            "model": MODEL,
            "choices": [{"index": 0, "message": answer, "finish_reason": finish_reason}],
        },
    }


def _answer(turn: Turn, source: random.Random) -> Message:
    answer: Message = {"role": "assistant", "content": turn.says}
    if turn.calls:
        answer["tool_calls"] = [
            {
                "id": _call_id(source),
                "type": "function",
                "function": {
                    "name": call.tool,
                    "arguments": json.dumps(call.arguments, ensure_ascii=False),
                },
            }
            for call in turn.calls
        ]
    return answer


def _results(turn: Turn, answer: Message, workspace: Workspace) -> Iterator[Message]:
    for call, sent in zip(turn.calls, answer.get("tool_calls", ()), strict=True):
        told = call.result
        content = workspace.run(call.tool, call.arguments) if told is None else told
        yield {"role": "tool", "tool_call_id": sent["id"], "content": content}


def _call_id(source: random.Random) -> str:
    # random() alone is promised to give the same numbers in every Python version.
    letters = (_ID_LETTERS[int(source.random() * len(_ID_LETTERS))] for _ in range(20))
    return "call_" + "".join(letters)
