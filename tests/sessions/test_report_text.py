"""Figures as people read them."""

from decimal import Decimal

import pytest

from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.load import load_bytes
from codesmith_lab.sessions.report_text import dollars


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
