"""What people click and type, in real JupyterLab, against what Python computes."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import codesmith_lab as lab
from codesmith_lab.labs.workbench import Workbench

SECTION = 2  # environment, in prompt order


def expected(text_change: tuple[str, str] | None = None) -> Workbench:
    bench = lab.Workbench(lab.samples.clock_story())
    bench.turn = 22
    if text_change is not None:
        text = bench.editor["text"]
        bench.edit_section("environment", text.replace(*text_change))
    return bench


def total_of(bench: Workbench) -> str:
    return str(bench.head["figures"][1]["value"])


def shown(page: Any, selector: str) -> str:
    return str(page.locator(selector).first.inner_text())


def wait_text(page: Any, selector: str, text: str) -> None:
    page.wait_for_function(
        "([s, t]) => [...document.querySelectorAll(s)].some((n) => n.textContent.includes(t))",
        arg=[selector, text],
        timeout=20_000,
    )


def test_enter_and_native_undo_work_in_the_editor(bench_page: Any) -> None:
    """JupyterLab forbids both in a text field of a cell, unless the widget holds it off."""
    page = bench_page
    editor = page.locator(".cslab textarea").first
    editor.focus()
    before = editor.input_value()
    editor.evaluate("(node) => node.setSelectionRange(node.value.length, node.value.length)")
    page.keyboard.press("Enter")
    page.keyboard.type("one more line")
    after = f"{before}\none more line"
    expect(editor).to_have_value(after)
    wait_text(page, ".cslab .cs-card", "Against the unedited session")
    for _ in range(20):
        if editor.input_value() == before:
            break
        page.keyboard.press("Control+z")
    expect(editor).to_have_value(before)
    for _ in range(20):
        if editor.input_value() == after:
            break
        page.keyboard.press("Control+Shift+z")
    expect(editor).to_have_value(after)


WRAPPED = """() => {
  const area = document.querySelector('.cslab textarea');
  const flow = document.querySelector('.cslab .cs-marks .cs-flow');
  const style = getComputedStyle(area);
  const pads = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
  const ends = parseFloat(style.paddingTop) + parseFloat(style.paddingBottom);
  return [
    area.scrollHeight, flow.offsetHeight + ends,
    area.clientWidth - pads, flow.clientWidth, area.scrollWidth <= area.clientWidth,
  ];
}"""


def test_wrapped_lines_lie_on_their_marks(bench_page: Any) -> None:
    """The text behind the area breaks where the area's own does, or marks would be elsewhere."""
    page = bench_page
    wait_text(page, ".cslab .cs-walk", "turn 23 of 40")
    editor = page.locator(".cslab textarea").first
    editor.focus()
    page.keyboard.press("Control+End")
    words = (
        "a word, wordsthatdonotend"
        + "x" * 300
        + " 漢字かな交じり文\ttab  two spaces 🚀👩‍👩‍👧 e\u0301 "
    )
    prose = " ".join("abcdefghijk"[: 1 + n * n % 97 % 11] for n in range(900))
    page.keyboard.insert_text("\n" + "\n".join([words * 3, "", " " * 400, prose]))
    page.wait_for_function(f"({WRAPPED})()[0] > 500")
    whole, laid, width, laid_width, fits = page.evaluate(WRAPPED)
    assert (whole, width, fits) == (laid, laid_width, True)
    numbers = page.locator(".cslab .cs-lines .cs-flow div")
    assert numbers.count() == 6 + 4
    wrap = page.get_by_role("button", name="Wrap", exact=True)
    expect(wrap).to_have_attribute("aria-pressed", "true")
    wrap.focus()
    page.keyboard.press("Space")
    expect(wrap).to_have_attribute("aria-pressed", "false")
    page.wait_for_function(
        "() => { const a = document.querySelector('.cslab textarea'); "
        "return a.scrollWidth > a.clientWidth; }"
    )
    assert page.locator(".cslab .cs-marks .cs-flow").count() == 0
    assert page.problems == []


def test_edit_undo_and_reorder_in_jupyterlab(bench_page: Any) -> None:
    page = bench_page
    plain = expected()
    slider = page.locator('.cslab [role="slider"]').first
    wait_text(page, ".cslab .cs-walk", "turn 23 of 40")
    wait_text(page, ".cslab .cs-title", plain.side["diagnosis"]["title"])
    wait_text(page, ".cslab .cs-break", plain.blocks["break"]["text"])
    before = shown(page, ".cslab .cs-figures")

    slider.focus()
    slider.press("ArrowRight")
    wait_text(page, ".cslab .cs-walk", "turn 24 of 40")
    slider.press("ArrowLeft")
    wait_text(page, ".cslab .cs-walk", "turn 23 of 40")

    # Type into the platform line: the break moves up, and the figures are Python's.
    editor = page.locator(".cslab textarea").first
    editor.focus()
    editor.evaluate(
        "(node) => { const at = node.value.indexOf('linux'); node.setSelectionRange(at, at + 5); }"
    )
    page.keyboard.type("plan9")
    after = expected(("linux", "plan9"))
    wait_text(page, ".cslab .cs-break", after.blocks["break"]["text"])
    wait_text(page, ".cslab .cs-card", after.side["diagnosis"]["body"])
    wait_text(page, ".cslab .cs-fig", total_of(after))
    wait_text(page, ".cslab .cs-card", "Against the unedited session")

    page.get_by_role("button", name="Undo", exact=True).first.click()
    wait_text(page, ".cslab .cs-break", plain.blocks["break"]["text"])
    page.wait_for_function(
        "(was) => document.querySelector('.cslab .cs-figures').innerText === was",
        arg=before,
        timeout=20_000,
    )

    # Reorder by keyboard: Alt+ArrowDown in the editor.
    editor.focus()
    page.keyboard.press("Alt+ArrowDown")
    moved = expected()
    moved.move_section("environment", 1)
    wait_text(page, ".cslab .cs-fig", total_of(moved))
    assert moved.blocks["name"][SECTION + 1] == "environment"
    page.get_by_role("button", name="Reset", exact=True).first.click()
    wait_text(page, ".cslab .cs-break", plain.blocks["break"]["text"])

    # A remedy is offered once typing pauses; its button puts it in force and takes it back.
    best = plain.remedies[0]
    wait_text(page, ".cslab .cs-advice li", best.message.rstrip("."))
    button = page.locator('.cslab [aria-label="Try instead"] button').first
    button.press("Enter")
    cured = expected()
    cured.apply(best.id)
    wait_text(page, ".cslab .cs-fig", total_of(cured))
    page.wait_for_selector('.cslab .cs-advice button[aria-pressed="true"]')
    page.locator('.cslab .cs-advice button[aria-pressed="true"]').press("Enter")
    wait_text(page, ".cslab .cs-fig", total_of(plain))

    # A finding leads to its turn; another provider's rules bill the same session at once.
    page.locator('.cslab [aria-label="Findings"] button').first.press("Enter")
    first = plain.report.findings_list[0].first_request
    wait_text(page, ".cslab .cs-walk", f"turn {first + 1} of 40")
    page.locator(".cslab select").first.select_option("claude-sonnet-4-5")
    other = expected()
    other.model = "claude-sonnet-4-5"
    wait_text(page, ".cslab .cs-fig", total_of(other))
    assert page.locator(".cslab .cs-error:visible").count() == 0
    assert page.problems == []


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_nothing_serious(bench_page: Any, theme: str) -> None:
    page = bench_page
    page.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    light = "true" if theme.endswith("Light") else "false"
    page.wait_for_selector(f'body[data-jp-theme-light="{light}"]', state="attached")
    look = "light" if light == "true" else "dark"
    page.wait_for_selector(f'.cslab[data-theme="{look}"]')
    results = Axe().run(page, context=".cslab")
    serious = [
        (found["id"], [node["target"] for node in found["nodes"]])
        for found in results.response["violations"]
        if found["impact"] in ("serious", "critical")
    ]
    assert results.response["passes"]
    assert serious == []


def test_the_order_board_opens_below_and_hands_its_order_back(bench_page: Any) -> None:
    page = bench_page
    wait_text(page, ".cslab .cs-walk", "turn 23 of 40")
    button = page.get_by_role("button", name="Order board", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('.cs-board [data-ready="1"]')
    expect(button).to_have_attribute("aria-expanded", "true")
    assert page.evaluate("document.activeElement.classList.contains('cs-board')")
    page.get_by_role("button", name="Take the best order").click()
    page.get_by_role("button", name="Hand to the workbench").click()
    after = expected()
    board = after.section_order()
    board.use_best()
    board.apply_to()
    wait_text(page, ".cslab .cs-fig", total_of(after))
    assert total_of(after) != total_of(expected())
    button.click()
    expect(page.locator(".cs-board")).to_be_hidden()
    page.get_by_role("button", name="Undo", exact=True).first.click()
    wait_text(page, ".cslab .cs-fig", total_of(expected()))
    assert page.problems == []


def test_fast_typing_loses_nothing_and_the_last_stroke_wins(bench_page: Any) -> None:
    page = bench_page
    wait_text(page, ".cslab .cs-walk", "turn 23 of 40")
    editor = page.locator(".cslab textarea").first
    editor.focus()
    page.keyboard.press("Control+Home")
    typed = "The quick brown fox jumps over the lazy dog, 0123456789 times. "
    page.keyboard.type(typed)
    after = expected()
    after.edit_section("environment", typed + after.editor["text"])
    wait_text(page, ".cslab .cs-break", after.blocks["break"]["text"])
    wait_text(page, ".cslab .cs-fig", total_of(after))
    assert editor.input_value() == after.editor["text"]
    assert page.locator(".cslab .cs-error:visible").count() == 0
    assert page.problems == []
