"""What the start notebook says and leaves behind; that every notebook runs is tested elsewhere."""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
START = Path(__file__).parents[2] / "notebooks" / "00_start_here.ipynb"
CELL_SECONDS = 300


def said(cell: Any) -> str:
    """All text that a cell has put out."""
    parts = [output.get("text", "") for output in cell["outputs"]]
    parts += [output.get("data", {}).get("text/plain", "") for output in cell["outputs"]]
    return "\n".join(parts)


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The start notebook run in an empty folder, with its state printed at the end."""
    notebook = nbformat.read(START, as_version=nbformat.NO_CONVERT)
    state = "print((bench.turn, bench.scope, bench.edits, bench.error, bench.bill.equals(bill)))"
    notebook["cells"].append(nbformat.v4.new_code_cell(state, id="state"))
    place = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    before = hashlib.sha256(START.read_bytes()).digest()
    NotebookClient(notebook, timeout=CELL_SECONDS, resources=place).execute()
    assert hashlib.sha256(START.read_bytes()).digest() == before, "outputs were written back"
    return {cell["id"]: cell for cell in notebook["cells"]}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.name))
def test_cells_have_ids_and_no_results(path: Path) -> None:
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert "widgets" not in notebook["metadata"]
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert all(not cell.get("outputs") for cell in notebook["cells"])


def test_the_workbench_is_shown_as_a_widget(cells: dict[str, Any]) -> None:
    shown = cells["load"]["outputs"]
    assert any("application/vnd.jupyter.widget-view+json" in out.get("data", {}) for out in shown)


def test_the_table_shows_a_turn_before_the_clock_and_two_after_it(cells: dict[str, Any]) -> None:
    rows = [line.split() for line in said(cells["turn"]).splitlines() if line[:1].isdigit()]
    assert [row[0] for row in rows] == ["6", "7", "22"]
    repaid = [int(row[4]) for row in rows]
    assert repaid[0] == 0 < repaid[1] < repaid[2]


def test_the_report_names_the_clock_first_and_the_compaction_as_intended(
    cells: dict[str, Any],
) -> None:
    text = said(cells["why"])
    found = [line for line in text.splitlines() if line.startswith("- ")]
    assert found[0].startswith("- environment: a clock in it moved on 32 requests")
    assert "compacted on purpose on request 31" in text
    assert "Saves $" in text


def test_taking_the_clock_out_is_worth_several_times_the_bill(cells: dict[str, Any]) -> None:
    ratio = re.search(r"([0-9.]+) times as much", said(cells["edit"]))
    assert ratio is not None
    assert float(ratio[1]) > 3


def test_the_notebook_leaves_the_session_as_it_was(cells: dict[str, Any]) -> None:
    assert ast.literal_eval(said(cells["state"]).strip()) == (22, "from_here", (), "", True)


def test_no_figure_of_the_bill_is_written_into_the_text(cells: dict[str, Any]) -> None:
    prose = "".join(c["source"] for c in cells.values() if c["cell_type"] == "markdown")
    assert re.search(r"\$\s*[0-9]|[0-9][.,][0-9]|[0-9]\s*%", prose) is None
