"""A worker that closes in the middle of a row: no further job of it starts, and other workers get the rest at once."""

from __future__ import annotations

import asyncio
import threading

import pytest

from groupmq import Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.rows import add_row, attempts_made, used_to_short_handlers
from tests.support.waiting import eventually
from tests.support.workers import Listener, Recorder

N, AT = 12, 4


class Leaving:
    """A handler that closes its worker in the middle of a row, and then runs on for a moment or for ever."""

    def __init__(self, timeout: float, stays: bool) -> None:
        self.timeout = timeout
        self.stays = stays
        self.seen: list[int] = []
        self.worker: Worker | None = None
        self.closing: asyncio.Task[None] | None = None

    async def __call__(self, job: Job) -> None:
        assert self.worker is not None
        self.seen.append(job.data)
        if job.data == AT:
            self.closing = asyncio.create_task(self.worker.close(timeout=self.timeout))
            await asyncio.sleep(0)  # after this, close() has been called
            if self.stays:
                await asyncio.Event().wait()

    async def closed(self) -> None:
        await eventually(lambda: self.closing is not None, "the handler closes the worker")
        assert self.closing is not None
        await self.closing


async def check_rest(queue: Queue, jobs: list[Job], done: int) -> None:
    """Check that the first `done` jobs have completed, and that the others wait untouched and run in order."""
    counts = await queue.get_job_counts()
    assert (counts.completed, counts.active, counts.waiting) == (done, 0, N - done)
    assert await attempts_made(jobs) == [1] * done + [0] * (N - done)
    assert [job.state for job in jobs] == ["completed"] * done + ["waiting"] * (N - done)
    again = Recorder()
    await Worker(queue, again).run(burst=True)
    assert again.started == list(range(done, N))
    assert set(again.attempts) == {1}


@pytest.mark.parametrize("concurrency", [1, 10])
@pytest.mark.parametrize("timeout", [0, 10])
async def test_nothing_of_a_row_starts_once_close_was_called(queue: Queue, timeout: float, concurrency: int) -> None:
    jobs = await add_row(queue, N)
    handler = Leaving(timeout, stays=False)
    handler.worker = worker = used_to_short_handlers(Worker(queue, handler, concurrency=concurrency))
    heard = Listener(worker, "active", "completed", "lease-lost", "graceful-timeout", "closed")
    await worker.start()
    await handler.closed()
    assert handler.seen == list(range(AT + 1))
    assert worker.get_worker_metrics().released >= N - AT - 1
    assert len(heard.args("active")) == AT + 1
    assert "lease-lost" not in heard.names()
    await check_rest(queue, jobs, AT + 1)


async def test_a_job_that_does_not_end_in_time_goes_back_in_front_of_those_behind_it(queue: Queue) -> None:
    jobs = await add_row(queue, N)
    handler = Leaving(0, stays=True)
    handler.worker = worker = used_to_short_handlers(Worker(queue, handler))
    heard = Listener(worker, "completed", "failed", "retrying", "lease-lost", "graceful-timeout", "closed")
    await worker.start()
    await handler.closed()
    assert handler.seen == list(range(AT + 1))
    assert worker.get_worker_metrics().released >= N - AT
    assert [job.data for (job,) in heard.args("graceful-timeout")] == [AT]
    assert set(heard.names()) == {"completed", "graceful-timeout", "closed"}
    await check_rest(queue, jobs, AT)


async def test_jobs_behind_are_left_to_others_while_the_closing_worker_waits_for_its_runs(queue: Queue) -> None:
    let_go = asyncio.Event()
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == 1:
            await let_go.wait()

    await add_row(queue, N)
    worker = used_to_short_handlers(Worker(queue, handle))
    await worker.start()
    await eventually(lambda: 1 in seen, "it is in the middle of a row")
    closing = asyncio.create_task(worker.close())

    async def waiting() -> bool:
        return (await queue.get_job_counts()).waiting == N - 2

    await eventually(waiting, "the jobs behind wait for another worker", timeout=2)
    assert not closing.done()
    let_go.set()
    await closing
    assert seen == [0, 1]
    assert (await queue.get_job_counts()).completed == 2


async def test_a_cancelled_run_gives_a_whole_row_back(queue: Queue) -> None:
    jobs = await add_row(queue, N)
    seen: list[int] = []
    stop = asyncio.Event()

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == AT:
            stop.set()
            await asyncio.Event().wait()

    running = asyncio.create_task(used_to_short_handlers(Worker(queue, handle)).run())
    await stop.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == list(range(AT + 1))
    await check_rest(queue, jobs, AT)


async def test_threads_in_the_middle_of_rows_end_and_nothing_follows_them(make_queue: MakeQueue) -> None:
    queue = make_queue(keep_completed=1000)
    jobs = await queue.add_many([{"data": [g, i], "group_id": f"g{g}"} for i in range(50) for g in range(4)])
    seen: list[list[int]] = []
    many, lock = threading.Event(), threading.Lock()

    def handle(job: Job) -> None:
        with lock:
            seen.append(job.data)
            if len(seen) > 20:
                many.set()

    worker = used_to_short_handlers(Worker(queue, handle, concurrency=4))
    await worker.start()
    await asyncio.to_thread(many.wait, 10)
    await worker.close()
    after = len(seen)
    counts = await queue.get_job_counts()
    assert (counts.completed, counts.active, counts.waiting) == (after, 0, 200 - after)
    again = Recorder()
    await Worker(queue, again).run(burst=True)
    for g in range(4):
        assert [i for group, i in [*seen, *again.started] if group == g] == list(range(50))
    assert set(await attempts_made(jobs)) == {1}


async def test_workers_that_come_and_go_lose_nothing_and_keep_the_order(make_queue: MakeQueue) -> None:
    queue = make_queue(keep_completed=1000)
    jobs = await queue.add_many([{"data": [g, i], "group_id": f"g{g}"} for i in range(100) for g in range(6)])
    recorder = Recorder()
    enough = asyncio.Event()

    async def handle(job: Job) -> None:
        if len(recorder.started) % 37 == 36:
            enough.set()
        await recorder(job)

    for concurrency in (1, 2, 3, 6) * 3:
        enough.clear()
        worker = used_to_short_handlers(Worker(queue, handle, concurrency=concurrency))
        await worker.start()
        await enough.wait()
        await worker.close(timeout=0 if concurrency % 2 else 10)
    await Worker(queue, handle).run(burst=True)
    for g in range(6):
        assert [i for group, i in recorder.ended if group == g] == list(range(100))
    assert recorder.most_in_group == 1
    assert set(recorder.attempts) == {1}
    assert set(await attempts_made(jobs)) == {1}
