"""What the launcher writes, what it starts, and that the server does as it was told."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from codesmith_lab import launch
from codesmith_lab.errors import LabError

SERVER_SECONDS = 90


def test_the_copy_is_the_bundled_notebook_and_is_kept(tmp_path: Path) -> None:
    copy = launch.copy_notebook(tmp_path)
    assert copy == tmp_path / "codesmith-lab" / launch.START_NOTEBOOK
    bundled = copy.read_bytes()
    assert json.loads(bundled)["nbformat"] == 4
    copy.write_bytes(b"mine")
    assert launch.copy_notebook(tmp_path) == copy
    assert copy.read_bytes() == b"mine"
    fresh = [launch.copy_notebook(tmp_path, fresh=True) for _ in range(2)]
    assert [path.name for path in fresh] == ["00_start_here-2.ipynb", "00_start_here-3.ipynb"]
    assert [path.read_bytes() for path in fresh] == [bundled, bundled]
    assert copy.read_bytes() == b"mine"


def test_every_notebook_of_the_tree_comes_along(root: Path) -> None:
    names = sorted(path.name for path in (root / "notebooks").glob("*.ipynb"))
    assert launch.START_NOTEBOOK in names
    assert launch.bundled_notebooks() == names


def test_a_link_that_leads_elsewhere_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (tmp_path / "codesmith-lab").mkdir()
    (tmp_path / "codesmith-lab" / launch.START_NOTEBOOK).symlink_to(victim)
    with pytest.raises(LabError, match="in the way"):
        launch.copy_notebook(tmp_path)
    assert not victim.exists()


def test_a_file_where_the_folder_should_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "codesmith-lab").write_text("")
    with pytest.raises(LabError, match=r"cannot be written to .*; name a folder of your own"):
        launch.copy_notebook(tmp_path)


def test_a_folder_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no folder"):
        launch.open_lab(folder=tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["jupyterlab", "ipykernel"])
def test_a_missing_jupyter_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == missing else object()
    )
    with pytest.raises(LabError, match=rf"{missing} is not installed for .*-m pip install"):
        launch.open_lab(folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_command_keeps_jupyters_token_and_stays_on_this_machine(tmp_path: Path) -> None:
    notebook = launch.copy_notebook(tmp_path)
    command = launch.lab_command(tmp_path, notebook, None, browser=True)
    assert command[0] == sys.executable
    assert "--ServerApp.ip=127.0.0.1" in command
    assert "--LabApp.default_url=/lab/tree/codesmith-lab/00_start_here.ipynb" in command
    assert not [word for word in command if "token" in word or "password" in word]
    assert "--no-browser" not in command
    closed = launch.lab_command(tmp_path, notebook, 8123, browser=False)
    assert {"--no-browser", "--ServerApp.port=8123"} <= set(closed)


def test_the_persons_own_configuration_comes_along() -> None:
    ours = launch.lab_environment({})["JUPYTER_CONFIG_PATH"]
    assert Path(ours, "labconfig", "default_setting_overrides.json").is_file()
    both = launch.lab_environment({"JUPYTER_CONFIG_PATH": "theirs", "A": "b"})
    assert both == {"JUPYTER_CONFIG_PATH": f"{ours}{os.pathsep}theirs", "A": "b"}


class Served:
    """`codesmith-lab --no-browser` as a person starts it, in a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = secrets.token_hex(16)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        home = folder / "home"
        imposter = home / ".local/share/jupyter/kernels/python3"
        imposter.mkdir(parents=True)
        (imposter / "kernel.json").write_text(
            '{"argv": ["/bin/false"], "display_name": "imposter", "language": "python"}'
        )
        (folder / "json.py").write_text("raise SystemExit('a file of the person took over')")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")}
        mine = {"HOME": str(home), "JUPYTER_TOKEN": self.token, "JUPYTER_PREFER_ENV_PATH": "0"}
        self.log = (folder / "server.log").open("w+b")
        command = [sys.executable, "-P", "-m", "codesmith_lab.cli"]
        self.process = subprocess.Popen(
            [*command, "--no-browser", f"--port={self.port}"],
            cwd=folder,
            env=kept | mine,
            stdout=self.log,
            stderr=self.log,
        )

    def said(self) -> str:
        return (self.folder / "server.log").read_text("utf-8", "replace")

    def get(self, path: str, token: str | None = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            headers={"Authorization": f"token {token or self.token}"},
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    def wait_until_ready(self) -> None:
        """Wait for the port, then for an answer; the exit of the process ends the wait."""
        for _ in range(SERVER_SECONDS):
            try:
                self.get("/api/status")
                return
            except (OSError, urllib.error.URLError):
                try:
                    self.process.wait(timeout=1)
                except subprocess.TimeoutExpired:
                    continue
                break
        pytest.fail(f"the server did not start:\n{self.said()[-3000:]}")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals and folders are POSIX here")
def test_a_started_server_does_what_the_launcher_promises(tmp_path: Path) -> None:
    served = Served(tmp_path)
    try:
        served.wait_until_ready()
        spec = served.get("/api/kernelspecs")["kernelspecs"]["python3"]["spec"]
        assert Path(spec["argv"][0]).samefile(sys.executable)
        assert "imposter" not in spec["display_name"]
        plugin = "@jupyterlab%2Fapputils-extension:notification"
        settings = served.get(f"/lab/api/settings/{plugin}")["schema"]["properties"]
        assert settings["fetchNews"]["default"] == "false"
        assert settings["checkForUpdates"]["default"] is False
        with pytest.raises(urllib.error.HTTPError, match="403"):
            served.get("/api/contents", token="guess")
        names = [entry["name"] for entry in served.get("/api/contents/codesmith-lab")["content"]]
        assert sorted(names) == launch.bundled_notebooks()
    finally:
        served.process.send_signal(signal.SIGTERM)
        status = served.process.wait(30)
        served.log.close()
    assert status == 0, served.said()[-3000:]
    assert "imposter" not in served.said()
    with socket.socket() as probe:  # nothing is left behind on the port
        assert probe.connect_ex(("127.0.0.1", served.port)) != 0


def test_the_websocket_sends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """TCP_NODELAY is set before the channels open."""
    from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

    from codesmith_lab.launch_server import PromptWebsocket

    seen: list[object] = []

    class Handler:
        def set_nodelay(self, value: bool) -> None:
            seen.append(value)

    class Opened:
        websocket_handler = Handler()

    def opened(self: object) -> None:
        seen.append("connected")

    monkeypatch.setattr(ZMQChannelsWebsocketConnection, "connect", opened)
    connection = PromptWebsocket.__new__(PromptWebsocket)
    monkeypatch.setattr(PromptWebsocket, "websocket_handler", Opened.websocket_handler)
    connection.connect()
    assert seen == [True, "connected"]
