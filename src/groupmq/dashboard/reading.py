"""How the dashboard reads job data: as JSON. Bytes of another serializer are shown as such, and do not raise."""

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
