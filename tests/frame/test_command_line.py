"""The command line with good and bad logs, as a process: status, streams, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import codesmith_lab

REQUEST = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}
GOOD = json.dumps(REQUEST).encode()
STEERING = "\x1b]0;owned\x07\x1b[2J\u202e\u2066\x85"


def run(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "codesmith_lab.cli", *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        check=False,
        timeout=120,
    )


def one_line_error(done: subprocess.CompletedProcess[bytes]) -> str:
    """The sentence on stderr, after checking that it is one and comes with status 2."""
    text = done.stderr.decode()
    assert done.returncode == 2, text
    assert done.stdout == b""
    assert text.startswith("codesmith-lab: ")
    assert text.count("\n") == 1
    assert "Traceback" not in text
    return text


def test_version(tmp_path: Path) -> None:
    assert run("--version", folder=tmp_path).stdout.decode().split() == [
        "codesmith-lab",
        version("codesmith-lab"),
    ]


def test_help_names_both_uses(tmp_path: Path) -> None:
    text = run("--help", folder=tmp_path).stdout.decode()
    assert "workbench" in text
    assert "analyze" in text


def test_json_is_the_contract(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(GOOD + b"\n")
    done = run("analyze", "log.jsonl", "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    report = json.loads(done.stdout)
    keys = "format model provider rules price_date tokenizer tokens_exact totals requests"
    assert {*keys.split(), "findings", "remedies", "skipped"} <= report.keys()
    totals = report["totals"]
    assert totals["requests"] == len(report["requests"]) == 1
    assert sum(totals["causes"].values()) == sum(totals["lines"].values()) == totals["input_tokens"]


def test_the_bundled_session_tells_its_story_as_json(tmp_path: Path) -> None:
    codesmith_lab.samples.write_clock_story(tmp_path / "story.jsonl")
    done = run("analyze", "story.jsonl", "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    report = json.loads(done.stdout)
    assert report["totals"]["requests"] == len(report["requests"]) == 40
    for split in ("causes", "lines"):
        total = sum(report["totals"][split].values())
        assert total == report["totals"]["input_tokens"]
        assert all(sum(r[split].values()) == r["input_tokens"] for r in report["requests"])
    assert report["findings"][0]["class"] == "volatile_timestamp"
    assert any(f["class"] == "compaction" and f["intended"] for f in report["findings"])
    assert report["remedies"]


def test_text_names_the_log_and_the_cost(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(GOOD)
    done = run("analyze", "log.jsonl", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"log.jsonl: 1 request" in done.stdout
    assert b"cost $" in done.stdout


@pytest.mark.parametrize("as_json", [False, True])
def test_skipped_lines_are_counted_and_no_failure(tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "log.jsonl").write_bytes(GOOD + b"\n{oops\n" + GOOD + b"\n" + GOOD[:-9])
    done = run("analyze", "log.jsonl", *["--json"] * as_json, folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith(b"codesmith-lab: skipped 2 lines of log.jsonl; line 2: ")
    assert done.stderr.count(b"\n") == 1
    if as_json:
        report = json.loads(done.stdout)
        assert report["totals"]["requests"] == 2
        assert [entry["line"] for entry in report["skipped"]] == [2, 4]
    else:
        assert b"Skipped lines: 2" in done.stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b"\n \r\n\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"\x7fELF\0\0\0\1\xff\xfe", "binary"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), "line 1"),
        (b"{", "line 1"),
        (b"[1, 2]\n", "line 1"),
        (b'{"a": 1}\n', "line 1"),
        (b"\xff\xfe{\0}\0", "line 1"),
        (b'{"messages": [' + b"[" * 10_000 + b"]" * 10_000 + b"]}", "line 1"),
    ],
)
def test_a_useless_file_is_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "log.jsonl").write_bytes(content)
    text = one_line_error(run("analyze", "log.jsonl", folder=tmp_path))
    assert "log.jsonl" in text
    assert says in text


def test_a_folder_and_a_missing_file_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "this folder holds no log" in one_line_error(run("analyze", "folder", folder=tmp_path))
    assert "gone: there is no" in one_line_error(run("analyze", "gone", folder=tmp_path))


@pytest.mark.skipif(os.name != "posix", reason="closes a stream by the shell")
@pytest.mark.parametrize(
    ("closing", "status", "says"),
    [
        ("log.jsonl >&-", 2, b"standard output is closed"),
        ("- <&-", 2, b"standard input is closed"),
        ("log.jsonl 2>&-", 0, b""),
        ("gone.jsonl 2>&-", 2, b""),
    ],
)
def test_a_closed_stream_is_one_sentence(
    tmp_path: Path, closing: str, status: int, says: bytes
) -> None:
    (tmp_path / "log.jsonl").write_bytes(GOOD)
    command = f'"{sys.executable}" -m codesmith_lab.cli analyze {closing}'
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == status, done.stderr
    assert says in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user without rights")
def test_an_unreadable_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(GOOD)
    (tmp_path / "log.jsonl").chmod(0)
    assert "cannot be read" in one_line_error(run("analyze", "log.jsonl", folder=tmp_path))


@pytest.mark.parametrize("option", ["--model", "--rules", "--format"])
def test_an_unknown_choice_is_one_sentence_with_the_choices(tmp_path: Path, option: str) -> None:
    (tmp_path / "log.jsonl").write_bytes(GOOD)
    text = one_line_error(run("analyze", "log.jsonl", option, "no-such-thing", folder=tmp_path))
    assert "no-such-thing" in text
    assert "one of" in text or "nearest" in text or "choose" in text


def test_nothing_from_a_log_can_steer_the_terminal(tmp_path: Path) -> None:
    """Names, texts and models with control and direction characters come out escaped."""
    turns = [
        {
            "model": "gpt-4o",
            "messages": [
                {"role": "system", "content": f"# {STEERING}\n{STEERING * 3000} {n}"},
                {"role": "user", "name": STEERING, "content": STEERING},
            ],
            "tools": [{"type": "function", "function": {"name": f"{STEERING}{n}"}}],
        }
        for n in range(3)
    ]
    text = "\n".join(json.dumps(turn, ensure_ascii=False) for turn in turns)
    name = "log\x1b[31m.jsonl" if os.name == "posix" else "log.jsonl"
    (tmp_path / name).write_text(text + "\n{" + STEERING, "utf-8")
    for more in ([], ["--json"], ["--model", STEERING]):
        done = run("analyze", name, *more, folder=tmp_path)
        said = (done.stdout + done.stderr).decode()
        assert "Traceback" not in said
        assert not {"\x1b", "\x07", "\x85", "\u202e", "\u2066"} & set(said)


def test_a_terminal_without_utf8_gets_escapes(tmp_path: Path) -> None:
    (tmp_path / "lög.jsonl").write_bytes(GOOD)
    done = run("analyze", "lög.jsonl", folder=tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert b"l\\xf6g.jsonl" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(GOOD)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "codesmith_lab.cli", "analyze", "log.jsonl"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"codesmith-lab: the result cannot be written")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="pipes end otherwise elsewhere")
def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes((GOOD + b"\n") * 400)
    command = [sys.executable, "-P", "-m", "codesmith_lab.cli", "analyze", "log.jsonl", "--json"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(60) == 0
    assert said == b""


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http", "٣"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    done = run(f"--port={port}", folder=tmp_path)
    assert done.returncode == 2
    assert b"is no port; use 1 to 65535" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_or_missing_model_names_the_options(tmp_path: Path) -> None:
    for model, problem in (("gpt-9-mega", "model 'gpt-9-mega' has no known"), ("", "no model is")):
        (tmp_path / "log.jsonl").write_text(json.dumps(REQUEST | {"model": model}))
        text = one_line_error(run("analyze", "log.jsonl", folder=tmp_path))
        assert problem in text
        assert "with --model" in text
        assert "with --rules, for example openai-128" in text
        done = run("analyze", "log.jsonl", "--rules", "openai-128", folder=tmp_path)
        assert done.returncode == 0
        assert "an estimate of unknown error" in done.stdout.decode()
