"""Fuzz the importers: any bytes end in a session or in one InputError, soon and in little memory.

    python tests/fuzz/fuzz_importers.py --minutes 60            # mutates the made logs
    python tests/fuzz/fuzz_importers.py --minutes 60 --atheris  # follows coverage

The second needs `pip install atheris`.

Prints a line a minute and what it found; an input that breaks a promise is written to a file whose
name is printed. The same seed gives the same inputs. Exit status 1 when anything was found.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gzip
import hashlib
import importlib.util
import json
import random
import resource
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
SLOW_S = 10.0
MOST_MIB = 700
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**53 + 1, 10**30, "", "x", "\ud800", "é" * 9, [], {}, [[]]),
    *({"type": "text"}, [{"type": "text", "text": "t"}], {"role": "user"}, "data: {}\n\n", "1e999"),
    *({"usage": {"input_tokens": -5}}, "2026-01-01T00:00:00Z", 1e300, {"ttl": "1h"}, "\0", "<b>"),
)


def made_logs() -> ModuleType:
    folder = HERE.parent / "sessions" / "made_logs"
    spec = importlib.util.spec_from_file_location(
        "made_logs", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    sys.modules["made_logs"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(data: bytes, format: str | None) -> None:
    """Raise whatever breaks a promise."""
    from codesmith_lab.errors import InputError
    from codesmith_lab.sessions.reading.load import load_bytes

    try:
        session = load_bytes(data, "fuzzed", format)
    except InputError as error:
        assert str(error).startswith("fuzzed"), str(error)
        assert "\n" not in str(error), str(error)
        return
    assert session.requests
    for index, request in enumerate(session.requests):
        assert request.index == index
        assert request.line >= 1
        blocks = request.blocks
        for block in (*blocks, *(request.output or ())):
            (block.text + block.name + block.role).encode()
        for at, lifetime in request.settings.get("_markers", ()):
            assert 0 <= at < len(blocks)
            lifetime.encode()
        assert (request.content == "none") == (not blocks)
        json.dumps(request.settings, default=str, ensure_ascii=False).encode()
        usage = request.usage
        if usage is not None:
            for name in ("input_tokens", "output_tokens", "cache_read_tokens"):
                number = getattr(usage, name)
                assert number is None or 0 <= number < 2**56
        for text in (*request.notes, repr(request.scope), request.model, request.response_id):
            text.encode()
    for entry in session.skipped:
        assert entry.line >= 1
        entry.reason.encode()


def mutate_bytes(data: bytearray, rng: random.Random, others: list[bytes]) -> bytearray:
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        if not data:
            return bytearray(rng.choice(others))
        at = rng.randrange(len(data))
        kind = rng.randrange(8)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.choice((1, 2, 9, 400))]
        elif kind == 2:
            data[at:at] = data[at : at + rng.choice((1, 5, 300))]
        elif kind == 3:
            data[at:at] = rng.choice(
                (b'"', b"{", b"[", b"}", b"]", b",", b":", b"\\", b"\n", b"*a")
            )
        elif kind == 4:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            data[at : at + rng.choice((0, 50))] = other[start : start + rng.choice((20, 2000))]
        elif kind == 5:
            data[at:at] = rng.choice(
                (b"[" * 300, b'{"a":' * 250, b"\xff\xfe", b"\xef\xbb\xbf", b"\0")
            )
        elif kind == 6:
            del data[at:]
        else:
            data[at:at] = rng.choice(
                (b"&a [*a]", b"- ", b"\r\n\r\n", b"9" * 5000, b"&id001 ", b"*id001")
            )
    return data


def mutate_value(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """A value with one node changed."""
    if depth > 12 or rng.random() < 0.08:
        return rng.choice(ODD)
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        changed = dict(value)
        kind = rng.randrange(10)
        if kind == 0:
            del changed[key]
        elif kind == 1:
            changed[rng.choice(list(value)) + rng.choice(("", "s", "_"))] = value[key]
        elif kind == 2:
            changed[key] = [value[key]]
        else:
            changed[key] = mutate_value(value[key], rng, depth + 1)
        return changed
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        changed_list = list(value)
        kind = rng.randrange(8)
        if kind == 0:
            del changed_list[at]
        elif kind == 1:
            changed_list.insert(at, changed_list[rng.randrange(len(value))])
        else:
            changed_list[at] = mutate_value(value[at], rng, depth + 1)
        return changed_list
    if isinstance(value, str) and value.startswith(("{", "[", "data:", "event:")):
        return bytes(mutate_bytes(bytearray(value.encode()), rng, [b"{}"])).decode(
            "utf-8", "replace"
        )
    return rng.choice(ODD)


def records_of(log: bytes) -> list[Any] | None:
    with contextlib.suppress(ValueError):
        return [json.loads(line) for line in log.split(b"\n")]
    with contextlib.suppress(ValueError):
        return [json.loads(log)]
    return None


def inputs(seed: int) -> Any:
    """Inputs without an end, the same for the same seed."""
    rng = random.Random(seed)
    logs = list(made_logs().LOGS.values())
    parsed = [records for records in map(records_of, logs) if records]
    while True:
        if rng.random() < 0.6:
            records = list(rng.choice(parsed))
            for _ in range(rng.choice((1, 1, 2, 4))):
                at = rng.randrange(len(records))
                records[at] = mutate_value(records[at], rng)
            if rng.random() < 0.2:
                records += rng.choice(parsed)
                rng.shuffle(records)
            indent = rng.choice((None, None, 1))
            data = b"\n".join(json.dumps(r, indent=indent).encode() for r in records)
        else:
            data = bytes(mutate_bytes(bytearray(rng.choice(logs)), rng, logs))
        if rng.random() < 0.05:
            data = gzip.compress(data)
            data = data if rng.random() < 0.5 else bytes(mutate_bytes(bytearray(data), rng, logs))
        yield data, rng


def keep(data: bytes, why: str) -> None:
    path = Path(f"found-{hashlib.sha256(data).hexdigest()[:12]}.bin")
    path.write_bytes(data)
    print(f"FOUND {why}\n  written to {path}", flush=True)


def run(minutes: float, seed: int) -> int:
    from codesmith_lab.sessions.reading.load import FORMATS

    start = told = time.monotonic()
    count = found = 0
    slowest = 0.0
    names: list[str | None] = [None, None, None, *FORMATS]
    for data, rng in inputs(seed):
        now = time.monotonic()
        if now - start > minutes * 60:
            break
        if now - told > 60:
            told = now
            print(
                f"{(now - start) / 60:.0f} min, {count} inputs, {found} found, {report(slowest)}",
                flush=True,
            )
        format = rng.choice(names)
        faulthandler.dump_traceback_later(30, exit=False)
        try:
            check(data, format)
        except Exception as error:
            found += 1
            keep(data, f"{type(error).__name__}: {error} (format {format})")
        faulthandler.cancel_dump_traceback_later()
        took = time.monotonic() - now
        slowest = max(slowest, took)
        if took > SLOW_S:
            found += 1
            keep(data, f"took {took:.1f} s")
        count += 1
    print(f"{count} inputs, {found} found, {report(slowest)}")
    return 1 if found or peak_mib() > MOST_MIB else 0


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(slowest: float) -> str:
    return f"slowest {slowest:.2f} s, peak {peak_mib():.0f} MiB"


def follow_coverage(minutes: float, seed: int) -> None:
    import atheris

    with atheris.instrument_imports(include=["codesmith_lab"]):
        from codesmith_lab.sessions.reading.load import load_bytes  # noqa: F401

    corpus = Path("corpus-importers")
    corpus.mkdir(exist_ok=True)
    for name, log in made_logs().LOGS.items():
        (corpus / name.replace(" ", "-")).write_bytes(log)
    options = [f"-max_total_time={int(minutes * 60)}", f"-seed={seed}", "-max_len=20000"]
    options += ["-timeout=30", f"-rss_limit_mb={MOST_MIB}", str(corpus)]
    atheris.Setup([sys.argv[0], *options], lambda data: check(data, None))
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--atheris", action="store_true", help="follow coverage")
    options = parser.parse_args()
    if options.atheris:
        follow_coverage(options.minutes, options.seed)
        return 0
    return run(options.minutes, options.seed)


if __name__ == "__main__":
    sys.exit(main())
