"""A sample of the server, its keys, its calls and every process. It costs a few milliseconds."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from typing import Any

import redis

from tests.soak.crew import Crew, descriptors_of, memory_of, seconds_of
from tests.soak.verdict import Sample

SLOW = 500
"""Microseconds above which the server logs a call as slow."""
LOG = 512
CONFIG = {"slowlog-log-slower-than": SLOW, "slowlog-max-len": LOG}
_SIZES = {"hash": "HLEN", "zset": "ZCARD", "list": "LLEN", "set": "SCARD", "stream": "XLEN"}
_NAMED = ("g:", "r:", "wake:", "mail:")


class Sampler:
    def __init__(self, client: redis.Redis, crew: Crew) -> None:
        self._client: Any = client
        self._crew = crew
        self._began = self._last = time.monotonic()
        self._spent: dict[int, float] = {}
        self._calls = (0, 0)
        self._pid: int = self._client.info("server")["process_id"]

    def sample(self) -> Sample:
        now = time.monotonic()
        kinds, entries, logs = self._keys()
        memory = self._client.info("memory")
        server = {"memory": memory["used_memory"], "rss": memory_of(self._pid), "logs": logs}
        told = self._crew.status("producer")
        sample = {
            "t": round(now - self._began, 2),
            "server": server,
            "keys": {"all": self._client.dbsize(), **kinds},
            "entries": entries,
            "calls": self._calls_since(),
            "processes": self._processes(),
            "jobs": {name: told[name] for name in told if name not in ("tasks", "objects")},
            "churn": dict(self._crew.churn),
            "cores": self._cores(now),
        }
        self._last = now
        return sample

    def _keys(self) -> tuple[Counter[str], Counter[str], int]:
        """The number of keys of each kind, the number of their entries, and the bytes of the event logs.

        Logs are counted separately: a log is bounded in bytes, and a queue with little traffic fills it for an hour.
        """
        kinds: Counter[str] = Counter()
        entries: Counter[str] = Counter()
        keys = [(key, _kind(key)) for key in self._client.scan_iter(count=1000)]
        types = self._all([("TYPE", key) for key, _ in keys])
        sizes = []
        for (key, kind), of in zip(keys, types, strict=True):
            kinds[kind] += 1
            if of.decode() in _SIZES:
                sizes.append((kind, (_SIZES[of.decode()], key)))
        found = self._all([command for _, command in sizes])
        for (kind, _), size in zip(sizes, found, strict=True):
            if not isinstance(size, Exception):  # a marker that was popped meanwhile
                entries[kind] += size
        logs = self._all([("MEMORY", "USAGE", key, "SAMPLES", "0") for key, kind in keys if kind == "events"])
        return kinds, entries, sum(size or 0 for size in logs)

    def _all(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        pipe = self._client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        answers: list[Any] = pipe.execute(raise_on_error=False)
        return answers

    def _calls_since(self) -> dict[str, float]:
        """The function calls since the last sample: their number, their mean server time, and the slowest."""
        stats = self._client.info("commandstats").get("cmdstat_fcall", {"calls": 0, "usec": 0})
        n, micros = stats["calls"] - self._calls[0], stats["usec"] - self._calls[1]
        self._calls = (stats["calls"], stats["usec"])
        slow = [e["duration"] for e in self._client.slowlog_get(LOG) if e["command"].upper().startswith(b"FCALL")]
        self._client.slowlog_reset()
        return {"n": n, "mean_us": round(micros / n, 1) if n else 0.0, "slowest_us": max(slow, default=SLOW)}

    def _processes(self) -> dict[str, Any]:
        found = {}
        for name, process in self._crew.processes.items():
            # A process that has just ended no longer has these files.
            with contextlib.suppress(OSError):
                known = {"rss": memory_of(process.pid), "fds": descriptors_of(process.pid)}
                told = self._crew.status(name)
                found[name] = known | {what: told[what] for what in ("tasks", "objects") if what in told}
        return found

    def _cores(self, now: float) -> float:
        """The number of processors that the whole run uses, including the sampler and the server."""
        pids = [self._pid, os.getpid(), *(process.pid for process in self._crew.processes.values())]
        spent = 0.0
        for pid in pids:
            with contextlib.suppress(OSError):
                total = seconds_of(pid)
                spent += total - self._spent.get(pid, 0.0 if pid not in (self._pid, os.getpid()) else total)
                self._spent[pid] = total
        return round(spent / max(0.001, now - self._last), 3)


def _kind(key: bytes) -> str:
    """The name of a key without queue, partition, group and worker."""
    text = key.decode("utf-8", "replace")
    name = text.partition("}:")[2]
    if not name:
        return text
    return next((start + "*" for start in _NAMED if name.startswith(start)), name)
