"""Data of any queue, for people to read: a queue may have a serializer that the command cannot know."""

from __future__ import annotations

from typing import Any

from groupmq import JSON


class NotJson:
    """Data that another serializer made."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def __str__(self) -> str:
        return f"<{len(self.raw):,} bytes that are not JSON>"


class Readable:
    """Writes JSON; reads JSON, and takes everything else as it is instead of raising."""

    def encode(self, value: Any, /) -> bytes:
        return JSON.encode(value)

    def decode(self, raw: bytes, /) -> Any:
        try:
            return JSON.decode(raw)
        except ValueError:
            return NotJson(raw)


READABLE = Readable()
