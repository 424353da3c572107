"""How a provider lays a request out as one prompt: order and framing.

A provider reads tools, system prompt and messages in its own order, with role markers between
them. What is public of that is followed here; what is not is named in `ChatFormat.doubts`.

Sources: DeepSeek's published message encoding (system prompt, then tools, then turns between
`<｜User｜>`, `<｜Assistant｜>` and `<｜end▁of▁sentence｜>`); OpenAI's cookbook on counting tokens
(three marker tokens before a message, one after it, three that open the reply) and its note that
tools stand before developer instructions; Anthropic's documentation (tools, system, messages).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codesmith_lab.prompt.blocks import Block

__all__ = ["CHAT_FORMATS", "ChatFormat", "Frame", "reading_order"]

Markers = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """One block as the provider reads it.

    before, after: marker tokens, one token each.
    lead, tail: plain framing text directly before and behind the block's own text.
    joins: nothing separates this block from the one before it, so that a token may
        span the joint.
    """

    before: Markers = ()
    lead: str = ""
    tail: str = ""
    after: Markers = ()
    joins: bool = False


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """Order and framing of one provider family.

    tools_first: tools are read before the system prompt.
    opening: markers at the very start of the prompt.
    reply: markers that open the model's reply; every request ends with them.
    frame: gives the frame of a block, from the block, and whether it is the first tool.
    doubts: what of this layout is not public, in one sentence.
    """

    name: str
    tools_first: bool
    opening: Markers
    reply: Markers
    frame: Callable[[Block, bool], Frame]
    doubts: str


def reading_order(blocks: Sequence[Block], chat_format: ChatFormat) -> list[Block]:
    """The blocks in prompt order; the order within tools, system and messages is kept."""
    tools = [block for block in blocks if block.kind == "tool"]
    system = [block for block in blocks if block.kind == "section"]
    pinned = tools + system if chat_format.tools_first else system + tools
    return pinned + [block for block in blocks if block.kind not in ("tool", "section")]


def _deepseek_frame(block: Block, first_tool: bool) -> Frame:
    if block.kind == "tool":
        return Frame(lead="\n\n## Tools\n\n" if first_tool else "\n", joins=True)
    if block.kind == "section" or block.role in ("system", "developer"):
        return Frame(joins=True)
    if block.role == "assistant":
        return Frame(
            before=("<｜Assistant｜>",) if block.first else (),
            after=("<｜end▁of▁sentence｜>",) if block.last else (),
            joins=not block.first,
        )
    if block.role == "tool":
        return Frame(lead="\n<result>", tail="</result>", joins=not block.first)
    return Frame(before=("<｜User｜>",) if block.first else (), joins=not block.first)


def _openai_frame(block: Block, first_tool: bool) -> Frame:
    if block.kind == "tool":
        return Frame(before=("<|tools|>",) if first_tool else (), tail="\n", joins=not first_tool)
    return Frame(
        before=("<|im_start|>", f"<|{block.role}|>", "<|im_sep|>") if block.first else (),
        after=("<|im_end|>",) if block.last else (),
        joins=not block.first,
    )


def _anthropic_frame(block: Block, first_tool: bool) -> Frame:
    if block.kind in ("tool", "section"):
        return Frame(tail="\n" if block.kind == "tool" else "", joins=not first_tool)
    return Frame(before=(f"<|{block.role}|>",) * 3 if block.first else (), joins=not block.first)


CHAT_FORMATS: dict[str, ChatFormat] = {
    fmt.name: fmt
    for fmt in (
        ChatFormat(
            "deepseek",
            False,
            ("<｜begin▁of▁sentence｜>",),
            ("<｜Assistant｜>",),
            _deepseek_frame,
            "the fixed instructions around the tool list, thinking marks and the layout of "
            "tool calls are approximated",
        ),
        ChatFormat(
            "openai",
            True,
            (),
            ("<|im_start|>", "<|assistant|>", "<|im_sep|>"),
            _openai_frame,
            "the layout of tool definitions and tool calls is not public: their JSON is counted",
        ),
        ChatFormat(
            "anthropic",
            True,
            (),
            (),
            _anthropic_frame,
            "framing is not public: three tokens are assumed before each message",
        ),
        ChatFormat(
            "plain",
            True,
            (),
            (),
            _anthropic_frame,
            "the chat format is unknown: three tokens are assumed before each message",
        ),
        ChatFormat(
            "plain-system-first",
            False,
            (),
            (),
            _anthropic_frame,
            "the chat format is unknown: three tokens are assumed before each message",
        ),
    )
}
"""The known layouts by name."""
