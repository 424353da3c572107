"""The prediction against a real llama.cpp server, token for token."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

REQUIRED = bool(os.environ.get("CODESMITH_LAB_REQUIRE_ENGINE"))
INSTALLED = importlib.util.find_spec("xllamacpp") is not None

pytestmark = pytest.mark.skipif(
    not INSTALLED and not REQUIRED,
    reason="the wheel xllamacpp is not installed here, so there is no engine to compare with",
)


@pytest.fixture(scope="module")
def engine_check() -> Iterator[ModuleType]:
    """The script beside this file, which is no module of a package."""
    path = Path(__file__).with_name("engine_check.py")
    spec = importlib.util.spec_from_file_location("engine_check", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["engine_check"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["engine_check"]


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_cached_tokens_are_as_predicted(
    engine_check: ModuleType, tmp_path: Path, slots: int
) -> None:
    model = tmp_path / "bytes.gguf"
    engine_check.write_model(model)
    rows = engine_check.check(model, slots, seed=slots)
    print(f"\n{engine_check.table(rows)}")
    assert len(rows) >= 40
    assert [row.prompt[0] for row in rows] == [row.prompt[1] for row in rows]
    assert [row.cached[0] for row in rows] == [row.cached[1] for row in rows]
    # The session holds what it is for.
    assert sum(row.cached[1] == row.prompt[1] - 1 for row in rows) >= 3  # whole repeats
    assert any(row.cached[1] == 2 for row in rows)  # first token and role alone
    assert sum(2 < row.cached[1] < row.prompt[1] - 1 for row in rows) >= 15
