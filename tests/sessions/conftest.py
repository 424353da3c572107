"""The made logs, for tests and for the fuzzer."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load_made() -> ModuleType:
    """The package `made_logs` beside this file, which is on no import path."""
    name = "made_logs"
    if name not in sys.modules:
        folder = Path(__file__).with_name(name)
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def made() -> ModuleType:
    return load_made()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `log_name` runs for every made log."""
    if "log_name" in metafunc.fixturenames:
        metafunc.parametrize("log_name", list(load_made().LOGS))
