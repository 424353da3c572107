"""A real JupyterLab, started as our launcher starts it, and a real Chromium."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_SECONDS = 120
PAGE_MS = 60_000
KERNEL_IDLE = (
    "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
)
READY = '[data-ready="1"]'
"""A widget of ours says with this attribute that it is drawn."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


def find_chromium() -> str | None:
    """Chromium's path, or None."""
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Chromium's path. Without one the tests are skipped; CI forbids that by a variable."""
    found = find_chromium()
    if found is None:
        reason = "Chromium is not installed, so the browser tests cannot run"
        if os.environ.get("CODESMITH_LAB_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@dataclass(frozen=True)
class LabServer:
    """A running JupyterLab: its address, its token and the folder it serves."""

    base: str
    token: str
    root: Path
    notebook: Path

    def get(self, path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(
            self.base + path, headers={"Authorization": f"token {self.token}"}, method=method
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            text = reply.read()
        return json.loads(text) if text else None

    def end_kernels(self) -> None:
        """Shut every kernel down, so that one test's kernel takes no time from the next."""
        for session in self.get("/api/sessions"):
            self.get(f"/api/sessions/{session['id']}", "DELETE")


@contextmanager
def running_lab(root: Path, home: Path, stock_websocket: bool = False) -> Iterator[LabServer]:
    """JupyterLab with our launcher's command and environment, in a home of its own.

    stock_websocket: without the launcher's own websocket class, to compare.
    """
    from codesmith_lab.launch import copy_notebook, lab_command, lab_environment

    notebook, token = copy_notebook(root), secrets.token_hex(16)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = lab_command(root, notebook, port, browser=False)
    if stock_websocket:
        command = [word for word in command if "kernel_websocket_connection_class" not in word]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "IPYTHON"))}
    own = {"HOME": str(home), "IPYTHONDIR": str(home / "ipython"), "JUPYTER_TOKEN": token}
    for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"):
        own[f"JUPYTER_{name}"] = str(home / name.lower())
    for name in ("SETTINGS", "WORKSPACES"):
        own[f"JUPYTERLAB_{name}_DIR"] = str(home / name.lower())
    server = LabServer(f"http://127.0.0.1:{port}", token, root, notebook)
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--LabApp.expose_app_in_browser=True"],
            cwd=root,
            env=lab_environment(kept | own),
            stdout=log,
            stderr=log,
        )
        try:
            _wait_for(server, process, home / "server.log")
            yield server
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="session")
def lab_server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    with running_lab(tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("home")) as server:
        yield server


def _wait_for(server: LabServer, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server answers; its end, or too long a wait, fails with its log."""
    for _ in range(START_SECONDS * 4):
        try:
            server.get("/api/status")
            return
        except OSError:
            try:
                process.wait(timeout=0.25)
            except subprocess.TimeoutExpired:
                continue
            break
    pytest.fail(f"JupyterLab did not start:\n{log.read_text('utf-8', 'replace')[-3000:]}")


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_notebook(lab_server: LabServer, browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a notebook of the served folder, run all of it, and wait until a widget is drawn.

    Gives the Playwright page. `page.problems` collects what went to the console as an error, what
    a script threw, and each request that left this machine; tests hold it empty.
    """
    from playwright.sync_api import Error

    pages: list[Any] = []

    def opened(notebook: Path, ready: str = READY, width: int = 1500, height: int = 1300) -> Any:
        page = browser.new_page(viewport={"width": width, "height": height})
        pages.append(page)
        page.set_default_timeout(PAGE_MS)
        _collect_problems(page, lab_server.base)
        place = notebook.relative_to(lab_server.root).as_posix()
        try:
            page.goto(f"{lab_server.base}/lab/tree/{place}?token={lab_server.token}&reset")
            page.wait_for_function(KERNEL_IDLE)
            page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
            page.wait_for_selector(ready)
        except Error as error:
            seen = page.locator("body").inner_text()[-2000:]
            pytest.fail(f"{place}: {error}\n{page.problems}\nThe page shows:\n{seen}")
        return page

    yield opened
    for page in pages:
        page.close()
    lab_server.end_kernels()


def _collect_problems(page: Any, base: str) -> None:
    page.problems = []

    def said(message: Any) -> None:
        if message.type == "error":
            page.problems.append(f"console: {message.text} ({message.location.get('url', '')})")

    def asked(request: Any) -> None:
        host = base.removeprefix("http")
        ours = ("http" + host, "ws" + host, "data:", "blob:")
        if not request.url.startswith(ours):
            page.problems.append(f"request: {request.url}")

    page.on("console", said)
    page.on("pageerror", lambda error: page.problems.append(f"thrown: {error}"))
    page.on("request", asked)


@pytest.fixture
def bench_page(lab_server: LabServer, open_notebook: Callable[..., Any]) -> Any:
    """The start notebook, run to the end, with the workbench drawn."""
    return open_notebook(lab_server.notebook, '.cslab[data-ready="1"]')
