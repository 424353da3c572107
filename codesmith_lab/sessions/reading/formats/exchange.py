"""HTTP exchanges, as HAR files and cassettes record them: where a call went and what it was."""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

from codesmith_lab.sessions.reading.apis.detection import is_other_call
from codesmith_lab.sessions.reading.apis.streams import is_stream_text
from codesmith_lab.sessions.reading.calls import Call, Keys, text_of
from codesmith_lab.sessions.reading.cutting import MAX_RECORD_BYTES
from codesmith_lab.sessions.reading.formats.plain import has_body
from codesmith_lab.sessions.reading.json_spans import BadJson, Span, decode_at, skip
from codesmith_lab.sessions.reading.lines import LineWalker
from codesmith_lab.sessions.reading.spans import Member

__all__ = [
    "Exchange",
    "NoCall",
    "answer_of",
    "call_of",
    "decoded",
    "headers_of",
    "response_of",
]

_HOSTS: Final = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "api.deepseek.com": "deepseek",
    "generativelanguage.googleapis.com": "google",
    "openrouter.ai": "openrouter",
    "api.mistral.ai": "mistral",
    "api.x.ai": "x-ai",
    "api.moonshot.ai": "moonshotai",
    "api.moonshot.cn": "moonshotai",
    "api.minimax.io": "minimax",
    "api.z.ai": "zai",
    "open.bigmodel.cn": "zai",
    "api.groq.com": "groq",
    "dashscope.aliyuncs.com": "alibaba",
    "dashscope-intl.aliyuncs.com": "alibaba",
}
_HOST_ENDS: Final = {
    ".openai.azure.com": "azure",
    ".services.ai.azure.com": "azure",
    "-aiplatform.googleapis.com": "google-vertex",
}
_BEDROCK: Final = re.compile(r"bedrock-runtime[.-]")
_MODEL_IN_PATH: Final = re.compile(
    r"/(?:models|model|deployments|publishers/[^/]+/models)/([^/:?]+(?:(?:%3A|:)\d[^/:?]*)?)"
)
_KEY_HEADERS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_ACCOUNT_HEADERS: Final = ("openai-organization", "openai-project", "anthropic-organization-id")
_CACHE_HEADERS: Final = ("x-grok-conv-id",)
_SESSION_HEADERS: Final = ("x-session-id", "session_id", "x-claude-code-session-id")
_ID_HEADERS: Final = ("request-id", "x-request-id", "x-amzn-requestid")


class NoCall(Exception):
    """An exchange that is no call to a language model."""


@dataclass(slots=True)
class Exchange:
    """One request and its response. Header names are in lower case; bodies are text or JSON."""

    line: int
    method: str = ""
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    sent: bytes = b""
    status: int | None = None
    answer_headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b""
    notes: list[str] = field(default_factory=list)


def headers_of(given: Any) -> dict[str, str]:
    """Headers from a list of {name, value}, or an object of names and values or lists of them."""
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(given, Mapping):
        pairs = given.items()
    elif isinstance(given, list):
        pairs = [(h.get("name"), h.get("value")) for h in given if isinstance(h, Mapping)]
    found = {}
    for name, value in pairs:
        if isinstance(value, list):
            value = value[0] if value else None
        if isinstance(name, str) and isinstance(value, str):
            found[name.lower()] = value
    return found


def decoded(data: bytes, headers: Mapping[str, str], base64_text: bool = False) -> bytes:
    """A body as it was before it was packed for the way. Raises BadJson where it is broken."""
    try:
        if base64_text:
            data = base64.b64decode(data, validate=False)
        packing = headers.get("content-encoding", "").strip().lower()
        if packing == "gzip" and data.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=BytesIO(data)) as unpacker:
                data = unpacker.read(MAX_RECORD_BYTES + 1)
        elif packing == "deflate" and data[:1] not in (b"{", b"["):
            data = zlib.decompressobj().decompress(data, MAX_RECORD_BYTES + 1)
    except (binascii.Error, ValueError, EOFError, OSError, zlib.error):
        raise BadJson("its body is packed and cannot be unpacked") from None
    if len(data) > MAX_RECORD_BYTES:
        raise BadJson(f"its body unpacks to more than {MAX_RECORD_BYTES >> 20} MiB")
    return data


def answer_of(read: Callable[[], bytes], notes: list[str]) -> bytes:
    """A response's body; b"" and a note where it is broken, as the request is good all the same."""
    try:
        return read()
    except BadJson as error:
        notes.append(f"the response cannot be read: {error}")
        return b""


def call_of(exchange: Exchange, walker: LineWalker, keys: Keys) -> Call:
    """The call that an exchange is. Raises NoCall, or BadJson for a call that cannot be read."""
    if exchange.method.upper() not in ("POST", "") or not exchange.sent.lstrip().startswith(b"{"):
        raise NoCall
    body = walker.walk(exchange.sent)
    members: Mapping[str, Member] = body.members
    if not has_body(members):
        raise NoCall
    if "messages" not in members and is_other_call(members):
        raise NoCall
    call = Call(exchange.line, body, status=exchange.status, notes=list(exchange.notes))
    host, path = _split(exchange.url)
    call.provider = _provider(host)
    named = _MODEL_IN_PATH.search(path)
    if named:
        call.model = _unquote(named[1])
    if "anthropic_version" in members:
        call.api = "anthropic-messages"
    headers = exchange.headers
    account = [headers[name] for name in _ACCOUNT_HEADERS if headers.get(name)]
    key = keys.label(next((headers[n] for n in _KEY_HEADERS if headers.get(n)), ""))
    call.account = text_of(" ".join([*account, *([key] if key else [])]))
    call.cache_key = text_of(next((headers[n] for n in _CACHE_HEADERS if n in headers), ""))
    call.session = text_of(next((headers[n] for n in _SESSION_HEADERS if n in headers), ""))
    ids = (exchange.answer_headers.get(name, "") for name in _ID_HEADERS)
    call.response_id = text_of(next(filter(None, ids), ""))
    call.response = response_of(exchange.answer, call.notes)
    return call


def response_of(answer: bytes, notes: list[str]) -> Span | None:
    """The answer as JSON, or as the text of its stream; None and a note where it is neither."""
    if not answer.strip():
        return None
    at = skip(answer, 0)
    if answer[at : at + 1] in (b"{", b"["):
        try:
            value, end = decode_at(answer, at)
            return Span(answer[at:end], value)
        except BadJson as error:
            notes.append(f"the response cannot be read: {error}")
            return None
    text = answer.decode("utf-8", "replace")
    if is_stream_text(text):
        return Span(b"", text)
    notes.append("the response is neither JSON nor a stream of events and was passed over")
    return None


def _split(url: str) -> tuple[str, str]:
    """Host and path of an address."""
    rest = url.split("://", 1)[-1]
    host, _, path = rest.partition("/")
    return host.rpartition("@")[2].split(":")[0].lower(), "/" + path


def _provider(host: str) -> str:
    if host in _HOSTS:
        return _HOSTS[host]
    if _BEDROCK.match(host):
        return "bedrock"
    for end, provider in _HOST_ENDS.items():
        if host.endswith(end):
            return provider
    return text_of(host)


def _unquote(text: str) -> str:
    """Percent signs of an address undone."""
    pieces = text.encode("utf-8", "replace").split(b"%")
    found = pieces[0]
    for piece in pieces[1:]:
        try:
            found += bytes([int(piece[:2], 16)]) + piece[2:]
        except ValueError:
            found += b"%" + piece
    return text_of(found.decode("utf-8", "replace"))
