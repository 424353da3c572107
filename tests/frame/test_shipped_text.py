"""What the shipped scripts and modules may not contain: ways for a log's text to become code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SCRIPT_BANS = {
    "markup from text": r"innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|\.setHTML\b|srcdoc"
    r"|document\.write|createContextualFragment|DOMParser|parseFromString",
    "code from text": r"\beval\s*\(|\bnew\s+Function\b|\bFunction\s*\("
    r"|set(?:Timeout|Interval)\(\s*[\"'`]",
    "the network": r"\bfetch\s*\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts"
    r"|\bimport\s*\((?!\"@anywidget/types\"\)\.)|^\s*import\b|@import|https?:|[\"'`(]//\w",
}
"""In comments too: a word that is not there needs no second look. `import("@anywidget/types")` is
how a comment names a type."""
PYTHON_CALLS = {"eval", "exec", "compile", "__import__"}
PYTHON_NAMES = {
    *("HTML", "HTMLMath", "Javascript", "display_html", "_repr_html_", "_repr_javascript_"),
}
PYTHON_MODULES = {"pickle", "marshal", "shelve", "dill"}


def script_faults(source: str) -> list[str]:
    return [
        f"line {source.count(chr(10), 0, hit.start()) + 1}: {what}: {hit.group().strip()}"
        for what, pattern in SCRIPT_BANS.items()
        for hit in re.finditer(pattern, source, re.MULTILINE)
    ]


def module_faults(source: str) -> list[str]:
    tree = ast.parse(source)
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found = []
    for node in ast.walk(tree):
        line = f"line {getattr(node, 'lineno', 0)}: "
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in PYTHON_CALLS:
                found.append(f"{line}calls {node.func.id}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name.split(".")[0] for alias in node.names}
            names |= {(getattr(node, "module", "") or "").split(".")[0]}
            found += [f"{line}imports {n}" for n in names & (PYTHON_MODULES | PYTHON_NAMES)]
        elif isinstance(node, ast.Attribute) and node.attr in PYTHON_NAMES:
            found.append(f"{line}uses {node.attr}")
        elif isinstance(node, ast.FunctionDef) and node.name in PYTHON_NAMES:
            found.append(f"{line}defines {node.name}")
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation
            and re.search(r"https?://", node.value)
        ):
            found.append(f"{line}holds a network address")
    return found


def test_scripts_make_no_markup_no_code_and_no_request(package: Path) -> None:
    scripts = sorted([*package.rglob("*.js"), *package.rglob("*.css")])
    assert {path.suffix for path in scripts} == {".js", ".css"}
    faults = {path.name: script_faults(path.read_text("utf-8")) for path in scripts}
    assert {name: found for name, found in faults.items() if found} == {}


def test_modules_make_no_markup_and_no_code(package: Path) -> None:
    faults = {
        path.relative_to(package).as_posix(): module_faults(path.read_text("utf-8"))
        for path in sorted(package.rglob("*.py"))
        if "data" not in path.relative_to(package).parts
    }
    assert {name: found for name, found in faults.items() if found} == {}


@pytest.mark.parametrize(
    "source",
    [
        "node.innerHTML = text",
        "node['outerHTML'] = text",
        "node.insertAdjacentHTML('beforeend', text)",
        "eval (text)",
        "new Function(text)()",
        "setTimeout('go()', 1)",
        "fetch('/x')",
        "await import('./x.js')",
        "import x from './x.js'",
        "const a = 'https://example.org'",
        "url(//example.org/a.png)",
        "@import 'x.css'",
    ],
)
def test_the_script_check_sees_what_it_must(source: str) -> None:
    assert script_faults(source)


@pytest.mark.parametrize(
    "source",
    [
        "eval(text)",
        "import ipywidgets\nipywidgets.HTML(text)",
        "from IPython.display import HTML",
        "import pickle",
        "class A:\n    def _repr_html_(self):\n        return ''",
        "URL = 'http://example.org'",
    ],
)
def test_the_module_check_sees_what_it_must(source: str) -> None:
    assert module_faults(source)


def test_the_checks_let_ordinary_code_pass() -> None:
    assert not script_faults("export default { render };\nnode.textContent = text; // an important")
    assert not module_faults("'''From https://example.org'''\nimport re\nre.compile('a')")
