"""Serialization of job data and return values. JSON by default; never pickle, which would run code that it reads."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import msgspec

from groupmq.core.errors import ConfigurationError, PayloadTooLarge, message_of
from groupmq.core.faithful import Unstorable, explain


@runtime_checkable
class Serializer(Protocol):
    """Anything with `encode(obj) -> bytes` and `decode(bytes) -> obj`."""

    def encode(self, value: Any, /) -> bytes: ...
    def decode(self, raw: bytes, /) -> Any: ...


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class JsonSerializer:
    """JSON with msgspec. A value comes back equal, is converted by one of these rules, or is refused with its path.

    Converted: tuples to lists; datetimes, dates, times, timedeltas and UUIDs to text; enum members to their values;
    dataclasses, Structs and attrs classes to objects. Refused: NaN and infinities, keys that are not strings, Decimal,
    bytes, sets, subclasses of str, int, float and types of time, and all types that JSON has no form for.
    `TypedJSON` keeps most of these types.
    """

    decode = staticmethod(_decode)

    @staticmethod
    def encode(value: Any, /) -> bytes:
        try:
            raw = _encode(value)
        except (TypeError, ValueError):
            explain(value)
            raise
        # Decoding and comparing run in C: about a quarter of a microsecond for a small payload, less than half the time
        # of the cheapest walk over it in Python.
        if _decode(raw) != value:
            explain(value)
        return raw


JSON = JsonSerializer()


def encode(serializer: Serializer, value: Any, limit: int, argument: str, *, may_be_typed: bool = True) -> bytes:
    """`value` as bytes, or a ConfigurationError that names the argument and says why it cannot be stored.

    `may_be_typed`: the value goes through the serializer of the queue, so the error may suggest TypedJSON.
    """
    try:
        raw = serializer.encode(value)
    except RecursionError:
        raise ConfigurationError(f"{argument}: nested too deeply or contains itself") from None
    except Unstorable as error:
        why = error.reason(may_be_typed=may_be_typed)
        raise ConfigurationError(f"{argument}{error.path}: cannot be serialized: {why}") from None
    except Exception as error:
        raise ConfigurationError(f"{argument}: cannot be serialized: {message_of(error)}") from error
    if not isinstance(raw, bytes):
        raise ConfigurationError.expected(f"{argument}: the serializer's result", "bytes", raw)
    if len(raw) > limit:
        raise PayloadTooLarge(f"{argument}: {len(raw):,} bytes are more than max_payload ({limit:,} bytes)")
    return raw
