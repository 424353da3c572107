"""A bundle of sections, its dynamic boundary and its stable prefix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from codesmith_lab.prompt.sections import PromptSection, trim

__all__ = ["PromptBundle", "build_effective_prompt"]


@dataclass(slots=True)
class PromptBundle:
    """Sections in prompt order.

    dynamic_boundary_index: index of the first section that is session, dynamic or not cacheable,
    empty ones counted; None while there is none. Once set it is never moved.
    """

    sections: list[PromptSection] = field(default_factory=list)
    dynamic_boundary_index: int | None = None

    @classmethod
    def from_sections(cls, sections: Iterable[PromptSection]) -> PromptBundle:
        """A bundle of the sections, in their order."""
        bundle = cls()
        for section in sections:
            bundle.push(section)
        return bundle

    def push(self, section: PromptSection) -> None:
        """Append a section; the first unstable one sets the boundary."""
        if self.dynamic_boundary_index is None and not section.is_stable:
            self.dynamic_boundary_index = len(self.sections)
        self.sections.append(section)

    def render_text(self) -> str:
        """All sections, blank ones left out, joined by a blank line."""
        return _joined(self.sections)

    def stable_prefix_text(self) -> str:
        """The stable sections alone: a filter, not a cut at the boundary."""
        return _joined(section for section in self.sections if section.is_stable)


def _joined(sections: Iterable[PromptSection]) -> str:
    return "\n\n".join(text for section in sections if (text := section.render()))


def build_effective_prompt(
    default_sections: Iterable[PromptSection],
    *,
    custom: str | None = None,
    agent: str | None = None,
    coordinator: str | None = None,
    override: str | None = None,
    append: Iterable[PromptSection] = (),
) -> PromptBundle:
    """The prompt in force: override > coordinator > agent > custom > default.

    A blank text counts as absent; the chosen one is trimmed; `append` always follows.
    """
    chosen = (
        ("runtime_override", "Runtime override system prompt", override, "runtime_override"),
        ("coordinator_override", "Coordinator system prompt", coordinator, "runtime_override"),
        ("agent_override", "Agent system prompt", agent, "runtime_override"),
        ("custom_system_prompt", "Custom system prompt", custom, "config"),
    )
    for ident, title, text, source in chosen:
        if text is not None and trim(text):
            body = trim(text)
            head = [PromptSection(ident, title, body, "session", "cacheable", source)]
            return PromptBundle.from_sections([*head, *append])
    return PromptBundle.from_sections([*default_sections, *append])
