"""Reports as Markdown, HTML and JSON: the log's text stays text, or stays out."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

import codesmith_lab as lab
from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.findings.classes import CLASSES
from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.reports.batch import Batch, Read, check_classes
from codesmith_lab.sessions.reports.report_html import report_html

from .finding_logs import S, assistant, report_of, system, tool, user

NASTY = "<script>alert(1)</script> | `x` [a](http://e.x/) ![i](//e.x) <img src=//e.x> $a$ @you #1"


def nasty_bodies() -> list[dict]:
    """Hostile names everywhere, and a break in each kind of block."""
    bodies = []
    for n in range(3):
        tools = [tool(f"{NASTY} {m}", {"a": n}) for m in ("t", "u")]
        bodies.append(
            {
                "tools": tools,
                "messages": [
                    system(f"# {NASTY}\n{NASTY} 10:0{n}:00{S(1500)}\n# Two {n}\n{NASTY}"),
                    *[m for _ in range(n) for m in (user(NASTY), assistant(NASTY))],
                    user(f"{NASTY} {n}"),
                ],
            }
        )
    return bodies


class Page(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_runs_and_fetches_nothing() -> None:
    page = Page()
    html = report_of(*nasty_bodies()).to_html()
    page.feed(html)
    assert not page.tags & {"script", "img", "link", "iframe", "object", "a", "form", "base"}
    names = {name for name, _ in page.attributes}
    assert not {n for n in names if n.startswith("on")} | names & {"src", "href", "style"}
    assert "url(http" not in html
    assert "default-src 'none'" in html
    assert "<script>alert(1)</script>" in "".join(page.text)


def test_the_page_of_several_logs_has_each_one() -> None:
    reports = [report_of(*nasty_bodies()), analyze(lab.samples.clock_story())]
    page = Page()
    page.feed(report_html(reports))
    text = "".join(page.text)
    assert all(report.runner.session.name in text for report in reports)
    assert "environment: a clock in it moved" in text


def test_markdown_cells_cannot_break_out() -> None:
    text = report_of(*nasty_bodies()).to_markdown()
    assert "<" not in text
    tables = [line for line in text.split("\n") if line.startswith("|")]
    assert len(tables) > 10
    widths = {
        block.split("\n")[0]: {len(re.findall(r"(?<!\\)\|", row)) for row in block.split("\n")}
        for block in text.split("\n\n")
        if block.startswith("|")
    }
    assert all(len(width) == 1 for width in widths.values())
    # Nothing of the log is a link, an image, code or a mention.
    assert not re.search(r"(?<!\\)[\[\]`@$!]", text)


SECRETS = [f"zq{letter}x{n}kv" for n in range(4) for letter in "abcdefgh"]


@pytest.mark.parametrize("form", ["to_json", "to_text", "to_markdown", "to_html"])
def test_a_redacted_report_holds_no_word_of_the_log(form: str) -> None:
    s = iter(SECRETS)
    a, b, c, d, e, f, g, h = (next(s) for _ in range(8))
    bodies = []
    for n in range(3):
        schema = {"type": "object", "properties": {a: {"description": SECRETS[8 + n]}}}
        arguments = json.dumps({b: 1}, separators=(",", ":" if n else ": "))
        call = {"id": c, "function": {"name": d, "arguments": arguments}}
        bodies.append(
            {
                "tools": [tool(d, schema)],
                "messages": [
                    system(f"# {e} {n}\n{f} {SECRETS[12 + n]}{S(1200, g)}"),
                    user(h),
                    assistant(SECRETS[16 + n], tool_calls=[call]),
                    {"role": "tool", "tool_call_id": c, "content": SECRETS[20 + n]},
                    {"role": SECRETS[30], "content": "x"},
                    user(SECRETS[24 + n]),
                ],
            }
        )
    lines = "\n".join(json.dumps({"model": "gpt-5", **body}) for body in bodies)
    session = load_bytes((lines + "\n{" + SECRETS[31]).encode(), name=SECRETS[29])
    shown = getattr(analyze(session, redact=True), form)()
    text = shown if isinstance(shown, str) else json.dumps(shown)
    assert [secret for secret in SECRETS if secret in text] == []
    # The open report has names and values, so that the check above can fail.
    shown = getattr(analyze(session), form)()
    text = shown if isinstance(shown, str) else json.dumps(shown)
    assert any(secret in text for secret in SECRETS)


def test_redaction_keeps_structure_and_figures() -> None:
    story = lab.samples.clock_story()
    plain, hidden = analyze(story).to_json(), analyze(story, redact=True).to_json()
    assert plain["totals"] == hidden["totals"]
    for a, b in zip(plain["findings"], hidden["findings"], strict=True):
        assert {k: a[k] for k in ("class", "zone", "tokens", "cost_usd", "requests")} == {
            k: b[k] for k in ("class", "zone", "tokens", "cost_usd", "requests")
        }
    assert hidden["findings"][0]["block"] == "section 3"
    broken = next(r["break"] for r in hidden["requests"] if r["break"])
    assert re.fullmatch(r"\d+ characters", broken["after"])


def test_limits() -> None:
    report = analyze(lab.samples.clock_story())
    batch = Batch((Read("story", report),))
    assert batch.failures([], None) == []
    assert batch.failures(["volatile_timestamp"], None) == [
        "volatile_timestamp was found on 32 requests"
    ]
    assert batch.failures(["tool_order"], None) == []
    # Any fault, and what is intended only by its name.
    assert len(batch.failures(["any"], None)) == 2
    assert batch.failures(["compaction"], None) == ["compaction was found on 1 request"]
    repaid = report.totals.repaid_usd
    assert batch.failures([], repaid) == []
    assert len(batch.failures([], repaid - 1)) == 1
    with pytest.raises(lab.LabError, match="no finding class is named 'clock'"):
        check_classes(["tool_order,clock"])


def test_a_limit_on_money_needs_a_price() -> None:
    body = {"model": "no-price-9", "messages": [user("a")]}
    batch = Batch((Read("log", report_of(body, rules="deepseek-v4")),))
    with pytest.raises(lab.LabError, match="has no price"):
        batch.failures([], 1)


def test_every_class_is_documented_in_its_own_words(root) -> None:
    text = (root / "docs" / "findings.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE))
    assert rows == CLASSES
