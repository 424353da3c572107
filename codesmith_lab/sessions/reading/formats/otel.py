"""OpenTelemetry spans of calls to language models: OTLP in JSON, or spans with plain attributes.

Reads the GenAI conventions (`gen_ai.*`), what came before them (`gen_ai.prompt.0.content`,
`llm.usage.*`) and OpenInference (`llm.*`). What a span holds of the messages is the
instrumentation's form: the bytes that were sent are not known. A span that only wraps others (an
agent's or a chain's) is no call. Sources: the conventions' published registries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from codesmith_lab.billing.usage import money
from codesmith_lab.sessions.reading.apis.drafts import compact
from codesmith_lab.sessions.reading.calls import Call, Opener, moment, text_of
from codesmith_lab.sessions.reading.formats.otlp import attributes_of, is_group, spans_of, whole
from codesmith_lab.sessions.reading.json_spans import BadJson, Span
from codesmith_lab.sessions.reading.lines import LineWalker
from codesmith_lab.sessions.reading.spans import ArraySpan, Member, ObjectSpan, value_of

__all__ = ["OtelOpener"]

_OPERATIONS: Final = ("chat", "text_completion", "generate_content", "completion")
_FLAT: Final = re.compile(
    r"(gen_ai\.prompt|gen_ai\.completion|llm\.input_messages|llm\.output_messages)"
    r"\.(\d{1,6})\.(?:message\.)?(.{1,200})"
)
_TOOL: Final = re.compile(r"llm\.(?:request\.functions|tools)\.(\d{1,6})\.(.{1,200})")
_INPUT: Final = ("gen_ai.prompt", "llm.input_messages")
_TIMES: Final = (
    "startTimeUnixNano",
    "start_time_unix_nano",
    "start_time",
    "startTime",
    "timeUnixNano",
    "observedTimeUnixNano",
    "timestamp",
)
_USAGE: Final = ("gen_ai.usage.", "llm.token_count.", "llm.cost.")


class OtelOpener(Opener):
    """Spans in OTLP's JSON, or one by one."""

    name = "otel"

    def __init__(self) -> None:
        self._walker = LineWalker()
        self._messages: dict[str, Span] = {}

    def claims(self, record: ObjectSpan) -> bool:
        """A record is a group of spans, or a span with attributes of a model's call."""
        members = record.members
        if is_group(members):
            return True
        if "attributes" not in members:
            return False
        attributes = attributes_of(value_of(members["attributes"]))
        return any(key.startswith(("gen_ai.", "llm.")) for key in attributes)

    def open(self, record: ObjectSpan, line: int) -> Iterator[Call]:
        """The calls among a record's spans."""
        for span, resource in spans_of(value_of(record)):
            call = self._call(span, resource, line)
            if call is not None:
                yield call

    def _call(self, span: Mapping[str, Any], resource: Mapping[str, Any], line: int) -> Call | None:
        attributes = attributes_of(span.get("attributes"))
        operation = attributes.get("gen_ai.operation.name")
        kind = attributes.get("openinference.span.kind", attributes.get("traceloop.span.kind"))
        if isinstance(operation, str) and operation not in _OPERATIONS:
            return None
        if isinstance(kind, str) and kind.lower() not in ("llm", "generation"):
            return None
        usage = {k: v for k, v in attributes.items() if k.startswith(_USAGE)}
        call = Call(line, api="otel-messages", usage=_numbers(usage) or None)
        self._content(attributes, call)
        if call.usage is None and call.parts is None:
            return None
        call.model = _first(attributes, "gen_ai.request.model", "llm.model_name")
        call.model = call.model or _first(attributes, "gen_ai.response.model")
        call.provider = _first(attributes, "gen_ai.provider.name", "gen_ai.system", "llm.provider")
        call.response_id = _first(attributes, "gen_ai.response.id")
        context = span.get("context")
        trace = context.get("trace_id") if isinstance(context, Mapping) else None
        call.session = _first(attributes, "gen_ai.conversation.id", "session.id") or text_of(
            span.get("traceId", span.get("trace_id", trace))
        )
        call.account = _first(resource, "service.name")
        call.cost_usd = money(attributes.get("gen_ai.usage.cost", attributes.get("llm.cost.total")))
        call.time = _time(span, call.notes)
        return call

    def _content(self, attributes: Mapping[str, Any], call: Call) -> None:
        parts: dict[str, Member] = {}
        for name, key in (
            ("messages", "gen_ai.input.messages"),
            ("system", "gen_ai.system_instructions"),
            ("tools", "gen_ai.tool.definitions"),
        ):
            found = self._list(attributes.get(key), name, call.notes)
            if found is not None:
                parts[name] = found
        if "messages" in parts:
            call.parts = parts
            output = self._list(attributes.get("gen_ai.output.messages"), "output", call.notes)
            if output is not None:
                call.response = Span(output.raw, value_of(output))
        else:
            self._flat(attributes, call)
        if call.parts is not None:
            settings = {
                key.removeprefix("gen_ai.request."): Span(b"", value)
                for key, value in attributes.items()
                if key.startswith("gen_ai.request.") and key != "gen_ai.request.model"
            }
            call.parts = {**settings, **call.parts}
            call.notes.append("the messages are the instrumentation's: the bytes sent are unknown")

    def _list(self, given: Any, name: str, notes: list[str]) -> ArraySpan | None:
        """A list out of an attribute: a text of JSON, or the values themselves."""
        if given is None:
            return None
        text = given if isinstance(given, str) else compact(given)
        try:
            return self._walker.array(text.encode("utf-8", "surrogatepass"), name)
        except BadJson as error:
            notes.append(f"the span's {name} cannot be read: {error}")
            return None

    def _flat(self, attributes: Mapping[str, Any], call: Call) -> None:
        """Messages spread over numbered attributes, put together as chat messages."""
        given: dict[int, dict[str, Any]] = {}
        came: dict[int, dict[str, Any]] = {}
        for key, value in attributes.items():
            found = _FLAT.fullmatch(key)
            if found:
                side = given if found[1] in _INPUT else came
                side.setdefault(int(found[2]), {})[found[3]] = value
        if not given:
            return
        call.parts = {"messages": _array([self._message(given[at]) for at in sorted(given)])}
        call.api = "openai-chat"
        tools = self._flat_tools(attributes)
        if tools:
            call.parts["tools"] = _array(tools)
        else:
            call.partial = True
            call.notes.append("the span names no tools: whether any were sent is not known")
        if came:
            message = self._message(came[min(came)]).value
            call.response = Span(b"", {"choices": [{"message": message}]})

    def _flat_tools(self, attributes: Mapping[str, Any]) -> list[Span]:
        """Tool definitions spread over numbered attributes."""
        tools: dict[int, dict[str, Any]] = {}
        for key, value in attributes.items():
            found = _TOOL.fullmatch(key)
            if found:
                field = found[2].removeprefix("tool.")
                tools.setdefault(int(found[1]), {})[field] = value
        texts = {at: compact(tool) for at, tool in tools.items()}
        return [self._messages.setdefault(texts[at], Span(b"", tools[at])) for at in sorted(tools)]

    def _message(self, fields: Mapping[str, Any]) -> Span:
        message: dict[str, Any] = {"role": fields.get("role", "user")}
        calls: dict[str, dict[str, Any]] = {}
        for key, value in fields.items():
            if key in ("content", "tool_call_id", "name"):
                message[key] = value
            elif key.startswith("tool_calls."):
                place, _, rest = key.removeprefix("tool_calls.").partition(".")
                field = rest.rpartition(".")[2]
                function = calls.setdefault(place, {"function": {}})
                if field in ("name", "arguments"):
                    function["function"][field] = value
                elif field == "id":
                    function["id"] = value
        if calls:
            message["tool_calls"] = [calls[place] for place in sorted(calls)]
        return self._messages.setdefault(compact(message), Span(b"", message))


def _array(spans: list[Span]) -> ArraySpan:
    return ArraySpan(spans, [b""] * (len(spans) + 1))


def _numbers(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {key: whole(value) for key, value in usage.items() if value is not None}


def _first(attributes: Mapping[str, Any], *keys: str) -> str:
    return next(filter(None, (text_of(attributes.get(key)) for key in keys)), "")


def _time(span: Mapping[str, Any], notes: list[str]) -> Any:
    for key in _TIMES:
        value = whole(span.get(key))
        if isinstance(value, list) and len(value) == 2:
            # JavaScript's exporter writes [seconds, nanoseconds].
            value = value[0]
        if value is None:
            continue
        try:
            return moment(value)
        except (ValueError, OverflowError, TypeError):
            notes.append(f"the span's {key} is no time")
    return None
