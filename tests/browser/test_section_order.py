"""The order board in JupyterLab: drag, keyboard, locks and undo, against what Python computes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

import codesmith_lab as lab
from codesmith_lab.labs.section_order import SectionOrderLab

NAME = "02_section_order.ipynb"
READY = '.csorder[data-ready="1"]'
WAIT_MS = 20_000


@pytest.fixture
def page(root: Path, lab_server: Any, open_notebook: Callable[..., Any]) -> Iterator[Any]:
    target = lab_server.root / NAME
    shutil.copyfile(root / "notebooks" / NAME, target)
    yield open_notebook(target, READY)


@pytest.fixture
def twin() -> SectionOrderLab:
    """The same board in this process: what the page must show."""
    return lab.SectionOrderLab(lab.samples.section_session("puzzle"), requests_a_day=1000)


def row(page: Any, name: str) -> Any:
    return page.locator(".csorder .so-row", has=page.locator(".so-name", has_text=name)).first


def box(page: Any, name: str) -> Any:
    """Where a row stands on the screen, with the whole board in view."""
    page.locator(".csorder .so-board").first.evaluate("(node) => node.scrollIntoView()")
    return row(page, name).bounding_box()


def wait_shows(page: Any, board: SectionOrderLab) -> None:
    """Until figures and rows of the page are those of the board."""
    wanted = {
        "figures": [figure["value"] for figure in board.head["figures"]],
        "order": [board.sections["name"][i] for i in board.shown["order"]],
    }
    page.wait_for_function(
        """(wanted) => {
          const root = document.querySelector('.csorder');
          const texts = (s) => [...root.querySelectorAll(s)].map((node) => node.textContent);
          return JSON.stringify(texts('.so-fig b')) === JSON.stringify(wanted.figures)
            && JSON.stringify(texts('.so-row .so-name')) === JSON.stringify(wanted.order);
        }""",
        arg=wanted,
        timeout=WAIT_MS,
    )


def wait_said(page: Any, text: str) -> None:
    page.wait_for_function(
        "(t) => document.querySelector('.csorder [role=status]').textContent.includes(t)",
        arg=text,
        timeout=WAIT_MS,
    )


def test_a_block_is_dragged_and_the_cost_follows(page: Any, twin: SectionOrderLab) -> None:
    wait_shows(page, twin)
    start = box(page, "clock")
    goal = row(page, "memory").bounding_box()
    page.mouse.move(start["x"] + 60, start["y"] + 12)
    page.mouse.down()
    page.mouse.move(start["x"] + 60, start["y"] + 40, steps=4)
    page.mouse.move(goal["x"] + 60, goal["y"] + 16, steps=12)

    # Held over the last place: its cost is shown, and nothing is done yet.
    before = [figure["value"] for figure in twin.head["figures"]]
    twin.request = {"seq": 1, "action": "drag", "name": "clock", "to": 7}
    assert [figure["value"] for figure in twin.head["figures"]] != before
    wait_shows(page, twin)
    assert page.get_by_role("button", name="Undo").get_attribute("aria-disabled") == "true"

    page.mouse.up()
    twin.move("clock", 7)
    wait_shows(page, twin)
    wait_said(page, twin.announce)
    page.get_by_role("button", name="Undo").click()
    twin.board.undo()
    twin.refresh()
    wait_shows(page, twin)
    page.get_by_role("button", name="Redo").click()
    twin.board.redo()
    twin.refresh()
    wait_shows(page, twin)
    assert page.problems == []


def test_escape_takes_a_dragged_block_back(page: Any, twin: SectionOrderLab) -> None:
    wait_shows(page, twin)
    start = box(page, "documents")
    page.mouse.move(start["x"] + 60, start["y"] + 12)
    page.mouse.down()
    page.mouse.move(start["x"] + 60, start["y"] - 90, steps=8)
    page.locator(".csorder .so-held").wait_for()
    page.keyboard.press("Escape")
    page.mouse.up()
    wait_shows(page, twin)
    assert page.locator(".csorder .so-held").count() == 0
    assert page.problems == []


def test_the_keyboard_alone_reorders_locks_and_undoes(page: Any, twin: SectionOrderLab) -> None:
    wait_shows(page, twin)
    row(page, "tool_notes").focus()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    assert page.locator(".csorder .so-row:focus .so-name").inner_text() == "constitution"
    page.keyboard.press("Alt+ArrowUp")
    twin.move("constitution", 3)
    wait_shows(page, twin)
    wait_said(page, "constitution is now 4 of 8.")
    assert page.locator(".csorder .so-row:focus .so-name").inner_text() == "constitution"

    # Picked up with Space, carried with the arrows, put down with Enter.
    page.keyboard.press("Space")
    page.locator(".csorder .so-held").wait_for()
    page.keyboard.press("ArrowUp")
    wait_said(page, "constitution at 3 of 8:")
    page.keyboard.press("Home")
    wait_said(page, "constitution at 1 of 8:")
    page.keyboard.press("Enter")
    twin.move("constitution", 0)
    wait_shows(page, twin)
    wait_said(page, twin.announce)

    page.keyboard.press("l")
    wait_said(page, "constitution is locked to its place.")
    twin.board.lock("constitution")
    page.keyboard.press("Alt+ArrowDown")
    twin.refresh()
    wait_shows(page, twin)
    label = row(page, "constitution").get_attribute("aria-label")
    assert "1,044 tokens, never changes" in label
    assert label.endswith("locked")

    for _ in range(3):
        page.keyboard.press("Control+z")
        twin.board.undo()
    twin.refresh()
    assert twin.order == twin.board.original.order
    wait_shows(page, twin)
    assert page.problems == []


def test_a_constraint_is_demanded_and_kept(page: Any, twin: SectionOrderLab) -> None:
    wait_shows(page, twin)
    board = page.locator(".csorder").first
    row(page, "memory").click()
    board.get_by_role("heading", name="memory").wait_for()
    board.get_by_label("Must stand before").select_option("file_tree")
    board.get_by_role("button", name="Demand").click()
    twin.board.constrain("memory", "file_tree")
    twin.refresh()
    wait_shows(page, twin)
    assert "after memory" in row(page, "file_tree").get_attribute("aria-label")

    row(page, "file_tree").focus()
    page.keyboard.press("Alt+Home")
    board.get_by_role("alert").get_by_text("'memory' must stand before 'file_tree'").wait_for()
    wait_shows(page, twin)

    board.get_by_role("button", name="Take the best order").click()
    twin.use_best()
    wait_shows(page, twin)
    board.locator(".so-error").wait_for(state="hidden")
    assert page.problems == []


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_nothing_serious(page: Any, theme: str) -> None:
    page.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    look = theme.removeprefix("JupyterLab ").lower()
    page.wait_for_selector(f'.csorder[data-theme="{look}"]', state="attached")
    page.locator(".csorder").first.scroll_into_view_if_needed()
    for summary in page.locator(".csorder summary").all():
        summary.press("Enter")
    results = Axe().run(page, context=".csorder")
    serious = [
        (found["id"], [node["target"] for node in found["nodes"]])
        for found in results.response["violations"]
        if found["impact"] in ("serious", "critical")
    ]
    assert results.response["passes"]
    assert serious == []
