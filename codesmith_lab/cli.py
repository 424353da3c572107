"""The command line: `codesmith-lab` opens the workbench, `codesmith-lab analyze FILE` prints."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO, cast

from codesmith_lab.errors import LabError

__all__ = ["main"]

EXIT_BAD_INPUT = 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="codesmith-lab",
        description="See what a prompt cache sees. Without a command, open the workbench.",
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--no-browser", action="store_true", help="start the server only")
    parser.add_argument("--port", type=int, default=8888, help="port to listen on (8888)")
    parser.add_argument(
        "--fresh", action="store_true", help="start from a new copy of the notebook"
    )
    commands = parser.add_subparsers(dest="command")
    analyze = commands.add_parser("analyze", help="analyse a log without a notebook")
    analyze.add_argument("file", help="a JSONL log of requests")
    analyze.add_argument("--model", help="analyse as if this model had served every request")
    analyze.add_argument("--rules", help="a cache rule by its id, in place of the model's own")
    analyze.add_argument("--format", help="openai-chat or anthropic-messages; found out if absent")
    analyze.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _analyze(options: argparse.Namespace, out: TextIO) -> None:
    from codesmith_lab.sessions.analysis import analyze
    from codesmith_lab.sessions.load import load

    session = load(options.file, options.format)
    report = analyze(session, options.model, options.rules)
    if options.json:
        json.dump(report.to_json(), out, ensure_ascii=True, indent=1)
        out.write("\n")
    else:
        out.write(report.to_text())
    if session.skipped:
        first = session.skipped[0]
        from codesmith_lab.sessions.report_text import visible

        reason = visible(first.reason)
        print(
            f"codesmith-lab: skipped {len(session.skipped)} lines; line {first.line}: {reason}",
            file=sys.stderr,
        )


def _run(options: argparse.Namespace) -> int:
    if options.version:
        from importlib.metadata import version

        print(version("codesmith-lab"))
        return 0
    if options.command == "analyze":
        _analyze(options, sys.stdout)
        return 0
    from codesmith_lab.launch import open_lab

    return open_lab(options.port, not options.no_browser, options.fresh)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit status (2 for input that cannot be used)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            cast(Any, stream).reconfigure(errors="backslashreplace")
    try:
        status = _run(_parser().parse_args(arguments))
        sys.stdout.flush()
        return status
    except LabError as error:
        from codesmith_lab.sessions.report_text import visible

        print(f"codesmith-lab: {visible(str(error))}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except MemoryError:
        print("codesmith-lab: the log does not fit into memory; split it", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away (for example `| head`); nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
