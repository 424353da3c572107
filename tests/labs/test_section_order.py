"""The section-order lab without a browser: requests in, traits out."""

from __future__ import annotations

from typing import Any

import pytest
import traitlets

import codesmith_lab as lab
from codesmith_lab.errors import LabError
from codesmith_lab.labs.section_order import SectionOrderLab
from codesmith_lab.prompt.ordering.stats import SectionStats
from codesmith_lab.widgets.section_order import ACTIONS


@pytest.fixture(scope="module")
def session() -> Any:
    return lab.samples.section_session("together", 80)


@pytest.fixture
def board(session: Any) -> SectionOrderLab:
    return SectionOrderLab(session)


def ask(board: SectionOrderLab, action: str, **fields: Any) -> None:
    board.request = {"seq": board.ack + 1, "action": action, **fields}


def row(board: SectionOrderLab, key: str) -> dict[str, Any]:
    return next(r for r in board.table["rows"] if r["key"] == key)


def names(board: SectionOrderLab) -> list[str]:
    return [board.sections["name"][i] for i in board.shown["order"]]


def test_it_opens_on_today_s_order(board: SectionOrderLab) -> None:
    assert names(board) == [*board.order, "history"]
    assert board.sections["fixed"] == [False] * 7 + [True]
    assert row(board, "now")["cells"][:6] == row(board, "today")["cells"][:6]
    assert [r["key"] for r in board.table["rows"]] == ["today", "now", "closed", "session"]
    assert board.shown["boundary"] == 0
    assert board.shown["survival"] == board.shown["today"]["survival"]


def test_a_drag_shows_the_cost_and_changes_nothing(board: SectionOrderLab) -> None:
    before = (board.order, board.head["figures"], board.shown["order"])
    ask(board, "drag", name="open_files", to=4)
    assert names(board)[4] == "open_files"
    assert board.head["figures"] != before[1]
    assert "open_files at 5 of 7" in board.announce
    assert (board.order, board.head["can_undo"]) == (before[0], False)
    figures, shown = board.head["figures"], board.shown["order"]
    ask(board, "rest")
    assert (board.order, board.head["figures"], board.shown["order"]) == before
    ask(board, "move", name="open_files", to=4)
    assert (board.head["figures"], board.shown["order"]) == (figures, shown)
    assert "open_files is now 5 of 7." in board.announce
    assert board.head["can_undo"]
    ask(board, "undo")
    assert (board.order, board.head["figures"], board.shown["order"]) == before
    ask(board, "redo")
    assert board.head["figures"] == figures


def test_what_is_shown_is_what_the_engine_bills(board: SectionOrderLab) -> None:
    ask(board, "use", value="session")
    exact = board.bill_exactly()
    shown = float(row(board, "now")["cells"][3].lstrip("$"))
    assert exact.usd_per_request is not None
    assert shown == pytest.approx(float(exact.usd_per_request), rel=0.01)
    assert "−" in row(board, "now")["cells"][6]
    assert row(board, "now")["cells"][:6] == row(board, "session")["cells"][:6]
    month = float(exact.usd_per_request) * 1000 * 30
    assert float(row(board, "now")["cells"][5].lstrip("$")) == pytest.approx(month, rel=0.01)


def test_locks_constraints_and_errors_reach_the_view(board: SectionOrderLab) -> None:
    ask(board, "lock", name="clock")
    assert board.shown["locked"] == [board.sections["name"].index("clock")]
    ask(board, "before", name="skills", value="memory")
    assert board.order.index("skills") < board.order.index("memory")
    marks = dict(zip(board.sections["name"], board.shown["marks"], strict=True))
    assert (marks["skills"], marks["memory"]) == ("before memory", "after skills")
    order = board.order
    ask(board, "move", name="memory", to=0)
    assert "'skills' must stand before 'memory'" in board.error
    assert board.order == order
    assert names(board)[:-1] == list(order)
    ask(board, "select", name="memory")
    assert board.error == ""
    assert board.detail["before"][0]["text"] == "skills stands before memory"
    for r in ("closed", "session"):
        ask(board, "use", value=r)
        assert board.error == ""
        assert board.order.index("skills") < board.order.index("memory")
        assert board.order[6] == "clock"


def test_rates_rewrites_variants_plan_and_days(board: SectionOrderLab) -> None:
    ask(board, "rate", name="memory", value="50 %")
    assert board.detail["rate_text"] == "50"
    assert board.detail["by_hand"]
    ask(board, "rate", name="memory", value="lots")
    assert "is no number" in board.error
    ask(board, "measured", name="memory")
    assert not board.detail["by_hand"]
    ask(board, "select", name="clock")
    assert [g["value"] for g in board.detail["grains"]] == ["minute", "hour", "day", "session"]
    ask(board, "clock", name="clock", value="minute")
    assert board.head["rewrites"] == ["make the clock in clock coarser (minute)"]
    ask(board, "keep", value="by the minute")
    ask(board, "split", name="clock")
    assert "clock (changing)" in board.order
    assert row(board, "variant:by the minute")["usable"]
    ask(board, "use_variant", value="by the minute")
    assert "clock (changing)" not in board.order
    ask(board, "split", name="todo_list")
    assert "every line of section 'todo_list' changes" in board.error
    ask(board, "a_day", value="20,000")
    assert board.requests_a_day == 20_000
    ask(board, "a_day", value="-1")
    assert "whole number from 1" in board.error
    ask(board, "plan", value="claude-sonnet-4-5")
    assert board.plan["lines"][-2] == "proved the cheapest"
    assert board.plan["lines"][-1].startswith("billed on this session: $0.00")
    ask(board, "find")
    assert "all were replayed" in row(board, "session")["note"]
    ask(board, "reset")
    assert board.order == board.board.original.order


def test_the_order_goes_to_a_workbench_and_comes_from_one(session: Any) -> None:
    bench = lab.Workbench(session)
    board = bench.section_order()
    assert board.head["has_bench"]
    ask(board, "use", value="session")
    ask(board, "hand_over")
    assert board.error == ""
    last = bench.bill.iloc[-1]
    exact = board.bill_exactly()
    assert bench.bill["hit"].sum() == exact.hit_tokens
    assert bench.bill["input_tokens"].sum() == exact.input_tokens
    assert last["hit"] > 0
    assert [b.name for b in board.session.requests[5].blocks[:7]] == list(board.order)
    again = bench.section_order()
    assert again.order == board.order
    bench.undo()
    assert bench.bill.equals(bench.unedited_bill)
    ask(board, "split", name="clock")
    ask(board, "hand_over")
    assert bench.bill["hit"].sum() == board.bill_exactly().hit_tokens
    bench.undo()
    bench.edit_section("skills", "no skills at all")  # its header, too
    ask(board, "hand_over")
    sent = bench.section_order()
    assert "clock (changing)" in sent.order
    assert "no skills at all" in sent.export_text("text")
    with pytest.raises(LabError, match="not opened from a workbench"):
        SectionOrderLab(session).apply_to()


def test_exports_and_reading_an_order(board: SectionOrderLab) -> None:
    ask(board, "use", value="closed")
    order = board.order
    for kind in ("text", "json", "toml"):
        ask(board, "export", value=kind)
        text = board.export["text"]
        ask(board, "reset")
        assert board.order != order
        ask(board, "read", value=text)
        assert (board.error, board.order) == ("", order)
    ask(board, "export", value="markdown")
    report = board.export["text"]
    assert "The order saves $" in report
    assert report.count("\n| today |") == report.count("\n| this order |") == 1
    ask(board, "export", value="yaml")
    assert "one of text, json, toml, markdown" in board.error
    ask(board, "read", value="hello")
    assert "neither JSON nor TOML" in board.error


def test_names_from_a_log_are_data() -> None:
    """Markup, format fields and pipes in a name stay what they are; the report escapes them."""
    wild = "{0} {name} <img src=x> | `x` %s"
    system = f"# {wild}\n\none\n\n# Other\n\ntwo"
    line = (
        '{"model": "deepseek-v3.2", "messages": [{"role": "system", "content": %s},'
        '{"role": "user", "content": "x"}]}'
    )
    import json

    session = lab.load_bytes("\n".join([line % json.dumps(system)] * 3).encode())
    board = SectionOrderLab(session)
    name = board.order[0]
    ask(board, "move", name=name, to=1)
    assert board.error == ""
    assert name in board.announce
    ask(board, "lock", name=name)
    assert f"{name} is locked to its place." in board.announce
    assert "\\|" in board.report() or "|" not in name


def test_without_a_session_the_closed_form_is_all() -> None:
    board = SectionOrderLab([SectionStats("a", 900, 0.5), SectionStats("b", 900, 0.01)])
    assert [r["key"] for r in board.table["rows"]] == ["today", "now", "closed"]
    assert row(board, "now")["cells"][1] == ""
    ask(board, "use", value="closed")
    assert board.order == ("b", "a")
    for action, fields, words in (
        ("find", {}, "no session to replay"),
        ("split", {"name": "a"}, "needs its texts"),
        ("export", {"value": "text"}, "have no text"),
    ):
        ask(board, action, **fields)
        assert words in board.error
    assert "no price" not in board.report()
    bundle = lab.PromptBundle.from_sections(
        [
            lab.PromptSection("x", "X", "x " * 300, "dynamic"),
            lab.PromptSection("y", "Y", "y " * 300),
        ]
    )
    board = SectionOrderLab(bundle, model="gpt-4o")
    ask(board, "use", value="closed")
    assert board.order == ("y", "x")
    assert board.export_text("text").index('id="y"') < board.export_text("text").index('id="x"')


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"seq": 1, "action": "fly"}, "an action out of"),
        ({"seq": 1, "action": "move", "name": "a"}, "it takes"),
        ({"seq": 1, "action": "undo", "name": "a"}, "it takes"),
        ({"seq": 1, "action": "move", "name": "a", "to": -1}, "request.to is -1"),
        ({"seq": True, "action": "undo"}, "request.seq is True"),
        ({"seq": 1, "action": "lock", "name": 5}, "request.name is 5"),
        (7, "it is a dict"),
    ],
)
def test_requests_are_checked_at_the_door(
    board: SectionOrderLab, request_: Any, words: str
) -> None:
    with pytest.raises(traitlets.TraitError) as caught:
        board.request = request_
    assert words in str(caught.value)


def test_every_action_is_answered(board: SectionOrderLab) -> None:
    fields = {"name": "memory", "to": 0, "value": "closed"}
    for action, needed in ACTIONS.items():
        ask(board, action, **{field: fields[field] for field in needed})
        assert "failed" not in board.error, (action, board.error)
        assert board.ack == board.request["seq"]


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-5.6"])
def test_a_cache_of_another_kind_is_replayed_by_the_engine(session: Any, model: str) -> None:
    board = SectionOrderLab(session, model=model)
    assert any("no plain prefixes" in note for note in board.head["notes"])
    assert [r["key"] for r in board.table["rows"]] == ["today", "now", "closed"]
    ask(board, "move", name="clock", to=0)
    exact = board.bill_exactly()
    assert exact.usd_per_request is not None
    shown = float(row(board, "now")["cells"][3].lstrip("$"))
    assert shown == pytest.approx(float(exact.usd_per_request), rel=0.01)


def test_tools_that_are_read_first_stay_first() -> None:
    board = SectionOrderLab(lab.samples.clock_story(), model="gpt-4o")
    assert names(board)[0] == "tool definitions"
    assert board.sections["fixed"][0]
    ask(board, "move", name="environment", to=0)
    assert names(board)[:2] == ["tool definitions", "environment"]
    assert board.error == ""
    ask(board, "move", name="tool definitions", to=3)
    assert "no movable section" in board.error


def test_long_sessions_say_what_the_live_figures_take(monkeypatch: pytest.MonkeyPatch) -> None:
    from codesmith_lab.labs import section_order_source
    from codesmith_lab.sessions.order import history, source

    for module in (history, source, section_order_source):
        monkeypatch.setattr(module, "MOST_REQUESTS", 30)
    board = SectionOrderLab(lab.samples.section_session("independent", 50))
    assert board.board.laid.history is not None
    assert board.board.laid.history.requests == 30
    assert "Live figures take the last 30 of 50 requests." in board.head["notes"]
    assert board.bill_exactly().requests == 50


def test_rates_of_several_sessions_are_pooled() -> None:
    """More requests behind a rate, and this session's own sizes and replay."""
    one, two = (lab.samples.section_session("independent", 60, seed) for seed in (1, 2))
    alone, pooled = SectionOrderLab(one), SectionOrderLab(one, also=[two])
    text = dict(zip(pooled.sections["name"], pooled.sections["rate_text"], strict=True))
    assert " of 118, " in text["open_files"]
    assert pooled.sections["tokens"] == alone.sections["tokens"]
    assert row(pooled, "now")["cells"][1] == row(alone, "now")["cells"][1]
    assert row(pooled, "now")["cells"][0] != row(alone, "now")["cells"][0]
    assert "Change rates are counted over 2 sessions." in pooled.head["notes"]
