"""Open JupyterLab on the start notebook, with prompt answers from the kernel."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from codesmith_lab.errors import LabError

__all__ = [
    "START_NOTEBOOK",
    "bundled_notebooks",
    "copy_notebook",
    "lab_command",
    "lab_environment",
    "open_lab",
]

START_NOTEBOOK = "00_start_here.ipynb"
FOLDER = "codesmith-lab"
"""Where copies go, below the folder that is served."""


def _folders() -> list[Traversable]:
    """Where bundled notebooks are: inside the package, or beside it in an editable install."""
    inside = resources.files("codesmith_lab").joinpath("notebooks")
    return [inside, Path(__file__).resolve().parent.parent / "notebooks"]


def bundled_notebooks() -> list[str]:
    """Names of the notebooks that come along, in the order to read them."""
    for folder in _folders():
        if folder.is_dir():
            names = [item.name for item in folder.iterdir() if item.name.endswith(".ipynb")]
            if START_NOTEBOOK in names:
                return sorted(names)
    return []


def _bundled(name: str) -> bytes:
    for folder in _folders():
        if folder.joinpath(name).is_file():
            return folder.joinpath(name).read_bytes()
    raise LabError(f"the notebook {name} is missing from this installation; install it again")


def copy_notebook(folder: Path, name: str = START_NOTEBOOK, fresh: bool = False) -> Path:
    """A copy of a bundled notebook below `folder`; an existing copy is never touched.

    fresh: write a new numbered copy when there is one already.

    Raises LabError when the folder cannot be written to.
    """
    first = folder / FOLDER / name
    target, number = first, 1
    try:
        first.parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                # "x" makes this safe against a second launcher and a link that leads elsewhere.
                with target.open("xb") as stream:
                    stream.write(_bundled(name))
                return target
            except FileExistsError:
                if not fresh:
                    return _regular(target)
                number += 1
                target = first.with_stem(f"{first.stem}-{number}")
    except OSError as error:
        raise LabError(
            f"the notebook cannot be written to {first.parent} ({error.strerror}); "
            "name a folder of your own with --dir"
        ) from None


def _regular(target: Path) -> Path:
    if not target.is_file():
        raise LabError(f"{target} is in the way and is not a notebook; move it, or use --fresh")
    return target


def lab_command(root: Path, notebook: Path, port: int | None, browser: bool) -> list[str]:
    """The command that serves `root` and opens `notebook`, which lies below it.

    port: None takes 8888, or the next free one; a given port is taken or the start fails.

    The websocket class sends each answer at once instead of waiting for an acknowledgement, which
    takes the median answer from about 50 to about 20 ms. The token is Jupyter's own, new each time.
    """
    command = [
        sys.executable,
        "-P",  # a file of the person's own, say json.py, must not replace the server's modules
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={root}",
        "--ServerApp.ip=127.0.0.1",
        f"--LabApp.default_url=/lab/tree/{notebook.relative_to(root).as_posix()}",
        "--ServerApp.kernel_websocket_connection_class=codesmith_lab.launch_server.PromptWebsocket",
        "--ServerApp.kernel_spec_manager_class=codesmith_lab.launch_server.OwnKernelSpecs",
        "--LabApp.extension_manager=readonly",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    if port is not None:
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if not browser:
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # Jupyter refuses root; in a container root is often the only user there is.
        command.append("--allow-root")
    return command


def lab_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` with defaults that keep JupyterLab from asking about news and updates.

    What the person chose in JupyterLab's own settings still wins, and no file of theirs changes.
    """
    quiet = str(resources.files("codesmith_lab").joinpath("jupyter"))
    paths = [quiet, *filter(None, [environment.get("JUPYTER_CONFIG_PATH")])]
    return {**environment, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)}


def open_lab(
    port: int | None = None, browser: bool = True, fresh: bool = False, folder: Path | None = None
) -> int:
    """Copy the notebooks below `folder` and serve it, open on the first, until interrupted.

    Gives the server's exit status. folder: None takes the current one.

    Raises LabError when JupyterLab is missing or the folder cannot be written to.
    """
    for module in ("jupyterlab", "ipykernel"):
        if importlib.util.find_spec(module) is None:
            raise LabError(
                f"{module} is not installed for {sys.executable}; "
                f"run: {sys.executable} -m pip install jupyterlab ipykernel"
            )
    root = (folder or Path.cwd()).resolve()
    if folder is not None and not root.is_dir():
        raise LabError(f"{folder} is no folder; name one that exists with --dir")
    notebook = copy_notebook(root, fresh=fresh)
    for name in bundled_notebooks():
        if name != START_NOTEBOOK:
            copy_notebook(root, name, fresh=fresh)
    with subprocess.Popen(
        lab_command(root, notebook, port, browser), env=lab_environment(os.environ)
    ) as server:
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        while True:
            try:
                return server.wait()
            except KeyboardInterrupt:
                # Ctrl-C reached the server too, which asks whether to stop: let it end by itself.
                continue
