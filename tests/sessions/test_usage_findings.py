"""What counters and times prove of logs without prompts, and no more than that."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from codesmith_lab.billing.usage import Usage
from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.records import Request, Session
from codesmith_lab.sessions.reports.report import Report

from .finding_logs import START


def log(*rows: tuple, model: str = "claude-sonnet-4-6") -> Report:
    """Requests without content: (seconds, read, 5m writes, 1h writes, plain[, model[, output]])."""
    requests = []
    for i, (at_s, read, short, long, plain, *rest) in enumerate(rows):
        usage = Usage(
            read + short + long + plain, rest[1] if len(rest) > 1 else 9, read, short, long
        )
        time = START + timedelta(seconds=at_s)
        name = rest[0] if rest else model
        requests.append(Request(i, i + 1, name, time, b"", (), usage=usage))
    return analyze(Session("log", "usage", tuple(requests)))


def told(report: Report) -> list[tuple[str, str, int]]:
    return [(f.cls, f.certainty, f.tokens) for f in report.findings_list]


def test_five_minutes_that_passed() -> None:
    """Measured: 406 s, read 25,710 to 0, write 27,275."""
    report = log((0, 25_710, 521, 0, 0), (406, 0, 27_275, 0, 0))
    assert told(report) == [("expired", "likely", 26_231)]
    found = report.findings_list[0]
    assert found.basis == "reported"
    assert "406 s start to start, where an entry lives 300 s" in found.message
    assert found.cost_usd == 26_231 * (Decimal(3) - Decimal("0.30")) / 1_000_000


def test_an_hours_entry_is_still_there() -> None:
    assert told(log((0, 40_000, 0, 3614, 0), (441, 43_614, 0, 900, 0))) == []
    # Had it been gone, 441 s would not have been the reason.
    assert told(log((0, 40_000, 0, 3614, 0), (441, 0, 0, 44_000, 0)))[0][0] == "server_side"


def test_a_retry_after_an_aborted_call_is_no_expiry() -> None:
    assert told(log((0, 0, 30_000, 0, 0, "claude-sonnet-4-6", 0), (2.2, 0, 30_000, 0, 0))) == []


def test_a_model_switch() -> None:
    """Measured: another model read nothing and wrote 57,108 for an hour."""
    report = log(
        (0, 56_333, 0, 700, 0, "claude-sonnet-4-5"), (20, 0, 0, 57_108, 0, "claude-opus-4-5")
    )
    assert told(report) == [("model_change", "likely", 57_033)]
    assert "from claude-sonnet-4-5 to claude-opus-4-5" in report.findings_list[0].message


def test_a_compaction_has_its_two_numbers() -> None:
    """Measured: 155,250 tokens before; then 34,858 read and 14,893 written."""
    report = log((0, 150_000, 5_250, 0, 0), (30, 34_858, 14_893, 0, 0))
    found = report.findings_list[0]
    assert (found.cls, found.intended, found.certainty) == ("compaction", True, "likely")
    assert found.given_up_tokens == 155_250 - 34_858
    assert "14,893 tokens were read anew" in found.message


def test_a_drop_that_nothing_explains_blames_nobody() -> None:
    found = told(log((0, 50_000, 900, 0, 0), (20, 20_000, 31_000, 0, 0)))
    assert found == [("server_side", "possible", 30_900)]


def test_growing_reads_are_no_finding_and_no_byte_is_invented() -> None:
    report = log(*((30 * n, 10_000 * n, 10_000, 0, 5) for n in range(5)))
    assert told(report) == []
    assert set(report.breaks) == {None}
    assert set(report.wires) == {None}
    assert report.reconciliation.empty
