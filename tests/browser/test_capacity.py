"""The capacity lab in real JupyterLab, against what Python computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe

import codesmith_lab as lab
from codesmith_lab.labs.capacity import CapacityLab

CELL = """
import codesmith_lab as lab
capacity = lab.CapacityLab({source})
capacity
"""
READY = '.cscap[data-ready="1"]'


def notebook(folder: Path, source: str) -> Path:
    path = folder / "capacity.ipynb"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [nbformat.v4.new_code_cell(CELL.format(source=source))]
    made = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(made, path)
    return path


def wait_text(page: Any, selector: str, text: str) -> None:
    page.wait_for_function(
        "([s, t]) => [...document.querySelectorAll(s)].some((n) => n.textContent.includes(t))",
        arg=[selector, text],
        timeout=60_000,
    )


def shows(page: Any, expected: CapacityLab) -> None:
    """Figures, p_fail and decision are those that Python computes."""
    wait_text(page, ".cscap .cap-p", expected.detail["p_text"])
    wait_text(page, ".cscap .cap-why", expected.detail["why"])
    for figure in expected.head["figures"]:
        wait_text(page, ".cscap .cap-fig", figure["value"] + figure["label"])


def test_a_coefficient_moves_p_fail_and_a_decision(
    lab_server: Any, open_notebook: Callable[..., Any]
) -> None:
    page = open_notebook(notebook(lab_server.root, ""), READY)
    expected = lab.CapacityLab()
    shows(page, expected)
    before = dict(expected.detail)

    slider = page.get_by_role("slider", name="Bias", exact=True)
    slider.focus()
    for _ in range(150):  # 150 steps of 0.01 to the left, from the keyboard
        slider.press("ArrowLeft")
    expected.set(bias=-0.12 - 1.5)
    assert expected.detail["p_text"] != before["p_text"]
    assert expected.detail["why"] != before["why"]
    shows(page, expected)

    # An exact field, a value that is refused, and the way back.
    field = page.get_by_label("Bias, exact")
    field.fill("-0.5")
    expected.set(bias=-0.5)
    shows(page, expected)
    field.fill("5000")
    wait_text(page, ".cscap .cap-error", "bias is 5000, but it must be from -1000 to 1000")
    shows(page, expected)
    page.get_by_role("button", name="Reset Bias to -0.12").click()
    expected.reset()
    shows(page, expected)
    assert page.locator(".cscap .cap-error:visible").count() == 0

    # Walk along the trajectory, from wish to wish.
    chart = page.get_by_role("slider", name="Observation")
    chart.focus()
    chart.press("ArrowRight")
    expected.selected += 1
    shows(page, expected)
    chart.press("Shift+ArrowRight")
    expected.selected = min(m[0] for m in expected.chart["marks"] if m[0] > expected.selected)
    shows(page, expected)

    page.get_by_label("compare with the reference").check()
    wait_text(page, ".cscap .cap-detail", "with the reference's")

    # Another source, then one drawn from the keyboard.
    page.locator(".cscap").get_by_label("Source", exact=True).select_option("thrash")
    expected.source = "thrash"
    shows(page, expected)
    page.locator(".cscap").get_by_label("Source", exact=True).select_option("drawn by hand")
    expected.source = "drawn by hand"
    shows(page, expected)
    pad = page.get_by_role("slider", name="Load of the chosen turn")
    pad.focus()
    pad.press("ArrowUp")
    loads = list(expected.loads["values"])
    loads[0] = round(loads[0] + 0.05, 3)
    expected.draw(loads)
    shows(page, expected)
    assert page.problems == []


def test_a_session_gets_its_bill(lab_server: Any, open_notebook: Callable[..., Any]) -> None:
    source = "lab.samples.clock_story(), model='deepseek-v4-pro'"
    page = open_notebook(notebook(lab_server.root, source), READY)
    expected = lab.CapacityLab(lab.samples.clock_story(), model="deepseek-v4-pro")
    shows(page, expected)
    expected.settle()
    for row in expected.costs["rows"]:
        wait_text(page, ".cscap .cap-costs tr", row["name"] + row["cost_text"])
    wait_text(page, ".cscap .cap-sentence", expected.costs["sentence"])
    field = page.get_by_label("Low up to, exact")
    field.fill("0.2")
    expected.set(low_risk_max=0.2)
    shows(page, expected)
    expected.settle()
    tuned = expected.costs["rows"][-1]
    wait_text(page, ".cscap .cap-costs tr", tuned["name"] + tuned["cost_text"])
    for item in expected.costs["items"]:
        wait_text(page, ".cscap .cap-costs tr", item["turn_text"] + item["action_text"])
    assert page.problems == []


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_nothing(lab_server: Any, open_notebook: Callable[..., Any], theme: str) -> None:
    source = "lab.samples.clock_story(), model='deepseek-v4-pro'"
    page = open_notebook(notebook(lab_server.root, source), READY)
    page.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    look = "light" if theme.endswith("Light") else "dark"
    page.wait_for_selector(f'.cscap[data-theme="{look}"]')
    page.wait_for_selector('.cscap .cap-costs[aria-busy="false"]')
    for source in ("clock_story.jsonl", "drawn by hand"):
        page.locator(".cscap").get_by_label("Source", exact=True).select_option(source)
        wait_text(page, ".cscap .cap-place", "observation")
        results = Axe().run(page, context=".cscap").response
        assert results["passes"]
        assert [found["id"] for found in results["violations"]] == []


def test_two_settings_in_one_breath_are_both_heard(
    lab_server: Any, open_notebook: Callable[..., Any]
) -> None:
    """The kernel may only ever hear the newest message, which therefore says all."""
    page = open_notebook(notebook(lab_server.root, ""), READY)
    page.evaluate(
        """() => {
          const names = ["Bias, exact", "Low up to, exact", "Window, exact", "Minimum, exact"];
          for (const [k, value] of [["0", "-0.9"], ["1", "0.31"], ["2", "11"], ["3", "-1.25"]]) {
            const field = document.querySelector(`.cscap [aria-label="${names[k]}"]`);
            field.value = value;
            field.dispatchEvent(new Event("input", { bubbles: true }));
          }
        }"""
    )
    expected = lab.CapacityLab()
    expected.set(bias=-0.9, low_risk_max=0.31, profile_window=11, min_slack_coefficient=-1.25)
    shows(page, expected)
    assert page.locator(".cscap textarea").input_value() == expected.toml
    assert page.problems == []
