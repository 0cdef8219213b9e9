"""An independent look at a queue's keyspace: what the keys say, and every way in which they disagree.

Written against `lua/lib/keys.lua` and `record.lua`, not against the scripts: it shares no decision with them.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
import redis

from groupmq import record
from groupmq.keys import FIXED, Keys
from groupmq.record import Record

PRIORITY_UNIT = 2**43


@dataclass
class StoredGroup:
    running: int
    delayed: int
    head: bytes
    holds: dict[str, int]


@dataclass
class Keyspace:
    """Everything stored of one queue, decoded."""

    now: int
    meta: dict[str, str]
    jobs: dict[str, Record]
    places: dict[str, bytes]
    state: dict[str, list[Any]]
    results: dict[str, bytes]
    waiting: dict[str, list[bytes]]
    groups: dict[str, StoredGroup]
    conf: dict[str, dict[str, Any]]
    ready: dict[str, float]
    parked: dict[str, float]
    delayed: dict[str, float]
    active: dict[str, float]
    leases: dict[str, tuple[int, str]]
    completed: dict[str, float]
    failed: dict[str, float]
    strangers: list[str] = field(default_factory=list)

    def limit(self, group_id: str) -> float:
        if group_id == "":
            return float("inf")
        return float(self.conf.get(group_id, {}).get("limit") or int(self.meta.get("limit", "1")))

    def waiting_ids(self, group_id: str) -> list[str]:
        return [member[16:].decode() for member in self.waiting.get(group_id, [])]


def read(client: redis.Redis, prefix: str, queue: str, now: int | None = None) -> Keyspace:
    """Read all keys of a queue. `client` must not decode responses."""
    c: Any = client
    keys = Keys(prefix, queue)
    base = keys.base.encode()
    seconds, micros = c.time()

    def hash_of(name: str) -> dict[str, bytes]:
        return {f.decode(): v for f, v in c.hgetall(keys.fixed(name)).items()}

    def zset_of(name: str) -> dict[str, float]:
        return {m.decode(): s for m, s in c.zrange(keys.fixed(name), 0, -1, withscores=True)}

    raw_jobs = hash_of("jobs")
    waiting: dict[str, list[bytes]] = {}
    strangers: list[str] = []
    for key in c.scan_iter(count=1000):
        if not key.startswith(base):
            continue
        name = key[len(base) :].decode()
        if name.startswith("g:"):
            waiting[name[2:]] = c.zrange(key, 0, -1)
        elif name not in FIXED:
            strangers.append(name)
    return Keyspace(
        now=now if now is not None else seconds * 1000 + micros // 1000,
        meta={f: v.decode() for f, v in hash_of("meta").items()},
        jobs={i: record.unpack(raw) for i, raw in raw_jobs.items()},
        places={i: raw[:16] + i.encode() for i, raw in raw_jobs.items()},
        state={i: msgspec.msgpack.decode(raw) for i, raw in hash_of("state").items()},
        results=hash_of("results"),
        waiting=waiting,
        groups={g: _group(raw) for g, raw in hash_of("groups").items()},
        conf={g: msgspec.msgpack.decode(raw) for g, raw in hash_of("conf").items()},
        ready=zset_of("ready"),
        parked=zset_of("parked"),
        delayed=zset_of("delayed"),
        active=zset_of("active"),
        leases={i: _lease(raw) for i, raw in hash_of("leases").items()},
        completed=zset_of("completed"),
        failed=zset_of("failed"),
        strangers=strangers,
    )


def _group(raw: bytes) -> StoredGroup:
    running, delayed, size = struct.unpack_from(">IIH", raw)
    holds = raw[10 + size :]
    return StoredGroup(running, delayed, raw[10 : 10 + size], msgspec.msgpack.decode(holds) if holds else {})


def _lease(raw: bytes) -> tuple[int, str]:
    """Token and group of a lease."""
    token = int.from_bytes(raw[:7], "big")
    (size,) = struct.unpack_from(">H", raw, 17)
    return token, raw[19 : 19 + size].decode()


def violations(k: Keyspace) -> list[str]:
    """Every broken invariant, in words. Empty for a healthy queue."""
    return [*_jobs(k), *_groups(k), *_indexes(k)]


def _jobs(k: Keyspace) -> list[str]:
    found = []
    in_groups = Counter(member[16:].decode() for members in k.waiting.values() for member in members)
    for job_id, stored in k.jobs.items():
        group = stored.group_id or ""
        spots = [name for name in ("leases", "delayed", "completed", "failed") if job_id in getattr(k, name)]
        spots += ["waiting"] * in_groups[job_id]
        if len(spots) != 1:
            found.append(f"job {job_id!r} is in {spots or 'no place'}, not in exactly one")
        if in_groups[job_id] and k.places[job_id] not in k.waiting.get(group, []):
            found.append(f"job {job_id!r} waits at a place or in a group that is not its own")
    for job_id in in_groups:
        if job_id not in k.jobs:
            found.append(f"member {job_id!r} of a group is no job")
    return found


def _groups(k: Keyspace) -> list[str]:
    found = []
    running = Counter(group for _, group in k.leases.values())
    delayed = Counter(k.jobs[i].group_id or "" for i in k.delayed if i in k.jobs)
    alive = {g for g, members in k.waiting.items() if members} | set(running) | set(delayed)
    if alive != set(k.groups):
        found.append(f"groups with live jobs {sorted(alive)} are not the listed ones {sorted(k.groups)}")
    for name, g in k.groups.items():
        if (g.running, g.delayed) != (running[name], delayed[name]):
            found.append(
                f"group {name!r} says {g.running} running, {g.delayed} delayed; "
                f"there are {running[name]} and {delayed[name]}"
            )
        if g.head != (k.waiting.get(name) or [b""])[0]:
            found.append(f"group {name!r} says its head is {g.head!r}, its zset says otherwise")
        for held in g.holds:
            if held not in k.waiting_ids(name):
                found.append(f"group {name!r} holds {held!r}, which does not wait in it")
        found += _place(k, name, g)
    for name in [*k.ready, *k.parked]:
        if name not in k.groups:
            found.append(f"{name!r} is in ready or parked but has no live job")
    return found


def _entry(k: Keyspace, name: str) -> tuple[str, float | None]:
    """Where a group stands, and by what score; None if nowhere."""
    return ("ready", k.ready[name]) if name in k.ready else ("parked", k.parked.get(name))


def _place(k: Keyspace, name: str, g: StoredGroup) -> list[str]:
    """A group is in exactly the one place that its contents give it."""
    members = k.waiting.get(name, [])
    actual = _entry(k, name)
    if name in k.ready and name in k.parked:
        return [f"group {name!r} is both ready and parked"]
    free = not members or k.conf.get(name, {}).get("paused") or g.running >= k.limit(name)
    if free:
        return [] if actual[1] is None else [f"group {name!r} is {actual} but has nothing it may start"]
    head = members[0]
    score = float(int.from_bytes(head[:2], "big") * PRIORITY_UNIT + int.from_bytes(head[10:16], "big"))
    hold = float(g.holds.get(head[16:].decode(), 0))
    if hold > k.now:
        return [] if actual == ("parked", hold) else [f"group {name!r} is {actual}, its head is held until {hold}"]
    due_but_parked = actual[0] == "parked" and actual[1] is not None and actual[1] <= k.now
    if actual == ("ready", score) or due_but_parked:
        return []
    return [f"group {name!r} is {actual}, though its head may start (score {score})"]


def _indexes(k: Keyspace) -> list[str]:
    found = [f"unknown key {name!r}" for name in k.strangers]
    if set(k.active) != set(k.leases):
        found.append(f"deadlines of {sorted(k.active)} but leases of {sorted(k.leases)}")
    for name in ("state", "leases", "delayed", "completed", "failed"):
        gone = set(getattr(k, name)) - set(k.jobs)
        if gone:
            found.append(f"{name} knows jobs that do not exist: {sorted(gone)}")
    if not set(k.results) <= set(k.completed):
        found.append(f"results of jobs that are not completed: {sorted(set(k.results) - set(k.completed))}")
    if (k.meta.get("overrides") == "1") != bool(k.conf):
        found.append(f"overrides is {k.meta.get('overrides')!r} with {len(k.conf)} groups configured")
    tokens = [token for token, _ in k.leases.values()]
    if len(set(tokens)) != len(tokens) or any(t > int(k.meta.get("stamp", "0")) for t in tokens):
        found.append("tokens are not unique, or beyond the last one given")
    return found


def check(client: redis.Redis) -> None:
    """Check every queue on a server; fail with all that is wrong."""
    c: Any = client
    found = []
    ours = [key for key in c.scan_iter(count=1000) if b":{" in key and b"}:" in key]
    metas = [key for key in ours if key.endswith(b"}:meta")]
    for key in ours:
        if not any(key.startswith(meta[: -len("meta")]) for meta in metas):
            found.append(f"key {key!r} belongs to no queue: a leak")
    for key in metas:
        prefix, _, rest = key.decode().partition(":{")
        queue = rest[: -len("}:meta")]
        found += [f"{queue}: {line}" for line in violations(read(client, prefix, queue))]
    assert not found, "broken invariants:\n  " + "\n  ".join(found)
