"""The command line: `codesmith-lab` opens the workbench, `codesmith-lab analyze FILE` prints."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from codesmith_lab.errors import LabError

__all__ = ["main"]

EXIT_BAD_INPUT = 2
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
    analyze = commands.add_parser("analyze", help="analyse a log without a notebook")
    analyze.add_argument("file", help="a JSONL log of requests")
    analyze.add_argument("--model", help="analyse as if this model had served every request")
    analyze.add_argument("--rules", help="a cache rule by its id, in place of the model's own")
    analyze.add_argument(
        "--rules-file",
        action="append",
        default=[],
        metavar="TOML",
        help="add or change cache rules from a file; may be given several times",
    )
    analyze.add_argument("--format", help="openai-chat or anthropic-messages; found out if absent")
    analyze.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _say(text: str) -> None:
    """One line for people on stderr; what came from a log cannot steer the terminal."""
    from codesmith_lab.sessions.report_text import visible

    print(f"codesmith-lab: {visible(text)}", file=sys.stderr)


def _analyze(options: argparse.Namespace, out: TextIO) -> None:
    from codesmith_lab.cache.rule_files import load_rules
    from codesmith_lab.sessions.analysis import analyze
    from codesmith_lab.sessions.load import load
    from codesmith_lab.sessions.report_text import visible

    for path in options.rules_file:
        load_rules(path)
    session = load(options.file, options.format)
    report = analyze(session, options.model, options.rules)
    if options.json:
        json.dump(report.to_json(), out, ensure_ascii=True, indent=1)
        out.write("\n")
    else:
        out.write("\n".join(map(visible, report.to_text().split("\n"))))
    if session.skipped:
        first, count = session.skipped[0], len(session.skipped)
        lines = "1 line" if count == 1 else f"{count} lines"
        _say(f"skipped {lines}; line {first.line}: {first.reason}")


def _run(options: argparse.Namespace) -> int:
    if options.version:
        from importlib.metadata import version

        print(f"codesmith-lab {version('codesmith-lab')}")
        return 0
    if options.command == "analyze":
        _analyze(options, sys.stdout)
        return 0
    from codesmith_lab.launch import open_lab

    folder = None if options.dir is None else Path(options.dir)
    return open_lab(options.port, not options.no_browser, options.fresh, folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit status (2 for input that cannot be used)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal without UTF-8 shows an escape where it has no character.
            cast(Any, stream).reconfigure(errors="backslashreplace")
    try:
        status = _run(_parser().parse_args(arguments))
        sys.stdout.flush()
        return status
    except LabError as error:
        _say(str(error))
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
