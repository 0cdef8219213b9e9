"""A handler that blocks the event loop of its worker: the log names it, and no other job waits unnecessarily."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from groupmq import Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.hanging import WorkerInThread
from tests.support.rows import add_row, whatever_happens
from tests.support.waiting import eventually
from tests.support.workers import Recorder

N = 10
AT = 3


class Blocking(WorkerInThread):
    """Its loop is blocked by the handler of job `AT`."""

    def make(self, queue: Queue) -> Worker:
        return whatever_happens(Worker(queue, self.handle, name="blocking"))

    async def handle(self, job: Job) -> None:
        await super().handle(job)
        if job.data == AT:
            self.hangs.set()
            assert self.go_on.wait(60)  # the loop is meant to hang, in a line of this handler

    @property
    def is_known(self) -> bool:
        return self.worker is not None and self.worker.health().blocked_for > 0


@pytest.fixture
def short(make_queue: MakeQueue) -> Queue:
    return make_queue(job_timeout=2)


@pytest.fixture
async def jobs(short: Queue) -> list[Job]:
    return await add_row(short, N)


@pytest.fixture
def blocking(short: Queue, jobs: list[Job], url: str) -> Iterator[Blocking]:
    found = Blocking(short.name, url, job_timeout=2)
    yield found
    found.end()


async def test_jobs_behind_the_blocking_one_go_back_and_those_before_it_are_reported(
    short: Queue, jobs: list[Job], blocking: Blocking
) -> None:
    async def one_is_held() -> bool:
        counts = await short.get_job_counts()
        return (counts.completed, counts.active, counts.waiting) == (AT, 1, N - AT - 1)

    await eventually(one_is_held, "the worker holds only the job that hangs", 10)
    blocking.go_on.set()
    assert await short.wait_for_empty(10)
    assert blocking.started == list(range(N))
    worker = blocking.worker
    assert worker is not None
    # The server's queue is empty before the worker's loop has read the replies and counted them.
    await eventually(lambda: worker.get_worker_metrics().completed == N, "the worker has counted them all")
    metrics = worker.get_worker_metrics()
    assert (metrics.lease_lost, metrics.loop_blocks) == (0, 1)


@pytest.mark.parametrize("how", ["remove", "fail", "cancel"])
async def test_an_operator_ends_it_and_its_group_goes_on_elsewhere(
    short: Queue, jobs: list[Job], blocking: Blocking, how: str
) -> None:
    await eventually(blocking.hangs.is_set, "it hangs")
    assert await getattr(jobs[AT], how)()
    recorder = Recorder()
    async with Worker(short, recorder):
        await eventually(lambda: len(recorder.ended) == N - AT - 1, "the others run elsewhere", 15)
    assert recorder.started == list(range(AT + 1, N))
    assert blocking.started == list(range(AT + 1))
    assert [await job.get_state() for job in jobs[:AT]] == ["completed"] * AT


@pytest.mark.parametrize("how", ["remove", "fail", "cancel", "update_data"])
async def test_an_operation_on_a_job_behind_the_blocking_one_holds_at_once(
    short: Queue, jobs: list[Job], blocking: Blocking, how: str
) -> None:
    await eventually(blocking.hangs.is_set, "it hangs")
    await getattr(jobs[AT + 2], how)(*["new"] if how == "update_data" else [])
    blocking.go_on.set()
    assert await short.wait_for_empty(10)
    left = [n for n in range(N) if how == "update_data" or n != AT + 2]
    assert blocking.started == [n if n != AT + 2 else "new" for n in left]


async def test_the_blocking_handler_is_named_with_its_job_and_line_and_shown(
    short: Queue, jobs: list[Job], blocking: Blocking, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "groupmq.worker")
    # On a busy machine the loop may have been blocked briefly before that as well.
    named = f"job {jobs[AT].id} of group 'g', in {__file__}:"
    await eventually(lambda: blocking.worker is not None, "the worker has been made")
    worker = blocking.worker
    assert worker is not None
    await eventually(lambda: named in (worker.health().blocked_in or ""), "the worker names the blocking handler", 10)
    assert "(handle)" in str(worker.health().blocked_in)
    metrics = worker.get_worker_metrics()
    assert metrics.loop_blocks >= 1
    assert metrics.loop_blocked > 0

    async def shown() -> bool:
        return any(worker.blocked > 0 for worker in await short.get_workers())

    await eventually(shown, "get_workers shows that the loop is blocked", 10)
    blocking.go_on.set()
    await eventually(lambda: not blocking.is_known, "the loop is no longer reported as blocked")
    assert await short.wait_for_empty(10)
    lines = [record.getMessage() for record in caplog.records if "event loop" in record.getMessage()]
    assert re.search(rf"blocked for 0\.\d s by job {jobs[AT].id}", "\n".join(lines))
    assert "the event loop has recovered after" in lines[-1]


async def test_a_loop_that_is_only_busy_is_not_blamed(queue: Queue) -> None:
    recorder = Recorder(seconds=0.9)
    async with Worker(queue, recorder, concurrency=5) as worker:
        await queue.add_many([{"data": i} for i in range(5)])
        assert await queue.wait_for_empty(10)
        assert worker.get_worker_metrics().loop_blocks == 0
