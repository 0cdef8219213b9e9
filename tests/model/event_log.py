"""Decodes the stored event log into the entries of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tests.model.parts import STORED, Entry

Fields = dict[bytes, bytes]
NO_RESULT, RESULT_IS_STORED = -1, -2


def entries_after(number: int, stream: Sequence[tuple[bytes, Fields]]) -> list[Entry]:
    """The entries after the one with this number."""
    found: list[Entry] = []
    for _, fields in reversed(stream):
        counted, at, *kinds = msgspec.msgpack.decode(fields[b"e"])
        if counted <= number:
            break
        found.insert(0, _entry(at, kinds, fields.get(b"b", b"")))
    return found


def sizes(stream: Sequence[tuple[bytes, Fields]]) -> dict[int, int]:
    return {msgspec.msgpack.decode(fields[b"e"])[0]: sum(map(len, fields.values())) for _, fields in stream}


def _entry(at: int, kinds: list[Any], results: bytes) -> Entry:
    """Decode one entry. A column that is not a list has the same value for all jobs."""
    rows = {}
    for kind, ids, *columns in kinds:
        assert kind not in rows, f"an entry has the kind {kind!r} twice"
        each = [column if isinstance(column, list) else [column] * len(ids) for column in columns]
        if kind == "completed":
            each[2], results = _cut(results, each[2])
            each[3:] = [_ahead(len(ids), *each[3:])]
        rows[kind] = list(zip(ids, *each, strict=True))
    assert not results, f"{results[:100]!r} belongs to no job"
    return Entry(at, rows)


def _cut(joined: bytes, sizes: list[int]) -> tuple[list[bytes | str | None], bytes]:
    """Split concatenated results. Returns them and the bytes that are left."""
    found: list[bytes | str | None] = []
    for size in sizes:
        if size >= 0:
            found.append(joined[:size])
            joined = joined[size:]
        else:
            found.append({NO_RESULT: None, RESULT_IS_STORED: STORED}[size])
    return found, joined


def _ahead(count: int, flags: Sequence[int] = (), workers: Sequence[str] = ()) -> list[str | None]:
    """For each completed job, the worker that had prefetched it; None if its start was published before."""
    return [worker if flag else None for flag, worker in zip(flags, workers, strict=True)] or [None] * count
