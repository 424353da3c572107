"""The two reports, word for word."""

from __future__ import annotations

from codesmith_lab.zones import (
    AppendLog,
    PinnedPrefix,
    RebuildReason,
    TurnScratch,
    ZoneSession,
    cache_stats,
    cache_zones,
)


def test_reports_of_a_session_that_has_not_begun() -> None:
    session = ZoneSession()
    summary = "Prefix stability: 100.0% (0/0 checks stable) | fingerprint: none | changes: 0"
    assert cache_stats(session) == f"{summary}\nlast change: none"
    assert cache_zones(session).splitlines() == [
        "three-zone contract: not wired",
        "PinnedPrefix: pinned none, no drift",
        "  last change: none",
        "AppendLog: 0 messages, 0 rebuilds kept",
        "TurnScratch: empty",
        summary,
    ]


def test_reports_of_a_session_that_drifted_and_was_rebuilt() -> None:
    session = ZoneSession(AppendLog([{"role": "user", "content": "a"}]))
    one, two = PinnedPrefix("one", []).freeze(), PinnedPrefix("two", []).freeze()
    assert session.check(one) is None
    change = session.check(two)
    assert change is not None
    session.log.rebuild(RebuildReason.MANUAL_COMPACTION, [{"role": "user", "content": "b"}] * 3)
    session.log.rebuild(RebuildReason.runtime("micro-compact"), session.log[:2])
    session.scratch.set_user_message({"role": "user", "content": "c"})
    session.scratch.set_working_set(["a.py", "b.py"])
    summary = (
        f"Prefix stability: 50.0% (1/2 checks stable) | fingerprint: {two.short_id} | changes: 1"
    )
    last = [
        "last change: prefix cache invalidated: system prompt changed [sys]",
        f"  {one.short_id} -> {two.short_id}",
    ]
    assert cache_stats(session).splitlines() == [summary, *last]
    assert cache_zones(session).splitlines() == [
        "three-zone contract: wired",
        f"PinnedPrefix: pinned {two.short_id}, drift sys x1",
        *(f"  {line}" for line in last),
        "AppendLog: 2 messages, 2 rebuilds kept",
        "  manual compaction (/compact): 1 -> 3 messages",
        "  runtime: micro-compact: 3 -> 2 messages",
        "TurnScratch: user message, working set of 2",
        summary,
    ]
    session.end_turn()
    assert "TurnScratch: empty" in cache_zones(session)


def test_the_audit_shows_the_eight_newest_the_newest_last() -> None:
    session = ZoneSession(scratch=TurnScratch(working_set=["a.py"]))
    for number in range(10):
        session.log.rebuild(RebuildReason.runtime(f"step {number}"), [])
    lines = cache_zones(session).splitlines()
    audit = [line for line in lines if line.startswith("  runtime")]
    assert audit == [f"  runtime: step {number}: 0 -> 0 messages" for number in range(2, 10)]
    assert "TurnScratch: no user message, working set of 1" in lines


def test_a_prefix_alone_is_pinned_too() -> None:
    frozen = PinnedPrefix("s", []).freeze()
    assert f"pinned {frozen.short_id}, no drift" in cache_zones(ZoneSession(prefix=frozen))
