"""The figures on the page about the order of sections are the ones that the code computes."""

from __future__ import annotations

import re
from pathlib import Path

import codesmith_lab as lab
from codesmith_lab.prompt.ordering.best import EXACT_SECTIONS
from codesmith_lab.prompt.ordering.breakpoints import EXACT_BREAKPOINT_SECTIONS
from codesmith_lab.prompt.ordering.history_search import BRUTE_FORCE_SECTIONS
from codesmith_lab.prompt.ordering.stats import STABILITY_CHANGE_PROBABILITY
from codesmith_lab.sessions.analysis import make_runner
from codesmith_lab.sessions.order.compare import compare_orders


def test_the_table_of_closed_form_against_replay(root: Path) -> None:
    page = (root / "docs" / "section_order.md").read_text("utf-8")
    rows = []
    for law in ("independent", "bursts", "together"):
        runner = make_runner(lab.samples.section_session(law))
        for row in compare_orders(runner).rows:
            figures = (row.expected_hit_tokens, row.replayed_hit_tokens, row.error_tokens)
            cells = [law, row.label, *(f"{x:,.0f}" for x in figures)]
            rows.append(f"| {' | '.join(cells)} | {'yes' if row.agrees else 'no'} |")
    assert re.findall(r"^\| (?:independent|bursts|together) \|.*$", page, re.MULTILINE) == rows


def test_the_assumed_rates_and_limits(root: Path) -> None:
    page = (root / "docs" / "section_order.md").read_text("utf-8")
    for stability, rate in STABILITY_CHANGE_PROBABILITY.items():
        assert f"| {stability} | {rate} |" in page
    assert f"Exact up to {EXACT_SECTIONS} sections" in page
    assert f"Up to {EXACT_BREAKPOINT_SECTIONS} sections all are weighed" in page
    assert BRUTE_FORCE_SECTIONS == 7
    assert "at\nmost seven sections ever change" in page
