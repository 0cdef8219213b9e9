"""How much happened and how long it took: counters, histograms, minutes, workers."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

from groupmq import commands
from groupmq.checks import whole
from groupmq.operations.steps import Base, J, Steps, one
from groupmq.views import Failure, Histogram, Metrics, MinuteStats, WorkerInfo

MOST_MINUTES = 20_160
"""Two weeks; nothing older is kept."""


class Measuring(Base[J]):
    def get_metrics(self, minutes: int) -> Steps[Metrics]:
        stats: commands.Stats = yield commands.stats()
        minute, found = yield commands.series(whole(minutes, "minutes", 0, MOST_MINUTES))
        paused = (yield from self._paused_groups()) if stats.overrides else 0
        return Metrics(
            *stats.counters,
            groups_ready=stats.ready,
            groups_due=stats.due,
            groups_paused=paused,
            oldest_wait=None if stats.oldest_ms < 0 else stats.oldest_ms / 1000,
            wait=histogram(stats.wait),
            run=histogram(stats.run),
            series=[minute_stats(minute - len(found) + 1 + i, past) for i, past in enumerate(found)],
        )

    def _paused_groups(self) -> Steps[int]:
        cursor, paused = "0", 0
        while True:
            cursor, more = yield from one(commands.count_paused(cursor))
            paused += more
            if cursor == "0":
                return paused

    def get_failures(self, limit: int) -> Steps[list[Failure]]:
        stats = yield commands.stats(whole(limit, "limit", 0, 2**31))
        return [
            Failure(job_id, attempt, error, stack, datetime.fromtimestamp(at / 1000, UTC), final, worker)
            for job_id, attempt, error, stack, at, final, worker in stats.failures
        ]

    def get_workers(self) -> Steps[list[WorkerInfo]]:
        stats = yield commands.stats()
        workers = [worker_info(worker_id, raw) for worker_id, raw in sorted(stats.workers.items())]
        return [worker for worker in workers if stats.now / 1000 - worker.last_seen.timestamp() <= 2 * worker.heartbeat]

    def gone_workers(self) -> Steps[list[str]]:
        """Workers that missed three heartbeats and then some."""
        stats = yield commands.stats()
        seen = [worker_info(worker_id, raw) for worker_id, raw in stats.workers.items()]
        return [
            worker.id for worker in seen if stats.now / 1000 - worker.last_seen.timestamp() > 3 * worker.heartbeat + 5
        ]


def histogram(numbers: list[int]) -> Histogram:
    """As `lua/lib/measure.lua` stores it: powers of two of milliseconds."""
    bounds = (*(2**i / 1000 for i in range(commands.LARGEST_BUCKET)), math.inf)
    total, *buckets = numbers
    return Histogram(bounds, tuple(buckets), total / 1000)


def minute_stats(minute: int, found: commands.Minute) -> MinuteStats:
    runs = found.processed + found.failed + found.retried
    return MinuteStats(
        datetime.fromtimestamp(minute * 60, UTC),
        *found[:6],
        mean_wait=found.waited_ms / 1000 / found.started if found.started else 0.0,
        mean_run=found.ran_ms / 1000 / runs if runs else 0.0,
    )


def worker_info(worker_id: str, raw: bytes) -> WorkerInfo:
    seen, _, text_of_info = raw.decode().partition(" ")
    info = json.loads(text_of_info)
    return WorkerInfo(
        id=worker_id,
        last_seen=datetime.fromtimestamp(int(seen) / 1000, UTC),
        # By name: a worker of a newer release may say more.
        **{name: info[name] for name in ("name", "host", "pid", "concurrency", "current_jobs", "heartbeat", "version")},
        jobs=info.get("jobs", []),
    )
