"""OpenRouter's generation records: what `GET /generation` says of one response.

They hold counters of the provider's own tokenizer, the charge and the provider, and no content.
(Requests to OpenRouter are chat completions, and are read as such.) Source: OpenRouter's API
reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from codesmith_lab.billing.usage import money
from codesmith_lab.sessions.reading.calls import Call, Opener, text_of
from codesmith_lab.sessions.reading.formats.plain import log_time
from codesmith_lab.sessions.reading.json_spans import Span
from codesmith_lab.sessions.reading.spans import ObjectSpan, value_of

__all__ = ["OpenRouterOpener"]


class OpenRouterOpener(Opener):
    """Generation records, bare or under `data`."""

    name = "openrouter"

    def claims(self, record: ObjectSpan) -> bool:
        """A record has counters of both tokenizers."""
        inner = value_of(record.members.get("data"))
        known = inner if isinstance(inner, dict) else record.members
        return {"native_tokens_prompt", "tokens_prompt"} <= known.keys()

    def open(self, record: ObjectSpan, line: int) -> Iterator[Call]:
        """The one call of a record."""
        inner = value_of(record.members.get("data"))
        data = inner if isinstance(inner, dict) else value_of(record)
        call = Call(line, usage=data, usage_api="openrouter-generation")
        call.time = log_time(
            {"created_at": Span(b"", data.get("created_at"))}, call.notes, ("created_at",)
        )
        call.model = text_of(data.get("model"))
        provider = text_of(data.get("provider_name"))
        call.provider = f"openrouter {provider}".strip()
        call.response_id = text_of(data.get("id"))
        call.session = text_of(data.get("session_id"))
        call.cost_usd = money(data.get("total_cost"))
        yield call
