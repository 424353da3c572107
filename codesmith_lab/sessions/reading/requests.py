"""Calls become requests: bodies read as blocks, counters as usage, the rest as settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from codesmith_lab.billing.usage import Usage, UsageApi, read_usage, usage_api
from codesmith_lab.errors import InputError
from codesmith_lab.sessions.reading.apis import READERS, Reader
from codesmith_lab.sessions.reading.apis.detection import api_of
from codesmith_lab.sessions.reading.apis.drafts import Reading
from codesmith_lab.sessions.reading.apis.streams import events_of, merge_events
from codesmith_lab.sessions.reading.calls import Call, text_of
from codesmith_lab.sessions.reading.json_spans import BadJson, Span, plain
from codesmith_lab.sessions.reading.spans import ArraySpan, Member, value_of
from codesmith_lab.sessions.reading.stored import KeptBlocks, LoggedRequest
from codesmith_lab.sessions.records import Content, Scope

__all__ = ["Requests", "api_of_call", "apply_stream"]

_USAGE_OF: Final[dict[str, UsageApi]] = {
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic-messages": "anthropic-messages",
    "gemini": "gemini",
    "bedrock-converse": "bedrock-converse",
}
_CACHE_KEYS: Final = ("prompt_cache_key", "user_id", "cache_salt")
_SESSION_KEYS: Final = ("session_id", "conversation_id", "conversation")
_IDS: Final = ("id", "responseId", "response_id")


def apply_stream(call: Call) -> None:
    """Put a recorded stream together, so that the response is one that was not streamed."""
    if call.response is None or call.api == "otel-messages":
        return
    found = events_of(call.response.value)
    if found is None:
        return
    events, broken = found
    if broken:
        call.notes.append(f"{broken} events of the response's stream cannot be read")
    call.response = Span(b"", merge_events(events))


@dataclass(slots=True)
class _Parts:
    """What a call's content gave."""

    content: Content
    blocks: tuple[Any, ...] | KeptBlocks
    settings: dict[str, Any]
    output: tuple[Any, ...] | None
    model: str


class Requests:
    """Reads the calls of one log, in order; what repeats is read once."""

    def __init__(self) -> None:
        self._readers: dict[str, Reader] = {}
        self._settings: tuple[str, dict[str, Any]] = ("", {})
        self._scope = Scope()

    def read(self, call: Call, api: str, file: str) -> LoggedRequest:
        """The request of a call. Raises BadJson where its body is none."""
        notes = call.notes
        parts = self._parts(call, api, notes)
        usage = _usage(call, api, notes)  # adds to the flags
        cost = call.cost_usd
        if usage is not None and cost is not None and usage.cost_usd is None:
            usage = replace(usage, cost_usd=cost)
        flags = [*call.flags, *(usage.flags if usage else ())]
        model = parts.model or call.model or _named_model(call)
        scope = _scope(call, model, parts.settings)
        # Requests in a row mostly have the same fields; written out, for 1 equals True.
        written = repr(parts.settings)
        if written != self._settings[0]:
            self._settings = (written, parts.settings)
        if scope != self._scope:
            self._scope = scope
        return LoggedRequest(
            0,
            call.line,
            model,
            call.time,
            call.body.keep() if call.body is not None else b"",  # type: ignore[arg-type]
            parts.blocks,
            self._settings[1],
            parts.output,
            usage,
            _rebuild(call, notes),
            tuple(dict.fromkeys(map(_plain_text, notes))),
            api if parts.content != "none" else "",
            parts.content,
            self._scope,
            call.response_id or _response_id(call),
            call.status,
            tuple(dict.fromkeys(flags)),
            file,
        )

    def _parts(self, call: Call, api: str, notes: list[str]) -> _Parts:
        members = call.members
        if members is None:
            return _Parts("none", (), {}, None, "")
        reader = self._readers.get(api)
        if reader is None:
            reader = self._readers[api] = READERS[api]()
        reading = reader.read(members)
        if reading.empty:
            raise BadJson(
                "the request has no list of messages with any in it, nor a system prompt or tools"
            )
        notes += reading.notes
        model, settings = _settings(members, reader, call.log_keys, notes)
        settings.update(plain(reading.ignored))
        if reading.markers:
            settings["_markers"] = tuple(reading.markers)
        output = _output(call, reader, members, notes)
        content: Content = "partial" if reading.partial or call.partial else "whole"
        blocks = KeptBlocks(tuple(reading.blocks), reading.history, tuple(reading.own))
        return _Parts(content, blocks, settings, output, model)


def _output(
    call: Call, reader: Reader, members: Mapping[str, Member], notes: list[str]
) -> tuple[Any, ...] | None:
    if call.response is None or call.response.value is None:
        return None
    found: Reading | None = reader.output(call.response, _messages(members))
    if found is None:
        if call.status is None or call.status < 400:
            notes.append("the response holds no message")
        return None
    notes += found.notes
    return tuple(found.blocks)


def _messages(members: Mapping[str, Member]) -> int:
    for key in ("messages", "input", "contents"):
        member = members.get(key)
        if isinstance(member, ArraySpan):
            return len(member.items)
    return 1


def _plain_text(note: str) -> str:
    cleaned: str = plain(note)
    return cleaned


def _settings(
    members: Mapping[str, Member], reader: Reader, log_keys: frozenset[str], notes: list[str]
) -> tuple[str, dict[str, Any]]:
    """The model's name, and the body's other fields as JSON values."""
    settings: dict[str, Any] = {}
    for key, member in members.items():
        if key in reader.body_keys or key in log_keys or key == "toolConfig":
            continue
        if key == "system":
            notes.append("'system' is no field of this format and was read as a setting")
        if key in ("_markers", "_provider"):
            notes.append(f"the field {key!r} was passed over, for the name is taken")
            continue
        settings[plain(key)] = plain(value_of(member))
    named = members.get("modelId", members.get("model"))
    model = value_of(named)
    if named is not None and not isinstance(model, str | None):
        notes.append("the model's name is not text and was read as none")
    return plain(model) if isinstance(model, str) else "", settings


def _answer(call: Call) -> Mapping[str, Any]:
    value = call.response.value if call.response is not None else None
    return value if isinstance(value, dict) else {}


def _named_model(call: Call) -> str:
    """The model that the response names."""
    answer = _answer(call)
    return text_of(answer.get("model")) or text_of(answer.get("modelVersion"))


def _response_id(call: Call) -> str:
    answer = _answer(call)
    return next(filter(None, (text_of(answer.get(key)) for key in _IDS)), "")


def _scope(call: Call, model: str, settings: Mapping[str, Any]) -> Scope:
    given = (text_of(settings.get(key)) for key in _CACHE_KEYS)
    session = call.session
    for key in _SESSION_KEYS:
        session = session or text_of(settings.get(key))
    provider, answer = call.provider.lower(), _answer(call)
    # OpenRouter says who served it: the caches are that provider's.
    served = text_of(answer.get("provider")).lower()
    if served and (provider == "openrouter" or text_of(answer.get("id")).startswith("gen-")):
        provider = f"openrouter {served}"
    return Scope(
        provider,
        model,
        call.account,
        call.cache_key or next(filter(None, given), ""),
        session,
    )


def _usage(call: Call, api: str, notes: list[str]) -> Usage | None:
    """The counters of the response, or those beside it."""
    if isinstance(call.usage, Usage):
        notes += call.usage.notes
        return call.usage
    answer = _answer(call)
    given = answer.get("usage", answer.get("usageMetadata"))
    whose: UsageApi | None = _USAGE_OF.get(api) if call.members is not None else None
    if call.usage is not None and (given is None or call.usage_api is not None):
        given, whose = call.usage, call.usage_api or whose
    if given is None:
        return None
    if not isinstance(given, dict):
        notes.append("usage is not an object and was passed over")
        return None
    given = plain(given)
    try:
        usage = read_usage(given, whose) if whose else None
        if usage is None:
            other = usage_api(given)
            usage = read_usage(given, other) if other and other != whose else None
    except InputError as error:
        notes.append(error.reason)
        call.flags.append("usage_negative" if " is -" in error.reason else "usage_contradiction")
        return None
    if usage is None:
        notes.append("usage holds no counter of input tokens that this format knows")
        return None
    notes += usage.notes
    return usage


def _rebuild(call: Call, notes: list[str]) -> dict[str, Any] | None:
    signed = call.rebuild
    if signed is None:
        return None
    if not isinstance(signed, dict) or not isinstance(signed.get("reason"), str):
        notes.append("rebuild is not an object with a reason and was passed over")
        return None
    clean: dict[str, Any] = plain(signed)
    return clean


def api_of_call(call: Call) -> str:
    """The API of a call's body; "" where it could be OpenAI's chat or Anthropic's Messages."""
    if call.api or call.members is None:
        return call.api
    value = call.response.value if call.response is not None else None
    return api_of(call.members, value, call.usage)
