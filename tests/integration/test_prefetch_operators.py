"""Acting on jobs that a worker has taken ahead and not started: what is cancelled, removed or paused stays so."""

from __future__ import annotations

import asyncio
import time

import pytest

from groupmq import Job, Queue, Worker
from groupmq.sync import Queue as SyncQueue
from tests.integration.rows import LONGEST_ROW, add_row, attempts_made, used_to_short_handlers
from tests.support.waiting import eventually
from tests.support.workers import Listener


class Operator:
    """Acts on a queue from within a handler, while nothing else moves in that process: those behind are still ahead."""

    def __init__(self, queue: Queue) -> None:
        self.queue = SyncQueue(queue.name, queue.connection.endpoint.where)

    def heard_by(self, worker: Worker) -> None:
        """Wait until the worker's heartbeat, a thread, has asked and been answered since."""
        for _ in range(2):
            last, end = worker._heartbeat.last_beat, time.monotonic() + 5
            while worker._heartbeat.last_beat == last:
                assert time.monotonic() < end
                time.sleep(0.001)


async def test_one_that_is_ahead_can_be_cancelled_and_never_runs(queue: Queue) -> None:
    jobs = await add_row(queue, 6)
    operator = Operator(queue)
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == 1:
            assert operator.queue.get_job_counts().active == 6
            assert operator.queue.cancel(jobs[3].id)
            operator.heard_by(worker)

    worker = used_to_short_handlers(Worker(queue, handle, heartbeat=0.05))
    heard = Listener(worker, "failed", "lease-lost")
    async with worker:
        assert await queue.wait_for_empty(10)
    operator.queue.close()
    assert seen == [0, 1, 2, 4, 5]
    await jobs[3].refresh()
    assert (jobs[3].state, jobs[3].failed_reason) == ("failed", "cancelled")
    assert heard.names() == ["failed"]
    del jobs[3]
    assert await attempts_made(jobs) == [1] * 5


async def test_one_that_was_cancelled_while_it_was_ahead_and_is_given_back_never_runs(queue: Queue) -> None:
    jobs = await add_row(queue, 6)
    operator = Operator(queue)
    seen: list[int] = []
    let_go = asyncio.Event()

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == 1:
            assert operator.queue.cancel(jobs[3].id)
            await let_go.wait()

    async with used_to_short_handlers(Worker(queue, handle, heartbeat=5)) as worker:
        await eventually(lambda: worker.get_worker_metrics().released == 4, "those behind are given back")
        await jobs[3].refresh()
        assert (jobs[3].state, jobs[3].failed_reason) == ("failed", "cancelled")
        let_go.set()
        assert await queue.wait_for_empty(10)
    operator.queue.close()
    assert seen == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("data", [0, 1])
async def test_whoever_stands_behind_a_run_that_is_cancelled_comes_after_it(queue: Queue, data: int) -> None:
    seen: list[int] = []
    cancelling = asyncio.Event()

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == data:
            cancelling.set()
            await asyncio.Event().wait()

    jobs = await add_row(queue, 5, max_attempts=3)
    async with used_to_short_handlers(Worker(queue, handle)):
        await cancelling.wait()
        assert await jobs[data].cancel()
        assert await queue.wait_for_empty(10)
    assert seen == [0, 1, 2, 3, 4]
    assert await attempts_made(jobs) == [1] * 5
    assert [job.state for job in jobs] == ["failed" if i == data else "completed" for i in range(5)]


async def test_a_whole_group_can_be_cancelled_while_some_of_it_is_ahead(queue: Queue) -> None:
    jobs = await add_row(queue, 100)
    operator = Operator(queue)
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == 1:
            operator.queue.cancel_group("g")
            operator.heard_by(worker)
            await asyncio.sleep(0.5)

    worker = used_to_short_handlers(Worker(queue, handle, heartbeat=0.05))
    async with worker:
        assert await queue.wait_for_empty(10)
    operator.queue.close()
    assert seen == [0, 1]
    assert await jobs[1].get_state() == "failed"
    assert (await queue.get_job_counts()).completed <= 1  # the first may have been cancelled before it was reported


async def test_one_that_is_removed_while_it_is_ahead_leaves_nothing_behind(queue: Queue) -> None:
    jobs = await add_row(queue, 6)
    operator = Operator(queue)
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == 1:
            assert operator.queue.remove(jobs[3].id)
            operator.heard_by(worker)

    worker = used_to_short_handlers(Worker(queue, handle, heartbeat=0.05))
    heard = Listener(worker, "lease-lost", "completed")
    async with worker:
        assert await queue.wait_for_empty(10)
    operator.queue.close()
    assert seen == [0, 1, 2, 4, 5]
    assert await queue.get_job(jobs[3].id) is None
    assert [job.data for (job,) in heard.args("lease-lost")] == [3]
    assert [job.data for (job,) in heard.args("completed")] == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("whole", [True, False])
async def test_after_a_pause_no_more_than_the_row_that_was_taken_starts(queue: Queue, whole: bool) -> None:
    operator = Operator(queue)
    seen: list[int] = []

    async def handle(job: Job) -> None:
        if job.group_id == "g":
            seen.append(job.data)
        if job.data == 10:
            operator.queue.pause() if whole else operator.queue.pause_group("g")

    async def at_rest() -> bool:
        counts = await queue.get_job_counts()
        return counts.active == 0 and len(seen) > 10

    await add_row(queue, 300)
    async with used_to_short_handlers(Worker(queue, handle)):
        await eventually(at_rest, "what was taken has ended")
        started = len(seen)
        assert started <= 11 + LONGEST_ROW
        other = await queue.add("elsewhere", group_id="other")
        if not whole:
            await other.result(10)
        assert len(seen) == started
        assert (await queue.get_group("g")).waiting == 300 - started
        await (queue.resume() if whole else queue.resume_group("g"))
        assert await queue.wait_for_empty(10)
    operator.queue.close()
    assert seen == list(range(300))
