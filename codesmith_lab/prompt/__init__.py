"""Prompt sections, bundles, blocks and the order in which providers read them."""

from codesmith_lab.prompt.blocks import Block, SectionMeta
from codesmith_lab.prompt.bundle import PromptBundle, build_effective_prompt
from codesmith_lab.prompt.sections import (
    ParsedSection,
    PromptSection,
    parse_rendered_sections,
    system_to_text,
)

__all__ = [
    "Block",
    "ParsedSection",
    "PromptBundle",
    "PromptSection",
    "SectionMeta",
    "build_effective_prompt",
    "parse_rendered_sections",
    "system_to_text",
]
