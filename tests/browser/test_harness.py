"""The harness itself, with a widget of ten lines: a click goes to Python and comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

WIDGET = """
import anywidget
import traitlets


class Doubler(anywidget.AnyWidget):
    _esm = '''
    function render({ model, el }) {
      const button = document.createElement("button");
      button.className = "doubler";
      const show = () => { button.textContent = `${model.get("clicks")} ${model.get("twice")}`; };
      button.addEventListener("click", () => {
        model.set("clicks", model.get("clicks") + 1);
        model.save_changes();
      });
      model.on("change", show);
      show();
      el.append(button);
      el.dataset.ready = "1";
    }
    export default { render };
    '''
    clicks = traitlets.Int(0).tag(sync=True)
    twice = traitlets.Int(0).tag(sync=True)

    @traitlets.observe("clicks")
    def _doubled(self, change):
        self.twice = 2 * change["new"]


Doubler()
"""


def write(notebook: Path, code: str) -> Path:
    """A notebook of one cell, with the kernel that the launcher brings."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [nbformat.v4.new_code_cell(code)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), notebook)
    return notebook


def test_a_click_goes_to_python_and_back(
    lab_server: Any, open_notebook: Callable[..., Any]
) -> None:
    page = open_notebook(write(lab_server.root / "doubler.ipynb", WIDGET))
    button = page.locator("button.doubler")
    assert button.inner_text() == "0 0"
    for clicks in range(1, 4):
        button.click()
        page.get_by_text(f"{clicks} {2 * clicks}", exact=True).wait_for()
    assert page.problems == []


def test_jupyterlab_asks_nothing(lab_server: Any, open_notebook: Callable[..., Any]) -> None:
    """No question about news or updates lies over the notebook, and the server has our kernel."""
    code = "import sys, codesmith_lab\nprint('kernel:', sys.executable)"
    page = open_notebook(write(lab_server.root / "quiet.ipynb", code), ".jp-OutputArea-output")
    spec = lab_server.get("/api/kernelspecs")["kernelspecs"]["python3"]["spec"]
    page.get_by_text(f"kernel: {spec['argv'][0]}").wait_for()
    assert page.get_by_text("news").count() == 0
    assert page.locator(".Toastify__toast").count() == 0
    assert page.problems == []
