"""The notebooks: shipped clean, and each runs to its end."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest

NOTEBOOKS = sorted(path.name for path in Path(__file__).parents[2].glob("notebooks/*.ipynb"))
FIRST = "00_start_here.ipynb"
METADATA = {"kernelspec", "language_info"}
CELL_SECONDS = 300


def faults(notebook: dict[str, Any]) -> list[str]:
    """What a shipped notebook may not carry: results, saved widget state, traces of a machine.

    JupyterLab runs the script inside a saved widget state when the notebook is opened, trusted or
    not, so a notebook with one is code that nobody reads.
    """
    found = [f"metadata.{key}" for key in notebook["metadata"].keys() - METADATA]
    if notebook["metadata"].get("kernelspec", {}).get("name") != "python3":
        found.append("its kernel is not python3")
    for at, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            if cell["outputs"]:
                found.append(f"cell {at} has outputs")
            if cell["execution_count"] is not None:
                found.append(f"cell {at} has an execution count")
        if cell.get("attachments"):
            found.append(f"cell {at} has attachments")
        found += [f"cell {at} has metadata.{key}" for key in cell["metadata"].keys() - {"tags"}]
    return found


def read(root: Path, name: str) -> Any:
    notebook = nbformat.read(root / "notebooks" / name, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    return notebook


def test_the_start_notebook_is_there_and_short(root: Path) -> None:
    assert FIRST in NOTEBOOKS
    assert len(read(root, FIRST)["cells"]) < 10


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_ship_clean(root: Path, name: str) -> None:
    notebook = read(root, name)
    assert notebook["nbformat"] == 4
    assert faults(notebook) == []


def test_the_check_sees_what_it_must() -> None:
    clean = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("1"), nbformat.v4.new_markdown_cell("text")],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    assert faults(clean) == []

    def spoilt(change: Any) -> list[str]:
        notebook = copy.deepcopy(clean)
        change(notebook)
        return faults(notebook)

    output = nbformat.v4.new_output("stream", text="hello")
    assert spoilt(lambda n: n["metadata"].update(widgets={}))
    assert spoilt(lambda n: n["metadata"]["kernelspec"].update(name="conda-root"))
    assert spoilt(lambda n: n["cells"][0]["outputs"].append(output))
    assert spoilt(lambda n: n["cells"][0].update(execution_count=1))
    assert spoilt(lambda n: n["cells"][0]["metadata"].update(scrolled=True))
    assert spoilt(lambda n: n["cells"][1].update(attachments={"a.png": {}}))


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_each_notebook_runs_to_its_end(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """In an empty folder and home; an exception or a word on stderr fails."""
    from nbclient import NotebookClient

    for variable in ("HOME", "IPYTHONDIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
        os.mkdir(tmp_path / variable.lower())
    work = tmp_path / "work"
    work.mkdir()
    notebook = read(root, name)
    place = {"metadata": {"path": str(work)}}
    NotebookClient(notebook, timeout=CELL_SECONDS, resources=place).execute()
    said = [
        "".join(output["text"])
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream" and output["name"] == "stderr"
    ]
    assert said == []
