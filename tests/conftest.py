"""What every test stands on: the installed package, and settings that do not depend on luck."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

import codesmith_lab

HERE = Path(codesmith_lab.__file__).parent

# A slow or shared machine is no failure, and a stored example of one machine helps no other.
hypothesis.settings.register_profile(
    "codesmith",
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("codesmith")


def pytest_report_header() -> str:
    return f"codesmith_lab under test: {HERE}"


def pytest_sessionstart() -> None:
    """CI sets the variable: the tests must see the wheel, not the tree they lie in."""
    if os.environ.get("CODESMITH_LAB_REQUIRE_INSTALLED") == "1" and HERE.parent.name not in (
        "site-packages",
        "dist-packages",
    ):
        pytest.exit(f"codesmith_lab comes from {HERE}, not from an installed wheel", 2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last.

    While Playwright runs, this thread has an event loop, and what is to be tried without one
    would find it.
    """
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture(scope="session")
def root() -> Path:
    """The source tree: README, notebooks, pyproject."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def package() -> Path:
    """The package's folder as it is installed."""
    return HERE
