"""`analyze` on several logs and within limits, and `diff`, as processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import codesmith_lab


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "codesmith_lab.cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    (folder / "deep").mkdir()
    codesmith_lab.samples.write_clock_story(folder / "deep" / "story.jsonl")
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}
    (folder / "one.jsonl").write_text(json.dumps(body), "utf-8")
    (folder / "bad.jsonl").write_text("{oops", "utf-8")
    (folder / "notes.txt").write_text("not a log", "utf-8")
    return folder


def test_a_folder_is_one_session(logs: Path) -> None:
    """Logs of one place meet the same caches."""
    done = run("analyze", ".", "--json", folder=logs)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["totals"]["requests"] == 41
    assert {s["file"] for s in found["skipped"]} >= {"bad.jsonl"}
    assert done.stderr.startswith("codesmith-lab: skipped ")
    two = run("analyze", "deep/story.jsonl", "one.jsonl", "--json", folder=logs)
    assert json.loads(two.stdout)["totals"] == found["totals"]


def test_each_log_by_itself(logs: Path) -> None:
    done = run("analyze", ".", "--json", "--each", folder=logs)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [r["file"] for r in found["reports"]] == ["deep/story.jsonl", "one.jsonl"]
    assert {r["file"] for r in found["unread"]} == {"bad.jsonl", "notes.txt"}
    assert found["totals"]["requests"] == 41
    assert "bad.jsonl was left out" in done.stderr


@pytest.mark.parametrize(("form", "sign"), [("--markdown", "# story"), ("--html", "<!doctype")])
def test_reports_for_people(logs: Path, form: str, sign: str) -> None:
    done = run("analyze", "deep/story.jsonl", "one.jsonl", form, "--each", folder=logs)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(sign)
    assert "one" in done.stdout


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (["--fail-on", "volatile_timestamp"], 3),
        (["--fail-on", "tool_order,tool_added"], 0),
        (["--fail-on", "tool_order", "--fail-on", "any"], 3),
        (["--max-repaid-usd", "0.01"], 3),
        (["--max-repaid-usd", "1"], 0),
        (["--fail-on", "no_such_class"], 2),
        (["--max-repaid-usd", "-1"], 2),
        (["--max-repaid-usd", "much"], 2),
    ],
)
def test_limits_are_exit_statuses(logs: Path, limits: list[str], status: int) -> None:
    done = run("analyze", "deep/story.jsonl", *limits, folder=logs)
    assert done.returncode == status, done.stderr
    assert bool(done.stderr) == (status != 0)
    assert "Traceback" not in done.stderr


def test_redaction_hides_names_on_both_streams(logs: Path) -> None:
    for more in ([], ["--each"]):
        done = run("analyze", ".", "--redact", *more, folder=logs)
        assert done.returncode == 0
        for word in ("environment", "story.jsonl", "oops", "bad.jsonl"):
            assert word not in done.stdout + done.stderr


def test_diff(logs: Path) -> None:
    done = run("diff", "deep/story.jsonl:8", "deep/story.jsonl:9", folder=logs)
    assert (done.returncode, done.stderr) == (0, "")
    assert "volatile_timestamp" in done.stdout
    found = json.loads(run("diff", "notes.txt", "notes.txt", "--json", folder=logs).stdout)
    assert found["break"] is None
    wrong = run("diff", "deep/story.jsonl", "notes.txt", folder=logs)
    assert wrong.returncode == 2
    assert "it holds 40 requests" in wrong.stderr
