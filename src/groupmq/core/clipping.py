"""Text that is safe to store."""

from __future__ import annotations


def clipped(value: str, longest: int = 16_000) -> str:
    """Keep the first and the last part of a long text, and escape lone surrogates, which UTF-8 cannot hold."""
    if len(value) > longest:
        value = value[: longest // 2] + "\n...\n" + value[-longest // 2 :]
    return value.encode("utf-8", "backslashreplace").decode()
