"""Read a log: its format found out, its raw bytes kept, what cannot be used counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO

from codesmith_lab.billing.usage import Usage, read_usage
from codesmith_lab.errors import InputError, LabError
from codesmith_lab.sessions import anthropic_messages, openai_chat
from codesmith_lab.sessions.bodies import BlockMaker
from codesmith_lab.sessions.json_spans import BadJson, decode_line, members_of
from codesmith_lab.sessions.records import Request, Session, Skipped

__all__ = ["FORMATS", "MAX_LINE_BYTES", "load", "load_bytes"]

FORMATS = ("openai-chat", "anthropic-messages")
MAX_LINE_BYTES = 256 * 2**20
"""A longer line is skipped unread."""

_TIME_KEYS = ("time", "timestamp", "created_at", "ts")
_BODY_KEYS = ("messages", "tools", "system")
Members = dict[str, tuple[Any, str]]


def load(path: str | Path, format: str | None = None) -> Session:
    """Read a JSONL log of request bodies, or of objects with `request` and what came back.

    Parameters
    ----------
    path: the file. format: "openai-chat" or "anthropic-messages"; None finds out by itself.

    Raises InputError, naming file and line, when there is nothing of use in it. Lines that cannot
    be read are skipped and listed in `Session.skipped`.
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            return _read(stream, file.name, format)
    except IsADirectoryError:
        raise InputError("this is a folder; name one log file", str(path)) from None
    except FileNotFoundError:
        raise InputError("there is no such file", str(path)) from None
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", str(path)) from None


def load_bytes(data: bytes, name: str = "log", format: str | None = None) -> Session:
    """The same for a log that is already in memory."""
    import io

    return _read(io.BytesIO(data), name, format)


def _read(stream: BinaryIO, name: str, format: str | None) -> Session:
    if format is not None and format not in FORMATS:
        raise LabError(f"format {format!r} is unknown; use one of {', '.join(FORMATS)}")
    rows: list[tuple[int, Members, bytes, str]] = []
    skipped: list[Skipped] = []
    for number, line in _lines(stream, skipped):
        if number == 1 and b"\0" in line[:4096]:
            raise InputError("this is binary data, not JSONL", name, 1)
        try:
            members = members_of(decode_line(line))
            rows.append((number, members, line, _kind(members)))
        except BadJson as error:
            skipped.append(Skipped(number, str(error)))
    chosen = format or _majority([row[3] for row in rows])
    requests = _requests(rows, chosen, skipped)
    skipped.sort(key=lambda entry: entry.line)
    if not requests:
        if skipped:
            raise InputError(
                f"no line holds a request; the first: {skipped[0].reason}", name, skipped[0].line
            )
        raise InputError("the file is empty; a log holds one JSON request a line", name)
    return Session(name, chosen, tuple(requests), tuple(skipped))


def _lines(stream: BinaryIO, skipped: list[Skipped]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_LINE_BYTES)
            skipped.append(Skipped(number, f"the line is longer than {MAX_LINE_BYTES >> 20} MiB"))
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, line.rstrip(b"\r\n")


def _body(members: Members) -> tuple[Members, str | None]:
    """The body's members and its exact text when it is wrapped."""
    value, raw = members.get("request", (None, ""))
    if isinstance(value, dict):
        return members_of(raw), raw
    if "request" in members and "messages" not in members:
        raise BadJson("its request is not an object")
    return members, None


def _kind(members: Members) -> str:
    body, _ = _body(members)
    if not any(key in body for key in _BODY_KEYS):
        raise BadJson("it holds no request (neither messages nor a request object)")
    if "system" in body or "anthropic_version" in body:
        return "anthropic-messages"
    tools = body.get("tools", (None, ""))[0]
    if isinstance(tools, list) and any(isinstance(t, dict) and "input_schema" in t for t in tools):
        return "anthropic-messages"
    text = body.get("messages", (None, ""))[1]
    if any(f'"{word}"' in text for word in ("tool_use", "tool_result", "cache_control")):
        return "anthropic-messages"
    usage = _usage_mapping(members)
    if usage is not None and "cache_read_input_tokens" in usage and "prompt_tokens" not in usage:
        return "anthropic-messages"
    return "openai-chat"


def _majority(kinds: list[str]) -> str:
    return max(FORMATS, key=kinds.count)


def _requests(
    rows: list[tuple[int, Members, bytes, str]], chosen: str, skipped: list[Skipped]
) -> list[Request]:
    maker = BlockMaker()
    requests: list[Request] = []
    for number, members, line, kind in rows:
        if kind != chosen and kind == "anthropic-messages":
            skipped.append(Skipped(number, f"it is a {kind} request in an {chosen} log"))
            continue
        maker.notes.clear()
        try:
            requests.append(_request(number, members, line, chosen, maker))
        except BadJson as error:
            skipped.append(Skipped(number, str(error)))
        except RecursionError:
            skipped.append(Skipped(number, "it nests deeper than a request can"))
    if requests and all(request.time is not None for request in requests):
        requests.sort(key=lambda r: r.time.timestamp() if r.time else 0.0)
    return [replace(request, index=i) for i, request in enumerate(requests)]


def _request(number: int, members: Members, line: bytes, chosen: str, maker: BlockMaker) -> Request:
    body, raw = _body(members)
    module = openai_chat if chosen == "openai-chat" else anthropic_messages
    blocks = tuple(module.read_blocks(body, maker))
    count = max((block.message for block in blocks), default=-1) + 1
    response = members.get("response", (None, ""))[0]
    output = module.output_blocks(response, count, maker)
    model = body.get("model", ("", ""))[0]
    if not isinstance(model, str):
        maker.note("the model's name is not text")
        model = ""
    settings = {k: v for k, (v, _) in body.items() if k not in (*_BODY_KEYS, "model")}
    if chosen == "anthropic-messages":
        settings["_markers"] = anthropic_messages.markers_of(body)
    rebuild = members.get("rebuild", (None, ""))[0] if raw is not None else None
    usage = _usage(members, chosen, maker)
    return Request(
        0,
        number,
        maker.clean(model),
        _time(members, maker),
        line if raw is None else raw.encode("utf-8", "surrogatepass"),
        blocks,
        settings,
        None if output is None else tuple(output),
        usage,
        rebuild if isinstance(rebuild, dict) else None,
        tuple(maker.notes),
    )


def _usage_mapping(members: Members) -> dict[str, Any] | None:
    usage = members.get("usage", (None, ""))[0]
    response = members.get("response", (None, ""))[0]
    if usage is None and isinstance(response, dict):
        usage = response.get("usage")
    return usage if isinstance(usage, dict) else None


def _usage(members: Members, chosen: str, maker: BlockMaker) -> Usage | None:
    mapping = _usage_mapping(members)
    if mapping is None:
        return None
    try:
        return read_usage(
            mapping, "openai-chat" if chosen == "openai-chat" else "anthropic-messages"
        )
    except LabError as error:
        maker.note(str(error))
        return None


def _time(members: Members, maker: BlockMaker) -> datetime | None:
    for key in _TIME_KEYS:
        value = members.get(key, (None, ""))[0]
        if value is None:
            continue
        try:
            return _moment(value)
        except (ValueError, OverflowError, OSError, TypeError):
            maker.note(f"its {key} is no time that can be read")
    return None


def _moment(value: Any) -> datetime:
    if isinstance(value, str):
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(type(value).__name__)
    seconds = value / 1000 if abs(value) > 1e11 else value
    return datetime.fromtimestamp(seconds, timezone.utc)
