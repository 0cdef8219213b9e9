"""Counters, histograms, waits and workers as users see them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeVar

from groupmq.client.answers.spans import BOUNDS
from groupmq.core.durations import instant_of
from groupmq.core.views import Failure, HeldGroup, Histogram, WorkerInfo
from groupmq.protocol import commands

LATEST_MS = 253_402_300_799_000
"""The end of the year 9999, the latest date that Python has. An order far in the future can hold a group for longer, in
an event-time window."""
REPLIES_KEPT = 60.0
"""Seconds for which the replies to a worker that went silent are kept, on top of three heartbeats."""
W = TypeVar("W", commands.Startable, commands.HeldHead)


def longer(one: W | None, other: W | None) -> W | None:
    if one is None or other is None:
        return one or other
    return one if one.waited_ms >= other.waited_ms else other


def held_group(held: commands.HeldHead | None) -> HeldGroup | None:
    if held is None:
        return None
    return HeldGroup(
        held.group_id,
        held.reason,
        held.job_id or None,
        held.attempt or None,
        instant_of(held.since),
        instant_of(held.until) if 0 < held.until < LATEST_MS else None,
        held.waiting,
        held.waited_ms / 1000,
        held.failures or None,
    )


def histogram(numbers: list[int]) -> Histogram:
    """Read a histogram as `lua/lib/minutes.lua` stores it, with powers of two of milliseconds as bounds."""
    total, *buckets = numbers
    return Histogram(BOUNDS, tuple(buckets), total / 1000)


def worker_info(worker_id: str, raw: bytes) -> WorkerInfo:
    seen, _, text_of_info = raw.decode().partition(" ")
    info = json.loads(text_of_info)
    return WorkerInfo(
        id=worker_id,
        last_seen=instant_of(int(seen)),
        # By name: a worker of a newer release may report more.
        **{name: info[name] for name in ("name", "host", "pid", "concurrency", "current_jobs", "heartbeat", "version")},
        jobs=info.get("jobs", []),
        library=info.get("library", ""),
        blocked=info.get("blocked", 0.0),
        max_attempts=info.get("max_attempts"),
    )


def failures_of(stats: commands.Stats) -> list[Failure]:
    return [
        Failure(
            job_id,
            attempt,
            error,
            stack,
            instant_of(at),
            final,
            worker,
            kind or None,
            group or None,
        )
        for job_id, attempt, error, stack, at, final, worker, kind, group in stats.failures
    ]


def living_workers(stats: commands.Stats) -> list[WorkerInfo]:
    """Workers that have sent a heartbeat lately."""
    workers = [worker_info(worker_id, raw) for worker_id, raw in sorted(stats.workers.items())]
    return [worker for worker in workers if stats.now / 1000 - worker.last_seen.timestamp() <= 2 * worker.heartbeat]


def gone_workers(found: Iterable[commands.Stats]) -> list[str]:
    """Ids of workers that have been silent for so long, in each partition where they are registered, that the server
    can forget them.

    The last reply to each of their requests is deleted too. A worker that was frozen and sends a request again after
    that gets the answer that its leases are lost, even if its outcomes were accepted. So this waits much longer than
    `living_workers`.
    """
    silent: dict[str, bool] = {}
    for stats in found:
        for worker_id, raw in stats.workers.items():
            worker = worker_info(worker_id, raw)
            silence = stats.now / 1000 - worker.last_seen.timestamp()
            is_long = silence > 3 * worker.heartbeat + REPLIES_KEPT
            silent[worker_id] = is_long and silent.get(worker_id, True)
    return [worker_id for worker_id, is_long in silent.items() if is_long]
