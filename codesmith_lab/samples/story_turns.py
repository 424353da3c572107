"""What the person and the agent do in the sample session, turn by turn.

A turn is one request: what the person says before it, and what the agent answers. Results
that a `Workspace` can compute are computed; the output of test runs is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codesmith_lab.samples import story_edits as edits
from codesmith_lab.samples import story_texts as texts
from codesmith_lab.samples.harbour_log import HarbourLog

__all__ = ["COMPACTION_TURN", "Call", "Turn", "story_turns"]

COMPACTION_TURN = 31
"""1-based turn whose request begins with the compacted history."""

LOG_PATH = "logs/north-2026-08-24.log"


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; `result` is None where the workspace computes it."""

    tool: str
    arguments: Mapping[str, Any]
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What the person says first (or nothing), then the agent's answer and tool calls."""

    says: str
    calls: tuple[Call, ...] = field(default=())
    person: str | None = None


def _call(tool: str, result: str | None = None, /, **arguments: Any) -> Call:
    return Call(tool, arguments, result)


def _read(path: str, **lines: int) -> Call:
    return _call("read_file", path=path, **lines)


def _edit(path: str, change: tuple[str, str]) -> Call:
    return _call("edit_file", path=path, old=change[0], new=change[1])


def _tests(result: str, *paths: str) -> Call:
    return _call("run_tests", result, paths=list(paths))


def _plan(*steps: str, done: int = 0) -> Call:
    states = ["done"] * done + ["doing"] + ["open"] * len(steps)
    listed = [{"text": text, "state": state} for text, state in zip(steps, states, strict=False)]
    return _call("update_plan", f"plan shown, {len(steps)} steps", steps=listed)


def story_turns(log: HarbourLog) -> tuple[Turn, ...]:
    """The 40 turns; figures that the agent quotes from the log are counted in `log`."""
    turns = (*_finding(log), *_fixing(log), *_tidying())
    if len(turns) != 40:
        raise ValueError(f"the story has {len(turns)} turns, and it is told in 40")
    return turns


def _finding(log: HarbourLog) -> tuple[Turn, ...]:
    """Turns 1 to 9: from the report to the cause."""
    first = log.doubled[0]
    return (
        Turn(
            "I will reproduce this before I change anything, and start with what is there.",
            (
                _plan(*texts.PLAN),
                _call("list_dir", path="tidegate"),
                _call("list_dir", path="tests"),
            ),
            texts.REPORT,
        ),
        Turn(
            "The log first: what the two workers sent that evening.",
            (_call("read_log", path=LOG_PATH, contains="event=sent", limit=40),),
        ),
        Turn(
            f"One reminder stands out: {first} was sent by both workers. Following that id alone.",
            (_call("read_log", path=LOG_PATH, contains=first, limit=10),),
        ),
        Turn(
            "Both deliveries succeeded, so this is not a retry after a failure. Now the code"
            " that decides what is due and who may send it.",
            (_read("tidegate/dispatch.py"), _read("tidegate/schedule.py")),
        ),
        Turn(
            "The claims are kept in the store; I need to see when one ends.",
            (_read("tidegate/store.py"),),
        ),
        Turn(
            "`claim` is given `now` by its caller, and `run_once` reads the time once, before"
            " the loop. I want the clock and the waits before I draw a conclusion.",
            (_read("tidegate/clock.py"), _read("tidegate/backoff.py")),
        ),
        Turn(
            "Next, what the tests cover, and what a test can build its world from.",
            (_read("tests/test_dispatch.py"), _read("tests/world.py")),
        ),
        Turn(
            "If the claim is dated from the start of the batch, then only later reminders of a"
            " batch can be doubled. The lost claims should show the other side of it.",
            (
                _call("read_log", path=LOG_PATH, contains="event=claim_lost", limit=20),
                _call("read_log", path=LOG_PATH, contains="worker=w2", limit=30, tail=True),
            ),
        ),
        Turn(texts.cause(len(log.doubled), log.sent)),
    )


def _fixing(log: HarbourLog) -> tuple[Turn, ...]:
    """Turns 10 to 30: failing tests, fixes, one question answered by data, a clean run."""
    return (
        Turn(
            "First the world: a sender that can let another worker run in the middle of a send.",
            (
                _edit("tests/world.py", edits.WORLD_IMPORT),
                _edit("tests/world.py", edits.WORLD_HOOK),
                _edit("tests/world.py", edits.WORLD_SEND),
            ),
            texts.GO_ON,
        ),
        Turn(
            "Now the two tests, one for each cause.",
            (_edit("tests/test_dispatch.py", edits.TWO_TESTS),),
        ),
        Turn(
            "Both must fail, and for the reason I gave.",
            (_tests(texts.TWO_FAIL, "tests/test_dispatch.py"),),
        ),
        Turn(
            "They fail as predicted: `r3` twice in the first, `r2` twice in the second. The"
            " first fix is to date every claim from the moment at which it is made.",
            (_plan(*texts.PLAN, done=3), _edit("tidegate/dispatch.py", edits.FRESH_CLAIM)),
        ),
        Turn(
            "One of the two should pass now, and only one.",
            (_tests(texts.ONE_FAILS, "tests/test_dispatch.py"),),
        ),
        Turn(
            "As expected. The second cause needs a second look at the reminder once it is ours:"
            " somebody may have delivered it between our listing and our claim.",
            (
                _edit("tidegate/dispatch.py", edits.LOOK_AGAIN),
                _edit("tidegate/dispatch.py", edits.STILL_DUE),
            ),
        ),
        Turn("", (_tests(texts.FIVE_PASS, "tests/test_dispatch.py"),)),
        Turn(
            "All five pass. Our rule is to look for the same mistake elsewhere: where else is a"
            " time taken early and used late?",
            (
                _call("grep", pattern="started_at", path="tidegate", literal=True),
                _call("grep", pattern="now", path="tidegate", literal=True),
                _read("docs/delivery.md"),
            ),
        ),
        Turn(texts.WAIT_QUESTION),
        Turn(
            "Agreed. The retry counts from the end of the last try, in code, handbook and test.",
            (
                _edit("tidegate/schedule.py", edits.WAIT_FROM_END),
                _edit("docs/delivery.md", edits.HANDBOOK_WAIT),
                _edit("tests/test_dispatch.py", edits.WAIT_TEST),
            ),
            texts.FROM_THE_END,
        ),
        Turn("", (_tests(texts.SIX_PASS, "tests/test_dispatch.py"),)),
        Turn(
            "Now your second question: can one send outlast its claim? The code that sets the"
            " limit of a send, and the slow ones in the log.",
            (
                _read("tidegate/senders.py"),
                _call("read_log", path=LOG_PATH, contains="worker=w1", limit=40, tail=True),
            ),
        ),
        Turn(texts.outlast(log.longest_ms)),
        Turn(
            "A claim of 150 seconds: the limit of a send plus half a minute to record it. The"
            " two numbers belong together, so one is computed from the other.",
            (
                _edit("tidegate/dispatch.py", edits.CLAIM_LENGTH),
                _edit("tidegate/dispatch.py", edits.CLAIM_IMPORT),
                _edit("docs/delivery.md", edits.HANDBOOK_CLAIM),
            ),
            texts.MAKE_IT_LONGER,
        ),
        Turn(
            "Claims had no tests of their own. Here they are, one promise each.",
            (_call("write_file", path="tests/test_claims.py", content=edits.CLAIM_TESTS),),
        ),
        Turn("", (_tests(texts.CLAIM_FAILS),)),
        Turn(
            "My own test is wrong, or the code is. The line that decides is in `claim`.",
            (_read("tidegate/store.py"),),
        ),
        Turn(
            '`until <= ?` frees a claim at the very end of its time, and the handbook says "as'
            ' long as it lasts". The code is right and my test asked for one second too much.',
            (_edit("tests/test_claims.py", edits.CLAIM_TEST_FIX),),
        ),
        Turn(
            "The whole suite and the linter.",
            (
                _tests(texts.ALL_PASS),
                _call(
                    "run_shell",
                    texts.RUFF_CLEAN,
                    command="ruff check .",
                    reason="lint before the diff is shown",
                ),
            ),
        ),
        Turn(
            "My own diff of the code, from top to bottom, before you see it.",
            (
                _call("git_status"),
                _call("git_diff", paths=["tidegate/dispatch.py", "tidegate/schedule.py"]),
            ),
        ),
        Turn(texts.MILESTONE),
    )


def _tidying() -> tuple[Turn, ...]:
    """Turns 31 to 40, after the compaction: commit, then one rule in one place."""
    return (
        Turn(
            "Committing the fix with its tests and its page, and nothing else.",
            (
                _call("git_commit", paths=list(texts.FIX_PATHS), message=texts.FIX_MESSAGE),
                _plan(*texts.SECOND_PLAN, done=1),
            ),
            texts.COMMIT_AND_GO_ON,
        ),
        Turn(
            "The refactoring: `_still_due` lists all due reminders to find one. The rule for one"
            " reminder belongs in `schedule.py`. Who uses what is there?",
            (
                _call("grep", pattern="due_reminders", path="", literal=True),
                _read("tidegate/schedule.py", start=47, end=66),
            ),
        ),
        Turn(
            "Split the rule for one reminder from the listing; behaviour stays as it is.",
            (_edit("tidegate/schedule.py", edits.IS_DUE),),
        ),
        Turn("", (_tests(texts.ALL_PASS),)),
        Turn(
            "Nothing moved. Now the dispatcher asks for the one reminder that it has claimed.",
            (
                _edit("tidegate/dispatch.py", edits.ASK_FOR_ONE),
                _edit("tidegate/dispatch.py", edits.IMPORT_IS_DUE),
            ),
        ),
        Turn("", (_read("tidegate/dispatch.py", start=34, end=58), _tests(texts.ALL_PASS))),
        Turn(
            "One thing changed that no test saw: the listing also left out reminders that were"
            " cancelled or had expired. A reminder that expires during a slow batch must not go"
            " out, so the rule needs that too, and a test first.",
            (
                _edit("tests/test_dispatch.py", edits.EXPIRY_TEST),
                _tests(texts.EXPIRY_FAILS, "tests/test_dispatch.py"),
            ),
        ),
        Turn(
            "It fails, as it should. The fix is one line in the rule itself.",
            (_edit("tidegate/schedule.py", edits.EXPIRY_RULE), _tests(texts.MORE_PASS)),
        ),
        Turn(
            "The linter once more, and the diff of this second step.",
            (
                _call(
                    "run_shell",
                    texts.RUFF_CLEAN,
                    command="ruff check .",
                    reason="lint before the diff is shown",
                ),
                _call("git_diff"),
            ),
        ),
        Turn(texts.DONE),
    )
