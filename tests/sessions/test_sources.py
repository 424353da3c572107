"""Where logs come from: folders, several files, standard input, packed files, and their limits."""

from __future__ import annotations

import gzip
import io
import sys
import tracemalloc
import zlib
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
import zstandard

from codesmith_lab.errors import InputError
from codesmith_lab.sessions.reading import cutting, documents, log_reader, sources
from codesmith_lab.sessions.reading.load import load, load_bytes

PACKINGS = {
    "gzip": gzip.compress,
    "two gzip members": lambda data: gzip.compress(data[:99]) + gzip.compress(data[99:]),
    "zstd": zstandard.ZstdCompressor().compress,
    "two zstd frames": lambda data: (
        zstandard.ZstdCompressor().compress(data[:99])
        + zstandard.ZstdCompressor().compress(data[99:])
    ),
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_packed_logs_read_as_unpacked_ones(made: ModuleType, packing: str, log_name: str) -> None:
    log = made.LOGS[log_name]
    assert load_bytes(PACKINGS[packing](log)).requests == load_bytes(log).requests


def test_a_packed_file_by_any_name(tmp_path: Path, made: ModuleType) -> None:
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(made.LOGS["har"]))
    assert len(load(path).requests) == 3


def test_standard_input(monkeypatch: pytest.MonkeyPatch, made: ModuleType) -> None:
    class Stdin:
        buffer = io.BytesIO(made.LOGS["anthropic-messages"])

    monkeypatch.setattr(sys, "stdin", Stdin)
    session = load("-")
    assert (session.name, len(session.requests)) == ("standard input", 3)


def test_standard_input_among_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: ModuleType
) -> None:
    class Stdin:
        buffer = io.BytesIO(made.LOGS["anthropic-messages"])

    (tmp_path / "one.jsonl").write_bytes(made.LOGS["codex"])
    monkeypatch.setattr(sys, "stdin", Stdin)
    session = load([tmp_path / "one.jsonl", "-"])
    assert session.name == "2 files"
    assert {r.file for r in session.requests} == {"one.jsonl", "standard input"}
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        load("-")


def test_a_folder_and_those_in_it(tmp_path: Path, made: ModuleType) -> None:
    (tmp_path / "b" / ".hidden").mkdir(parents=True)
    (tmp_path / "b" / "one.jsonl").write_bytes(made.LOGS["codex"])
    (tmp_path / "b" / "two.har.gz").write_bytes(gzip.compress(made.LOGS["har"]))
    (tmp_path / "b" / ".hidden" / "three.jsonl").write_bytes(made.LOGS["codex"])
    (tmp_path / "a.json").write_bytes(b'{"settings": true}')
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    session = load(tmp_path)
    assert session.name == tmp_path.name
    assert sorted({r.file for r in session.requests}) == ["b/one.jsonl", "b/two.har.gz"]
    assert [r.index for r in session.requests] == list(range(6))
    times = [r.time for r in session.requests]
    assert times == sorted(times)  # type: ignore[type-var]
    reasons = {(entry.file, entry.reason) for entry in session.skipped}
    assert ("a.json", "it holds no request: neither 'messages' nor a 'request' with messages") in (
        reasons
    )
    assert (str(tmp_path), "1 file in the folder are no logs by their names") in reasons


def test_several_files(tmp_path: Path, made: ModuleType) -> None:
    paths = []
    for name in ("openai-chat", "claude-code"):
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(made.LOGS[name])
        paths.append(path)
    session = load(paths)
    assert (session.name, len(session.requests)) == ("2 files", 6)
    assert {r.file for r in session.requests} == {"openai-chat.jsonl", "claude-code.jsonl"}
    with pytest.raises(InputError, match="no file was named"):
        load([])
    with pytest.raises(InputError, match="there is no such file"):
        load([paths[0], tmp_path / "nowhere"])


def test_one_file_of_several_may_be_of_no_use(tmp_path: Path, made: ModuleType) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl.gz"
    good.write_bytes(made.LOGS["openai-chat"])
    bad.write_bytes(b"BZh91AY")
    session = load([bad, good])
    assert len(session.requests) == 3
    assert session.skipped[0].reason == "this is compressed (bzip2); unpack it first"
    with pytest.raises(InputError, match="bzip2"):
        load([bad])


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_what_a_broken_packing_gave_is_kept(made: ModuleType, packing: str) -> None:
    random = Random(7)
    bodies = [{**made.chat_body(0), "n": random.randbytes(3000).hex()} for _ in range(200)]
    packed = PACKINGS[packing](made.lines(bodies))
    session = load_bytes(packed[: len(packed) * 9 // 10])
    assert len(session.requests) > 150
    assert any("cut off" in entry.reason for entry in session.skipped)
    broken = bytearray(packed)
    broken[len(broken) // 2] ^= 0xFF
    try:
        load_bytes(bytes(broken))
    except InputError:
        return


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_packed_file_that_is_cut_off_says_so(made: ModuleType, packing: str) -> None:
    """One small block, of which nothing can be unpacked: the file is not empty, it is cut."""
    packed = PACKINGS[packing](made.LOGS["openai-chat"])
    for kept in (7, 12, len(packed) - 1):
        try:
            session = load_bytes(packed[:kept])
        except InputError as error:
            assert "compressed data are cut off" in str(error)
        else:
            assert any("data are cut off" in entry.reason for entry in session.skipped)


def test_frames_to_skip_and_what_follows_a_frame(made: ModuleType) -> None:
    log, frame = made.LOGS["openai-chat"], PACKINGS["zstd"](made.LOGS["openai-chat"])
    # A skippable frame (RFC 8878, 3.1.2): magic number, four bytes of size, content.
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    assert load_bytes(frame + skippable).requests == load_bytes(log).requests
    session = load_bytes(frame + b"garbage behind it")
    assert session.requests == load_bytes(log).requests
    assert "compressed data are broken" in session.skipped[-1].reason


def test_zstandard_windows_beyond_the_limit_are_refused() -> None:
    # A frame header that asks for a window of 2 GiB (RFC 8878, 3.1.1.1.2), and an empty block.
    with pytest.raises(InputError, match="a window of more than 128 MiB"):
        load_bytes(b"\x28\xb5\x2f\xfd\x00" + bytes([21 << 3]) + b"\x01\x00\x00")


def test_without_the_package_zstandard_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match="install zstandard"):
        load_bytes(b"\x28\xb5\x2f\xfd\x00")


def bomb(size: int, byte: bytes = b" ") -> bytes:
    """`size` equal bytes, packed piece by piece."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = byte * (1 << 20)
    packed = b"".join(packer.compress(piece) for _ in range(size >> 20))
    return packed + packer.flush()


@pytest.mark.parametrize("byte", [b" ", b"[", b"9", b"\n", b'"', b"{}\n"])
def test_a_bomb_ends_in_an_error_in_little_memory(
    monkeypatch: pytest.MonkeyPatch, byte: bytes
) -> None:
    monkeypatch.setattr(cutting, "MAX_RECORD_BYTES", 4 << 20)
    monkeypatch.setattr(log_reader, "HOPELESS_BYTES", 32 << 20)
    monkeypatch.setattr(documents, "MAX_SKIPPED_BYTES", 32 << 20)
    packed = bomb(64 << 20, byte)
    tracemalloc.start()
    with pytest.raises(InputError) as caught:
        load_bytes(packed, "bomb.gz")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(caught.value).startswith("bomb.gz")
    assert peak < 24 << 20


def test_the_limit_of_what_is_unpacked(monkeypatch: pytest.MonkeyPatch, made: ModuleType) -> None:
    monkeypatch.setattr(sources, "MAX_UNPACKED_BYTES", 1 << 30)
    log = made.LOGS["openai-chat"] + b"\n"
    source = sources.unpacked(io.BytesIO(gzip.compress(log * 10)), "log.gz")
    source._limit = len(log) * 5
    assert len(source.read()) >= len(log) * 5
    assert source.reason == "it unpacks to more than 0 GiB; the rest was not read"
