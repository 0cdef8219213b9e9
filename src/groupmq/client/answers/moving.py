"""Where each entry of a queue goes when its number of partitions changes. Pure; the layouts are those of `lua/lib`."""

from __future__ import annotations

import json
import struct
from hashlib import blake2b
from typing import Any, NamedTuple

from groupmq.core import record
from groupmq.core.partitions import carried, home_of, place_of
from groupmq.core.settings import StoredQueue

BY_JOB = ("jobs", "bodies", "state", "results", "progress", "logs", "blockers")
"""Hashes by job id."""
BY_JOB_SORTED = ("delayed", "expiring", "completed", "failed")
BY_GROUP = ("groups", "conf", "breakers")
"""Hashes by group id."""
BY_GROUP_SORTED = ("ready", "parked", "blocked", "breaking", "opened", "rated")
EVERYWHERE = ("unique",)
EVERYWHERE_SORTED = ("uniques",)
"""Ids that stay taken although their job is gone. Its group is not known, so they stay taken in each partition."""
HASHES = (*BY_JOB, *BY_GROUP, *EVERYWHERE, "dedupe", "repeats")
SORTED = (*BY_JOB_SORTED, *BY_GROUP_SORTED, *EVERYWHERE_SORTED, "blocking", "deduped", "ticks", "labels")
_SORT_KEY = 16


def pairs_of(reply: Any, *, is_sorted: bool) -> list[tuple[bytes, bytes]]:
    """Read a page of a hash or of a sorted set, as the server sent it or as the client library has parsed it."""
    if isinstance(reply, dict):
        pairs = list(reply.items())
    elif reply and isinstance(reply[0], tuple | list):
        pairs = [tuple(pair) for pair in reply]
    else:
        pairs = list(zip(reply[::2], reply[1::2], strict=True))
    return [(member, f"{float(score):.17g}".encode()) for member, score in pairs] if is_sorted else pairs


def job_of(structure: str, field: bytes) -> bytes:
    """The job that a field of a structure by job belongs to: `state` has earlier attempts beside the state."""
    return field[1:] if structure == "state" and field[:1] == b"\xff" else field


def group_of_record(raw: bytes) -> str | None:
    return record.unpack(raw).group_id


def repeat_of(structure: str, field: bytes) -> bytes | None:
    """The repeat that a field of a structure by job belongs to: `bodies` has the data of repeats as well."""
    return field[1:] if structure == "bodies" and field[:1] == b"\xff" else None


def place_of_job(job_id: bytes, raw: bytes | None, deduped: dict[bytes, int]) -> int:
    """The place of a job. `raw`: its record. A job without a record is damage, and is put where repair finds it.
    `deduped`: the places of jobs without a group that have a dedupe key: adds with that key look for them there."""
    group = None if raw is None else group_of_record(raw)
    if group is not None:
        return place_of(group)
    return deduped[job_id] if job_id in deduped else home_of(job_id.decode())


def place_of_member(member: bytes, deduped: dict[bytes, int]) -> int:
    """The place of a waiting job that has no group."""
    return place_of_job(member[_SORT_KEY:], None, deduped)


def place_of_blocking(member: bytes) -> int:
    (size,) = struct.unpack(">H", member[:2])
    return place_of(member[2 : 2 + size].decode())


def dedupe_parts(field: bytes) -> tuple[str, str]:
    """The group (empty if there is none) and the key that a field of `dedupe` names."""
    (size,) = struct.unpack(">H", field[1:3])
    return field[3 : 3 + size].decode(), field[3 + size :].decode()


def place_of_dedupe(field: bytes) -> int:
    group, key = dedupe_parts(field)
    return place_of(group or key)


def place_of_repeat(rid: bytes) -> int:
    return home_of(rid.decode())


def needs_entry(job_id: bytes, place: int, partitions: int) -> bool:
    """Whether the home of the id must have an entry that says where the job is."""
    name = job_id.decode()
    return carried(name) is None and place_of(name) % partitions != place % partitions


def loose_value(delayed: int, head: bytes) -> bytes:
    """The value of the jobs without a group in `groups`, `lua/lib/group_value.lua`; none of them runs."""
    return struct.pack(">IIBH", 0, delayed, 0, len(head)) + head


def settings_for(stored: StoredQueue, partitions: int) -> StoredQueue:
    """The stored settings with another number of partitions. They get the next revision, as after any change."""
    config = json.loads(stored.config)
    config.pop("partitions", None)
    if partitions > 1:
        config["partitions"] = partitions
    revision = str(int(stored.revision) + 1).encode() if stored.revision else b""
    return stored._replace(config=json.dumps(config, sort_keys=True), revision=revision)


class Digest(NamedTuple):
    """The number of entries and a hash of their contents, whatever their order and their partition."""

    entries: int = 0
    mixed: int = 0

    def plus(self, *parts: bytes) -> Digest:
        hashed = blake2b(b"".join(len(part).to_bytes(4, "big") + part for part in parts), digest_size=16).digest()
        return Digest(self.entries + 1, self.mixed ^ int.from_bytes(hashed, "big"))


def short(value: bytes) -> bytes:
    """A small value itself, or the hash of a large one: all entries are compared at once, and must fit in memory."""
    return value if len(value) <= 32 else blake2b(value, digest_size=32).digest()
