"""The event loop is blocked while the answer to a call is unread: the jobs in that answer run elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from groupmq import Job, Queue, Worker
from groupmq.core.partitions import place_of
from tests.conftest import MakeQueue
from tests.support.hanging import WorkerInThread
from tests.support.parts import parts_of_each
from tests.support.waiting import eventually
from tests.support.workers import Recorder

LEASE = 60
"""Seconds: so long that no job comes back because its lease has expired."""


class Unreading(WorkerInThread):
    """Its loop hangs as soon as an answer brings several jobs, before the worker sees that answer."""

    def make(self, queue: Queue) -> Worker:
        return Worker(queue, self.handle, concurrency=4, prefetch=0)

    def has_started(self, worker: Worker) -> None:
        for parts in parts_of_each(worker):
            self._hold_back(parts.fetcher)

    def _hold_back(self, fetcher: Any) -> None:
        persist = fetcher._persist

        async def unread(call: Any, requester: Any) -> Any:
            answer = await persist(call, requester)
            if len(answer.jobs) > 1 and not self.hangs.is_set():
                self.hang()
            return answer

        fetcher._persist = unread

    async def handle(self, job: Job) -> None:
        await super().handle(job)
        if job.data == "runs":
            await asyncio.to_thread(self.over.wait)


@pytest.fixture
def unreading(url: str) -> Iterator[Callable[[str], Unreading]]:
    made: list[Unreading] = []

    def make(name: str) -> Unreading:
        made.append(Unreading(name, url))
        return made[-1]

    yield make
    for one in made:
        one.end()


async def in_the_middle(queue: Queue, worker: Unreading, partitions: int) -> list[Job]:
    """One job runs; two more are leased to the worker, in another partition if there are several."""
    await queue.add("runs", group_id="a")
    await eventually(lambda: worker.started == ["runs"], "a job runs")
    other = next(
        f"b{i}" for i in range(100) if partitions == 1 or place_of(f"b{i}") % partitions != place_of("a") % partitions
    )
    same = next(f"c{i}" for i in range(100) if place_of(f"c{i}") % partitions == place_of(other) % partitions)
    jobs = await queue.add_many([{"data": "one", "group_id": other}, {"data": "two", "group_id": same}])
    await eventually(worker.hangs.is_set, "its loop hangs")
    assert (await queue.get_job_counts()).active == 3
    return jobs


@pytest.mark.parametrize("partitions", [1, 3])
async def test_jobs_of_an_unseen_answer_go_back_untouched_and_run_elsewhere(
    make_queue: MakeQueue, unreading: Callable[[str], Unreading], partitions: int
) -> None:
    queue = make_queue(job_timeout=LEASE, max_attempts=1, partitions=partitions)
    await queue.get_job_counts()
    worker = unreading(queue.name)
    jobs = await in_the_middle(queue, worker, partitions)

    async def back() -> bool:
        return (await queue.get_job_counts()).waiting == 2

    await eventually(back, "both are back in their groups", 15)
    recorder = Recorder()
    async with Worker(queue, recorder):
        await eventually(lambda: len(recorder.ended) == 2, "they run elsewhere")
    worker.go_on.set()
    await eventually(lambda: worker.worker is not None and worker.worker.health().blocked_for == 0, "the loop goes on")
    again = await queue.add_many([{"data": "three"}, {"data": "four"}])
    for job in again:
        await job.result(timeout=10)
    assert sorted(worker.started) == ["four", "runs", "three"]
    for job in jobs:
        await job.refresh()
        assert (job.state, job.attempts_made) == ("completed", 1)


@pytest.mark.parametrize("how", ["remove", "fail", "cancel"])
async def test_an_operator_who_ends_one_does_not_wait_for_its_lease(
    make_queue: MakeQueue, unreading: Callable[[str], Unreading], how: str
) -> None:
    queue = make_queue(job_timeout=LEASE)
    await queue.get_job_counts()
    worker = unreading(queue.name)
    jobs = await in_the_middle(queue, worker, 1)
    async with asyncio.timeout(20):
        assert await getattr(jobs[0], how)()
    worker.go_on.set()
    await jobs[1].result(timeout=10)
    assert "one" not in worker.started
