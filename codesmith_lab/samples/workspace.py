"""A small workspace held in memory, on which the sample agent's tools really work.

Reads, searches, edits and diffs are computed from the files as the story has left them,
so that every tool result in the sample session is true to the edits before it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Workspace"]


class Workspace:
    """Text files by path, and the tools that need nothing but text files."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)
        self._committed = dict(files)

    def run(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The result of a tool call, as text.

        Raises KeyError for a tool that needs more than text files, and ValueError for an
        edit that does not match: a story that contradicts its own files is not told.
        """
        tools: dict[str, Callable[..., str]] = {
            "read_file": self._read_file,
            "write_file": self._write_file,
            "edit_file": self._edit_file,
            "list_dir": self._list_dir,
            "grep": self._grep,
            "read_log": self._read_log,
            "git_status": self._git_status,
            "git_diff": self._git_diff,
            "git_commit": self._git_commit,
        }
        return tools[tool](**arguments)

    def text(self, path: str) -> str:
        """The present text of one file."""
        return self._files[path]

    def _read_file(self, path: str, start: int = 1, end: int | None = None) -> str:
        lines = self._files[path].splitlines()
        chosen = lines[start - 1 : end]
        return "\n".join(f"{number:4} {line}" for number, line in enumerate(chosen, start))

    def _write_file(self, path: str, content: str) -> str:
        self._files[path] = content
        return f"wrote {path}: {content.count(chr(10))} lines"

    def _edit_file(self, path: str, old: str, new: str) -> str:
        text = self._files[path]
        if text.count(old) != 1:
            raise ValueError(f"{path} holds the text to replace {text.count(old)} times, not once")
        self._files[path] = text.replace(old, new)
        line = text[: text.index(old)].count("\n") + 1
        return f"edited {path} at line {line}: 1 replacement"

    def _list_dir(self, path: str) -> str:
        prefix = "" if path == "." else path + "/"
        below = [name[len(prefix) :] for name in self._files if name.startswith(prefix)]
        folders = sorted({name.split("/")[0] + "/" for name in below if "/" in name})
        files = sorted(name for name in below if "/" not in name)
        sizes = [f"{name}  {len(self._files[prefix + name].encode())} bytes" for name in files]
        return "\n".join(folders + sizes)

    def _grep(self, pattern: str, path: str = ".", literal: bool = True) -> str:
        prefix = "" if path == "." else path
        found = [
            f"{name}:{number}: {line.strip()}"
            for name in sorted(self._files)
            if name.startswith(prefix)
            for number, line in enumerate(self._files[name].splitlines(), 1)
            if pattern in line
        ]
        return "\n".join(found) or "no match"

    def _read_log(self, path: str, contains: str = "", limit: int = 40, tail: bool = False) -> str:
        lines = [
            f"{number:4} {line}"
            for number, line in enumerate(self._files[path].splitlines(), 1)
            if contains in line
        ]
        chosen = lines[-limit:] if tail else lines[:limit]
        return "\n".join([f"{len(chosen)} of {len(lines)} lines", *chosen])

    def _changed(self) -> list[str]:
        return sorted(p for p in self._files if self._files[p] != self._committed.get(p))

    def _git_status(self) -> str:
        marks = [f"{' M' if p in self._committed else '??'} {p}" for p in self._changed()]
        return "\n".join(["## fix/double-reminders", *marks])

    def _git_diff(self, paths: list[str] | None = None) -> str:
        parts = [self._diff(path) for path in self._changed() if not paths or path in paths]
        return "\n".join(parts) or "no changes"

    def _diff(self, path: str) -> str:
        before = self._committed.get(path, "").splitlines()
        after = self._files[path].splitlines()
        origin = f"a/{path}" if path in self._committed else "/dev/null"
        return "\n".join(difflib.unified_diff(before, after, origin, f"b/{path}", lineterm=""))

    def _git_commit(self, paths: list[str], message: str) -> str:
        self._committed.update({path: self._files[path] for path in paths})
        subject = message.split("\n")[0]
        return f"[fix/double-reminders] {subject}\n {len(paths)} files changed"
