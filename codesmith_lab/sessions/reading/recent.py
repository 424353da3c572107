"""A memory of what a log said lately: what repeats is found, what is long past is let go."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

__all__ = ["REMEMBERED_REQUESTS", "Recent"]

REMEMBERED_REQUESTS: Final = 256
"""A session that is silent while so many requests of others come is read from its beginning."""

K = TypeVar("K")
V = TypeVar("V")

_FEWEST: Final = 1024
_REQUESTS: Final = 64


class Recent(Generic[K, V]):
    """A dictionary that forgets what the last requests did not ask for.

    Nothing is forgotten that was asked for within the last 64 requests, nor while there are few
    entries. Values are not None.
    """

    __slots__ = ("_new", "_old", "_requests")

    def __init__(self) -> None:
        self._new: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._requests = 0

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def get(self, key: K) -> V | None:
        """What was kept under a key, None where nothing is."""
        value = self._new.get(key)
        if value is None and self._old:
            value = self._old.pop(key, None)
            if value is not None:
                self._new[key] = value
        return value

    def keep(self, key: K, value: V) -> V:
        """Keep a value; gives it back."""
        self._new[key] = value
        return value

    def request(self) -> None:
        """Another request begins."""
        self._requests += 1
        if self._requests >= _REQUESTS and len(self._new) >= _FEWEST:
            self._old, self._new, self._requests = self._new, {}, 0
