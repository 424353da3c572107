"""Findings on a broken prefix: how much was lost, and how sure one can be why."""

from __future__ import annotations

from .finding_logs import S, assistant, only, report_of, system, user


def test_the_rest_of_a_changed_block_is_lost_and_counted_as_new() -> None:
    """The bill's repaid tokens and the finding's differ by what lies in the block itself."""
    talk = [user(S(800)), assistant("yes"), user("more")]
    report = report_of(
        {"messages": [system("Day one." + S(900)), *talk[:1]]},
        {"messages": [system("Day two." + S(900)), *talk]},
    )
    found = only(report)
    repaid = report.bill["repaid"].sum()
    assert 800 <= repaid < 900 <= found.changed_block_tokens < 910
    assert found.tokens == repaid + found.changed_block_tokens
    rates = report.turns[1].rates
    assert rates is not None
    each = rates.input - rates.cache_read
    assert found.cost_usd == found.tokens * each / 1_000_000
    assert f"({found.changed_block_tokens:,} of them in the changed block" in found.message
    row = report.findings.iloc[0]
    assert row["changed_block_tokens"] == found.changed_block_tokens


def test_another_prompt_with_another_conversation_is_not_called_an_edit_for_certain() -> None:
    rules = "# Rules\n" + S(600)
    one = [system(f"{rules}\n\n# Role\nYou plan." + S(300)), user("Plan it.")]
    other = [system(f"{rules}\n\n# Role\nYou check." + S(300)), user("Check it.")]
    found = only(report_of({"messages": one}, {"messages": other}))
    assert (found.cls, found.certainty) == ("section_edited", "likely")
    assert "may be another agent's" in found.message
    same = only(report_of({"messages": one}, {"messages": [other[0], one[1]]}))
    assert (same.cls, same.certainty) == ("section_edited", "certain")
    assert "another agent" not in same.message


def test_a_clock_is_a_clock_in_any_conversation() -> None:
    texts = ("12:00:01", "12:00:31")
    bodies = [
        {"messages": [system(f"Now {text}." + S(900)), user(f"Task {text}")]} for text in texts
    ]
    found = only(report_of(*bodies))
    assert (found.cls, found.certainty) == ("volatile_timestamp", "certain")
