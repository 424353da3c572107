"""LiteLLM's records: standard logging payloads and rows of its spend log.

A record holds messages and parameters as LiteLLM had them; the body that a client sent is there
where the proxy stores it (`proxy_server_request`). Counters follow OpenAI's meaning: the input
holds what was cached. A record answered from LiteLLM's own cache reached no provider and has no
usage. Source: LiteLLM's StandardLoggingPayload specification and database schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from codesmith_lab.billing.usage import merge_usage, money
from codesmith_lab.sessions.reading.apis.drafts import compact
from codesmith_lab.sessions.reading.calls import Call, Keys, Opener, text_of
from codesmith_lab.sessions.reading.formats.plain import has_body, log_time
from codesmith_lab.sessions.reading.json_spans import BadJson, Span
from codesmith_lab.sessions.reading.lines import LineWalker
from codesmith_lab.sessions.reading.spans import ArraySpan, Member, ObjectSpan, value_of

__all__ = ["LiteLlmOpener"]

_OTHER_CALLS: Final = ("embedding", "image", "speech", "transcription", "moderation", "rerank")
_COUNTERS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")


class LiteLlmOpener(Opener):
    """Standard logging payloads and spend log rows."""

    name = "litellm"

    def __init__(self) -> None:
        self._walker = LineWalker()
        self._keys = Keys()
        self._tools: dict[str, Span] = {}

    def claims(self, record: ObjectSpan) -> bool:
        """A record names its call type, its start and its counters."""
        return {"call_type", "startTime", "prompt_tokens"} <= record.members.keys()

    def open(self, record: ObjectSpan, line: int) -> Iterator[Call]:
        """The one call of a record."""
        members = record.members
        kind = text_of(value_of(members.get("call_type"))).lower()
        if any(other in kind for other in _OTHER_CALLS):
            raise BadJson(f"it is a call of the type {kind}, which has no prompt to cache")
        call = Call(line)
        self._content(members, call)
        call.time = log_time(members, call.notes, ("startTime",))
        call.model = text_of(value_of(members.get("model")))
        call.provider = text_of(value_of(members.get("custom_llm_provider")))
        for key in ("request_id", "id"):
            call.response_id = call.response_id or text_of(value_of(members.get(key)))
        for key in ("session_id", "trace_id"):
            call.session = call.session or text_of(value_of(members.get(key)))
        metadata = value_of(members.get("metadata"))
        metadata = metadata if isinstance(metadata, dict) else {}
        hashed = value_of(members.get("api_key")) or metadata.get("user_api_key_hash")
        call.account = self._keys.label(hashed)
        call.usage_api = "openai-chat"
        self._answer(members, metadata, call)
        yield call

    def _content(self, members: Mapping[str, Member], call: Call) -> None:
        sent = members.get("proxy_server_request")
        if isinstance(sent, ObjectSpan):
            inner = sent.members.get("body")
            sent = inner if isinstance(inner, ObjectSpan) else sent
            if has_body(sent.members):
                call.body = sent
                return
        messages = members.get("messages")
        if isinstance(messages, Span) and isinstance(messages.value, str):
            messages = self._stored(messages.value)
        if isinstance(messages, ArraySpan) and messages.items:
            call.parts = {"messages": messages}
            parameters = value_of(members.get("model_parameters"))
            if isinstance(parameters, dict):
                call.notes.append("the record holds messages and parameters, not the body")
                parts: dict[str, Member] = {k: Span(b"", v) for k, v in parameters.items()}
                tools = parameters.get("tools")
                if isinstance(tools, list):
                    spans = [self._tools.setdefault(compact(t), Span(b"", t)) for t in tools]
                    parts["tools"] = ArraySpan(spans, [b""] * (len(spans) + 1))
                call.parts = {**parts, "messages": messages}

    def _stored(self, text: str) -> ArraySpan | None:
        """Messages that the database keeps as text."""
        try:
            return self._walker.array(text.encode("utf-8", "surrogatepass"), "messages")
        except BadJson:
            return None

    def _answer(
        self, members: Mapping[str, Member], metadata: Mapping[str, Any], call: Call
    ) -> None:
        if value_of(members.get("cache_hit")) in (True, "True", "true"):
            call.notes.append("answered from the gateway's own cache: no provider was called")
            return
        response = members.get("response")
        if isinstance(response, Span) and isinstance(response.value, dict) and response.value:
            call.response = response
        counters: dict[str, Any] = {
            name: value_of(members.get(name)) for name in _COUNTERS if name in members
        }
        for key in ("usage_object", "additional_usage_values"):
            given = metadata.get(key)
            if isinstance(given, dict):
                counters = merge_usage(counters, given)
        inner = call.response.value.get("usage") if call.response else None
        call.usage = merge_usage(counters, inner) if isinstance(inner, dict) else counters
        cost = value_of(members.get("response_cost")) or value_of(members.get("spend"))
        call.cost_usd = money(cost)
        if value_of(members.get("status")) == "failure":
            call.usage = None
            call.notes.append("the call failed")
