"""Code that the sample agent writes: (old text, new text) of each edit, and one new file."""

from __future__ import annotations

Edit = tuple[str, str]

WORLD_HOOK: Edit = (
    "    seconds_per_send: float = 0.0\n",
    "    seconds_per_send: float = 0.0\n"
    "    during_send: dict[str, Callable[[], object]] = field(default_factory=dict)\n",
)
WORLD_IMPORT: Edit = (
    "import sqlite3\nfrom dataclasses",
    "import sqlite3\nfrom collections.abc import Callable\nfrom dataclasses",
)
WORLD_SEND: Edit = (
    "        self.clock.advance(seconds=self.seconds_per_send)\n",
    "        meanwhile = self.during_send.pop(reminder.id, None)\n"
    "        if meanwhile is not None:\n"
    "            meanwhile()\n"
    "        self.clock.advance(seconds=self.seconds_per_send)\n",
)
TWO_TESTS: Edit = (
    "    world.clock.advance(seconds=1)\n    assert worker.run_once() == 1\n",
    """    world.clock.advance(seconds=1)
    assert worker.run_once() == 1


def test_a_claim_made_late_in_a_batch_is_as_long_as_any_other() -> None:
    world = make_world()
    for name in ("r1", "r2", "r3"):
        world.plan(name)
    world.sender.seconds_per_send = 40
    world.sender.during_send["r3"] = world.worker("b").run_once
    world.worker("a").run_once()
    assert world.sender.sent == ["r1", "r2", "r3"]


def test_a_reminder_delivered_by_another_worker_is_not_sent_again() -> None:
    world = make_world()
    world.plan("r1")
    world.plan("r2")
    world.sender.during_send["r1"] = world.worker("b").run_once
    world.worker("a").run_once()
    assert sorted(world.sender.sent) == ["r1", "r2"]
""",
)
FRESH_CLAIM: Edit = (
    """        now = self._clock.now()
        delivered = 0
        for reminder in due_reminders(self._store, now, self._backoff):
            if not self._store.claim(reminder.id, self._worker, now, CLAIM_SECONDS):
""",
    """        delivered = 0
        for reminder in due_reminders(self._store, self._clock.now(), self._backoff):
            # Sends are slow: a claim dated from the start of the batch may be over already.
            now = self._clock.now()
            if not self._store.claim(reminder.id, self._worker, now, CLAIM_SECONDS):
""",
)
LOOK_AGAIN: Edit = (
    "            try:\n                delivered += self._deliver(reminder)\n",
    "            try:\n"
    "                if self._still_due(reminder):\n"
    "                    delivered += self._deliver(reminder)\n",
)
STILL_DUE: Edit = (
    "    def _deliver(self, reminder: Reminder) -> bool:\n",
    '''    def _still_due(self, reminder: Reminder) -> bool:
        """Look again once it is ours: another worker may have been faster than our list."""
        return reminder in due_reminders(self._store, self._clock.now(), self._backoff)

    def _deliver(self, reminder: Reminder) -> bool:
''',
)
WAIT_FROM_END: Edit = (
    "    return last.started_at + backoff.wait_after(len(attempts))\n",
    "    ended_at = last.finished_at or last.started_at\n"
    "    return ended_at + backoff.wait_after(len(attempts))\n",
)
HANDBOOK_WAIT: Edit = (
    "The wait is counted from the start of the last try.",
    "The wait is counted from the end of the last try.",
)
WAIT_TEST: Edit = (
    "def test_a_claim_made_late_in_a_batch",
    """def test_the_wait_is_counted_from_the_end_of_a_slow_try() -> None:
    world = make_world()
    world.plan("r1")
    world.sender.seconds_per_send = 40
    world.sender.fail_next = 1
    worker = world.worker("a")
    worker.run_once()
    assert worker.run_once() == 0
    world.clock.advance(seconds=30)
    assert worker.run_once() == 1


def test_a_claim_made_late_in_a_batch""",
)
CLAIM_LENGTH: Edit = (
    "CLAIM_SECONDS = 60\n",
    "# A claim outlives the slowest send, with half a minute to record how it went.\n"
    "CLAIM_SECONDS = SEND_TIMEOUT_SECONDS + 30\n",
)
CLAIM_IMPORT: Edit = (
    "from tidegate.senders import Sender, SendError\n",
    "from tidegate.senders import SEND_TIMEOUT_SECONDS, Sender, SendError\n",
)
HANDBOOK_CLAIM: Edit = (
    "A claim lasts one minute.",
    "A claim lasts two and a half minutes, longer than any send.",
)
CLAIM_TESTS = '''"""What a claim promises: one holder, for a known time, given back by it alone."""

from __future__ import annotations

from tests.world import make_world
from tidegate.dispatch import CLAIM_SECONDS
from tidegate.senders import SEND_TIMEOUT_SECONDS


def test_a_claim_is_longer_than_the_slowest_send() -> None:
    assert CLAIM_SECONDS > SEND_TIMEOUT_SECONDS


def test_a_claim_has_one_holder() -> None:
    world = make_world()
    now = world.clock.now()
    assert world.store.claim("r1", "a", now, CLAIM_SECONDS)
    assert not world.store.claim("r1", "b", now, CLAIM_SECONDS)


def test_a_claim_is_held_to_its_last_second() -> None:
    world = make_world()
    assert world.store.claim("r1", "a", world.clock.now(), CLAIM_SECONDS)
    world.clock.advance(seconds=CLAIM_SECONDS)
    assert not world.store.claim("r1", "b", world.clock.now(), CLAIM_SECONDS)


def test_a_claim_that_ran_out_is_free_for_another_worker() -> None:
    world = make_world()
    assert world.store.claim("r1", "a", world.clock.now(), CLAIM_SECONDS)
    world.clock.advance(seconds=CLAIM_SECONDS + 1)
    assert world.store.claim("r1", "b", world.clock.now(), CLAIM_SECONDS)


def test_nobody_gives_back_the_claim_of_another() -> None:
    world = make_world()
    now = world.clock.now()
    world.store.claim("r1", "a", now, CLAIM_SECONDS)
    world.store.release("r1", "b")
    assert not world.store.claim("r1", "b", now, CLAIM_SECONDS)
'''
CLAIM_TEST_FIX: Edit = (
    "    world.clock.advance(seconds=CLAIM_SECONDS)\n",
    "    world.clock.advance(seconds=CLAIM_SECONDS - 1)\n",
)
IS_DUE: Edit = (
    """    due = []
    for reminder in store.open_reminders(before=now):
        attempts = store.attempts(reminder.id)
        if any(attempt.succeeded for attempt in attempts):
            continue
        if backoff.gives_up_after(len(attempts)):
            continue
        again = retry_at(attempts, backoff)
        if again is not None and again > now:
            continue
        due.append(reminder)
    return due
""",
    '''    return [
        reminder
        for reminder in store.open_reminders(before=now)
        if is_due(store, reminder, now, backoff)
    ]


def is_due(store: Store, reminder: Reminder, now: datetime, backoff: Backoff) -> bool:
    """Whether one reminder is undelivered, not given up and not waiting for a retry."""
    attempts = store.attempts(reminder.id)
    if any(attempt.succeeded for attempt in attempts):
        return False
    if backoff.gives_up_after(len(attempts)):
        return False
    again = retry_at(attempts, backoff)
    return again is None or again <= now
''',
)
ASK_FOR_ONE: Edit = (
    "        return reminder in due_reminders(self._store, self._clock.now(), self._backoff)\n",
    "        return is_due(self._store, reminder, self._clock.now(), self._backoff)\n",
)
IMPORT_IS_DUE: Edit = (
    "from tidegate.schedule import due_reminders\n",
    "from tidegate.schedule import due_reminders, is_due\n",
)
EXPIRY_TEST: Edit = (
    "def test_a_claim_made_late_in_a_batch",
    """def test_a_reminder_that_expires_during_a_slow_batch_is_not_sent() -> None:
    world = make_world()
    world.plan("r1")
    world.plan("r2")
    world.sender.seconds_per_send = 3 * 60 * 60
    world.worker("a").run_once()
    assert world.sender.sent == ["r1"]


def test_a_claim_made_late_in_a_batch""",
)
EXPIRY_RULE: Edit = (
    '''    """Whether one reminder is undelivered, not given up and not waiting for a retry."""
''',
    '''    """Whether one reminder is undelivered, in its time and not waiting for a retry."""
    if not reminder.due_at <= now < reminder.expires_at:
        return False
''',
)
