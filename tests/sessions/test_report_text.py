"""Figures as people read them."""

import json
from decimal import Decimal

import pytest

from codesmith_lab.labs.workbench import Workbench
from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.reports.report_text import dollars


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "no price"),
        (Decimal(0), "$0.0000"),
        (Decimal("0.1053"), "$0.1053"),
        (Decimal("-0.00911"), "−$0.0091"),
        (Decimal("0.0001"), "$0.0001"),
        (Decimal("0.0000021"), "$0.0000021"),
        (Decimal("-0.000000218"), "−$0.00000022"),
    ],
)
def test_small_amounts_keep_two_digits(value, shown) -> None:
    assert dollars(value) == shown


def test_what_was_repaired_in_reading_is_said() -> None:
    line = (
        b'{"model":"deepseek-chat","messages":[{"role":"user","content":'
        b'[{"type":"hologram","x":1},{"type":"text","text":"hi"}]}]}'
    )
    notes = analyze(load_bytes(line)).notes()
    assert "Reading: a content part of an unknown type was kept as its JSON (1 request)." in notes


def test_prices_are_printed_and_a_missing_one_has_its_reason() -> None:
    times = ("2026-06-01T00:00:00Z", "2026-11-01T00:00:00Z", "2026-10-01T00:00:00Z")
    body = {"model": "deepseek-chat", "messages": [{"role": "user", "content": "hi"}]}
    lines = "\n".join(json.dumps({"time": time, "request": body}) for time in times)
    notes = "\n".join(analyze(load_bytes(lines.encode())).notes())
    assert (
        "Prices: deepseek-chat: input $0.14, cache read $0.0028, output $0.28; "
        "a miss costs 50.0 times a hit (1 request)."
    ) in notes
    assert "no price of deepseek-chat is known for 2026-11-01: " in notes
    assert "both names stopped working on 2026-07-24" in notes
    assert "Times: 1 request stood later in the log than in time." in notes
    untimed = json.dumps({"request": body})
    kept = "\n".join(analyze(load_bytes(f"{lines}\n{untimed}".encode())).notes())
    assert "Times: they run backwards 1 time and some requests have none" in kept


def test_write_prices_are_printed_where_a_write_costs_more() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    session = load_bytes(json.dumps(body).encode())
    shown = {
        model: "\n".join(analyze(session, model=model).notes())
        for model in ("claude-sonnet-4-6", "gpt-5.6-sol", "gpt-5")
    }
    assert "write for 5 minutes $3.75, write for 1 hour $6, " in shown["claude-sonnet-4-6"]
    assert "cache read $0.4, write $5, output $20" in shown["gpt-5.6-sol"]
    assert "write" not in shown["gpt-5"].partition("Prices:")[2]
    assert "Times" not in "".join(shown.values())


def test_a_log_without_content_has_a_reported_bill_and_no_predicted_one() -> None:
    lines = [
        json.dumps(
            {
                "type": "assistant",
                "sessionId": "s",
                "timestamp": f"2026-05-01T21:2{minute}:00.000Z",
                "uuid": f"u{minute}",
                "message": {
                    "id": f"msg_{minute}",
                    "role": "assistant",
                    "model": "claude-sonnet-4-5",
                    "content": [{"type": "text", "text": "yes"}],
                    "usage": {
                        "input_tokens": 10,
                        "cache_creation_input_tokens": 1000,
                        "cache_read_input_tokens": 20000,
                        "output_tokens": 100,
                    },
                },
            }
        )
        for minute in (1, 2)
    ]
    report = analyze(load_bytes("\n".join(lines).encode()))
    # By hand: twice 10 at 3, 1000 at 3.75, 20,000 at 0.30 and 100 at 15 dollars a million.
    by_hand = 2 * (10 * 3 + 1000 * Decimal("3.75") + 20000 * Decimal("0.3") + 100 * 15)
    assert report.totals.reported_cost_usd == by_hand / 1_000_000
    assert report.totals.cost_usd is None
    text = report.to_text()
    assert "predicted)" not in text
    assert "all requests hold no content" in text
    assert "reported: input 42,020 tokens, 40,000 of them read from the cache" in text
    assert "predicted)" not in report.to_markdown()
    head = Workbench(report.runner.session).head
    assert [figure["value"] for figure in head["figures"]] == ["95.2%", "$0.0226"]
