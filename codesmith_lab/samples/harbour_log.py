"""The log that the sample agent reads: two workers, slow sends, doubled reminders."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

__all__ = ["HarbourLog", "harbour_log"]

_FIRST_BATCH = datetime(2026, 8, 24, 17, 10, tzinfo=timezone.utc)
_KEEPERS = ("ida", "jonas", "marit")
_GATES = ("north-1", "north-2")
_CLAIM_MS = 60_000


@dataclass(frozen=True, slots=True)
class HarbourLog:
    """A log text and what can be counted in it.

    sent: number of deliveries, doubled ones included. doubled: ids that were sent twice,
    in order of time. longest_ms: the slowest delivery in milliseconds.
    """

    text: str
    sent: int
    doubled: tuple[str, ...]
    longest_ms: int


def harbour_log(rng: random.Random, batches: int = 8) -> HarbourLog:
    """Write the log of one evening in `batches` batches of six reminders.

    Worker w1 claims with the time at which its batch began, so that from the second slow
    send on its claim has run out before it is used, and w2 sends the same reminder.
    """
    lines: list[tuple[datetime, str]] = []
    doubled: list[str] = []
    longest_ms = 0
    for batch in range(batches):
        began = _FIRST_BATCH + timedelta(minutes=25 * batch)
        now = began
        for number in range(6):
            reminder = _reminder_id(began, number)
            took_ms = 9_000 + int(rng.random() * 34_000)
            ran_out = (now - began) / timedelta(milliseconds=1) >= _CLAIM_MS
            if ran_out and rng.random() < 0.4:
                second_ms = 9_000 + int(rng.random() * 84_000)
                lines.append(
                    (now + timedelta(milliseconds=second_ms), _sent(reminder, "w2", second_ms))
                )
                longest_ms = max(longest_ms, second_ms)
                doubled.append(reminder)
            elif not ran_out:
                lines.append((now + timedelta(milliseconds=700), _lost(reminder)))
            now += timedelta(milliseconds=took_ms)
            lines.append((now, _sent(reminder, "w1", took_ms)))
            longest_ms = max(longest_ms, took_ms)
    lines.sort(key=lambda entry: entry[0])
    text = "".join(f"{at.isoformat(timespec='milliseconds')} {line}\n" for at, line in lines)
    sent = sum("event=sent" in line for _, line in lines)
    return HarbourLog(text, sent, tuple(doubled), longest_ms)


def _reminder_id(began: datetime, number: int) -> str:
    window = began + timedelta(minutes=20)
    gate = _GATES[number % len(_GATES)]
    return f"{gate}-{window:%Y%m%dT%H%M}-{_KEEPERS[number // len(_GATES)]}-20"


def _sent(reminder: str, worker: str, took_ms: int) -> str:
    return f"INFO event=sent reminder={reminder} worker={worker} ms={took_ms}"


def _lost(reminder: str) -> str:
    return f"INFO event=claim_lost reminder={reminder} worker=w2"
