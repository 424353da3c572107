"""Where logs come from: files, folders, standard input; packed or not."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from codesmith_lab.errors import InputError

__all__ = ["MAX_UNPACKED_BYTES", "SUFFIXES", "Guarded", "log_files", "unpacked"]

MAX_UNPACKED_BYTES: Final = 64 * 2**30
"""A packed file is unpacked up to here; the rest is left out, and said so."""
MAX_WINDOW_BYTES: Final = 128 * 2**20
"""Zstandard frames that need a larger window are refused (`zstd --long=27` needs as much)."""
SUFFIXES: Final = (*(".jsonl", ".ndjson", ".json", ".har", ".yaml", ".yml", ".log", ".txt"),)
"""Names that are read in a folder, also with ".gz" or ".zst" behind them."""

_PACKED_BYTES: Final = 1 << 16
_ZSTD_STEP_BYTES: Final = 1 << 10
"""All that a step stands for is held at once, and four bytes can stand for 128 KiB."""
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_OTHER: Final = {
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip",
    b"7z\xbc\xaf": "7z",
    b"\x04\x22\x4d\x18": "lz4",
}


class Guarded(io.RawIOBase):
    """A stream that counts what it gives, and ends where its packing is broken or endless.

    reason: why it ended before its end, "" where it did not.
    """

    def __init__(self, inner: Any, head: bytes, limit: int | None = None) -> None:
        self._inner = inner
        self._head = head
        self._limit = limit
        self.given = 0
        self.reason = ""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; 0 at the end."""
        view = memoryview(buffer).cast("B")
        if self.reason:
            return 0
        if self._head:
            size = min(len(view), len(self._head))
            view[:size] = self._head[:size]
            self._head = self._head[size:]
            if size < len(view):
                size += self._read(view[size:])
        else:
            size = self._read(view)
        self.given += size
        if self._limit is not None and self.given > self._limit:
            self.reason = f"it unpacks to more than {self._limit >> 30} GiB; the rest was not read"
        return size

    def _read(self, view: memoryview) -> int:
        try:
            return int(self._inner.readinto(view) or 0)
        except (EOFError, zlib.error) as error:
            cut = isinstance(error, EOFError)
            self.reason = f"its compressed data {'are cut off' if cut else 'are broken'} here"
        except OSError:
            raise
        except Exception as error:
            # zstandard's own error cannot be named without the package.
            if type(error).__name__ != "ZstdError":
                raise
            large = "memory" in str(error)
            self.reason = (
                f"it needs a window of more than {MAX_WINDOW_BYTES >> 20} MiB to unpack"
                if large
                else "its compressed data are broken here"
            )
        return 0


class _Gunzip:
    """Unpacks gzip and gives all that stands before a break, where Python's reader loses some."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._member = zlib.decompressobj(31)
        self._rest = b""

    def readinto(self, view: memoryview) -> int:
        """Fill the buffer; 0 at the end. Raises EOFError, or zlib.error where it is broken."""
        while True:
            if self._member.eof:
                # Zeros may pad a member; another may follow.
                rest = self._member.unused_data.lstrip(b"\0")
                rest = rest or self._packed.read(_PACKED_BYTES).lstrip(b"\0")
                if not rest:
                    return 0
                self._member, self._rest = zlib.decompressobj(31), rest
            given = self._rest or self._packed.read(_PACKED_BYTES)
            data = self._member.decompress(given, len(view))
            self._rest = self._member.unconsumed_tail
            if data:
                view[: len(data)] = data
                return len(data)
            if not given and not self._member.eof:
                raise EOFError


class _Unzstd:
    """Unpacks Zstandard and tells a file that is cut off from one that ends."""

    def __init__(self, packed: BinaryIO, new_frame: Callable[[], Any]) -> None:
        self._packed = packed
        self._new_frame = new_frame
        self._frame = new_frame()
        self._rest = b""
        self._ready = memoryview(b"")

    def readinto(self, view: memoryview) -> int:
        """Fill the buffer; 0 at the end. Raises EOFError, or ZstdError where it is broken."""
        while not self._ready:
            given = self._rest or self._packed.read(_ZSTD_STEP_BYTES)
            if self._frame.eof:
                if not given:
                    return 0
                self._frame = self._new_frame()
            elif not given:
                raise EOFError
            step, self._rest = given[:_ZSTD_STEP_BYTES], given[_ZSTD_STEP_BYTES:]
            self._ready = memoryview(self._frame.decompress(step))
            if self._frame.eof:
                self._rest = self._frame.unused_data + self._rest
        size = min(len(view), len(self._ready))
        view[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


def unpacked(stream: BinaryIO, path: str) -> Guarded:
    """The stream, unpacked where it starts like gzip or Zstandard.

    Raises InputError for another packing, and for Zstandard without the package to read it.
    """
    head = stream.read(6)
    while head and len(head) < 6 and (more := stream.read(6 - len(head))):
        head += more
    for start, kind in _OTHER.items():
        if head.startswith(start):
            raise InputError(f"this is compressed ({kind}); unpack it first", path)
    if head.startswith(_GZIP):
        packed: Any = io.BufferedReader(Guarded(stream, head), 1 << 18)
        return Guarded(_Gunzip(packed), b"", MAX_UNPACKED_BYTES)
    if head.startswith(_ZSTD):
        try:
            import zstandard
        except ImportError:
            raise InputError(
                "this is compressed (Zstandard); unpack it first, or install zstandard", path
            ) from None
        unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        packed = io.BufferedReader(Guarded(stream, head), 1 << 18)
        return Guarded(_Unzstd(packed, unpacker.decompressobj), b"", MAX_UNPACKED_BYTES)
    return Guarded(stream, head)


def log_files(path: Path) -> tuple[list[Path], int]:
    """The logs in a folder and the folders in it, by name, and how many other files there are.

    Hidden files and folders are not looked at, and symbolic links to folders not followed.
    """
    found: list[Path] = []
    others = 0
    for file in sorted(path.rglob("*")):
        if any(part.startswith(".") for part in file.relative_to(path).parts):
            continue
        if not file.is_file():
            continue
        name = file.name.lower()
        for packing in (".gz", ".zst"):
            name = name.removesuffix(packing)
        if name.endswith(SUFFIXES):
            found.append(file)
        else:
            others += 1
    return found, others
