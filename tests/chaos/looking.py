"""Inspects all keys of the server, during the run and after it, and records violations in the history.

It uses the same keyspace reader as the tests, which shares no code with the scripts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import redis

from groupmq import Queue
from tests.chaos.cast import QUEUES, tags_of
from tests.chaos.history import HistoryFile
from tests.chaos.working import open_queue
from tests.support import keyspace
from tests.support.dump import Dump

PREFIX = "groupmq"
CANARIES = {
    "canary": "untouched",
    "groupmq:{orders}": "not a key of the queue",
    "groupmq:{orders2}:jobs": "another queue's",
    "x:active": "named like a group",
    "{}": "named like a group",
}
_FREE = ("mail:", "wake:")
"""Markers of workers, which expire on their own."""


def plant_canaries(client: redis.Redis) -> None:
    for name, text in CANARIES.items():
        client.set(name, text)


def sample(nodes: Sequence[redis.Redis], history: HistoryFile) -> None:
    """Read all keys at one instant between two calls. Each queue must be consistent."""
    with contextlib.suppress(redis.RedisError):
        dumps = [Dump(node) for node in nodes]
        wrong, kept = [], {}
        for tag in _tags():
            dump = _with(tag, dumps)
            found = keyspace.read(dump, PREFIX, tag)
            wrong += [f"{tag}: {line}" for line in keyspace.violations(found)]
            kept[tag] = {"completed": len(found.completed), "failed": len(found.failed), "jobs": len(found.jobs)}
        history.note("sample", at=dump.now, wrong=wrong, kept=kept)


def _with(tag: str, dumps: Sequence[Dump]) -> Dump:
    """The dump of the server that has the keys of this hash tag."""
    base = f"{PREFIX}:{{{tag}}}:".encode()
    return next((dump for dump in dumps if any(key.startswith(base) for key in dump)), dumps[0])


async def last_look(client: redis.Redis, nodes: Sequence[redis.Redis], url: str, history: HistoryFile) -> None:
    """After the drain: record what is left, what the API reports about it, and which keys remain after a purge."""
    sample(nodes, history)
    for role in QUEUES:
        async with open_queue(role.name, url) as queue:
            counts = await queue.get_job_counts()
            listed = {state: len(ids) for state, ids in (await queue.get_jobs(limit=100_000)).items()}
            live = await _live(queue)
            said = {state: getattr(counts, state) for state in listed}
            history.note("left", q=role.name, live=live, counts=said, listed=listed, total=counts.total)
            report = await queue.repair()
            mended = [f"{kind}: {ids[:5]}" for kind, ids in report.mended.items()]
            history.note("repaired", q=role.name, mended=mended)
    foreign = [key for key in _all_keys(nodes) if not key.startswith(tuple(_bases())) and key != _registry()]
    changed = [name for name, text in CANARIES.items() if _text(client.get(name)) != text]
    history.note("foreign", keys=[key for key in foreign if key not in CANARIES], canaries=changed)
    for role in QUEUES:
        async with open_queue(role.name, url) as queue:
            await queue.purge(("completed", "failed", "waiting", "delayed"))
    await asyncio.sleep(0.1)
    history.note("emptied", keys=_leaks(nodes))


async def _live(queue: Queue) -> list[str]:
    found = []
    for state in ("active", "waiting", "delayed"):
        found += [f"{job_id} {state}" for job_id in await queue.get_job_ids(state, 100)]
    return found


def _leaks(nodes: Sequence[redis.Redis]) -> list[str]:
    """Keys of an empty queue whose size depends on the jobs it once had."""
    dumps, found = [Dump(node) for node in nodes], []
    for tag in _tags():
        dump = _with(tag, dumps)
        base = f"{PREFIX}:{{{tag}}}:"
        names = [key.decode("utf-8", "replace").removeprefix(base) for key in dump if key.startswith(base.encode())]
        k = keyspace.read(dump, PREFIX, tag)
        found += [f"{base}{name}" for name in names if name[:2] in ("g:", "r:")]
        for part in (
            "jobs",
            "state",
            "results",
            "progress",
            "logs",
            "leases",
            "active",
            "groups",
            "ready",
            "parked",
            "blocked",
            "blockers",
        ):
            if getattr(k, part):
                found.append(f"{base}{part} has {len(getattr(k, part))} entries")
        found += [f"{base}{name}" for name in k.strangers if not name.startswith(_FREE)]
    return found


def slow_calls(nodes: Sequence[Any]) -> list[tuple[str, int]]:
    """Function calls in the slow logs since they were last read, with their microseconds."""
    found = []
    for node in nodes:
        entries = node.slowlog_get(512)
        node.slowlog_reset()
        words = [(entry["command"].split(), entry["duration"]) for entry in entries]
        found += [(_text(word[1]), micros) for word, micros in words if word[0].upper() == b"FCALL"]
    return found


def calls_of(nodes: Sequence[Any]) -> Counter[str]:
    """How often clients have blocked on a marker and called a function so far."""
    found: Counter[str] = Counter()
    for node in nodes:
        stats = node.info("commandstats")
        for name in ("bzpopmin", "fcall"):
            found[name] += stats.get(f"cmdstat_{name}", {"calls": 0})["calls"]
    return found


def _all_keys(nodes: Sequence[Any]) -> list[str]:
    return [_text(key) for node in nodes for key in node.keys("*")]


def _bases() -> list[str]:
    return [f"{PREFIX}:{{{tag}}}:" for tag in _tags()]


def _tags() -> list[str]:
    return [tag for role in QUEUES for tag in tags_of(role.name)]


def _registry() -> str:
    return f"{PREFIX}:queues"


def _text(raw: Any) -> str:
    return raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else str(raw)
