"""JSON that keeps the types of Python: a value without a form in JSON is stored as an object with one key, its tag."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from groupmq.core.faithful import Unstorable, below, shown

_DEEPEST = 100
"""Levels of nesting. A fixed limit, so that every process can read a value that another one has stored."""
_MARK = "$"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_LARGEST = 2**63


class TypedJSON:
    """A serializer whose values come back equal and of the same type: `Queue("orders", serializer=TypedJSON())`.

    Besides the types of JSON: Decimal, datetime, date, time, timedelta, UUID, bytes, set, frozenset, tuple, keys of any
    of these types, NaN, infinities, integers of any size. All other types are refused, subclasses too. Reading makes
    values of these types only. All processes of a queue need the same serializer.

    >>> TypedJSON().decode(TypedJSON().encode({"price": Decimal("9.90")}))
    {'price': Decimal('9.90')}
    """

    @staticmethod
    def encode(value: Any, /) -> bytes:
        try:
            return _encode(_packed(value, 0))
        except Unstorable as error:
            raise Unstorable(_path_in(value), error.why) from None

    @staticmethod
    def decode(raw: bytes, /) -> Any:
        return _unpacked(_decode(raw), 0)


def _packed(value: Any, depth: int) -> Any:
    """The value in types of JSON only."""
    kind = type(value)
    if kind is str:
        if not value.isascii():
            _require_unicode(value)
        return value
    if kind is bool or value is None:
        return value
    if kind is int:
        # Text in base 16: reading a long number in base 10 takes quadratic time, and Python refuses very long ones.
        return value if -_LARGEST <= value < _LARGEST else {"$int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    pack = _PACK.get(kind)
    if pack is not None:
        tag, stored = pack
        return {tag: stored(value)}
    if depth == _DEEPEST:
        raise Unstorable("", f"nested more than {_DEEPEST} levels deep")
    if kind is dict:
        return _packed_dict(value, depth + 1)
    if kind is list:
        return [_packed(item, depth + 1) for item in value]
    if kind in (tuple, set, frozenset):
        return {f"${kind.__name__}": [_packed(item, depth + 1) for item in value]}
    raise Unstorable("", f"{shown(value)}: TypedJSON has no form for the type {kind.__name__}")


def _packed_dict(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    if all(type(key) is str for key in value) and not _looks_like_a_tag(value):
        return {_packed(key, depth): _packed(item, depth) for key, item in value.items()}
    return {"$dict": [[_packed(key, depth), _packed(item, depth)] for key, item in value.items()]}


def _looks_like_a_tag(value: dict[str, Any]) -> bool:
    """Whether a dict could be taken for a tag when it is read. Such a dict is stored as pairs."""
    return len(value) == 1 and next(iter(value)).startswith(_MARK)


def _path_in(value: Any) -> str:
    """The path to the part of a value that cannot be packed."""
    parts: list[tuple[str, Any]] = []
    if type(value) in (list, tuple):
        parts = [(f"[{i}]", item) for i, item in enumerate(value)]
    elif type(value) in (set, frozenset):
        parts = [("{}", item) for item in value]
    elif type(value) is dict:
        for key, item in value.items():
            parts += [("", key), (below("", key), item)]
    for path, part in parts:
        try:
            _packed(part, 0)
        except Unstorable:
            return path + _path_in(part)
    return ""


def _require_unicode(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unstorable("", f"{shown(value)} has a lone surrogate, which UTF-8 cannot hold") from None


def _datetime(value: datetime) -> Any:
    """ISO 8601; with the name of its zone and its fold where the text alone does not determine them."""
    zone = value.tzinfo
    if isinstance(zone, ZoneInfo) and zone.key:
        return [value.replace(tzinfo=None, fold=0).isoformat(), zone.key, value.fold]
    _require_fixed(zone)
    return [value.replace(fold=0).isoformat(), "", 1] if value.fold else value.isoformat()


def _time(value: time) -> Any:
    _require_fixed(value.tzinfo)
    return [value.replace(fold=0).isoformat(), 1] if value.fold else value.isoformat()


def _require_fixed(zone: object) -> None:
    if zone is not None and type(zone) is not timezone:
        raise Unstorable("", f"expected a time zone of datetime.timezone or zoneinfo.ZoneInfo, got {shown(zone)}")


_PACK: dict[type, tuple[str, Callable[[Any], Any]]] = {
    Decimal: ("$decimal", str),
    datetime: ("$datetime", _datetime),
    date: ("$date", date.isoformat),
    time: ("$time", _time),
    timedelta: ("$timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    UUID: ("$uuid", str),
    bytes: ("$bytes", lambda value: base64.b64encode(value).decode()),
}


def _unpacked(value: Any, depth: int) -> Any:
    """The value that was packed. Raises ValueError for a value that no packing makes."""
    kind = type(value)
    if kind is not dict and kind is not list:
        return value
    # A tag adds one level, pairs add two.
    if depth > 3 * _DEEPEST:
        raise ValueError(f"not TypedJSON: nested more than {_DEEPEST} levels deep")
    if kind is list:
        return [_unpacked(item, depth + 1) for item in value]
    if len(value) == 1:
        ((key, inner),) = value.items()
        if key.startswith(_MARK):
            return _untagged(key, inner, depth + 1)
    return {key: _unpacked(item, depth + 1) for key, item in value.items()}


def _untagged(tag: str, stored: Any, depth: int) -> Any:
    unpack = _UNPACK.get(tag)
    try:
        if unpack is not None:
            return unpack(stored)
        if tag in _COLLECTIONS:
            return _COLLECTIONS[tag](_unpacked(item, depth + 1) for item in _list(stored))
        if tag == "$dict":
            return {_unpacked(key, depth + 2): _unpacked(item, depth + 2) for key, item in map(_list, _list(stored))}
    except RecursionError:
        raise
    except Exception as error:
        raise ValueError(f"not TypedJSON: {shown(stored)} cannot be read as {tag[1:]}: {error}") from None
    raise ValueError(f"not TypedJSON: unknown tag {shown(tag)}; a newer release may have written it")


def _list(stored: Any) -> list[Any]:
    if type(stored) is not list:
        raise TypeError("expected an array")
    return stored


def _text(stored: Any) -> str:
    if type(stored) is not str:
        raise TypeError("expected text")
    return stored


def _int(stored: Any) -> int:
    return int(_text(stored), 16)


def _float(stored: Any) -> float:
    if stored not in ("nan", "inf", "-inf"):
        raise ValueError("expected 'nan', 'inf' or '-inf'")
    return float(stored)


def _undatetime(stored: Any) -> datetime:
    if type(stored) is str:
        return datetime.fromisoformat(stored)
    text, zone, fold = stored
    found = datetime.fromisoformat(_text(text)).replace(fold=fold)
    return found.replace(tzinfo=ZoneInfo(_text(zone))) if zone else found


def _untime(stored: Any) -> time:
    if type(stored) is str:
        return time.fromisoformat(stored)
    text, fold = stored
    return time.fromisoformat(_text(text)).replace(fold=fold)


def _untimedelta(stored: Any) -> timedelta:
    days, seconds, microseconds = stored
    return timedelta(days, seconds, microseconds)


_COLLECTIONS: dict[str, Any] = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}
_UNPACK: dict[str, Callable[[Any], Any]] = {
    "$int": _int,
    "$float": _float,
    "$decimal": lambda stored: Decimal(_text(stored)),
    "$datetime": _undatetime,
    "$date": lambda stored: date.fromisoformat(_text(stored)),
    "$time": _untime,
    "$timedelta": _untimedelta,
    "$uuid": lambda stored: UUID(_text(stored)),
    "$bytes": lambda stored: base64.b64decode(_text(stored), validate=True),
}
