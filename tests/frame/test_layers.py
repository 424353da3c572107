"""Which group may import which: one direction, function-level imports included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "codesmith_lab"
LAYERS = (
    {"errors", "wording"},
    {"fingerprint"},
    {"prompt"},
    {"zones"},
    {"cache"},
    {"billing"},
    {"capacity"},
    {"sessions"},
    {"retry", "config"},
    {"samples"},
    {"live"},
    {"kvlab"},
    {"plots"},
    {"widgets"},
    {"labs"},
    {"launch", "launch_server"},
    {"cli"},
)
"""Each group may import itself and the groups above it; two groups in one row know neither other.

`__init__` is the public face: it names all and is imported by none.
"""
RANK = {group: rank for rank, groups in enumerate(LAYERS) for group in groups}


def imports_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and group of each import of this package, at whatever depth."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, "a relative import"
                continue
            base = node.module or ""
            names = [f"{base}.{a.name}" for a in node.names] if base == PACKAGE else [base]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == PACKAGE:
                yield node.lineno, parts[1] if len(parts) > 1 else "the public face"


def against_direction(group: str, source: str) -> list[str]:
    """The imports of a module in `group` that point down or sideways."""
    return [
        f"line {line} imports {other}"
        for line, other in imports_of(source)
        if other != group and RANK.get(other, len(LAYERS)) >= RANK[group]
    ]


def modules(package: Path) -> list[Path]:
    return [path for path in sorted(package.rglob("*.py")) if path != package / "__init__.py"]


def group_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def test_every_module_belongs_to_a_group(package: Path) -> None:
    assert {group_of(path, package) for path in modules(package)} <= RANK.keys()


def test_imports_point_up_only(package: Path) -> None:
    wrong = {
        str(path.relative_to(package)): bad
        for path in modules(package)
        if (bad := against_direction(group_of(path, package), path.read_text("utf-8")))
    }
    assert wrong == {}


def test_only_the_public_face_imports_by_name(package: Path) -> None:
    """A module name in a string would slip past the direction."""
    using = [
        str(path.relative_to(package))
        for path in modules(package)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr == "import_module")
        or (
            (isinstance(node, ast.ImportFrom) and node.module == "importlib")
            and any(alias.name == "import_module" for alias in node.names)
        )
        or (isinstance(node, ast.Name) and node.id == "__import__")
    ]
    assert using == []


@pytest.mark.parametrize(
    ("group", "source"),
    [
        ("zones", "from codesmith_lab.cache.engine import Engine"),
        ("zones", "def f():\n    import codesmith_lab.sessions.reading.load"),
        ("retry", "from codesmith_lab.config import x"),
        ("errors", "from codesmith_lab import prompt"),
        ("sessions", "import codesmith_lab"),
        ("sessions", "from . import records"),
        ("labs", "if True:\n    from codesmith_lab.unheard_of import x"),
    ],
)
def test_the_check_sees_what_it_must(group: str, source: str) -> None:
    assert against_direction(group, source)


def test_the_check_lets_the_right_direction_pass() -> None:
    assert not against_direction("sessions", "from codesmith_lab.billing.usage import Usage")
    assert not against_direction("cli", "from codesmith_lab.launch import open_lab\nimport json")
