"""The whole server in one round trip, and the abstract state of a queue in it, in the same words as the model's."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import redis

from groupmq.commands import StoredState
from tests.model.model import Model
from tests.support import keyspace
from tests.support.keyspace import Keyspace

_DUMP = """
local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  else value = {} end
  all[#all + 1] = {key, kind, value}
end
return all
"""


class Dump:
    """All keys of a server, read at one instant. Answers the few commands that `keyspace.read` asks."""

    def __init__(self, client: redis.Redis) -> None:
        c: Any = client
        self.keys: dict[bytes, list[bytes]] = {key: value for key, _, value in c.eval(_DUMP, 0)}

    def _at(self, key: str | bytes) -> list[bytes]:
        return self.keys.get(key if isinstance(key, bytes) else key.encode(), [])

    def time(self) -> tuple[int, int]:
        return 0, 0

    def scan_iter(self, count: int) -> Iterator[bytes]:
        return iter(self.keys)

    def hgetall(self, key: str) -> dict[bytes, bytes]:
        flat = self._at(key)
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def zrange(self, key: str | bytes, start: int, stop: int, *, withscores: bool = False) -> list[Any]:
        flat = self._at(key)
        return list(zip(flat[::2], map(float, flat[1::2]), strict=True)) if withscores else flat[::2]

    def lrange(self, key: str | bytes, start: int = 0, stop: int = -1) -> list[bytes]:
        return self._at(key)


class Stored:
    """One queue in a dump."""

    def __init__(self, dump: Dump, queue: str, now: int) -> None:
        fake_client: Any = dump
        self.keyspace: Keyspace = keyspace.read(fake_client, "groupmq", queue, now)
        self._dump = dump
        self._base = f"groupmq:{{{queue}}}:"
        self.foreign = [key for key in dump.keys if not key.startswith(self._base.encode())]

    @property
    def marker(self) -> bool:
        return bool(self._dump.zrange(self._base + "wake", 0, -1))

    def state(self) -> dict[str, Any]:
        k, base = self.keyspace, self._base
        lanes = self._dump.hgetall(base + "lanes").items()
        leases = {i.decode(): _lease(raw) for i, raw in self._dump.hgetall(base + "leases").items()}
        return {
            "records": k.jobs,
            "waiting": {group: k.waiting_ids(group) for group in k.waiting},
            "delayed": k.delayed,
            "active": {i: (k.active.get(i), *lease) for i, lease in leases.items()},
            "completed": list(k.completed.items()),
            "failed": list(k.failed.items()),
            "stored": {i: StoredState(*s) for i, s in k.state.items()},
            "results": k.results,
            "groups": {g: (s.running, s.delayed, s.holds) for g, s in k.groups.items()},
            "conf": {g: (bool(c.get("paused")), c.get("limit", 0)) for g, c in k.conf.items()},
            "meta": {n: v for n, v in k.meta.items() if n not in ("schema", "config", "overrides")},
            "failures": [msgspec.msgpack.decode(raw) for raw in self._dump.lrange(base + "failures")],
            "lanes": {name.decode(): _lane(raw) for name, raw in lanes},
            "workers": {i.decode(): raw.decode() for i, raw in self._dump.hgetall(base + "workers").items()},
        }


def _lease(raw: bytes) -> tuple[int, int, int, int, str, str]:
    """Token, started, attempts, stalls, group and worker."""
    token, started = int.from_bytes(raw[:7], "big"), int.from_bytes(raw[7:13], "big")
    attempts, stalls, size = struct.unpack_from(">HHH", raw, 13)
    return token, started, attempts, stalls, raw[19 : 19 + size].decode(), raw[19 + size :].decode()


def _lane(raw: bytes) -> tuple[int, list[str]]:
    """Number and jobs of the last request; that its whole answer is kept shows when it is sent again."""
    last = msgspec.msgpack.decode(raw)
    return last[0], last[2]


def expected(model: Model) -> dict[str, Any]:
    """The same view of the model."""
    jobs = model.jobs.values()
    numbers = {"seq": model.arrivals, "stamp": model.stamp, "order": model.order, **model.counters}
    meta = {name: str(n) for name, n in numbers.items() if n} | {"limit": str(model.limit)}
    return {
        "records": {j.id: j.record for j in jobs},
        "waiting": {g: [j.id for j in model.waiting(g)] for g in {j.group for j in model.in_state("waiting")}},
        "delayed": {j.id: j.due for j in model.in_state("delayed")},
        "active": {j.id: _active(j) for j in jobs if j.lease},
        "completed": [(j.id, j.stamp) for j in model.finished("completed")],
        "failed": [(j.id, j.stamp) for j in model.finished("failed")],
        "stored": {j.id: j.stored for j in jobs if j.stored is not None},
        "results": {j.id: j.result for j in jobs if j.result is not None},
        "groups": {
            g: (
                len(model.in_state("active", g)),
                len(model.in_state("delayed", g)),
                {j.id: j.hold for j in model.in_state("waiting", g) if j.hold},
            )
            for g in model.live_groups()
        },
        "conf": {g: (c.paused, c.limit) for g, c in model.conf.items()},
        "meta": meta | {"paused": "1"} if model.paused else meta,
        "failures": model.failures,
        "lanes": {name: (number, [i for i, _ in leases]) for name, (number, _, leases) in model.lanes.items()},
        "workers": model.workers,
    }


def _active(job: Any) -> tuple[Any, ...]:
    lease, before = job.lease, job.stored or StoredState()
    return lease.deadline, lease.token, lease.started, before.attempts, before.stalls, job.group, lease.worker


def differences(model: Model, stored: Stored) -> list[str]:
    """Every way in which the server is not as the model says, and every broken invariant."""
    want, have = expected(model), stored.state()
    if have["meta"].get("paused") == "0":
        del have["meta"]["paused"]
    found = [f"{name}: stored {have[name]!r}, expected {want[name]!r}" for name in want if have[name] != want[name]]
    found += keyspace.violations(stored.keyspace)
    found += [f"a key outside of the queue: {key!r}" for key in stored.foreign]
    if stored.keyspace.ready and not model.paused and not stored.marker:
        found.append(f"{sorted(stored.keyspace.ready)} are ready and no marker wakes a worker")
    return found
