"""The story of the clock: forty turns of a coding agent, one careless line.

An agent hunts a double reminder in a small invented project. With turn 8 an update starts to write
the current minute into the system prompt, so that every later request begins differently. At turn
31 the history is compacted by hand. Nothing here was measured, so there are no usage counters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codesmith_lab.prompt import PromptBundle, PromptSection
from codesmith_lab.samples.tools import tool_definitions

if TYPE_CHECKING:
    from codesmith_lab.sessions.records import Session

__all__ = ["clock_story", "clock_story_lines", "write_clock_story"]

MODEL = "deepseek-v4-flash"
TURNS = 40
CLOCK_FROM = 8
COMPACTED_AT = 31
_START = datetime(2026, 8, 25, 22, 8, tzinfo=timezone.utc)
_GAPS_MINUTES = (3, 5, 4, 6, 4, 5, 3, 4)
_KEPT = 5

# What happens, turn by turn: the person's or the agent's move.
# ("say", text) a person speaks; ("read", file, thought); ("run", command, output, thought).
_FILES = ("dispatch", "store", "schedule", "backoff", "clock", "delivery", "test_dispatch", "world")
_QUESTIONS = (
    "The pilot harbour north got every spring tide reminder twice last night. Please find out why.",
    "Could two workers take the same reminder? Look at how a claim is made.",
    "Show me where the wait between attempts is worked out.",
    "Is the clock the same in both workers? Check before you change anything.",
    "Write a test that fails for the double reminder.",
    "Good. Now mend it, the smallest change that holds.",
    "Run everything, and read the output before you say it is green.",
    "What happens when a worker dies between the claim and the send?",
)


def _text(name: str) -> str:
    root = resources.files("codesmith_lab.samples").joinpath("data")
    return root.joinpath(*name.split("/")).read_text("utf-8")


def _system(turn: int, now: datetime) -> str:
    clock = f"\nCurrent time: {now:%Y-%m-%d %H:%M}" if turn >= CLOCK_FROM else ""
    environment = (
        "<environment>\nPlatform: linux\nWorking directory: /workspace/tidegate"
        f"{clock}\n</environment>"
    )
    sections = (
        PromptSection("constitution", "Constitution", _text("constitution.md")),
        PromptSection(
            "project_context",
            "Project context",
            _text("project_context.md"),
            "workspace",
            source="project_context",
        ),
        PromptSection("environment", "Environment", environment, "dynamic", source="builtin"),
        PromptSection("skills", "Skills", _text("skills.md"), "workspace", source="skills"),
        PromptSection("memory", "Memory", _text("memory.md"), "session", source="memory"),
    )
    return PromptBundle.from_sections(sections).render_text()


def _call(turn: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(arguments, ensure_ascii=False)
    function = {"name": name, "arguments": text}
    return {"id": f"call_{turn:02d}", "type": "function", "function": function}


def _test_run(turn: int) -> str:
    """Output of a test run: what passes grows with the work."""
    names = ("due", "early", "retry", "cancel", "expire", "spring_tide", "two_workers", "restart")
    rows = []
    for i in range(24):
        name = names[i % len(names)]
        failed = name == "two_workers" and turn < 24
        took = (turn * 7 + i * 13) % 90
        word = "FAILED" if failed else "PASSED"
        rows.append(f"tests/test_{name}.py::test_case_{i:02d} {word} [0.{took:02d}s]")
    failed_count = sum("FAILED" in row for row in rows)
    rows.append(f"{failed_count} failed, {len(rows) - failed_count} passed in {1 + turn % 3}.4s")
    return "\n".join(rows)


def _move(turn: int) -> tuple[dict[str, Any], str | None]:
    """The agent's answer on a turn, and the result of the tool it calls (None: it only speaks)."""
    kind = turn % 4
    if kind == 1:
        name = _FILES[turn // 4 % len(_FILES)]
        path = f"tidegate/{name}.py"
        answer = {
            "role": "assistant",
            "content": f"I look at {path} first, since the claim and the send meet there.",
            "tool_calls": [_call(turn, "read_file", {"path": path})],
        }
        return answer, _text(f"project/{name}.txt")
    if kind == 2:
        command = f"pytest -q -k 'two_workers or case_{turn:02d}'"
        answer = {
            "role": "assistant",
            "content": "The tests say more than the code does. I run the ones that are near.",
            "tool_calls": [_call(turn, "run_shell", {"command": command, "timeout_seconds": 120})],
        }
        return answer, _test_run(turn)
    if kind == 3:
        word = ("claim", "due_at", "until", "succeeded", "advance")[turn // 4 % 5]
        lines = [
            f"tidegate/{name}.py:{i + 1}: {line.strip()}"
            for name in _FILES
            for i, line in enumerate(_text(f"project/{name}.txt").splitlines())
            if word in line
        ]
        answer = {
            "role": "assistant",
            "content": f"Next I want every place that knows about {word!r}.",
            "tool_calls": [_call(turn, "grep", {"pattern": word, "path": "tidegate"})],
        }
        return answer, "\n".join(lines)
    answer = {
        "role": "assistant",
        "content": (
            f"Step {turn // 4}. What I know now: the claim is written before the send and read "
            "after it, and nothing holds the two together. Two workers that wake in the same "
            "second both find the reminder due. I have not changed anything outside the files "
            "named above; the next step is the one we agreed on."
        ),
    }
    return answer, None


def _summary(dropped: int) -> dict[str, str]:
    return {
        "role": "user",
        "content": (
            f"[Summary of {dropped} earlier messages]\nGoal: no reminder is sent twice.\n"
            "Found: a claim was taken and checked in two statements, so that two workers could "
            "both win. Done: one statement takes the claim or fails; a test with two workers "
            "holds it. Open: a worker that dies after the claim leaves it until it runs out."
        ),
    }


def clock_story_lines() -> Iterator[bytes]:
    """The log, one JSON object a line: time, request, response, and the signed rebuild."""
    messages: list[dict[str, Any]] = []
    now = _START
    tools = tool_definitions()
    asked = 0
    result: str | None = None
    for turn in range(1, TURNS + 1):
        rebuild = None
        if turn == COMPACTED_AT:
            before = len(messages)
            # A tool result never stands without its call, so the cut is made before a question.
            kept = messages[-_KEPT:]
            while kept[0]["role"] != "user":
                kept = kept[1:]
            messages = [_summary(before - len(kept)), *kept]
            rebuild = {"reason": "manual_compaction", "before": before, "after": len(messages)}
        if result is None:
            question = _QUESTIONS[asked % len(_QUESTIONS)]
            round_ = asked // len(_QUESTIONS)
            again = f" (round {round_ + 1})" if round_ else ""
            messages.append({"role": "user", "content": question + again})
            asked += 1
        else:
            call = messages[-1]["tool_calls"][0]["id"]
            messages.append({"role": "tool", "tool_call_id": call, "content": result})
        system = {"role": "system", "content": _system(turn, now)}
        answer, result = _move(turn)
        line: dict[str, Any] = {
            "time": now.isoformat().replace("+00:00", "Z"),
            "request": {
                "model": MODEL,
                "messages": [system, *messages],
                "tools": tools,
                "max_tokens": 8192,
                "stream": False,
            },
            "response": {"choices": [{"index": 0, "message": answer}]},
        }
        if rebuild is not None:
            line["rebuild"] = rebuild
        yield json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        messages.append(answer)
        now += timedelta(minutes=_GAPS_MINUTES[turn % len(_GAPS_MINUTES)])


def clock_story() -> Session:
    """The bundled session, read as any log is."""
    from codesmith_lab.sessions.load import load_bytes

    return load_bytes(b"\n".join(clock_story_lines()) + b"\n", "clock_story.jsonl")


def write_clock_story(path: str | Path) -> Path:
    """Write the log to a file, to try the command line on it."""
    target = Path(path)
    target.write_bytes(b"\n".join(clock_story_lines()) + b"\n")
    return target
