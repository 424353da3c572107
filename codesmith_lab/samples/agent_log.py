"""Agent logs of any length, for benchmarks and for tests of long sessions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from codesmith_lab.errors import LabError
from codesmith_lab.prompt import PromptBundle, PromptSection
from codesmith_lab.samples.tools import tool_definitions

__all__ = ["agent_log_lines"]

_WORDS = (
    *("claim", "worker", "reminder", "tide", "harbour", "gate", "keeper", "store", "due"),
    *("until", "send", "retry", "clock", "window", "test", "commit", "branch", "module"),
    *("function", "value", "error", "result", "check", "before", "after", "second", "queue"),
)
_START = datetime(2026, 8, 25, 8, 0, tzinfo=timezone.utc)
_PAUSE_S = 45
_RULES_TOKENS = 3000


def agent_log_lines(
    turns: int,
    new_tokens_per_turn: int = 800,
    blocks_per_turn: int = 5,
    seed: int = 7,
    drift_every: int | None = None,
    model: str = "deepseek-v4-flash",
    compact_every: int | None = None,
) -> Iterator[bytes]:
    """JSONL lines, without newlines, of an agent's log in the OpenAI chat-completions form.

    Streams: one line is held at a time. Same arguments, same bytes on every machine. A line
    holds the whole history, so that a log without compaction grows with the square of `turns`.

    Parameters
    ----------
    turns: number of requests, 0 or more.
    new_tokens_per_turn: about as many tokens are new with every turn, answer included.
    blocks_per_turn: messages that a turn adds to the history, 2 or more: a user's or a tool's
        message or several of them, and the assistant's answer, which is the turn's last.
    drift_every: a section in the middle of the system prompt changes every so many turns.
    compact_every: the history is replaced by a summary every so many turns; the line says so
        in a signed `rebuild`. None for either = never.

    Raises LabError for a number out of its range.
    """
    for name, number, least in (
        ("turns", turns, 0),
        ("new_tokens_per_turn", new_tokens_per_turn, 1),
        ("blocks_per_turn", blocks_per_turn, 2),
        ("drift_every", 1 if drift_every is None else drift_every, 1),
        ("compact_every", 1 if compact_every is None else compact_every, 1),
    ):
        if number < least:
            raise LabError(f"{name} is {number}, and it must be {least} or more")
    share_tokens = max(1, new_tokens_per_turn // blocks_per_turn)
    source = random.Random(seed)
    return _lines(turns, share_tokens, blocks_per_turn, source, drift_every, model, compact_every)


def _lines(
    turns: int,
    share_tokens: int,
    blocks_per_turn: int,
    source: random.Random,
    drift_every: int | None,
    model: str,
    compact_every: int | None,
) -> Iterator[bytes]:
    tools = _json(tool_definitions())
    rules = _prose(source, _RULES_TOKENS)
    history: list[bytes] = []  # each message is encoded once, however often it is sent
    calls: list[str] = []
    for turn in range(turns):
        before = len(history)
        rebuild = b""
        if compact_every and turn and turn % compact_every == 0:
            history, calls = [_json(_user(_prose(source, share_tokens)))], []
            after = len(history) + blocks_per_turn - 1
            signed = {"reason": "auto_compaction", "before": before, "after": after}
            rebuild = b',"rebuild":' + _json(signed)
        history += [
            _json(message)
            for message in _incoming(source, calls, blocks_per_turn - 1, share_tokens)
        ]
        calls = [f"call_{turn:05d}_{i}" for i in range(blocks_per_turn - 1)] if turn % 4 < 3 else []
        answer = _json(_answer(source, calls, share_tokens))
        system = _json({"role": "system", "content": _system(rules, turn, drift_every)})
        yield b"".join(
            (
                *(
                    b'{"time":',
                    _json(f"{_START + timedelta(seconds=_PAUSE_S * turn):%Y-%m-%dT%H:%M:%SZ}"),
                ),
                *(b',"request":{"model":', _json(model)),
                *(b',"messages":[', b",".join([system, *history])),
                *(b'],"tools":', tools, b',"max_tokens":8192,"stream":false}'),
                *(b',"response":{"choices":[{"index":0,"message":', answer, b"}]}", rebuild, b"}"),
            )
        )
        history.append(answer)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _prose(source: random.Random, tokens: int) -> str:
    """Text of about `tokens` tokens: a short word is about one, and so is the end of a line."""
    # random() alone is promised to give the same numbers in every Python version.
    words = [_WORDS[int(source.random() * len(_WORDS))] for _ in range(max(1, tokens * 12 // 13))]
    return "\n".join(" ".join(words[i : i + 12]) for i in range(0, len(words), 12))


def _system(rules: str, turn: int, drift_every: int | None) -> str:
    revision = turn // drift_every if drift_every else 0
    return PromptBundle.from_sections(
        (
            PromptSection("rules", "Rules", rules),
            PromptSection("state", "State", f"Revision {revision}", "session"),
            PromptSection("closing", "Closing", "Work with care.", "workspace"),
        )
    ).render_text()


def _incoming(
    source: random.Random, calls: list[str], count: int, share_tokens: int
) -> Iterator[dict[str, Any]]:
    """`count` messages before an answer: a result for each open call, or the person's words."""
    if not calls:
        yield from (_user(_prose(source, share_tokens)) for _ in range(count))
    for call in calls:
        text = _prose(source, share_tokens)
        yield {"role": "tool", "tool_call_id": call, "content": text}


def _answer(source: random.Random, calls: list[str], share_tokens: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"role": "assistant", "content": _prose(source, share_tokens)}
    if calls:
        answer["tool_calls"] = [
            {
                "id": call,
                "type": "function",
                "function": {"name": "read_file", "arguments": f'{{"path": "src/{call}.py"}}'},
            }
            for call in calls
        ]
    return answer
