"""The command line: `codesmith-lab` opens the workbench; `analyze` and `diff` print."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from codesmith_lab.errors import LabError

if TYPE_CHECKING:
    from codesmith_lab.sessions.reports.batch import Batch

__all__ = ["main"]

EXIT_BAD_INPUT = 2
EXIT_OVER_LIMIT = 3
EXIT_INTERRUPTED = 130


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is no port; use 1 to 65535")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="codesmith-lab",
        description="See what a prompt cache sees. Without a command, open the workbench.",
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--no-browser", action="store_true", help="start the server only")
    parser.add_argument("--port", type=_port, help="port to listen on (8888 or the next free one)")
    parser.add_argument("--dir", help="folder to serve and to copy the notebook to (this one)")
    parser.add_argument(
        "--fresh", action="store_true", help="start from a new copy of the notebook"
    )
    commands = parser.add_subparsers(dest="command")
    _add_analyze(commands.add_parser("analyze", help="analyse logs without a notebook"))
    diff = commands.add_parser("diff", help="compare two requests or two prompt files")
    diff.add_argument("before", help="a request, a prompt as text, or LOG:N for its N-th request")
    diff.add_argument("after", help="the same for the one to compare")
    diff.add_argument("--model", help="whose tokenizer and prompt order to use")
    diff.add_argument("--rules", help="a cache rule by its id, for a model without rules")
    diff.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _add_analyze(analyze: argparse.ArgumentParser) -> None:
    analyze.add_argument(
        "files", nargs="+", help="logs or folders of logs, as one session; - for standard input"
    )
    analyze.add_argument("--each", action="store_true", help="a report for each log by itself")
    analyze.add_argument("--model", help="analyse as if this model had served every request")
    analyze.add_argument("--rules", help="a cache rule by its id, in place of the model's own")
    analyze.add_argument(
        "--rules-file",
        action="append",
        default=[],
        metavar="TOML",
        help="add or change cache rules from a file; may be given several times",
    )
    analyze.add_argument("--format", help="a format by name (har, codex, ...); found out if absent")
    form = analyze.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--markdown", action="store_true", help="print a Markdown report")
    form.add_argument("--html", action="store_true", help="print a page that needs no network")
    analyze.add_argument(
        "--redact", action="store_true", help="structure and lengths only, no text of the log"
    )
    analyze.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CLASS",
        help="exit with status 3 when this finding is certain or likely; several with commas, "
        "any = every fault",
    )
    analyze.add_argument(
        "--max-repaid-usd",
        type=_usd,
        metavar="X",
        help="exit with status 3 when more than this was paid again",
    )


def _usd(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount; use a number from 0 on")
    return amount


def _say(text: str) -> None:
    """One line for people on stderr; what came from a log cannot steer the terminal."""
    from codesmith_lab.sessions.reports.report_text import visible

    if sys.stderr is not None:
        print(f"codesmith-lab: {visible(text)}", file=sys.stderr)


def _analyze(options: argparse.Namespace, out: TextIO) -> int:
    from codesmith_lab.cache.rule_files import load_rules
    from codesmith_lab.sessions.reports.batch import check_classes, read_all

    for path in options.rules_file:
        load_rules(path)
    classes = check_classes(options.fail_on)
    batch = read_all(
        options.files, options.model, options.rules, options.format, options.redact, options.each
    )
    _print(options, batch, out)
    for read in batch.reads:
        if read.report is None:
            _say(f"{read.name} was left out: {read.reason}")
        elif skipped := read.report.runner.session.skipped:
            lines = "1 line" if len(skipped) == 1 else f"{len(skipped)} lines"
            first = skipped[0]
            file = f" of {first.file}" if first.file else ""
            _say(f"skipped {lines} of {read.name}; line {first.line}{file}: {first.reason}")
    failures = batch.failures(classes, options.max_repaid_usd)
    for failure in failures:
        _say(failure)
    return EXIT_OVER_LIMIT if failures else 0


def _print(options: argparse.Namespace, batch: Batch, out: TextIO) -> None:
    from codesmith_lab.sessions.reports.report_html import report_html
    from codesmith_lab.sessions.reports.report_text import visible

    reports = batch.reports
    if options.json:
        found = batch.to_json() if options.each else reports[0].to_json()
        json.dump(found, out, ensure_ascii=True, indent=1)
        out.write("\n")
    elif options.html:
        out.write(report_html(reports))
    elif options.markdown:
        out.write("\n".join(report.to_markdown() for report in reports))
    else:
        text = "\n".join(report.to_text() for report in reports)
        out.write("\n".join(map(visible, text.split("\n"))))


def _diff(options: argparse.Namespace, out: TextIO) -> int:
    from codesmith_lab.sessions.reports.compare import compare, read_side
    from codesmith_lab.sessions.reports.compare_text import compare_text

    sides = read_side(options.before), read_side(options.after)
    found = compare(*sides, options.model, options.rules)
    if options.json:
        json.dump(found.to_json(), out, ensure_ascii=True, indent=1)
        out.write("\n")
    else:
        out.write(compare_text(found))
    return 0


def _run(options: argparse.Namespace) -> int:
    if options.version:
        from importlib.metadata import version

        print(f"codesmith-lab {version('codesmith-lab')}")
        return 0
    if options.command == "analyze":
        return _analyze(options, sys.stdout)
    if options.command == "diff":
        return _diff(options, sys.stdout)
    from codesmith_lab.launch import open_lab

    folder = None if options.dir is None else Path(options.dir)
    return open_lab(options.port, not options.no_browser, options.fresh, folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit status.

    2 stands for input that cannot be used, 3 for findings or money over a limit.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal without UTF-8 shows an escape where it has no character.
            cast(Any, stream).reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        _say("standard output is closed, so there is nowhere to write to")
        return EXIT_BAD_INPUT
    try:
        status = _run(_parser().parse_args(arguments))
        sys.stdout.flush()
        return status
    except LabError as error:
        # Messages name what to choose as Python does.
        _say(str(error).replace("model=...", "--model").replace("rules=...", "--rules"))
        return EXIT_BAD_INPUT
    except MemoryError:
        _say("the log does not fit into memory; split it and analyse the parts")
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away (for example `| head`); nothing is left to say.
        _discard_stdout()
        return 0
    except OSError as error:
        _discard_stdout()
        _say(f"the result cannot be written ({error.strerror})")
        return EXIT_BAD_INPUT


def _discard_stdout() -> None:
    """What is still buffered must not fail a second time when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    raise SystemExit(main())
