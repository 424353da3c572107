"""Several logs at once, and whether what was found is within limits (for use in CI)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from codesmith_lab.errors import InputError, LabError
from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.findings.classes import CLASSES
from codesmith_lab.sessions.reading.load import load
from codesmith_lab.sessions.reading.sources import log_files
from codesmith_lab.sessions.reports.report import Report
from codesmith_lab.sessions.reports.report_json import money, report_json
from codesmith_lab.wording import counted

__all__ = ["Batch", "Read", "check_classes", "logs_in", "read_all"]

_SURE = ("certain", "likely")


@dataclass(frozen=True, slots=True)
class Read:
    """One log: its report, or why there is none."""

    name: str
    report: Report | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Reports of several logs, in the order in which they were named."""

    reads: tuple[Read, ...]

    @property
    def reports(self) -> list[Report]:
        """Of the logs that could be read."""
        return [read.report for read in self.reads if read.report is not None]

    @property
    def cost_usd(self) -> Decimal | None:
        """Predicted cost of all, None where any log has no price."""
        return _sum(report.totals.cost_usd for report in self.reports)

    @property
    def repaid_usd(self) -> Decimal | None:
        """What was paid again over all, None where any log has no price."""
        return _sum(report.totals.repaid_usd for report in self.reports)

    def to_json(self) -> dict[str, Any]:
        """Every report under its file, with sums; what could not be read and why."""
        return {
            "reports": [
                {"file": read.name, **report_json(read.report)}
                for read in self.reads
                if read.report is not None
            ],
            "unread": [
                {"file": read.name, "reason": read.reason}
                for read in self.reads
                if read.report is None
            ],
            "totals": {
                "requests": sum(report.totals.requests for report in self.reports),
                "input_tokens": sum(report.totals.input_tokens for report in self.reports),
                "cost_usd": money(self.cost_usd),
                "repaid_usd": money(self.repaid_usd),
            },
        }

    def failures(self, classes: Sequence[str], max_repaid_usd: Decimal | None) -> list[str]:
        """Why the logs are not within limits, one sentence each; [] when they are.

        classes: finding classes that may not be found, "any" for every fault. What is only
        possible does not count, nor what is intended unless its class is named.

        Raises LabError when money is limited and a log has no price.
        """
        found: dict[str, int] = {}
        for report in self.reports:
            for finding in report.findings_list:
                named = finding.cls in classes or ("any" in classes and not finding.intended)
                if named and finding.certainty in _SURE:
                    found[finding.cls] = found.get(finding.cls, 0) + finding.requests
        failures = [f"{cls} was found on {counted(n, 'request')}" for cls, n in found.items()]
        if max_repaid_usd is not None:
            repaid = self.repaid_usd
            if repaid is None:
                raise LabError("a log has no price, so that --max-repaid-usd cannot be held to it")
            if repaid > max_repaid_usd:
                failures.append(f"${repaid:f} were paid again, more than ${max_repaid_usd:f}")
        return failures


def _sum(values: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for value in values:
        if value is None:
            return None
        total += value
    return total


def check_classes(given: Iterable[str]) -> list[str]:
    """Finding classes from texts that may hold several, parted by commas.

    Raises LabError for an unknown one.
    """
    classes = [name.strip() for text in given for name in text.split(",") if name.strip()]
    for name in classes:
        if name != "any" and name not in CLASSES:
            raise LabError(f"no finding class is named {name!r}; use any, {', '.join(CLASSES)}")
    return classes


def logs_in(path: str) -> list[str]:
    """The logs that a path stands for: itself, or those in a folder. Raises InputError for none."""
    try:
        if not Path(path).is_dir():
            return [path]
        found, _ = log_files(Path(path))
    except (OSError, ValueError) as error:
        raise InputError(f"it cannot be read ({error})", path) from None
    if not found:
        raise InputError("this folder holds no log", path)
    return [str(file) for file in found]


def read_all(
    paths: Sequence[str],
    model: str | None = None,
    rules: str | None = None,
    format: str | None = None,
    redact: bool = False,
    each: bool = False,
) -> Batch:
    """Analyse logs: all as one session, since they meet the same caches, or each for itself.

    Of several that are read each for itself, those that cannot be read are counted. Raises LabError
    when none can be read.
    """
    if not each:
        session = load(paths[0] if len(paths) == 1 else list(paths), format)
        return Batch((Read(session.name, analyze(session, model, rules, redact)),))
    logs = [log for path in paths for log in logs_in(path)]
    reads: list[Read] = []
    for number, log in enumerate(logs, start=1):
        name = f"log {number}" if redact else log
        try:
            report = analyze(load(log, format), model, rules, redact)
            reads.append(Read(name, report))
        except LabError as error:
            reads.append(Read(name, None, "not shown" if redact else str(error)))
    if not any(read.report for read in reads):
        raise LabError(f"none of {len(logs)} logs can be read; the first: {reads[0].reason}")
    return Batch(tuple(reads))
