"""Small helpers for tests that run a worker in the test's own process."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from groupmq import Job, Queue, Worker
from groupmq.sync import Queue as SyncQueue
from tests.support.parts import parts_of
from tests.support.waiting import eventually

one_kind = pytest.mark.parametrize("session_server", ["valkey"], indirect=True)
"""For slow tests of code that runs in the worker's process, for which the kind of server makes no difference."""


class Recorder:
    """A handler that records which jobs run, and how many at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.started: list[Any] = []
        self.ended: list[Any] = []
        self.attempts: list[int] = []
        self.running: Counter[str | None] = Counter()
        self.most_in_group = 0
        self.most = 0
        self.gate: asyncio.Event | None = None
        """When set, every handler waits for it."""

    async def __call__(self, job: Job) -> None:
        self.started.append(job.data)
        self.attempts.append(job.attempt)
        self.running[job.group_id] += 1
        self.most = max(self.most, self.running.total())
        if job.group_id is not None:
            self.most_in_group = max(self.most_in_group, self.running[job.group_id])
        try:
            if self.gate is not None:
                await self.gate.wait()
            await asyncio.sleep(self.seconds)
        finally:
            self.running[job.group_id] -= 1
        self.ended.append(job.data)

    async def has_run(self, data: Any, times: int = 1, timeout: float = 5) -> None:
        """Wait until a job with this data has ended."""
        await eventually(lambda: self.ended.count(data) >= times, f"job {data!r} ran", timeout)


class Waiting:
    """A handler that waits until it is stopped, and records that it was."""

    def __init__(self) -> None:
        self.running: list[Any] = []
        self.ends: list[Any] = []

    async def __call__(self, job: Job) -> None:
        self.running.append(job.data)
        try:
            await asyncio.Event().wait()
        finally:
            self.ends.append(job.data)


async def looked_once(worker: Worker) -> None:
    """Wait until a worker has asked for jobs once. If there were none, it sleeps."""
    await eventually(lambda: worker.get_worker_metrics().advances, "the worker has asked for jobs once")


def knows_of_work(worker: Worker) -> bool:
    """Whether it asks for jobs as soon as it has a slot: since its last answer a hint said that one may be ready."""
    return not parts_of(worker).fetcher.idle


def is_watching(worker: Worker) -> bool:
    """Whether its scheduler has read the repeating jobs: from then on a tick may be late, but is not missed."""
    return parts_of(worker).maintenance.scheduler.last_run is not None


async def watching(*workers: Worker) -> None:
    await eventually(lambda: all(map(is_watching, workers)), "the schedulers have read the repeating jobs")


async def works(queue: Queue, data: Any = 1) -> None:
    """Run a job to its end, and check that calls, wake-ups, heartbeats and events all reach the same server."""
    handler = Recorder()
    async with Worker(queue, handler, heartbeat=0.2, blocking_timeout=1) as worker:
        await looked_once(worker)
        assert await (await queue.add(data, group_id="g")).result(20) is None
        await eventually(queue.get_workers, "the heartbeat is seen")
    assert handler.ended == [data]


def add_and_obliterate(name: str, client: Any) -> None:
    """The blocking client reaches the server with the same client of the user."""
    with SyncQueue(name, client) as queue:
        queue.add("blocking")
        assert queue.get_waiting_count() == 1
        queue.obliterate()


class Listener:
    """Collects the events of a worker with their arguments."""

    def __init__(self, worker: Worker, *events: str) -> None:
        self.heard: list[tuple[str, tuple[Any, ...]]] = []
        for event in events:
            worker.on(event, lambda *args, event=event: self.heard.append((event, args)))

    def names(self) -> list[str]:
        return [name for name, _ in self.heard]

    def args(self, event: str) -> list[tuple[Any, ...]]:
        return [args for name, args in self.heard if name == event]
