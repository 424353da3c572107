"""OTLP in JSON: spans and log records out of their groups, attributes as plain values.

Source: the OpenTelemetry protocol's JSON encoding (64-bit numbers are text there).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["attributes_of", "is_group", "spans_of", "whole"]

_GROUPS: Final = ("resourceSpans", "resourceLogs")
_SCOPES: Final = ("scopeSpans", "scopeLogs")
_ITEMS: Final = ("spans", "logRecords")
_WHOLE: Final = re.compile(r"-?[0-9]{1,20}")
_DEPTH: Final = 20


def is_group(members: Mapping[str, Any]) -> bool:
    """Whether a record groups spans or log records."""
    return any(key in members for key in (*_GROUPS, *_SCOPES))


def spans_of(value: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The spans and log records of a record, each with the attributes of its resource."""
    if not isinstance(value, Mapping):
        return
    for group in _list(value, _GROUPS) or [value]:
        inner = group.get("resource")
        resource = attributes_of(inner.get("attributes")) if isinstance(inner, Mapping) else {}
        if not any(key in group for key in _SCOPES):
            if "attributes" in group:
                yield group, resource
            continue
        for scope in _list(group, _SCOPES):
            for span in _list(scope, _ITEMS):
                yield span, resource


def _list(value: Mapping[str, Any], keys: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """The objects in the lists under these keys."""
    return [
        item
        for key in keys
        for item in (value[key] if isinstance(value.get(key), list) else ())
        if isinstance(item, Mapping)
    ]


def attributes_of(given: Any) -> Mapping[str, Any]:
    """Attributes by name: an object as it is, OTLP's list of {key, value} as plain values."""
    if isinstance(given, Mapping):
        return given
    found: dict[str, Any] = {}
    for item in given if isinstance(given, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("key"), str):
            found[item["key"]] = _any_value(item.get("value"), _DEPTH)
    return found


def _any_value(value: Any, depth: int) -> Any:
    """OTLP's AnyValue as a plain value; what nests too deep is None."""
    if not isinstance(value, Mapping) or not depth:
        return None if isinstance(value, Mapping) else value
    if "intValue" in value:
        return whole(value["intValue"])
    for key in ("stringValue", "doubleValue", "boolValue"):
        if key in value:
            return value[key]
    inner = value.get("arrayValue")
    if isinstance(inner, Mapping) and isinstance(inner.get("values"), list):
        return [_any_value(item, depth - 1) for item in inner["values"]]
    inner = value.get("kvlistValue")
    if isinstance(inner, Mapping) and isinstance(inner.get("values"), list):
        return {
            str(item["key"]): _any_value(item.get("value"), depth - 1)
            for item in inner["values"]
            if isinstance(item, Mapping) and "key" in item
        }
    return None


def whole(value: Any) -> Any:
    """OTLP writes 64-bit numbers as text."""
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value
