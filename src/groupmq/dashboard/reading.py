"""How the dashboard reads job data: JSON, and bytes of another serializer as they are instead of an error."""

from __future__ import annotations

import json
from typing import Any

from groupmq.dashboard.documents.payload import Unreadable


class ReadableSerializer:
    """Writes and reads JSON. Integers keep all their digits, whatever their size."""

    def encode(self, value: Any, /) -> bytes:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def decode(self, raw: bytes, /) -> Any:
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            return Unreadable(raw)


READABLE = ReadableSerializer()
