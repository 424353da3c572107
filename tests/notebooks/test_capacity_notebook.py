"""What the capacity notebook claims, and the file it leaves behind."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from codesmith_lab.capacity import config_from_toml

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "03_capacity.ipynb"
CELL_SECONDS = 300

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("capacity")


@pytest.fixture(scope="module")
def cells(folder: Path) -> dict[str, Any]:
    notebook = nbformat.read(NOTEBOOK, as_version=nbformat.NO_CONVERT)
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=CELL_SECONDS, resources=place).execute()
    return {cell["id"]: cell for cell in notebook["cells"]}


def said(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell["outputs"])


def test_the_labs_and_the_sweep_are_shown_as_widgets(cells: dict[str, Any]) -> None:
    for name in ("lab", "session", "sweep"):
        shown = [output.get("data", {}) for output in cells[name]["outputs"]]
        assert any("application/vnd.jupyter.widget-view+json" in data for data in shown), name


def test_every_plot_is_drawn(cells: dict[str, Any]) -> None:
    for name in ("break_plot", "heat", "scores"):
        shown = [output.get("data", {}) for output in cells[name]["outputs"]]
        assert any("image/png" in data for data in shown), name


def test_one_compaction_pays_late_later_or_never(cells: dict[str, Any]) -> None:
    none, cached, fresh = said(cells["intact"]).splitlines()
    turns = [int(re.search(r"after (\d+) turns", line)[1]) for line in (none, cached)]  # type: ignore[index]
    assert 1 < turns[0] < turns[1]
    assert "never pays back in this session" in fresh


def test_the_broken_cache_makes_the_controller_look_cheap(cells: dict[str, Any]) -> None:
    off, on = map(float, re.findall(r"\$([0-9.]+)", said(cells["bills"]).splitlines()[0]))
    assert on < off


def test_the_fit_finds_the_truth(cells: dict[str, Any]) -> None:
    lines = said(cells["fit"]).splitlines()
    assert len(lines) == 6
    for line in lines:
        _, low, high, true = map(float, re.findall(r"[+-][0-9.]+", line))
        assert low <= true <= high, line


def test_it_ends_with_a_configuration_that_reads_back(cells: dict[str, Any], folder: Path) -> None:
    assert said(cells["export"]).endswith("read back, the same: True\n")
    config = config_from_toml((folder / "capacity.toml").read_text("utf-8"))
    assert config.enabled
    assert config.bias < -1
