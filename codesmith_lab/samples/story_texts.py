"""What is said in the sample session, and the output of its test runs."""

from __future__ import annotations

REPORT = """\
The keepers at the north harbour got some reminders twice on the last spring tide, a minute or so \
apart. Sample, with one worker, is fine. The log of that evening is logs/north-2026-08-24.log. \
Please find out why, prove it with a test, and fix it. Show me the diff before you commit."""

PLAN = (
    "Read the log: which reminders were sent twice, by whom, and when",
    "Read the code that decides what is due and who may send it",
    "Write a failing test for each cause",
    "Fix each cause, one at a time",
    "Look for the same mistake elsewhere",
    "Whole suite, linter, diff",
)
SECOND_PLAN = (
    "Commit the fix",
    "Put the rule for one reminder into schedule.py",
    "Let the dispatcher ask for that one reminder",
    "Whole suite, linter, diff",
)

GO_ON = """\
That fits what they told me. Go on with the tests. Two things to keep in mind: the gateway in \
north is slow on spring tides, that is normal and will stay so, and I would rather lose a \
reminder than send it twice."""

FROM_THE_END = """\
From the end, please, and change the handbook with it. And a second question while you are there: \
can one single send take longer than the claim that protects it?"""

MAKE_IT_LONGER = """\
Make the claim longer. A keeper can live with two and a half minutes after a crash. No renewing \
in the background, I do not want a thread in there."""

COMMIT_AND_GO_ON = """\
Good, commit that. Then the refactoring that you proposed: one place that says when a reminder is \
due, and let the dispatcher use it. Show me the diff of that one before you commit."""


def cause(doubled: int, sent: int) -> str:
    """The finding of turn 9, with the two figures counted in the log."""
    return f"""\
Found. In that evening's log {doubled} reminders went out twice, out of {sent} deliveries, and \
all of them were late in their batch. There are two causes, and they help each other:

1. `Dispatcher.run_once` reads the time once, before its loop (tidegate/dispatch.py, line 38), \
and dates every claim from it. With sends of up to 40 seconds, the third reminder is claimed with \
an end that has already passed. The second worker finds that claim over, deletes it, and sends.
2. The list of due reminders is made before the loop as well. A reminder that the other worker \
has delivered and given back in the meantime can be claimed again, and nothing looks whether it \
is still due.

The log shows the first one directly: lost claims occur only in the first minute of a batch, and \
every double comes after it. The second one I infer from the code. I would write one failing test \
for each, with a sender that lets the other worker run in the middle of a send. Shall I?"""


WAIT_QUESTION = """\
One more place takes a time early, and it needs your decision. `retry_at` counts the wait from \
`started_at`, and the handbook says so too: "The wait is counted from the start of the last try." \
On a slow line a try of 40 seconds is longer than the first wait of 30, so that a failed send is \
tried again at once, and the gateway gets no rest when it needs one most.

Counting from the end would be two lines in tidegate/schedule.py, one sentence in the handbook \
and one test. Should the wait count from the end of the last try?"""


def outlast(longest_ms: int) -> str:
    """The answer of turn 22, with the slowest delivery of the log."""
    return f"""\
Yes, it can. A send may take up to 120 seconds (`SEND_TIMEOUT_SECONDS` in tidegate/senders.py), \
and the slowest one of that evening took {longest_ms / 1000:.1f} seconds. A claim lasts 60. So a \
single slow send can lose its claim while it is under way, even with the fixes so far.

Two ways out:

- A longer claim: 120 seconds for the send and 30 to record it. One line. The price: when a \
worker is killed, its reminder waits up to two and a half minutes instead of one.
- A claim that is renewed while the send runs. No such wait, but it needs a thread or a second \
connection, and a renewal can fail too.

I would take the first. Which one do you want?"""


MILESTONE = """\
Done, and not committed yet. No reminder is sent twice any more, in any order of events that I \
could build.

- tidegate/dispatch.py: a claim is dated from the moment at which it is made; the reminder is \
looked at once more when it is claimed; a claim outlives the slowest send.
- tidegate/schedule.py: the wait counts from the end of the last try.
- docs/delivery.md: both, in the keeper's words.
- tests: 3 new in test_dispatch.py, 5 in test_claims.py, a hook in world.py. Whole suite: 20 \
passed, linter clean.

What I did not touch: a worker that is killed after the gateway took the message and before the \
result is written will still send again. That needs an answer from the gateway, not from us.

One proposal: `_still_due` lists every due reminder to find one. The rule for one reminder \
belongs in schedule.py. The context is heavy by now, so a compaction before that would be well \
placed."""

SUMMARY = """\
[Summary of the conversation so far, made on request]

Goal: reminders at the north harbour (two workers) must never be delivered twice. Show every diff \
before it is committed.

Causes found: (1) `Dispatcher.run_once` dated all claims of a batch from one early time, so late \
claims were over before they were used; (2) the list of due reminders was not looked at again \
after a claim; (3) retries counted from the start of a try; (4) a claim (60 s) was shorter than \
the longest send (120 s).

Decisions of the person: the wait counts from the end of the last try. The claim is 150 s, \
computed from `SEND_TIMEOUT_SECONDS`; no renewal thread. Better to lose a reminder than to send \
it twice.

Changed and not committed: tidegate/dispatch.py, tidegate/schedule.py, docs/delivery.md, \
tests/world.py (hook `during_send`), tests/test_dispatch.py (3 new tests), tests/test_claims.py \
(new, 5 tests). Whole suite and linter are clean.

Tried and wrong: a test that wanted a claim held at exactly its last second; `until <= now` frees \
it there, and that is right.

Left alone on purpose: tidegate/senders.py; a crash between the gateway's yes and our record.

Next: commit on the person's word; then move the rule for one reminder into schedule.py, so that \
`_still_due` need not list all."""

DONE = """\
The rule for one reminder now stands in one place, `schedule.is_due`, and both the listing and \
the dispatcher use it. The diff is above; nothing is committed.

One thing came to light on the way: the listing also kept expired reminders out, which `is_due` \
at first did not. No test held that, so there is one now, and the rule has the line.

Checked: all 21 tests pass, and the linter is clean. Not checked: the pilot harbours themselves. \
Shall I commit this as "Put the rule for a due reminder in one place"?"""

FIX_PATHS = (
    "docs/delivery.md",
    "tests/test_claims.py",
    "tests/test_dispatch.py",
    "tests/world.py",
    "tidegate/dispatch.py",
    "tidegate/schedule.py",
)
FIX_MESSAGE = """\
Never send a reminder twice when sends are slow

A batch dated all its claims from its start, so that with slow sends the
later claims were over before they were used, and another worker sent
the same reminder. Claims are now dated when they are made, outlive the
slowest send, and the reminder is looked at again once it is claimed.
The wait before a retry counts from the end of the last try.

Renewing claims in the background was ruled out: it needs a thread."""

TWO_FAIL = """\
...FF                                                                    [100%]
=================================== FAILURES ===================================
_________ test_a_claim_made_late_in_a_batch_is_as_long_as_any_other ____________

        world.sender.during_send["r3"] = world.worker("b").run_once
        world.worker("a").run_once()
>       assert world.sender.sent == ["r1", "r2", "r3"]
E       AssertionError: assert ['r1', 'r2', 'r3', 'r3'] == ['r1', 'r2', 'r3']
E         Left contains one more item: 'r3'

tests/test_dispatch.py:40: AssertionError
_______ test_a_reminder_delivered_by_another_worker_is_not_sent_again __________

        world.worker("a").run_once()
>       assert sorted(world.sender.sent) == ["r1", "r2"]
E       AssertionError: assert ['r1', 'r2', 'r2'] == ['r1', 'r2']
E         At index 2: left contains one more item: 'r2'

tests/test_dispatch.py:49: AssertionError
=========================== short test summary info ============================
FAILED tests/test_dispatch.py::test_a_claim_made_late_in_a_batch_is_as_long_as_any_other
FAILED tests/test_dispatch.py::test_a_reminder_delivered_by_another_worker_is_not_sent_again
2 failed, 3 passed in 1.18s"""

ONE_FAILS = """\
....F                                                                    [100%]
=================================== FAILURES ===================================
_______ test_a_reminder_delivered_by_another_worker_is_not_sent_again __________

        world.worker("a").run_once()
>       assert sorted(world.sender.sent) == ["r1", "r2"]
E       AssertionError: assert ['r1', 'r2', 'r2'] == ['r1', 'r2']

tests/test_dispatch.py:49: AssertionError
1 failed, 4 passed in 1.20s"""

FIVE_PASS = """\
.....                                                                    [100%]
5 passed in 1.13s"""
SIX_PASS = """\
......                                                                   [100%]
6 passed in 1.21s"""
ALL_PASS = """\
....................                                                     [100%]
20 passed in 1.19s"""
MORE_PASS = """\
.....................                                                    [100%]
21 passed in 1.20s"""
RUFF_CLEAN = "All checks passed!\nexit code 0"

CLAIM_FAILS = """\
.........F..........                                                     [100%]
=================================== FAILURES ===================================
__________________ test_a_claim_is_held_to_its_last_second _____________________

    def test_a_claim_is_held_to_its_last_second() -> None:
        world = make_world()
        assert world.store.claim("r1", "a", world.clock.now(), CLAIM_SECONDS)
        world.clock.advance(seconds=CLAIM_SECONDS)
>       assert not world.store.claim("r1", "b", world.clock.now(), CLAIM_SECONDS)
E       AssertionError: assert not True

tests/test_claims.py:25: AssertionError
1 failed, 19 passed in 1.20s"""

EXPIRY_FAILS = """\
....F..                                                                  [100%]
=================================== FAILURES ===================================
_______ test_a_reminder_that_expires_during_a_slow_batch_is_not_sent ___________

        world.worker("a").run_once()
>       assert world.sender.sent == ["r1"]
E       AssertionError: assert ['r1', 'r2'] == ['r1']
E         Left contains one more item: 'r2'

tests/test_dispatch.py:51: AssertionError
1 failed, 6 passed in 1.18s"""
