"""A short run of the fuzzer, so that it stays fit and its promises are held in every test run."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

import pytest

from codesmith_lab.sessions.reading.load import FORMATS

INPUTS = 800


@pytest.fixture(scope="module")
def fuzzer() -> ModuleType:
    name = "fuzz_importers"
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_input_breaks_a_promise(fuzzer: ModuleType) -> None:
    made = fuzzer.inputs(seed=11)
    for at, (data, _) in enumerate(itertools.islice(made, INPUTS)):
        fuzzer.check(data, [None, None, *FORMATS][at % (len(FORMATS) + 2)])


def test_the_same_seed_gives_the_same_inputs(fuzzer: ModuleType) -> None:
    first, second, other = (
        [data for data, _ in itertools.islice(fuzzer.inputs(seed), 30)] for seed in (1, 1, 2)
    )
    assert first == second != other


def test_the_check_sees_what_breaks(fuzzer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    from codesmith_lab.sessions.reading import load

    def broken(*arguments: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(load, "load_bytes", broken)
    with pytest.raises(KeyError):
        fuzzer.check(b"{}", None)
