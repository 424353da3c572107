"""Every error this package raises on purpose.

Each message is one sentence: what was wrong, the value, the rule, the next step.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["InputError", "LabError", "UnknownModelError"]


class LabError(Exception):
    """Base of all errors raised on purpose; its text is meant for people."""


class InputError(LabError):
    """A file or line that cannot be read.

    Parameters
    ----------
    reason: what is wrong and what would be right, without the place.
    path: the file as the user named it, or "" when there is none.
    line: 1-based line number, or None when the whole file is meant.
    """

    def __init__(self, reason: str, path: str = "", line: int | None = None) -> None:
        self.reason = reason
        self.path = path
        self.line = line
        place = path if line is None else f"{path or 'input'}, line {line}"
        super().__init__(f"{place}: {reason}" if place else reason)


class UnknownModelError(LabError):
    """A model nobody here has rules for; `choices` are the nearest ones that have.

    Nothing is guessed: the caller picks a rule set by name, or goes on with an
    estimated token count and no price.
    """

    def __init__(self, model: str, choices: Sequence[str]) -> None:
        self.model = model
        self.choices = tuple(choices)
        problem = f"model {model!r} has no known cache rules" if model else "no model is named"
        nearest = f" (nearest: {', '.join(self.choices)})" if self.choices else ""
        super().__init__(
            f"{problem}; choose one with model=...{nearest}, or cache rules with rules=..., "
            "for example openai-128"
        )
