"""The core gets the clock, the folder and chance from its caller, and never calls out."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

CORE = (
    "errors.py",
    "fingerprint.py",
    "prompt",
    "zones",
    "cache",
    "billing",
    "capacity",
    "sessions",
    "retry.py",
    "retry",
    "config.py",
    "config",
)
FORBIDDEN_MODULES = {
    # Jupyter and drawing
    *("IPython", "anywidget", "ipykernel", "ipywidgets", "matplotlib", "traitlets"),
    *("jupyter_client", "jupyter_core", "jupyter_server", "jupyterlab", "pandas"),
    # network and processes
    *("aiohttp", "anthropic", "ftplib", "http", "httpx", "openai", "requests", "smtplib", "socket"),
    *("ssl", "subprocess", "urllib", "urllib3", "websockets", "webbrowser"),
    # clock, environment, chance
    *("getpass", "locale", "os", "platform", "secrets", "tempfile", "time", "uuid"),
}
EXCEPTIONS = {
    # Report.bill is a DataFrame: pandas comes in when somebody asks for it, inside the function.
    ("sessions/reports/report.py", "pandas"): "in functions",
    # Tokenizer engines read their ranks from a file only; what they read is checked by SHA-256.
    ("billing/tokenizers_deepseek.py", "tempfile"): "everywhere",
    ("billing/tokenizers_openai.py", "tempfile"): "everywhere",
    # Labelled observations may come as a DataFrame, or from a file that pandas reads.
    ("capacity/labelled.py", "pandas"): "in functions",
}
FORBIDDEN_ATTRIBUTES = {
    *("cwd", "environ", "expanduser", "getcwd", "getenv", "home", "now", "today", "utcnow"),
}


def impurities(source: str, name: str = "") -> list[str]:
    """What in a module reads the world around it."""
    tree = ast.parse(source)
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in typing_only:
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
            inside = node not in tree.body
            found += [
                f"line {node.lineno} imports {top}"
                for top in (n.split(".")[0] for n in names)
                if top in FORBIDDEN_MODULES
                and EXCEPTIONS.get((name, top)) not in ("everywhere", inside and "in functions")
            ]
            found += [
                f"line {node.lineno} imports {alias.name} from random"
                for alias in node.names
                if isinstance(node, ast.ImportFrom)
                and node.module == "random"
                and alias.name != "Random"
            ]
        elif isinstance(node, ast.Attribute):
            if node.attr in FORBIDDEN_ATTRIBUTES:
                found.append(f"line {node.lineno} uses .{node.attr}")
            if ast.unparse(node.value) in ("np.random", "numpy.random") or (
                ast.unparse(node.value) == "random" and node.attr != "Random"
            ):
                found.append(f"line {node.lineno} uses unseeded {ast.unparse(node)}")
        elif isinstance(node, ast.Call) and not node.args:
            called = ast.unparse(node.func)
            if called in ("random.Random", "Random", "open", "input"):
                found.append(f"line {node.lineno} calls {called}() without a seed")
    return found


def test_the_core_reads_nothing_but_its_arguments(package: Path) -> None:
    paths = [
        path
        for part in CORE
        for path in ([package / part] if part.endswith(".py") else (package / part).rglob("*.py"))
        if path.is_file()
    ]
    assert len(paths) > 20
    found = {}
    for path in paths:
        name = path.relative_to(package).as_posix()
        if bad := impurities(path.read_text("utf-8"), name):
            found[name] = bad
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pandas as pd",
        "def f():\n    import socket",
        "from urllib.request import urlopen",
        "import random\nrandom.random()",
        "import random\nx = random.Random()",
        "from random import choice",
        "import numpy as np\nnp.random.default_rng()",
        "from datetime import datetime\ndatetime.now()",
        "from datetime import date\ndate.today()",
        "from pathlib import Path\nPath.cwd()",
        "import os",
    ],
)
def test_the_check_sees_what_it_must(source: str) -> None:
    assert impurities(source)


def test_the_check_lets_seeded_chance_and_types_pass() -> None:
    assert not impurities(
        "from typing import TYPE_CHECKING\nimport random\nrandom.Random(7)\n"
        "if TYPE_CHECKING:\n    import pandas as pd\n"
    )


WATCHED = """
import sys

def watch(event, arguments):
    if event.split(".")[0] in ("socket", "subprocess", "ftplib", "urllib", "http", "webbrowser"):
        raise SystemExit(f"the analysis called out: {event} {arguments}")

import codesmith_lab as lab
sys.addaudithook(watch)
line = b'{"model": "%s", "messages": [{"role": "user", "content": "hello"}]}'
for model in (b"deepseek-v4-flash", b"gpt-4o"):
    report = lab.analyze(lab.load_bytes(line % model))
    assert report.to_json()["totals"]["input_tokens"] > 0
    report.bill
"""


def test_an_analysis_opens_no_connection(tmp_path: Path) -> None:
    """Tokenizers and prices work with the network cut: an audit hook ends the run otherwise."""
    nowhere = os.environ | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", WATCHED],
        cwd=tmp_path,
        env=nowhere,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
