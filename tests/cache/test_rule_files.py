"""Rules as dated data, and rules of a file of one's own that the bill follows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

import codesmith_lab as lab
from codesmith_lab.cache.rule_files import drop_rules, get_rule, known_rules, load_rules
from codesmith_lab.cli import main
from codesmith_lab.errors import InputError, LabError
from codesmith_lab.sessions.records import Session

PROVIDERS = (
    *("deepseek", "openai", "anthropic", "google", "alibaba", "moonshotai", "zai", "x-ai"),
    *("mistral", "minimax", "aws", "openrouter", "vllm", "sglang", "llama-cpp"),
)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    drop_rules()
    yield
    drop_rules()


def write(folder: Path, text: str) -> Path:
    path = folder / "rules.toml"
    path.write_text(text, "utf-8")
    return path


def session(model: str) -> Session:
    """Two requests; the second extends the first by a few tokens."""
    words = " word" * 700
    first = [{"role": "system", "content": "S" + words}, {"role": "user", "content": "one"}]
    second = [*first, {"role": "assistant", "content": "a"}, {"role": "user", "content": "two"}]
    lines = [
        json.dumps({"time": f"2026-11-29T12:0{i}:00Z", "request": {"model": model, "messages": m}})
        for i, m in enumerate((first, second))
    ]
    return lab.load_bytes("\n".join(lines).encode())


def test_every_provider_has_a_dated_rule_with_its_source() -> None:
    assert {rule.provider for rule in known_rules()} == set(PROVIDERS)
    for rule in known_rules():
        assert rule.source and rule.checked >= date(2026, 11, 29), rule.id
        assert rule.doubts or rule.match == "none", rule.id


def test_a_changed_rule_changes_the_bill(tmp_path: Path) -> None:
    before = lab.analyze(session("gpt-5"))
    assert before.turns[1].match.hit_tokens == 0  # about 700 tokens, below 1,024
    lab.load_rules(write(tmp_path, "[openai-128]\nminimum_tokens = 256\nstep_tokens = 64\n"))
    after = lab.analyze(session("gpt-5"))
    hit = after.turns[1].match.hit_tokens
    assert hit == after.turns[0].prompt.total_tokens // 64 * 64 >= 640
    saved = before.totals.cost_usd - after.totals.cost_usd  # type: ignore[operator]
    assert saved == hit * (Decimal("1.25") - Decimal("0.125")) / 1_000_000
    assert get_rule("openai-128").source.startswith("developers.openai.com")
    drop_rules()
    assert lab.analyze(session("gpt-5")).totals.cost_usd == before.totals.cost_usd


def test_a_new_rule_takes_the_models_it_claims(tmp_path: Path) -> None:
    with pytest.raises(LabError):
        lab.analyze(session("my-model-7b"))
    load_rules(
        write(
            tmp_path,
            '[mine]\nbase = "deepseek-v3"\nprovider = "me"\nmodels = ["my-model-*"]\n'
            'step_tokens = 32\nminimum_tokens = 32\nchecked = 2026-11-30\nsource = "measured"\n',
        )
    )
    report = lab.analyze(session("my-model-7b"))
    assert (report.runner.rule.id, report.runner.model.provider) == ("mine", "me")
    assert report.turns[1].match.hit_tokens % 32 == 0 < report.turns[1].match.hit_tokens
    assert report.totals.cost_usd is None


def test_the_command_line_takes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        "\n".join(
            json.dumps({"model": "gpt-5", "messages": [{"role": "user", "content": " word" * 700}]})
            for _ in range(2)
        )
    )
    rules = write(tmp_path, "[openai-128]\nminimum_tokens = 128\n")
    assert main(["analyze", str(log), "--json", "--rules-file", str(rules)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["requests"][1]["causes"]["hit"] == 640
    assert main(["analyze", str(log), "--rules-file", str(tmp_path / "none.toml")]) == 2
    assert "rules cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[x", "this is not TOML"),
        ("x = 1", "'x' is no table"),
        ("[x]", "it lacks"),
        ('[x]\nbase = "nobody"', "base names no rule: 'nobody'"),
        ('[x]\nbase = "anthropic"\nmin = 3', "the key 'min' is unknown"),
        ("[anthropic]\nminimum_tokens = 0", "not a whole number of 1 or more"),
        ("[anthropic]\nminimum_tokens = true", "not a whole number"),
        ('[anthropic]\nmatch = "any"', "use one of any_prefix"),
        ("[anthropic]\nrefreshes = 1", "not true or false"),
        ('[anthropic]\nmodels = "claude"', "not a list of texts"),
        ('[anthropic]\nread_factor = "cheap"', "not a number of 0 or more"),
        ("[anthropic]\nread_factor = -1", "not a number of 0 or more"),
        ('[anthropic]\nchecked = "today"', "not a date"),
        ("[anthropic]\nlifetimes_s = { x = 0 }", "not a number of 1 or more"),
        ('[anthropic]\ninvalidates = { x = "all" }', "use one of tools, system, messages"),
        ('[anthropic]\nwithout_markers = "nobody"', "without_markers names no rule"),
    ],
)
def test_a_bad_file_is_one_sentence_and_changes_nothing(
    tmp_path: Path, text: str, message: str
) -> None:
    path = write(tmp_path, text)
    before = [id(rule) for rule in known_rules()]
    with pytest.raises(InputError) as caught:
        load_rules(path)
    assert message in str(caught.value) and str(path) in str(caught.value)
    assert [id(rule) for rule in known_rules()] == before


def test_an_unknown_rule_names_the_known_ones() -> None:
    with pytest.raises(LabError, match="choose one of deepseek-v3, deepseek-v4"):
        get_rule("openai-129")
