"""The twenty tools of the invented coding agent."""

from __future__ import annotations

from typing import Any

__all__ = ["tool_definitions"]

# name: (description, {parameter: (type, meaning)}, required parameters)
_TOOLS: dict[str, tuple[str, dict[str, tuple[str, str]], tuple[str, ...]]] = {
    "read_file": (
        "Read a text file of the workspace. Give a line range for a long one.",
        {
            "path": ("string", "Path relative to the working directory"),
            "start_line": ("integer", "First line, from 1"),
            "end_line": ("integer", "Last line, included"),
        },
        ("path",),
    ),
    "write_file": (
        "Write a whole file. Use edit_file to change part of one.",
        {
            "path": ("string", "Path relative to the working directory"),
            "content": ("string", "The whole new content"),
        },
        ("path", "content"),
    ),
    "edit_file": (
        "Replace one passage of a file. The old passage must occur exactly once.",
        {
            "path": ("string", "Path relative to the working directory"),
            "old": ("string", "The passage as it stands"),
            "new": ("string", "What to put in its place"),
        },
        ("path", "old", "new"),
    ),
    "list_dir": (
        "List a folder, folders first.",
        {
            "path": ("string", "Folder, relative to the working directory"),
            "depth": ("integer", "How many levels, 1 by default"),
        },
        ("path",),
    ),
    "glob": (
        "Find files by a pattern such as src/**/*.py, newest first.",
        {"pattern": ("string", "The pattern"), "limit": ("integer", "At most this many")},
        ("pattern",),
    ),
    "grep": (
        "Search file contents by a regular expression; gives path, line and text.",
        {
            "pattern": ("string", "The regular expression"),
            "path": ("string", "Where to look; the whole workspace by default"),
            "ignore_case": ("boolean", "Take upper and lower case as equal"),
        },
        ("pattern",),
    ),
    "run_shell": (
        "Run a command in the workspace. Output beyond 30,000 characters is cut.",
        {
            "command": ("string", "The command line"),
            "timeout_seconds": ("integer", "Stop it after this long, 120 by default"),
            "background": ("boolean", "Return at once and go on without waiting"),
        },
        ("command",),
    ),
    "run_tests": (
        "Run the project's tests, all of them or those that match.",
        {
            "select": ("string", "Names or paths to run"),
            "stop_at_first": ("boolean", "Stop at the first failure"),
        },
        (),
    ),
    "git_status": ("Show changed, staged and untracked files.", {}, ()),
    "git_diff": (
        "Show a diff of the working tree, or of what is staged.",
        {
            "path": ("string", "Only this path"),
            "staged": ("boolean", "What is staged instead of the working tree"),
        },
        (),
    ),
    "git_log": (
        "List commits, newest first.",
        {"path": ("string", "Only this path"), "count": ("integer", "How many, 10 by default")},
        (),
    ),
    "git_commit": (
        "Commit what is staged. Needs approval in most modes.",
        {"message": ("string", "Subject, blank line, body")},
        ("message",),
    ),
    "apply_patch": (
        "Apply a unified diff to several files at once; all of it or nothing.",
        {"patch": ("string", "The diff"), "dry_run": ("boolean", "Only check that it applies")},
        ("patch",),
    ),
    "find_symbol": (
        "Find where a class, function or variable is defined.",
        {"name": ("string", "The symbol"), "kind": ("string", "class, function or variable")},
        ("name",),
    ),
    "find_references": (
        "Find every use of a symbol.",
        {"name": ("string", "The symbol"), "path": ("string", "Only below this path")},
        ("name",),
    ),
    "diagnostics": (
        "Errors and warnings of the type checker and the linter.",
        {"path": ("string", "Only for this path")},
        (),
    ),
    "todo_write": (
        "Replace the plan that the person sees. Keep exactly one step in progress.",
        {"steps": ("array", "Each step: text and status (open, in_progress, done)")},
        ("steps",),
    ),
    "ask_person": (
        "Ask the person one question when the goal itself is unclear.",
        {"question": ("string", "The question"), "choices": ("array", "Answers to pick from")},
        ("question",),
    ),
    "note_write": (
        "Keep a note for later sessions in this workspace.",
        {"text": ("string", "The note, one fact")},
        ("text",),
    ),
    "delegate": (
        "Give a closed question to a helper with a context of its own; it returns one answer.",
        {
            "task": ("string", "The whole task; the helper sees nothing else"),
            "read_only": ("boolean", "The helper may not change files"),
        },
        ("task",),
    ),
}


def tool_definitions() -> list[dict[str, Any]]:
    """The tools as an OpenAI chat-completions body carries them."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": text,
                "parameters": {
                    "type": "object",
                    "properties": {
                        key: {"type": kind, "description": meaning}
                        for key, (kind, meaning) in parameters.items()
                    },
                    "required": list(required),
                    "additionalProperties": False,
                },
            },
        }
        for name, (text, parameters, required) in _TOOLS.items()
    ]
