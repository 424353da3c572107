"""Two requests or two prompt files, by byte, token and section."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import codesmith_lab as lab
from codesmith_lab.sessions.reports.compare import compare, read_side
from codesmith_lab.sessions.reports.compare_text import compare_text

A = "# Rules\nBe kind.\n\n# Place\nThe clock says 10:00.\n\n# Tail\nEnd.\n"


def sides(folder: Path, before: str, after: str):
    (folder / "a").write_text(before, "utf-8")
    (folder / "b").write_text(after, "utf-8")
    return read_side(str(folder / "a")), read_side(str(folder / "b"))


def changes(found) -> list[tuple[str, str]]:
    return [(row.name, row.change) for row in found.rows]


def test_two_prompts_as_text(tmp_path: Path) -> None:
    found = compare(*sides(tmp_path, A, A.replace("10:00", "10:07")), model="deepseek-v4-flash")
    assert changes(found) == [("rules", "same"), ("place", "changed"), ("tail", "same")]
    assert found.broken.classes == ("volatile_timestamp",)
    assert (found.broken.line, found.broken.column) == (2, len("The clock says 10:0") + 1)
    # The opening marker of the format, then the text up to the last digit.
    assert found.common_bytes == len("<｜begin▁of▁sentence｜>".encode()) + A.index("0.")
    assert found.exact
    assert "volatile_timestamp" in compare_text(found)


def test_sections_that_changed_places_came_and_went(tmp_path: Path) -> None:
    parts = [part.strip() for part in A.split("\n\n")]
    turned = "\n\n".join([parts[1], parts[0], parts[2]]) + "\n"
    found = compare(*sides(tmp_path, A, turned))
    assert changes(found)[2] == ("tail", "same")
    assert "section_moved" in found.broken.classes
    short = "\n\n".join([parts[0], parts[2]]) + "\n"
    found = compare(*sides(tmp_path, A, short))
    assert ("place", "removed") in changes(found)
    assert found.broken.classes == ("section_removed",)
    assert not found.exact


def test_equal_prompts_and_spellings(tmp_path: Path) -> None:
    found = compare(*sides(tmp_path, A, A))
    assert found.same
    assert "no difference" in compare_text(found)
    one = '{"messages": [{"role": "user", "content": "é"}]}'
    found = compare(*sides(tmp_path, one, one.replace("é", "\\u00e9")))
    assert not found.same
    assert found.wire.classes == ("unicode_escape",)
    assert "wire differs" in compare_text(found)


def test_requests_of_a_log_by_number(tmp_path: Path) -> None:
    lab.samples.write_clock_story(tmp_path / "log.jsonl")
    log = str(tmp_path / "log.jsonl")
    found = compare(read_side(f"{log}:8"), read_side(f"{log}:9"))
    assert found.broken.block == "environment"
    assert found.tokens[1] > found.tokens[0] > found.common_tokens > 4000
    assert json.loads(json.dumps(found.to_json()))["break"]["class"] == "volatile_timestamp"
    assert "blocks)" in compare_text(found)
    with pytest.raises(lab.InputError, match="name one as .*:N"):
        read_side(log)
    with pytest.raises(lab.InputError, match="no request 41"):
        read_side(f"{log}:41")
    with pytest.raises(lab.InputError, match="no such file"):
        read_side(str(tmp_path / "gone"))


def test_binary_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x7fELF\0\0\xff\xfe")
    with pytest.raises(lab.InputError, match="UTF-8|binary"):
        read_side(str(tmp_path / "x"))
