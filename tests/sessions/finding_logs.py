"""Small logs for the tests of findings."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.findings.collect import Finding
from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.reports.report import Report

START = datetime(2026, 11, 29, 12, 0, tzinfo=timezone.utc)


def S(tokens: int, word: str = "word") -> str:
    """A fixed text of about so many tokens."""
    return f" {word}" * tokens


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def system(content: Any) -> dict[str, Any]:
    return {"role": "system", "content": content}


def tool(name: str, parameters: Any = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters or {}}}


def report_of(
    *bodies: dict[str, Any] | str,
    model: str = "deepseek-flash",
    gaps_s: float | list[float] = 30,
    usage: list[dict[str, Any] | None] | None = None,
    responses: list[dict[str, Any] | None] | None = None,
    rebuilds: dict[int, dict[str, Any]] | None = None,
    format: str | None = None,
    rules: str | None = None,
    as_model: str | None = None,
) -> Report:
    """The analysis of these bodies, one request each, `gaps_s` apart."""
    lines, time = [], START
    for i, body in enumerate(bodies):
        raw = body if isinstance(body, str) else json.dumps({"model": model, **body})
        line = f'{{"time": "{time.isoformat()}", "request": {raw}'
        if usage and usage[i] is not None:
            line += f', "usage": {json.dumps(usage[i])}'
        if responses and responses[i] is not None:
            line += f', "response": {json.dumps(responses[i])}'
        if rebuilds and i in rebuilds:
            line += f', "rebuild": {json.dumps(rebuilds[i])}'
        lines.append(line + "}")
        step = gaps_s[i] if isinstance(gaps_s, list) and i < len(gaps_s) else 30
        time += timedelta(seconds=gaps_s if isinstance(gaps_s, int | float) else step)
    session = load_bytes("\n".join(lines).encode(), format=format)
    return analyze(session, model=as_model, rules=rules)


def only(report: Report) -> Finding:
    """The one finding of a report."""
    assert len(report.findings_list) == 1, [f.message for f in report.findings_list]
    return report.findings_list[0]


def classes(report: Report) -> list[str]:
    return [finding.cls for finding in report.findings_list]
