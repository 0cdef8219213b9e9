"""Finds the part of a value that JSON would change, and says what to do about it.

This is slow, so it is done only for values that did change.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec

_TYPED = "serializer=groupmq.TypedJSON()"
_CONVERTED = (datetime, date, time, timedelta, UUID, msgspec.Raw)
"""Types that become text, or are JSON already, by a documented rule."""
_EXACT = (str, int, float, datetime, date, time, timedelta)
"""Types whose subclasses are refused, except enum members. A datetime is also a date, so datetime comes first."""
_CHANGED = {
    Decimal: "a string",
    bytes: "base64 text",
    bytearray: "base64 text",
    memoryview: "base64 text",
} | dict.fromkeys((set, frozenset), "a list")


class Unstorable(ValueError):
    """A part of a value that would not come back as it is. `path` leads to the part; empty = the whole value.

    `instead`: advice on what to store, if there is any. `is_kept_typed`: TypedJSON keeps the part as it is.
    """

    def __init__(self, path: str, why: str, instead: str = "", *, is_kept_typed: bool = False) -> None:
        super().__init__(f"value{path}: {why}")
        self.path = path
        self.why = why
        self._instead = instead
        self._is_kept_typed = is_kept_typed

    def reason(self, *, may_be_typed: bool) -> str:
        """Why, and what to do. `may_be_typed`: the value goes through the serializer of the queue."""
        typed = f"use {_TYPED}" if self._is_kept_typed and may_be_typed else ""
        return "; ".join(filter(None, [self.why, ", or ".join(filter(None, [self._instead, typed]))]))


def shown(value: object) -> str:
    """A value as an error message shows it."""
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def below(path: str, key: object) -> str:
    """The path of an entry: `.name`, or `['odd name']`."""
    return f"{path}.{key}" if isinstance(key, str) and key.isidentifier() else f"{path}[{shown(key)}]"


def explain(value: Any) -> None:
    """Raise Unstorable for the first part of a value that JSON cannot hold, or would change against the rules."""
    _check(value, "")


def _check(value: Any, path: str) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, Enum):
        _check(value.value, path)
    elif isinstance(value, _EXACT) and type(value) not in _EXACT:
        base = next(kind.__name__ for kind in _EXACT if isinstance(value, kind))
        why = f"{shown(value)} is of the type {type(value).__name__}, and JSON takes no subclass of {base}"
        raise Unstorable(path, why, f"convert it to a plain {base}")
    elif isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, float):
        if not math.isfinite(value):
            why = f"{value!r} has no form in JSON and would come back as None"
            raise Unstorable(path, why, "send None or a string", is_kept_typed=True)
    elif isinstance(value, dict):
        _check_dict(value, path)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            _check(item, f"{path}[{i}]")
    elif isinstance(value, tuple(_CHANGED)):
        becomes = next(text for kind, text in _CHANGED.items() if isinstance(value, kind))
        why = f"{shown(value)} would come back as {becomes}"
        raise Unstorable(path, why, "convert it yourself", is_kept_typed=not isinstance(value, bytearray | memoryview))
    elif not isinstance(value, (int, *_CONVERTED)):
        for name, item in _fields(value, path):
            _check(item, below(path, name))


def _check_dict(value: dict[Any, Any], path: str) -> None:
    for key, item in value.items():
        if not isinstance(key, str):
            became = f"the key {shown(key)} would come back as a string" if isinstance(key, int | float) else ""
            why = became or f"the key {shown(key)} is not a string, and JSON has only string keys"
            raise Unstorable(path, why, "use string keys", is_kept_typed=not isinstance(key, Enum))
        _check_text(key, path)
        _check(item, below(path, key))


def _check_text(value: str, path: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unstorable(path, f"{shown(value)} has a lone surrogate, which UTF-8 cannot hold") from None


def _fields(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The fields of a dataclass, a Struct or an attrs class. Raises Unstorable for any other type."""
    names = getattr(type(value), "__struct_fields__", None)
    if names is None and dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
    if names is None and hasattr(type(value), "__attrs_attrs__"):
        names = [field.name for field in type(value).__attrs_attrs__]
    if names is None:
        raise Unstorable(path, f"{shown(value)}: JSON has no form for the type {type(value).__name__}")
    for name in names:
        item = getattr(value, name, msgspec.UNSET)
        if item is not msgspec.UNSET:
            yield name, item
