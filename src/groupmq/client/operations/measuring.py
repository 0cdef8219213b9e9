"""How much happened and how long it took: counters, histograms, minutes, workers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TypeVar

from groupmq.client.operations.spans import BOUNDS, minutes_needed, spans
from groupmq.client.operations.steps import Base, J, Steps, one
from groupmq.core.checks import whole
from groupmq.core.views import Failure, HeldGroup, Histogram, Metrics, WorkerInfo
from groupmq.protocol import commands

MOST_MINUTES = 20_160
"""Two weeks; nothing older is kept."""
MOST_PAGES = 500
"""Calls that a search for the longest waits takes at most: 50,000 running jobs and as many parked groups."""
LATEST_MS = 253_402_300_799_000
"""The end of the year 9999. An order far in the future holds a group until then in an event-time window."""
MINUTES_PER_CALL = 1_000


class Measuring(Base[J]):
    def get_metrics(self, minutes: int, step: int = 1, look: int = MOST_PAGES) -> Steps[Metrics]:
        whole(minutes, "minutes", 0, MOST_MINUTES)
        whole(step, "step", 1, MOST_MINUTES)
        stats: commands.Stats = yield commands.stats()
        minute, found = yield from self._series(minutes, step)
        paused = (yield from self._paused_groups()) if stats.overrides else 0
        waits = yield from longest_waits(whole(look, "look", 1, MOST_PAGES))
        startable = None if waits.startable is None else waits.startable.waited_ms / 1000
        return Metrics(
            *stats.counters,
            groups_ready=stats.ready,
            groups_due=stats.due,
            groups_paused=paused,
            oldest_wait=startable,
            oldest_startable_wait=startable,
            longest_held=held_group(waits.held),
            wait=histogram(stats.wait),
            run=histogram(stats.run),
            series=spans(minute, found, step),
            groups_blocked=stats.blocked,
        )

    def _series(self, minutes: int, step: int) -> Steps[tuple[int, list[commands.Minute]]]:
        """The last minutes, a page at a time: as many as whole spans of `step` have."""
        minute, found = yield commands.series(min(minutes, MINUTES_PER_CALL))
        needed = minutes_needed(minute, minutes, step)
        while len(found) < needed:
            _, earlier = yield commands.series(min(needed - len(found), MINUTES_PER_CALL), minute - len(found))
            found = [*earlier, *found]
        return minute, found[len(found) - needed :]

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
            Failure(
                job_id,
                attempt,
                error,
                stack,
                datetime.fromtimestamp(at / 1000, UTC),
                final,
                worker,
                kind or None,
                group or None,
            )
            for job_id, attempt, error, stack, at, final, worker, kind, group in stats.failures
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

    def forget_gone_workers(self) -> Steps[list[str]]:
        """Remove what is stored of workers that stopped without saying so; their ids."""
        gone = yield from self.gone_workers()
        if gone:
            yield commands.leave(gone, [lane for worker in gone for lane in commands.lane_names(worker)])
        return gone


def longest_waits(calls: int = MOST_PAGES) -> Steps[commands.Waits]:
    """The longest waits of the whole queue, and what each worker runs: page by page, one call for most queues."""
    first: commands.Waits = yield commands.waits()
    startable, held, running, places = first.startable, first.held, dict(first.running), first.following
    for _ in range(calls - 1):
        if not any(places):
            break
        page: commands.Waits = yield commands.waits(places)
        startable, held = longer(startable, page.startable), longer(held, page.held)
        for worker, n in page.running.items():
            running[worker] = running.get(worker, 0) + n
        places = page.following
    return commands.Waits(first.now, startable, held, running, places)


W = TypeVar("W", commands.Startable, commands.Held)


def longer(one: W | None, other: W | None) -> W | None:
    if one is None or other is None:
        return one or other
    return one if one.waited_ms >= other.waited_ms else other


def held_group(held: commands.Held | None) -> HeldGroup | None:
    if held is None:
        return None
    return HeldGroup(
        held.group_id,
        held.reason,
        held.job_id or None,
        held.attempt or None,
        datetime.fromtimestamp(held.since / 1000, UTC),
        datetime.fromtimestamp(held.until / 1000, UTC) if 0 < held.until < LATEST_MS else None,
        held.waiting,
        held.waited_ms / 1000,
        held.failures or None,
    )


def histogram(numbers: list[int]) -> Histogram:
    """As `lua/lib/minutes.lua` stores it: powers of two of milliseconds."""
    total, *buckets = numbers
    return Histogram(BOUNDS, tuple(buckets), total / 1000)


def worker_info(worker_id: str, raw: bytes) -> WorkerInfo:
    seen, _, text_of_info = raw.decode().partition(" ")
    info = json.loads(text_of_info)
    return WorkerInfo(
        id=worker_id,
        last_seen=datetime.fromtimestamp(int(seen) / 1000, UTC),
        # By name: a worker of a newer release may say more.
        **{name: info[name] for name in ("name", "host", "pid", "concurrency", "current_jobs", "heartbeat", "version")},
        jobs=info.get("jobs", []),
        library=info.get("library", ""),
        blocked=info.get("blocked", 0.0),
    )
