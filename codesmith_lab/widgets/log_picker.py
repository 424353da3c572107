"""A place to drop a log: its bytes come over in pieces, each asked for."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import anywidget
import traitlets

__all__ = ["LogPickerWidget"]

_HERE = pathlib.Path(__file__).parent


class LogPickerWidget(anywidget.AnyWidget):
    """Takes one file at a time from the browser.

    Parameters
    ----------
    taken: called with a file's name and bytes when all of it has come.
    most_bytes: larger files are refused before anything is sent.

    `status` and `error` are shown; `busy` is true while a file comes over.
    """

    _esm = _HERE / "log_picker.js"
    _css = _HERE / "log_picker.css"

    status = traitlets.Unicode("").tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)
    busy = traitlets.Bool(False).tag(sync=True)
    chunk_bytes = traitlets.Int(1 << 20).tag(sync=True)

    def __init__(
        self, taken: Callable[[str, bytes], None], most_bytes: int = 1 << 29, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._taken = taken
        self._most_bytes = most_bytes
        self._name = ""
        self._size = 0
        self._held = bytearray()
        self.on_msg(self._heard)

    def _heard(self, _: object, content: Any, buffers: Sequence[Any]) -> None:
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "file":
            self._start(content.get("name"), content.get("size"))
        elif kind == "piece" and self.busy:
            self._piece(content.get("offset"), buffers)
        elif kind == "cancel":
            self._stop("")

    def _start(self, name: object, size: object) -> None:
        if not isinstance(name, str) or not isinstance(size, int) or self.busy:
            return
        if size > self._most_bytes:
            most = f"{self._most_bytes / 1e6:,.0f} MB"
            self._stop(
                f"{name} has {size / 1e6:,.0f} MB, and at most {most} come through the browser; "
                "read it with lab.load(path)"
            )
            return
        self._name, self._size, self._held = name, size, bytearray()
        self.error, self.status, self.busy = "", f"Reading {name} …", True
        self._go_on()

    def _piece(self, offset: object, buffers: Sequence[Any]) -> None:
        if offset != len(self._held) or len(buffers) != 1:
            self._stop(f"{self._name} came over incompletely; drop it again")
            return
        piece = bytes(buffers[0])
        if not piece or len(self._held) + len(piece) > self._size:
            self._stop(f"{self._name} changed while it was read; drop it again")
            return
        self._held += piece
        self._go_on()

    def _go_on(self) -> None:
        if len(self._held) < self._size:
            self.status = f"Reading {self._name}: {len(self._held) / self._size:.0%}"
            self.send({"kind": "send", "offset": len(self._held)})
            return
        name, data = self._name, bytes(self._held)
        self._stop("")
        self._taken(name, data)

    def _stop(self, error: str) -> None:
        self._held = bytearray()
        self.status, self.error, self.busy = "", error, False
        self.send({"kind": "stop"})
