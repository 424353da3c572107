"""Read a log: its format found out, its raw bytes kept, what cannot be used counted."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from codesmith_lab.billing.usage import Usage, read_usage
from codesmith_lab.errors import InputError
from codesmith_lab.sessions.anthropic_messages import MessagesReader
from codesmith_lab.sessions.detection import kind_of
from codesmith_lab.sessions.envelope import Envelope, log_time, open_envelope
from codesmith_lab.sessions.json_spans import BadJson, Span, plain
from codesmith_lab.sessions.lines import ArraySpan, LineWalker, ObjectSpan
from codesmith_lab.sessions.openai_chat import ChatReader
from codesmith_lab.sessions.records import Request, Session, Skipped
from codesmith_lab.sessions.stored import LoggedRequest

__all__ = ["FORMATS", "MAX_LINE_BYTES", "load", "load_bytes"]

FORMATS: Final = ("openai-chat", "anthropic-messages")
MAX_LINE_BYTES: Final = 256 * 2**20
"""A longer line is skipped unread."""

_SHORT_NAMES: Final = {"openai": "openai-chat", "anthropic": "anthropic-messages"}
_HOPELESS_LINES: Final = 1000
_READERS: Final[dict[str, Callable[[], ChatReader | MessagesReader]]] = {
    "openai-chat": ChatReader,
    "anthropic-messages": MessagesReader,
}


def load(path: str | Path, format: str | None = None) -> Session:
    """Read a JSONL log of request bodies, or of objects with `request` and what came back.

    Parameters
    ----------
    path: the file. Beside `request` a line may hold `response` or `usage`, a time (`time`,
        `timestamp`, `created_at` or `ts`: ISO 8601, or seconds or milliseconds since 1970; UTC
        unless it says otherwise), and a signed `rebuild` {reason, before, after}.
    format: "openai-chat" or "anthropic-messages" ("openai", "anthropic"); None finds out by what
        most lines are. Where it is given, every line is read as that format.

    Requests come in time order when every one has a time, else in the order of the file. Lines that
    cannot be read are skipped and listed in `Session.skipped`. Raises InputError, naming file and
    line, when nothing in it is of use.
    """
    shown = str(path)
    chosen = _format(format, shown)
    try:
        with Path(path).open("rb", buffering=1 << 20) as stream:
            return _read(stream, Path(path).name, shown, chosen)
    except IsADirectoryError:
        raise InputError("this is a folder; name one log file", shown) from None
    except FileNotFoundError:
        raise InputError("there is no such file", shown) from None
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", shown) from None
    except ValueError:
        # A null character: no file can have such a name.
        raise InputError("this cannot be the name of a file", shown) from None


def load_bytes(data: bytes, name: str = "log", format: str | None = None) -> Session:
    """The same for a log that is already in memory; `name` stands for the file's."""
    return _read(io.BytesIO(data), name, name, _format(format, name))


def _format(given: str | None, path: str) -> str | None:
    chosen = _SHORT_NAMES.get(given, given) if given is not None else None
    if chosen is not None and chosen not in FORMATS:
        raise InputError(f"the format {given!r} is unknown; use one of {', '.join(FORMATS)}", path)
    return chosen


def _read(stream: BinaryIO, name: str, path: str, format: str | None) -> Session:
    skipped: list[Skipped] = []
    head = b""
    walker = LineWalker()
    found: list[tuple[Envelope, str]] = []
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 2):
        number += 1
        head = head or line[:4096]
        try:
            line = _whole_line(stream, line)
            if line:
                envelope = open_envelope(walker.walk(line), number)
                found.append((envelope, kind_of(envelope)))
        except BadJson as error:
            skipped.append(Skipped(number, str(error)))
            if not found and len(skipped) >= _HOPELESS_LINES:
                break
    chosen = format or _majority([kind for _, kind in found])
    requests = _requests(found, chosen, format is not None, skipped)
    skipped.sort(key=lambda entry: entry.line)
    if not requests:
        raise _nothing(head, skipped, path)
    return Session(plain(name), chosen, requests, tuple(skipped))


def _whole_line(stream: BinaryIO, line: bytes) -> bytes:
    """The line without its ending and without a byte order mark; a longer one is passed over."""
    bare = line.rstrip(b"\r\n")
    if len(bare) > MAX_LINE_BYTES:
        while line and not line.endswith(b"\n"):
            line = stream.readline(1 << 20)
        raise BadJson(f"it is longer than {MAX_LINE_BYTES >> 20} MiB; split the log")
    bare = bare.removeprefix(b"\xef\xbb\xbf")
    return b"" if bare.isspace() else bare


def _nothing(head: bytes, skipped: list[Skipped], path: str) -> InputError:
    if not skipped:
        return InputError("the file is empty; a log holds one JSON request a line", path)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return InputError("this is UTF-16 text; save it as UTF-8", path, 1)
    if head.startswith(b"\x1f\x8b"):
        return InputError("this is compressed (gzip); unpack it first", path, 1)
    if b"\0" in head:
        return InputError("this is binary data, not JSONL", path, 1)
    first = skipped[0]
    lines = (
        "this line does not hold" if len(skipped) == 1 else f"none of {len(skipped)} lines holds"
    )
    return InputError(
        f"{lines} a usable request: {first.reason}; a log holds one JSON request a line",
        path,
        first.line,
    )


def _majority(kinds: list[str]) -> str:
    return max(FORMATS, key=kinds.count)


def _requests(
    found: list[tuple[Envelope, str]], chosen: str, given: bool, skipped: list[Skipped]
) -> tuple[Request, ...]:
    """The requests of a log in time order."""
    reader = _READERS[chosen]()
    made: list[LoggedRequest] = []
    for envelope, kind in found:
        if kind not in ("", chosen) and not given:
            reason = f"it is a request of the format {kind} in a log of {chosen}"
            skipped.append(Skipped(envelope.line, reason))
            continue
        try:
            made.append(_request(envelope, reader))
        except BadJson as error:
            skipped.append(Skipped(envelope.line, str(error)))
    if all(request.time is not None for request in made):
        made.sort(key=lambda request: request.time.timestamp() if request.time else 0.0)
    return tuple(request.at(index) for index, request in enumerate(made))


def _request(envelope: Envelope, reader: ChatReader | MessagesReader) -> LoggedRequest:
    body, log = envelope.body, envelope.log
    messages = body.members.get("messages")
    if not isinstance(messages, ArraySpan):
        raise BadJson("the request has no list of messages")
    reading = reader.read(body, messages)
    if not reading.blocks:
        raise BadJson(
            "the request has no list of messages with any in it, nor a system prompt or tools"
        )
    notes = reading.notes
    output = None
    response = log.get("response")
    if response is not None and response.value is not None:
        output = reader.output(response, len(messages.items))
        notes += ["the response holds no message"] if output is None else output.notes
    model, settings = _settings(body, reader, envelope.log_keys, notes)
    settings.update(plain(reading.ignored))
    if reading.markers:
        settings["_markers"] = tuple(reading.markers)
    return LoggedRequest(
        0,
        envelope.line,
        model,
        log_time(log, notes),
        body,  # type: ignore[arg-type]  # joined to bytes when asked for
        tuple(reading.blocks),
        settings,
        None if output is None else tuple(output.blocks),
        _usage(log, reader.name, notes),
        _rebuild(log, notes),
        tuple(dict.fromkeys(notes)),
    )


def _settings(
    body: ObjectSpan,
    reader: ChatReader | MessagesReader,
    log_keys: frozenset[str],
    notes: list[str],
) -> tuple[str, dict[str, Any]]:
    """The model's name, and the body's other fields as JSON values."""
    settings: dict[str, Any] = {}
    for key, member in body.members.items():
        if key in reader.body_keys or key in log_keys:
            continue
        if key == "system":
            notes.append("'system' is no field of this format and was read as a setting")
        if key == "_markers":
            notes.append("the field '_markers' was passed over, for the name is taken")
            continue
        settings[plain(key)] = plain(_value(member))
    named = body.members.get("model")
    model = named.value if isinstance(named, Span) else None
    if named is not None and not isinstance(model, str | None):
        notes.append("the model's name is not text and was read as none")
    return plain(model) if isinstance(model, str) else "", settings


def _value(member: Any) -> Any:
    if isinstance(member, Span):
        return member.value
    if isinstance(member, ArraySpan):
        return [item.value for item in member.items]
    return {key: _value(inner) for key, inner in member.members.items()}


def _usage(log: dict[str, Span], api: str, notes: list[str]) -> Usage | None:
    """The counters of the response, or those beside it."""
    response = log.get("response")
    given = response.value.get("usage") if response and isinstance(response.value, dict) else None
    if given is None and "usage" in log:
        given = log["usage"].value
    if given is None:
        return None
    if not isinstance(given, dict):
        notes.append("usage is not an object and was passed over")
        return None
    try:
        usage = read_usage(
            plain(given), "openai-chat" if api == "openai-chat" else "anthropic-messages"
        )
    except InputError as error:
        notes.append(error.reason)
        return None
    if usage is None:
        notes.append("usage holds no counter of input tokens that this format knows")
    return usage


def _rebuild(log: dict[str, Span], notes: list[str]) -> dict[str, Any] | None:
    signed = log["rebuild"].value if "rebuild" in log else None
    if signed is None:
        return None
    if not isinstance(signed, dict) or not isinstance(signed.get("reason"), str):
        notes.append("rebuild is not an object with a reason and was passed over")
        return None
    clean: dict[str, Any] = plain(signed)
    return clean
