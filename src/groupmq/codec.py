"""Serialization of job data and return values. JSON by default; never pickle, which would run what it reads."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import msgspec

from groupmq.errors import ConfigurationError, PayloadTooLarge, said


@runtime_checkable
class Serializer(Protocol):
    """Anything with `encode(obj) -> bytes` and `decode(bytes) -> obj`."""

    def encode(self, value: Any, /) -> bytes: ...
    def decode(self, raw: bytes, /) -> Any: ...


class JsonSerializer:
    """JSON with msgspec: plain types, datetimes, UUIDs, dataclasses and Structs encode; plain types come back."""

    def __init__(self) -> None:
        self.encode = msgspec.json.Encoder().encode
        self.decode = msgspec.json.Decoder().decode


JSON = JsonSerializer()


def encode(serializer: Serializer, value: Any, limit: int, argument: str) -> bytes:
    """`value` as bytes, or a ConfigurationError that names the argument and says why it cannot be stored."""
    try:
        raw = serializer.encode(value)
    except RecursionError:
        raise ConfigurationError(f"{argument}: nested too deeply or contains itself") from None
    except Exception as error:
        raise ConfigurationError(f"{argument}: cannot be serialized: {said(error)}") from error
    if not isinstance(raw, bytes):
        raise ConfigurationError.expected(f"{argument}: the serializer's result", "bytes", raw)
    if len(raw) > limit:
        raise PayloadTooLarge(f"{argument}: {len(raw):,} bytes are more than max_payload ({limit:,} bytes)")
    return raw
