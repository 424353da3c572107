"""Deeply immutable copies of JSON-like values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, final

from codesmith_lab.errors import LabError
from codesmith_lab.fingerprint import MAX_JSON_DEPTH, check_text

__all__ = ["FrozenMapping", "freeze", "freeze_mapping", "thaw"]


@final
class FrozenMapping(Mapping[str, Any]):
    """A read-only mapping that owns what it holds; nested lists are tuples.

    Equal to any mapping that holds the same JSON, lists or tuples alike. Copies, deep or shallow,
    are the mapping itself. Unlike `types.MappingProxyType` it never hands its dict to the other
    side of a comparison or a `|`.
    """

    __slots__ = ("__fields",)
    __fields: dict[str, Any]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        owned = {_text_key(key): freeze(item, 1) for key, item in fields.items()}
        object.__setattr__(self, "_FrozenMapping__fields", owned)

    @classmethod
    def _own(cls, fields: dict[str, Any]) -> FrozenMapping:
        made = cls.__new__(cls)
        object.__setattr__(made, "_FrozenMapping__fields", fields)
        return made

    def __getitem__(self, key: str) -> Any:
        return self.__fields[key]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self.__fields))

    def __len__(self) -> int:
        return len(self.__fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return bool(thaw(self) == thaw(other))

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a frozen mapping cannot be changed; use thaw() for a copy that can")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a frozen mapping cannot be changed; use thaw() for a copy that can")

    def __copy__(self) -> FrozenMapping:
        return self

    def __deepcopy__(self, memo: object) -> FrozenMapping:
        return self

    def __reduce__(self) -> tuple[type[FrozenMapping], tuple[dict[str, Any]]]:
        return FrozenMapping, (thaw(self),)

    def __repr__(self) -> str:
        return f"FrozenMapping({thaw(self)!r})"


def _text_key(key: object) -> str:
    if not isinstance(key, str):
        raise LabError(f"a JSON key is text, not {key!r}; write it as text")
    return check_text(key)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(
        value, str | bytes | bytearray | memoryview
    )


def freeze(value: Any, _depth: int = 0) -> Any:
    """A deeply immutable copy of a JSON-like value: frozen mappings, tuples, plain scalars.

    Subclasses of str, int and float, which could carry state, come out as the plain type. Raises
    LabError for other types, keys that are not text, lone surrogates and nesting beyond
    `MAX_JSON_DEPTH`, which a value that holds itself reaches as well.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return check_text(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if _depth >= MAX_JSON_DEPTH:
        raise LabError(f"the JSON is nested deeper than {MAX_JSON_DEPTH} levels; flatten it")
    if isinstance(value, FrozenMapping) and _depth == 0:
        return value
    if isinstance(value, Mapping):
        return FrozenMapping._own(
            {_text_key(key): freeze(item, _depth + 1) for key, item in value.items()}
        )
    if _is_list(value):
        return tuple(freeze(item, _depth + 1) for item in value)
    raise LabError(f"{type(value).__name__} is no JSON value; use text, numbers, lists, mappings")


def freeze_mapping(value: object, what: str) -> FrozenMapping:
    """A frozen copy of a mapping; anything else raises LabError, which calls it `what`."""
    if not isinstance(value, Mapping):
        raise LabError(f"{what} is a mapping, not {type(value).__name__}; pass a dict")
    frozen: FrozenMapping = freeze(value)
    return frozen


def thaw(value: Any) -> Any:
    """A fresh, plain copy: dicts and lists."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if _is_list(value):
        return [thaw(item) for item in value]
    return value
