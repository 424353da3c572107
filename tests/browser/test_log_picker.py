"""A log chosen in the notebook, in real JupyterLab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

import codesmith_lab as lab


def test_a_chosen_log_opens_its_workbench(
    lab_server: Any, open_notebook: Callable[..., Any], tmp_path: Path
) -> None:
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("import codesmith_lab as lab\nlab.LogPicker()")]
    )
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    notebook = lab_server.root / "picker.ipynb"
    nbformat.write(book, notebook)
    log = lab.samples.write_clock_story(tmp_path / "mine <b>.jsonl")
    page = open_notebook(notebook, '.cslab-pick[data-ready="1"]')
    page.set_input_files(".cslab-pick input", log)
    page.wait_for_selector('.cslab[data-ready="1"]')
    assert "mine <b>.jsonl: 40 requests" in page.locator(".cslab-pick").inner_text()
    bench = lab.Workbench(lab.load(log))
    cost = bench.head["figures"][1]["value"]
    assert cost in page.locator(".cslab .cs-figures").inner_text()
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(bytes(range(256)))
    page.set_input_files(".cslab-pick input", bad)
    page.wait_for_function(
        "document.querySelector('.cslab-pick-error').textContent.includes('binary')"
    )
    assert page.locator(".cslab").count() == 0
    assert page.problems == []
