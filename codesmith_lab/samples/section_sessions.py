"""Sessions whose sections change by a known law, to hold orders against.

Every request has a system prompt of some sections and one short message of its own, so that the
order of the sections is all that decides what the cache keeps. The laws:

* "independent": each section flips its own coin, as the closed form assumes.
* "bursts": the agent edits files for a while and then only reads; while it edits, the sections
  that follow the files change, and while it reads hardly anything does.
* "together": two sections always change in the same request (the list of open files and the text
  of the current one), and a third changes a little less often than they do. A model that takes
  the two for independent counts their changes twice, and puts the third in front of them.
* "puzzle": independent again, with eight sections whose sizes and rates pull in different ways, so
  that neither "the large ones first" nor "the calm ones first" is the cheapest order.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from codesmith_lab.errors import LabError
from codesmith_lab.prompt import PromptBundle, PromptSection

if TYPE_CHECKING:
    from codesmith_lab.sessions.records import Session

__all__ = ["SECTION_SESSIONS", "section_session", "section_session_lines"]

MODEL = "deepseek-v3.2"
_START = datetime(2026, 6, 1, 8, 0, tzinfo=timezone.utc)
_PAUSE_S = 40
_WORDS = (
    *("anchor", "basin", "beacon", "buoy", "cargo", "channel", "compass", "crane", "current"),
    *("deck", "depth", "dock", "ferry", "fog", "harbour", "hull", "lamp", "ledger", "lock"),
    *("mast", "mooring", "pilot", "quay", "radar", "rope", "rudder", "sail", "signal", "tide"),
)
Sections = tuple[tuple[str, str, int], ...]
# Name, stability and words of each section, in the order in which the session sends them.
_SECTIONS: Sections = (
    ("open_files", "dynamic", 420),
    ("constitution", "static", 900),
    ("current_file", "dynamic", 760),
    ("memory", "session", 260),
    ("todo_list", "session", 560),
    ("skills", "workspace", 640),
    ("clock", "dynamic", 30),
)
_PUZZLE: Sections = (
    ("tool_notes", "session", 1400),
    ("clock", "dynamic", 30),
    ("user_profile", "session", 90),
    ("file_tree", "dynamic", 700),
    ("constitution", "static", 900),
    ("todo_list", "session", 130),
    ("documents", "session", 2400),
    ("memory", "session", 500),
)
Changes = dict[str, bool]
Law = Callable[[random.Random, int], Changes]


def _independent(source: random.Random, turn: int) -> Changes:
    rates = {"open_files": 0.35, "current_file": 0.2, "memory": 0.04, "todo_list": 0.12}
    return {name: source.random() < p for name, p in rates.items()} | {"clock": True}


def _bursts(source: random.Random, turn: int) -> Changes:
    editing = turn // 20 % 2 == 1
    rates = {"open_files": 0.55, "current_file": 0.6, "memory": 0.05, "todo_list": 0.3}
    return {name: source.random() < (p if editing else 0.02) for name, p in rates.items()} | {
        "clock": True
    }


def _together(source: random.Random, turn: int) -> Changes:
    files = source.random() < 0.36
    return {
        "open_files": files,
        "current_file": files,
        "todo_list": source.random() < 0.25,
        "memory": source.random() < 0.03,
        "clock": True,
    }


def _puzzle(source: random.Random, turn: int) -> Changes:
    rates = {"memory": 0.03, "user_profile": 0.08, "todo_list": 0.13, "documents": 0.2}
    rates |= {"file_tree": 0.3, "tool_notes": 0.5}
    return {name: source.random() < p for name, p in rates.items()} | {"clock": True}


SECTION_SESSIONS: dict[str, tuple[Sections, Law]] = {
    "independent": (_SECTIONS, _independent),
    "bursts": (_SECTIONS, _bursts),
    "together": (_SECTIONS, _together),
    "puzzle": (_PUZZLE, _puzzle),
}
"""By name: sections, and the law from chance and the turn to which of them change."""


def section_session_lines(law: str, turns: int = 160, seed: int = 11) -> Iterator[bytes]:
    """JSONL lines, without newlines, of a session whose sections change by that law.

    Same arguments, same bytes on every machine. Raises LabError for an unknown law or fewer than
    one turn.
    """
    if law not in SECTION_SESSIONS:
        raise LabError(f"no law is named {law!r}; choose one of {', '.join(SECTION_SESSIONS)}")
    if turns < 1:
        raise LabError(f"turns is {turns}, and it must be 1 or more")
    return _lines(*SECTION_SESSIONS[law], turns, seed)


def section_session(law: str, turns: int = 160, seed: int = 11) -> Session:
    """The session of `section_session_lines`, read as any log is."""
    from codesmith_lab.sessions.reading.load import load_bytes

    lines = section_session_lines(law, turns, seed)
    return load_bytes(b"".join(line + b"\n" for line in lines), f"{law}.jsonl")


def _lines(sections: Sections, law: Law, turns: int, seed: int) -> Iterator[bytes]:
    source = random.Random(seed)
    version = {name: 0 for name, *_ in sections}
    for turn in range(turns):
        changes = law(source, turn) if turn else {}
        for name, changed in changes.items():
            version[name] += changed
        now = _START + timedelta(seconds=_PAUSE_S * turn)
        text = PromptBundle.from_sections(
            PromptSection(name, name.replace("_", " ").capitalize(), body, stability)
            for name, stability, words in sections
            if (body := _body(name, words, version[name], now))
        ).render_text()
        message = f"Step {turn + 1}: {_prose(random.Random(f'{seed} step {turn}'), 12)}"
        line = {
            "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "request": {
                "model": MODEL,
                "messages": [
                    {"role": "system", "content": text},
                    {"role": "user", "content": message},
                ],
            },
        }
        yield json.dumps(line, separators=(",", ":")).encode("utf-8")


def _body(name: str, words: int, version: int, now: datetime) -> str:
    if name == "clock":
        return f"Current time: {now:%Y-%m-%d %H:%M:%S}\n{_prose(random.Random(name), words)}"
    return f"State {version}.\n{_prose(random.Random(f'{name} {version}'), words)}"


def _prose(source: random.Random, words: int) -> str:
    # random() alone is promised to give the same numbers in every Python version.
    chosen = [_WORDS[int(source.random() * len(_WORDS))] for _ in range(words)]
    return " ".join(chosen).capitalize() + "."
