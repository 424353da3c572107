"""The workbench without a browser: traits in, traits out."""

from __future__ import annotations

import json

import pytest

import codesmith_lab as lab
from codesmith_lab.labs.workbench import Workbench


@pytest.fixture(scope="module")
def session():
    return lab.samples.clock_story()


@pytest.fixture
def bench(session) -> Workbench:
    bench = lab.Workbench(session)
    bench.turn = 22
    return bench


def test_it_opens_where_drift_hurts(session) -> None:
    bench = lab.Workbench(session)
    assert bench.side["diagnosis"]["title"] == ("prefix cache invalidated: system prompt changed")
    assert bench.editor["name"] == "environment"


def test_an_edit_recomputes_and_undo_is_exact(bench) -> None:
    before = (bench.blocks, bench.timeline, bench.head["figures"])
    text = bench.editor["text"]
    bench.edit = {"seq": 1, "key": bench.editor["key"], "text": "x" + text}
    assert bench.ack == 1
    assert bench.error == ""
    assert bench.blocks["break"] != before[0]["break"]
    assert not bench.bill.equals(bench.unedited_bill)
    bench.undo()
    assert (bench.blocks, bench.timeline, bench.head["figures"]) == before
    assert bench.bill.equals(bench.unedited_bill)


def test_undo_keeps_the_chosen_row_and_finds_another_where_it_is_gone(bench) -> None:
    names = bench.blocks["name"]
    last = len(names) - 1
    bench.selected = last
    bench.edit_section("environment", "gone")
    bench.undo()
    assert bench.selected == last
    moved = next(r for r in bench.remedies if r.action == "move_section_to_turn")
    bench.apply(moved.id)
    assert len(bench.blocks["name"]) == bench.selected + 1 == last
    bench.undo()
    bench.selected = names.index("environment")
    bench.redo()
    assert "environment" not in bench.blocks["name"]
    assert bench.editor["name"] == bench.blocks["name"][bench.selected]
    assert bench.error == ""


def test_the_order_board_opens_below_on_what_is_shown_and_hands_its_order_back(bench) -> None:
    bench.edit_section("environment", bench.editor["text"] + "more words\n" * 50)
    bench.request = {"seq": 1, "action": "order_board"}
    board = bench.board
    assert isinstance(board, lab.SectionOrderLab)
    recorded = lab.SectionOrderLab(bench.session).board.sections()["environment"]
    assert board.board.sections()["environment"].size_tokens > recorded.size_tokens
    before = bench.bill["cost_usd"].sum()
    board.request = {"seq": 1, "action": "use", "value": "closed"}
    board.request = {"seq": 2, "action": "hand_over"}
    assert bench.bill["cost_usd"].sum() < before
    bench.request = {"seq": 2, "action": "order_board"}
    assert bench.board is None
    assert board.comm is None


def test_typing_counts_as_a_full_recount_does(bench) -> None:
    for extra in ("a", " b", "\n", "/", "{}", "日本", "🚀 "):
        bench.edit_section("environment", bench.editor["text"] + extra)
        quick = [turn.prompt.total_tokens for turn in bench._turns]
        bench._what_if.settle()
        assert quick == [turn.prompt.total_tokens for turn in bench._turns]


def test_removing_the_clock_makes_later_turns_cheap(bench) -> None:
    lines = bench.editor["text"].split("\n")
    kept = "\n".join(line for line in lines if not line.startswith("Current time"))
    bench.edit_section("environment", kept)
    assert bench.bill["repaid"].iloc[24:29].sum() == 0
    assert bench.unedited_bill["repaid"].iloc[24:29].sum() > 10_000


def test_moves_stability_and_model(bench) -> None:
    bench.request = {"seq": 5, "action": "move_down"}
    assert bench.blocks["name"][3] == "environment"
    assert bench.editor["name"] == "environment"
    bench.request = {"seq": 6, "action": "stability", "value": "static"}
    assert bench.editor["stability"] == "static"
    bench.request = {"seq": 7, "action": "model", "value": "gpt-5"}
    assert bench.model == "gpt-5"
    assert bench.error == ""
    bench.request = {"seq": 8, "action": "model", "value": "no-such-model"}
    assert "nearest" in bench.error


def test_a_fallback_is_shown_where_widgets_do_not_run(bench) -> None:
    assert "prefix cache invalidated" in bench._repr_mimebundle_()[0]["text/plain"]


@pytest.mark.parametrize("first", ["edit", "request"])
def test_text_and_a_command_in_one_message_are_done_in_the_order_they_were_meant(bench, first):
    text = bench.editor["text"] + " more"
    order = {"edit": (1, 2), "request": (2, 1)}[first]
    both = {
        "request": {"seq": order[1], "action": "undo"},
        "edit": {"seq": order[0], "key": bench.editor["key"], "text": text},
    }
    bench.set_state(both)
    assert bench.ack == 2
    assert bool(bench.edits) is (first == "request")


def test_the_first_break_says_why_its_matching_tokens_did_not_hit(bench) -> None:
    bench.turn = 7
    assert bench.bill["rounding"].iloc[7] > 128
    assert "no stored unit ends there" in " ".join(bench.side["diagnosis"]["also"])
    bench.turn = 22
    assert "no stored unit" not in " ".join(bench.side["diagnosis"]["also"])


def test_a_compaction_under_a_drift_is_marked(bench) -> None:
    marks = {(mark["turn"], mark["text"]) for mark in bench.timeline["marks"]}
    assert marks == {(7, "sys"), (30, "compaction")}


def test_a_history_that_is_edited_is_marked_where_it_began_to_be() -> None:
    """The fingerprint holds, the wire does not."""
    lines = []
    for turn in range(5):
        said = [
            {"role": role, "content": f"{role} {n}" + " word" * 900}
            for n in range(turn + 1)
            for role in ("user", "assistant")
        ][:-1]
        if turn >= 3:
            said[1]["content"] = f"edited {turn}" + " word" * 900
        lines.append(json.dumps({"model": "deepseek-v4-flash", "messages": said}))
    bench = lab.Workbench(lab.load_bytes("\n".join(lines).encode()))
    assert bench.timeline["marks"] == [{"turn": 3, "text": "message edited", "tone": "lost"}]


def test_every_changed_value_is_marked_and_not_what_lies_between() -> None:
    was = "# Now\nIt is 10:01.\n" + "rules\n" * 300 + "Run 17 of 99, \U0001f680 build 4.\n"
    now = was.replace("10:01", "10:02").replace("Run 17", "Run 18").replace("build 4", "build 5")
    bodies = [
        json.dumps(
            {
                "model": "deepseek-v4-flash",
                "messages": [
                    {"role": "system", "content": text},
                    {"role": "user", "content": "go"},
                ],
            }
        )
        for text in (was, now)
    ]
    bench = lab.Workbench(lab.load_bytes("\n".join(bodies).encode()))
    bench.turn = 1
    text = bench.editor["text"].encode("utf-16-le")
    marked = [text[2 * a : 2 * b].decode("utf-16-le") for a, b in bench.editor["marks"]]
    assert marked == ["10:02", "18", "5"]


def test_remedies_save_what_they_say_and_come_back(bench) -> None:
    before = bench.bill["cost_usd"].sum()
    offered = bench.remedies
    assert [row["id"] for row in bench.advice["rows"]] == [remedy.id for remedy in offered]
    best = offered[0]
    bench.request = {"seq": 1, "action": "apply", "value": best.id}
    assert bench.error == ""
    assert before - bench.bill["cost_usd"].sum() == best.saves_usd
    assert bench.advice["rows"][0] == {
        "id": best.id,
        "text": best.message.rstrip("."),
        "saves_text": "",
        "applied": True,
    }
    # What is left to save is worked out for the state with the remedy in it.
    assert best.id not in [remedy.id for remedy in bench.remedies]
    bench.request = {"seq": 2, "action": "apply", "value": best.id}
    assert bench.edits == ()
    assert bench.bill.equals(bench.unedited_bill)
    bench.request = {"seq": 3, "action": "apply", "value": "no such thing"}
    assert "no remedy that is offered" in bench.error


def test_edits_stay_on_top_of_a_remedy_and_under_the_next(bench) -> None:
    bench.edit_section("skills", bench.editor["text"].replace("e", "E"))
    last = next(r for r in bench.remedies if r.action == "move_section_last")
    bench.apply(last.id)
    names = [b.name for b in bench._turns[22].prompt.blocks if b.kind == "section"]
    assert names[-1] == last.block
    bench.move_section("skills", -1)
    with pytest.raises(lab.LabError, match="on top of it"):
        bench.apply(last.id)
    bench.undo()
    bench.apply(last.id)
    assert len(bench.edits) == 1


def test_findings_are_listed_with_their_turns(bench) -> None:
    report = bench.report
    assert [row["turn"] for row in bench.advice["findings"]] == [
        finding.first_request for finding in report.findings_list
    ]
    assert bench.advice["findings"][-1]["certainty"] == "intended"
    assert bench.side["reported"] is None
    assert "Findings" in bench.text()


def test_reported_counters_stand_beside_the_prediction() -> None:
    lines = []
    for turn, read in ((1, 0), (2, 4096)):
        messages = [{"role": "user", "content": "word " * 5000}]
        messages += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "more"}]
        body = {"model": "deepseek-v4-flash", "messages": messages[: 2 * turn - 1]}
        usage = {"prompt_tokens": 5010, "completion_tokens": 1, "prompt_cache_hit_tokens": read}
        lines.append(json.dumps({"request": body, "usage": usage}))
    bench = lab.Workbench(lab.load_bytes("\n".join(lines).encode()))
    bench.turn = 1
    shown = bench.side["reported"]
    assert shown["heads"] == ["", "predicted", "reported"]
    hit = bench.bill["hit"].iloc[1]
    assert hit > 4900
    assert shown["rows"][1] == ["cache read", f"{hit:,}", "4,096"]
    assert shown["note"].startswith(f"{hit - 4096:,} fewer tokens were read")
    assert "Predicted and reported" in bench.text()


def test_the_model_choice_names_every_provider(bench) -> None:
    groups = {choice["group"] for choice in bench.head["models"]}
    assert {"deepseek", "openai", "anthropic"} <= groups
    assert bench.head["models"][0]["group"] == "deepseek"
    for choice in bench.head["models"]:
        bench.model = choice["value"]
        totals = bench.bill[["hit", "new", "repaid", "rounding", "expired", "unmarked"]]
        assert (totals.sum(axis=1) == bench.bill["input_tokens"]).all(), choice


def test_another_order_of_reading_keeps_the_chosen_section(bench) -> None:
    key, text = bench.editor["key"], bench.editor["text"]
    row = bench.selected
    bench.model = "claude-sonnet-4-5"
    assert bench.selected != row
    assert bench.blocks["name"][bench.selected] == bench.editor["name"] == "environment"
    assert bench.editor["text"] == text
    assert bench.editor["key"] != key
