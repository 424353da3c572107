"""What a person types into the section-order lab, with clear words for what cannot be meant."""

from __future__ import annotations

from typing import cast

from codesmith_lab.errors import LabError
from codesmith_lab.sessions.order.rewrites import Grain

__all__ = ["grain", "percent", "positive", "whole"]


def positive(value: int) -> int:
    """A number of requests a day."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise LabError(f"requests_a_day is {value!r}, and it is a whole number from 1")
    return value


def whole(text: str) -> int:
    """The same as typed, with or without thousands separators."""
    digits = text.strip().replace(",", "").replace("_", "")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 12:
        raise LabError(f"requests a day are {text!r}, and they are a whole number from 1")
    return int(digits)


def percent(text: str) -> float:
    """A change rate typed in percent, as a probability."""
    try:
        return float(text.strip().removesuffix("%")) / 100
    except ValueError:
        raise LabError(f"the change rate {text!r} is no number; write percent, 0 to 100") from None


def grain(text: str) -> Grain:
    """The grain of a clock; an unknown one is refused where it is used."""
    return cast(Grain, text)
