"""Request bodies, API by API: what each holds as blocks, and what a response adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from codesmith_lab.sessions.reading.apis.anthropic_messages import MessagesReader
from codesmith_lab.sessions.reading.apis.bedrock_converse import ConverseReader
from codesmith_lab.sessions.reading.apis.drafts import Reading
from codesmith_lab.sessions.reading.apis.gemini import GeminiReader
from codesmith_lab.sessions.reading.apis.openai_chat import ChatReader
from codesmith_lab.sessions.reading.apis.openai_responses import ResponsesReader
from codesmith_lab.sessions.reading.apis.otel_messages import OtelReader
from codesmith_lab.sessions.reading.json_spans import Span
from codesmith_lab.sessions.reading.spans import Member

__all__ = ["READERS", "Reader"]


class Reader(Protocol):
    """Reads the bodies of one API in one log, in order; what repeats is read once.

    body_keys: fields that become blocks or the model's name; all others are settings.
    """

    name: str
    body_keys: tuple[str, ...]

    def read(self, members: Mapping[str, Member]) -> Reading:
        """The blocks of one body. Raises BadJson where it is none."""

    def output(self, response: Span, index: int) -> Reading | None:
        """The response as it would stand in the next request's history, or None.

        index: that of its message there.
        """


READERS: Final[dict[str, Callable[[], Reader]]] = {
    "openai-chat": ChatReader,
    "openai-responses": ResponsesReader,
    "anthropic-messages": MessagesReader,
    "gemini": GeminiReader,
    "bedrock-converse": ConverseReader,
    "otel-messages": OtelReader,
}
