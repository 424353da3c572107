"""The capacity lab without a browser: traits in, traits out."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest
import traitlets

import codesmith_lab as lab
from codesmith_lab.capacity import (
    CapacityConfig,
    CapacityObservation,
    ObservationTable,
    config_from_toml,
    drawn,
    join_tables,
    simulate,
    synthetic,
)
from codesmith_lab.capacity.config import LIMITS
from codesmith_lab.errors import LabError
from codesmith_lab.labs.capacity import CapacityLab
from codesmith_lab.labs.capacity_settings import GROUPS, NAMES
from codesmith_lab.samples.agent_log import agent_log_lines

ON = CapacityConfig(enabled=True)


@pytest.fixture(scope="module")
def session() -> Any:
    return lab.samples.clock_story()


def ask(bench: CapacityLab, seq: int, **values: Any) -> None:
    bench.asked = {"seq": seq, "values": {**bench.values, **values}}


def as_python_says(bench: CapacityLab) -> None:
    """What is drawn is what the scalar controller says."""
    steps = simulate(bench.config, bench.table)
    for row, step in enumerate(steps):
        if step.snapshot is not None:
            assert bench.chart["p_fail"][row] == pytest.approx(step.snapshot.p_fail, abs=1e-5)
            assert bench.chart["pressure"][row] == pytest.approx(step.snapshot.h_hat, abs=1e-5)
    wanted = [row for row, step in enumerate(steps) if step.decision.wanted != "no_intervention"]
    assert [mark[0] for mark in bench.chart["marks"]] == wanted
    done = [row for row, step in enumerate(steps) if step.done != "no_intervention"]
    assert [mark[0] for mark in bench.chart["marks"] if mark[2] == 0] == done
    step = steps[bench.selected]
    assert bench.detail["why"] == step.why()
    if step.snapshot is not None:
        assert bench.detail["p_text"] == f"{step.snapshot.p_fail:.4f}"
        assert bench.detail["band"] == step.snapshot.risk_band


def test_every_setting_has_a_control() -> None:
    fields = set(CapacityConfig.__dataclass_fields__) - {"model_priors"}
    priors = {f"prior.{key}" for key in CapacityConfig().model_priors}
    assert {name for name in NAMES if not name.startswith("rule.")} == fields | priors
    assert len(NAMES) == len(set(NAMES))
    for _, settings in GROUPS:
        for setting in settings:
            if setting.name in LIMITS:
                low, high = LIMITS[setting.name]
                assert low <= setting.low < setting.high <= high or setting.name == "low_risk_max"


@pytest.mark.parametrize("source", ["calm", "slow burn", "burst", "thrash", "recovery"])
def test_each_shape_is_shown_as_python_says(source: str) -> None:
    as_python_says(CapacityLab(source))


def test_a_slider_changes_p_fail_and_decision() -> None:
    bench = CapacityLab()
    before = (bench.detail["p_text"], bench.detail["why"], bench.chart["marks"])
    ask(bench, 1, bias=-1.62)
    assert (bench.ack, bench.error) == (1, "")
    after = (bench.detail["p_text"], bench.detail["why"], bench.chart["marks"])
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert bench.head["changed"] == ["bias"]
    as_python_says(bench)
    bench.request = {"seq": 2, "action": "reset", "value": "bias"}
    assert (bench.detail["p_text"], bench.detail["why"], bench.chart["marks"]) == before
    assert bench.head["changed"] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_control_reaches_its_setting(name: str) -> None:
    bench = CapacityLab("burst")
    value = {"enabled": False, "rule.summary_call": "none"}.get(name, 2)
    if name in ("low_risk_max", "medium_risk_max", "rule.compression_ratio"):
        value = 0.73
    ask(bench, 1, **{name: value})
    assert bench.error == ""
    assert bench.values[name] == value
    assert name in bench.head["changed"]
    as_python_says(bench)
    bench.request = {"seq": 2, "action": "reset", "value": ""}
    assert bench.head["changed"] == []
    assert bench.config == ON


def test_a_refused_value_is_told_and_changes_nothing() -> None:
    bench = CapacityLab()
    before = (bench.values, bench.chart, bench.detail)
    ask(bench, 3, bias=5000)
    assert (
        bench.error == "bias is 5000, but it must be from -1000 to 1000; pass a number in between"
    )
    assert bench.ack == 3
    assert (bench.values, bench.chart, bench.detail) == before
    ask(bench, 4, nonsense=1)
    assert "'nonsense' is no control of the lab" in bench.error
    ask(bench, 5, bias=0.5)
    assert bench.error == ""


def test_one_observation_is_taken_apart() -> None:
    bench = CapacityLab("slow burn")
    bench.selected = 40
    snapshot = bench.steps[40].snapshot
    assert snapshot is not None
    detail = bench.detail
    assert sum(row["value"] for row in detail["h_rows"]) == pytest.approx(snapshot.h_hat)
    z = math.log(snapshot.p_fail / (1 - snapshot.p_fail))
    assert sum(row["value"] for row in detail["z_rows"]) == pytest.approx(z)
    assert detail["title"] == "Turn 21, before its request"
    before = bench.steps[39].snapshot
    assert before is not None
    assert f"from {before.p_fail:.3f} to {snapshot.p_fail:.3f}" in detail["moved"]
    moved = max(detail["z_rows"], key=lambda row: abs(float(row["change"].replace("−", "-"))))
    assert moved["name"] in detail["moved"]
    bench.selected = 0
    assert "nothing has moved yet" in bench.detail["moved"]


def test_compare_shows_the_references_curves() -> None:
    bench = CapacityLab("burst")
    bench.set(bias=1.0)
    bench.request = {"seq": 1, "action": "compare", "value": "on"}
    plain = CapacityLab("burst")
    assert bench.chart["other"]["p_fail"] == plain.chart["p_fail"]
    plain.selected = bench.selected
    assert bench.detail["p_other_text"] == f"{plain.detail['p_text']} with the reference's"
    assert [row["other"] for row in bench.detail["z_rows"]] == [
        row["text"] for row in plain.detail["z_rows"]
    ]
    bench.request = {"seq": 2, "action": "compare", "value": "off"}
    assert bench.chart["other"] is None


def test_drawing_by_hand() -> None:
    bench = CapacityLab("drawn by hand")
    assert bench.head["drawing"]
    loads = [0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.2]
    bench.loads = {"seq": 1, "values": loads}
    assert (bench.error, bench.ack) == ("", 1)
    assert list(bench.table.rows()) == list(drawn(loads).rows())
    as_python_says(bench)
    bench.draw([0.5])
    assert bench.loads["values"] == [0.5]
    assert len(bench.table) == 2
    with pytest.raises(LabError, match="the load of turn 0 is nan"):
        bench.draw([math.nan])
    for values in ([2], ["x"], [True], [0.5] * 2001, "0.5"):
        with pytest.raises(traitlets.TraitError):
            bench.loads = {"seq": 9, "values": values}
    assert bench.loads["values"] == [0.5]


def test_a_session_has_its_bill(session: Any) -> None:
    bench = CapacityLab(session, model="deepseek-v4-pro")
    assert bench.source == session.name
    as_python_says(bench)
    costs = bench.costs
    assert [row["name"] for row in costs["rows"]] == [
        "controller off",
        "on, the reference's settings",
        "on, these settings",
    ]
    report = lab.analyze(session, model="deepseek-v4-pro")
    assert costs["rows"][0]["cost_text"] == f"${report.totals.cost_usd:.4f}"
    assert costs["rows"][1]["cost_text"] == costs["rows"][2]["cost_text"]
    bench.set(low_risk_max=0.1)
    tuned = bench.bills["tuned"]
    assert len(tuned.interventions) > len(bench.bills["reference"].interventions)
    assert bench.costs["rows"][2]["cost_text"] == f"${tuned.cost_usd:.4f}"
    assert bench.costs["rows"][2]["count_text"] == str(len(tuned.interventions))
    assert bench.costs["items"][0]["turn_text"] == f"turn {tuned.interventions[0].request + 1}"
    bench.selected = len(bench.table) - 1
    assert bench.costs["sentence"].startswith("At these prices, compacting at turn 40 ")
    bench.set(**{"rule.compression_ratio": 0.5})
    assert bench.bills["tuned"].cost_usd != tuned.cost_usd


def test_the_sentence_says_never_where_it_never_pays() -> None:
    log = lab.load_bytes(b"\n".join(agent_log_lines(30)), "log.jsonl")
    bench = CapacityLab(log)
    bench.selected = len(bench.table) - 1
    assert "never pays back in this session" in bench.costs["sentence"]
    bench.source = "calm"
    assert bench.costs["state"] == "formula"
    assert bench.bills == {}
    bench.model = "who-knows"
    assert bench.costs["sentence"] == "No prices are known for who-knows: choose another."


def test_a_longer_window_looks_further_back(session: Any) -> None:
    bench = CapacityLab(session)
    tools = int(bench.table.tools[-20])
    bench.set(profile_window=16)
    assert int(bench.table.tools[-20]) >= tools
    assert not np.array_equal(bench.table.tools, CapacityLab(session).table.tools)
    as_python_says(bench)


def test_tables_and_edges() -> None:
    both = join_tables([synthetic("calm", 5), synthetic("burst", 9)])
    bench = CapacityLab(both)
    assert bench.source == "table: calm"
    assert len(bench.table) == 10
    bench.source = "table: burst"
    assert len(bench.table) == 18
    one = ObservationTable.from_rows([CapacityObservation(3, "m", 1, 1, 1, math.nan)])
    bench = CapacityLab(one)
    assert bench.chart["p_fail"] == [None]
    assert bench.detail["band"] == "high"
    bench.set(profile_window=0)
    assert "p_fail is the same on every turn" in bench.head["notes"][0]
    assert bench.head["toml"].startswith("# profile_window is 0")
    for bad in ("nothing", ""):
        with pytest.raises(LabError, match="choose one of"):
            bench.source = bad
    with pytest.raises(LabError, match="'x' is no setting"):
        bench.reset("x")


def test_an_unknown_model_leaves_the_lab_as_it_was(session: Any) -> None:
    bench = CapacityLab(session)
    before = (bench.model, bench.chart, bench.costs)
    bench.request = {"seq": 1, "action": "model", "value": "nobody-knows-this"}
    assert "has no known cache rules" in bench.error
    assert (bench.model, bench.chart, bench.costs) == before
    bench.request = {"seq": 2, "action": "model", "value": "deepseek-v4-pro"}
    assert (bench.model, bench.error) == ("deepseek-v4-pro", "")
    assert bench.chart["capacity"][0] == 3.5


def test_the_settings_go_out_as_a_table() -> None:
    bench = CapacityLab()
    bench.set(low_risk_max=0.41, bias=-0.3)
    assert config_from_toml(bench.head["toml"]) == bench.config
    assert bench.toml == bench.head["toml"]


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        ("selected", -1),
        ("selected", 10_000),
        ("selected", 1.5),
        ("asked", {"seq": 1}),
        ("asked", {"seq": -1, "values": {}}),
        ("asked", {"seq": 1, "values": [1]}),
        ("request", {"seq": 1, "action": "explode", "value": ""}),
        ("request", {"seq": 1, "action": "reset", "value": 3}),
        ("loads", [0.5]),
    ],
)
def test_what_cannot_be_meant_stays_outside(trait: str, value: object) -> None:
    bench = CapacityLab()
    with pytest.raises(traitlets.TraitError):
        setattr(bench, trait, value)


def test_it_reads_as_text_where_widgets_do_not_run(session: Any) -> None:
    text = CapacityLab(session).text()
    assert "controller off: $" in text
    assert "p_fail 0." in text
    assert "CapacityLab" in repr(CapacityLab())


def test_the_bill_waits_until_the_fingers_rest_and_comes_in_pieces(session: Any) -> None:
    """In a kernel there is a loop: a slider never waits for a bill, and a new one begins afresh."""

    async def in_a_kernel() -> tuple[list[dict[str, Any]], CapacityLab]:
        bench = CapacityLab(session, model="deepseek-v4-pro")
        first = bench._settling
        assert first is not None
        assert bench.costs["state"] == "working"
        ask(bench, 1, low_risk_max=0.2)
        assert first.cancelled()
        seen = []
        while bench._settling is not None:
            bench._settling.cancel()
            bench._settle(asyncio.get_running_loop())
            seen.append(bench.costs)
        return seen, bench

    seen, bench = asyncio.run(in_a_kernel())
    at_once = CapacityLab(session, bench.config, "deepseek-v4-pro")
    at_once.selected = bench.selected
    assert bench.costs == at_once.costs
    assert [view["state"] for view in seen[:-2]] == ["working"] * (len(seen) - 2)
    items = [len(view["items"]) for view in seen]
    assert items == sorted(items)
    assert items[-1] == bench.bills["tuned"].count > 3
    assert len(set(items)) == items[-1] + 1


def test_a_bill_that_cannot_be_worked_out_is_told(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = CapacityLab(session)

    def broken(*_: Any) -> Any:
        raise LabError("no such prices")
        yield

    monkeypatch.setattr("codesmith_lab.labs.capacity_state.price_bills", broken)
    bench.set(bias=1.0)
    assert bench.error == "no such prices"
