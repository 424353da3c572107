"""Amazon Bedrock's model invocation log: one record a call, Converse or InvokeModel.

Source: AWS's documentation on model invocation logging, schema 1.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codesmith_lab.sessions.reading.calls import Call, Opener, text_of
from codesmith_lab.sessions.reading.formats.plain import has_body, log_time
from codesmith_lab.sessions.reading.json_spans import Span, members_of
from codesmith_lab.sessions.reading.spans import ObjectSpan, value_of

__all__ = ["BedrockLogOpener"]


class BedrockLogOpener(Opener):
    """Records of the schema ModelInvocationLog."""

    name = "bedrock-log"

    def claims(self, record: ObjectSpan) -> bool:
        """A record names its schema."""
        return bool(value_of(record.members.get("schemaType")) == "ModelInvocationLog")

    def open(self, record: ObjectSpan, line: int) -> Iterator[Call]:
        """The one call of a record."""
        members = record.members
        call = Call(line)
        sent = members.get("input")
        if isinstance(sent, ObjectSpan):
            body = sent.members.get("inputBodyJson")
            if isinstance(body, ObjectSpan) and has_body(body.members):
                call.body = body
                if text_of(value_of(members.get("operation"))).startswith("Converse"):
                    call.api = "bedrock-converse"
        came = members.get("output")
        counters: dict[str, Any] = {}
        for part in (value_of(sent), value_of(came)):
            if isinstance(part, dict):
                counters.update({k: v for k, v in part.items() if k.endswith("TokenCount")})
        call.usage, call.usage_api = counters, "bedrock-log"
        if isinstance(came, Span) and isinstance(came.value, dict):
            inner = members_of(came.raw).get("outputBodyJson") if came.raw else None
            call.response = inner
        call.time = log_time(members, call.notes, ("timestamp",))
        call.model = text_of(value_of(members.get("modelId")))
        call.provider = "bedrock"
        account = [text_of(value_of(members.get(key))) for key in ("accountId", "region")]
        call.account = " ".join(filter(None, account))
        call.response_id = text_of(value_of(members.get("requestId")))
        if text_of(value_of(members.get("errorCode"))):
            call.notes.append("the call failed")
            call.usage = None
        yield call
