"""A real JupyterLab, started as our launcher starts it, and a real Chromium."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_SECONDS = 90


def _chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        reason = "Chromium is not installed, so the browser tests cannot run"
        if os.environ.get("CODESMITH_LAB_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A server on the start notebook: its address, token and folder."""
    _chromium()
    from codesmith_lab.launch import copy_notebook, lab_command

    root = tmp_path_factory.mktemp("lab")
    home = tmp_path_factory.mktemp("home")
    notebook = copy_notebook(root)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(12)
    command = [
        *lab_command(root, notebook, port, browser=False),
        f"--IdentityProvider.token={token}",
        "--allow-root",
        "--LabApp.expose_app_in_browser=True",
    ]
    places = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    environment = os.environ | {"HOME": str(home), "IPYTHONDIR": str(home / "ipython")}
    environment |= {f"JUPYTER_{name}": str(home / name.lower()) for name in places}
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=root)
        try:
            base = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + START_SECONDS
            while not _answers(f"{base}/api/status?token={token}"):
                if server.poll() is not None or time.monotonic() > deadline:
                    pytest.fail((home / "server.log").read_text()[-3000:])
                select_pause()
            yield {"base": base, "token": token, "root": root, "notebook": notebook}
        finally:
            server.terminate()
            server.wait(30)


def select_pause() -> None:
    """Give the server a moment between two looks at its state."""
    import select

    select.select([], [], [], 0.2)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    executable = _chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
        yield started
        started.close()


@pytest.fixture
def bench_page(lab: dict[str, Any], browser: Any) -> Iterator[Any]:
    """The start notebook, run to the end, with the workbench drawn."""
    page = browser.new_page(viewport={"width": 1500, "height": 1300})
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    relative = lab["notebook"].relative_to(lab["root"]).as_posix()
    page.goto(f"{lab['base']}/lab/tree/{relative}?token={lab['token']}&reset")
    page.wait_for_function(
        "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status==='idle'",
        timeout=90_000,
    )
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_selector('.cslab[data-ready="1"]', timeout=90_000)
    yield page
    page.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
