"""Promises of the package as a whole."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

import codesmith_lab as lab

PACKAGE = Path(lab.__file__).parent
ROOT = Path(__file__).parents[2]
LAYERS = (
    ("errors",),
    ("fingerprint",),
    ("prompt",),
    ("zones",),
    ("cache",),
    ("billing",),
    ("sessions",),
    ("samples",),
    ("widgets",),
    ("labs",),
    ("launch", "launch_server"),
    ("cli",),
)
CORE = ("errors", "fingerprint", "prompt", "zones", "cache", "billing", "sessions")
RANK = {name: i for i, names in enumerate(LAYERS) for name in names}


def modules() -> list[tuple[str, ast.Module]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] in RANK:
            found.append((parts[0], ast.parse(path.read_text("utf-8"))))
    return found


def imported(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_each_layer_imports_only_from_those_above() -> None:
    for layer, tree in modules():
        for name in imported(tree):
            parts = name.split(".")
            if parts[0] == "codesmith_lab" and len(parts) > 1 and parts[1] in RANK:
                assert RANK[parts[1]] <= RANK[layer], f"{layer} imports {name}"


def test_the_core_knows_no_screen_and_no_network() -> None:
    banned = {"matplotlib", "ipywidgets", "anywidget", "IPython", "socket", "urllib", "requests"}
    for layer, tree in modules():
        if layer in CORE:
            assert not {name.split(".")[0] for name in imported(tree)} & banned


def test_public_names() -> None:
    for name in lab.__all__:
        assert getattr(lab, name) is not None
    assert {"load", "analyze", "Workbench", "AppendLog", "cache_stats"} <= set(lab.__all__)
    with pytest.raises(AttributeError):
        lab.nonsense  # noqa: B018


def test_import_is_light() -> None:
    code = (
        "import sys, codesmith_lab; heavy = {'numpy', 'pandas', 'openai', 'matplotlib', "
        "'ipywidgets', 'anywidget', 'genai_prices', 'toktok', 'fastokens'}; "
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_scripts_set_text_only_as_text_and_fetch_nothing() -> None:
    for path in PACKAGE.rglob("*.js"):
        text = path.read_text("utf-8")
        found = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        assert not found
        assert not re.findall(r"https?://", text)
    for path in PACKAGE.rglob("*.py"):
        assert not re.findall(r"\bHTML\(", path.read_text("utf-8"))


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.name)
def test_notebooks_are_clean_and_run(path: Path, tmp_path: Path) -> None:
    raw = json.loads(path.read_text("utf-8"))
    assert "widgets" not in raw["metadata"]
    assert not any(cell.get("outputs") for cell in raw["cells"])
    assert len(raw["cells"]) < 10
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()


def run_cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "codesmith_lab.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_analyze_prints_the_contract(tmp_path: Path) -> None:
    log = lab.samples.write_clock_story(tmp_path / "story.jsonl")
    done = run_cli("analyze", str(log), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    totals = result["totals"]
    assert totals["requests"] == len(result["requests"]) == 40
    assert sum(totals["causes"].values()) == sum(totals["lines"].values())
    assert totals["input_tokens"] == sum(totals["causes"].values())
    assert result["findings"][0]["class"] == "volatile_timestamp"
    assert any(f["class"] == "compaction" and f["intended"] for f in result["findings"])
    assert result["remedies"]
    assert run_cli("analyze", str(log)).stdout.startswith("story.jsonl: 40 requests")


def test_the_command_line_never_shows_a_traceback(tmp_path: Path) -> None:
    binary = tmp_path / "b.jsonl"
    binary.write_bytes(bytes(range(256)) * 4)
    for argument in (str(tmp_path), str(tmp_path / "none"), str(binary)):
        done = run_cli("analyze", argument)
        assert done.returncode == 2
        assert done.stderr.startswith("codesmith-lab: ")
        assert "Traceback" not in done.stderr
