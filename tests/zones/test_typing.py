"""The forbidden operations do not type-check, the allowed ones do."""

from __future__ import annotations

from pathlib import Path

import mypy.api
import pytest

from codesmith_lab.zones import AppendLog

CASES = Path(__file__).with_name("typing_cases.py")
MARK = "# E: "
NAMES = ("insert", "remove", "truncate", "pop", "append", "extend", "clear", "sort", "reverse")

pytestmark = pytest.mark.slow  # mypy reads the package anew


def expected_errors() -> dict[int, str]:
    lines = CASES.read_text("utf-8").splitlines()
    return {
        number: line.split(MARK)[1]
        for number, line in enumerate(lines, 1)
        if MARK in line and not line.startswith("A line")
    }


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[str]]:
    """The errors that mypy finds in the cases, by line."""
    cache = tmp_path_factory.mktemp("mypy")
    config = cache / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\n[mypy-codesmith_lab.*]\nfollow_imports = silent\n")
    out, err, _ = mypy.api.run(
        [
            *("--config-file", str(config), "--cache-dir", str(cache)),
            *("--hide-error-context", "--no-error-summary", "--no-pretty", str(CASES)),
        ]
    )
    assert err == ""
    found: dict[int, list[str]] = {}
    for line in out.splitlines():
        where, kind, text = line.split(": ", 2)
        if kind == "error":
            found.setdefault(int(where.rsplit(":", 1)[1]), []).append(text)
    return found


def test_every_forbidden_operation_is_refused_by_the_type_checker(
    errors: dict[int, list[str]],
) -> None:
    refused = {
        number: text
        for number, text in expected_errors().items()
        if any(text in error for error in errors.get(number, []))
    }
    assert refused == expected_errors()


def test_every_allowed_operation_type_checks(errors: dict[int, list[str]]) -> None:
    assert set(errors) == set(expected_errors())


def test_the_cases_name_every_forbidden_operation() -> None:
    source = CASES.read_text("utf-8")
    written = [f"log.{name}(" for name in NAMES] + ["log[0] = ", "del log[0]", "log += "]
    assert [each for each in written if each not in source] == []


def test_the_forbidden_operations_fail_at_run_time_too() -> None:
    log = AppendLog([{"role": "user", "content": "a"}])
    for name in NAMES:
        assert not hasattr(log, name)
    for statement in ("log[0] = 1", "del log[0]", "log[0:1] = []", "log += [1]", "log *= 2"):
        with pytest.raises(TypeError):
            exec(statement, {"log": log})
    with pytest.raises(AttributeError):
        log.extra = 1  # type: ignore[attr-defined]
    assert len(log) == 1
