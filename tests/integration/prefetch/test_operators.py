"""Acting on jobs that a worker has prefetched and not started: once an operation has returned, it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from groupmq import Job, JobNotFound, Queue, RateLimit, Worker, WrongState
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.rows import add_row, attempts_made, whatever_happens
from tests.support.waiting import eventually
from tests.support.workers import Listener

N = 15


class Acts:
    """A handler that acts on other jobs while it runs one of them, and records which jobs start."""

    def __init__(self, at: int, act: Callable[[], Awaitable[Any]]) -> None:
        self.at = at
        self.act = act
        self.started: list[int] = []
        self.data: dict[str, Any] = {}
        self.acted_after: int | None = None
        self.answer: Any = None

    async def __call__(self, job: Job) -> None:
        self.started.append(len(self.data))
        self.data[job.id] = job.data
        if len(self.data) - 1 == self.at:
            self.answer = await self.act()
            self.acted_after = len(self.data)


ENDS = {"remove": None, "fail": "failed", "cancel": None}


@pytest.mark.parametrize("operation", ENDS)
async def test_a_handler_ends_the_job_behind_its_own_and_that_never_runs(queue: Queue, operation: str) -> None:
    jobs = await add_row(queue, N)
    handle = Acts(3, lambda: getattr(jobs[4], operation)())
    async with whatever_happens(Worker(queue, handle)) as worker:
        assert await queue.wait_for_empty(10)
        assert worker.get_worker_metrics().lease_lost == 0
    assert handle.answer is True
    assert list(handle.data) == [job.id for job in jobs if job is not jobs[4]]
    found = await queue.get_job(jobs[4].id)
    assert (found and found.state) == ENDS[operation]
    assert found is None or found.attempts_made == 0
    del jobs[4]
    assert await attempts_made(jobs) == [1] * (N - 1)


@pytest.mark.parametrize("operation", ENDS)
async def test_a_handler_ends_all_that_is_behind_its_own(queue: Queue, operation: str) -> None:
    jobs = await add_row(queue, N)

    async def end_the_rest() -> list[bool]:
        return [await getattr(job, operation)() for job in jobs[2:]]

    handle = Acts(1, end_the_rest)
    async with whatever_happens(Worker(queue, handle)):
        assert await queue.wait_for_empty(10)
    assert handle.answer == [True] * (N - 2)
    assert list(handle.data) == [jobs[0].id, jobs[1].id]


async def test_the_data_that_a_handler_gives_the_next_job_is_what_that_gets(queue: Queue) -> None:
    jobs = await add_row(queue, N)
    handle = Acts(3, lambda: jobs[4].update_data("new"))
    async with whatever_happens(Worker(queue, handle)):
        assert await queue.wait_for_empty(10)
    assert list(handle.data) == [job.id for job in jobs]
    assert handle.data[jobs[4].id] == "new"


async def test_a_job_behind_can_be_delayed_and_those_behind_it_go_first(queue: Queue) -> None:
    jobs = await add_row(queue, N)
    handle = Acts(3, lambda: jobs[4].change_delay(0.3))
    async with whatever_happens(Worker(queue, handle)):
        assert await queue.wait_for_empty(10)
    assert handle.answer is True
    assert list(handle.data) == [job.id for job in [*jobs[:4], *jobs[5:], jobs[4]]]


async def test_a_job_behind_that_is_not_delayed_cannot_be_promoted(queue: Queue) -> None:
    jobs = await add_row(queue, N)

    async def promote() -> str:
        with pytest.raises(WrongState) as caught:
            await jobs[4].promote()
        return caught.value.actual

    handle = Acts(3, promote)
    async with whatever_happens(Worker(queue, handle)):
        assert await queue.wait_for_empty(10)
    assert handle.answer == "waiting"
    assert list(handle.data) == [job.id for job in jobs]


PAUSES: dict[str, tuple[Callable[[Queue], Awaitable[Any]], Callable[[Queue], Awaitable[Any]]]] = {
    "queue": (lambda queue: queue.pause(), lambda queue: queue.resume()),
    "group": (lambda queue: queue.pause_group("g"), lambda queue: queue.resume_group("g")),
}


@pytest.mark.parametrize("what", PAUSES)
async def test_after_a_pause_has_returned_nothing_starts(queue: Queue, what: str) -> None:
    pause, resume = PAUSES[what]
    handle = Acts(10, lambda: pause(queue))
    await add_row(queue, 300)
    async with whatever_happens(Worker(queue, handle)):
        await eventually(lambda: handle.acted_after is not None, "the pause has returned")
        await eventually(lambda: _nothing_active(queue), "the running jobs have ended")
        assert len(handle.data) == handle.acted_after == 11
        assert (await queue.get_group("g")).waiting == 300 - 11
        await resume(queue)
        assert await queue.wait_for_empty(10)
    assert list(handle.data.values()) == list(range(300))


async def _nothing_active(queue: Queue) -> bool:
    return await queue.get_active_count() == 0


@pytest.mark.parametrize("what", PAUSES)
async def test_operations_of_another_process_hold_while_many_groups_are_worked_on(
    queue: Queue, what: str, url: str
) -> None:
    """A blocking client in a thread stands for another process, since it knows nothing of the worker."""
    started: list[str] = []

    async def handle(job: Job) -> None:
        started.append(f"{job.group_id}")

    def pause() -> int:
        with SyncQueue(queue.name, url) as other:
            other.pause() if what == "queue" else other.pause_group("g1")
            return sum(what == "queue" or group == "g1" for group in started)

    await queue.add_many([{"data": i, "group_id": f"g{i % 4}"} for i in range(8000)])
    async with whatever_happens(Worker(queue, handle, concurrency=4)):
        await eventually(lambda: len(started) > 100, "the worker runs jobs")
        at_pause = await asyncio.to_thread(pause)
        if what == "group":
            await eventually(lambda: _only_the_paused_group_is_left(queue), "the others are done")
        else:
            await eventually(lambda: _nothing_active(queue), "the running jobs have ended")
        # The jobs that ran when the pause returned may or may not have been counted; no other job starts.
        assert sum(what == "queue" or group == "g1" for group in started) <= at_pause + 4
        await (queue.resume() if what == "queue" else queue.resume_group("g1"))
        assert await queue.wait_for_empty(20)
    assert len(started) == 8000


@pytest.mark.parametrize(("which", "client"), [(11, "async"), (250, "async"), (250, "blocking")])
async def test_after_a_job_that_waits_was_failed_under_hold_nothing_of_its_group_starts(
    make_queue: MakeQueue, url: str, which: int, client: str
) -> None:
    """No prefetched job starts, whether it is behind or in front of the failed job."""
    queue = make_queue("held", on_failed="hold")
    jobs = await add_row(queue, 300)

    def fail_elsewhere() -> None:
        with SyncQueue(queue.name, url, on_failed="hold") as other:
            other.fail(jobs[which].id, "declined")

    async def fail() -> None:
        await (asyncio.to_thread(fail_elsewhere) if client == "blocking" else jobs[which].fail("declined"))

    handle = Acts(10, fail)
    async with whatever_happens(Worker(queue, handle)):
        await eventually(lambda: handle.acted_after is not None, "the call has returned")
        await eventually(lambda: _nothing_active(queue), "the running jobs have ended")
        assert len(handle.data) == handle.acted_after == 11
        group = await queue.get_group("g")
        assert (group.state, group.blocked_by, group.waiting) == ("blocked", jobs[which].id, 300 - 12)
        await queue.skip(jobs[which].id)
        assert await queue.wait_for_empty(10)
    assert list(handle.data.values()) == [n for n in range(300) if n != which]


async def test_a_running_job_that_was_failed_under_hold_is_the_last_of_its_group_that_starts(
    make_queue: MakeQueue, url: str
) -> None:
    queue = make_queue("held", on_failed="hold")
    jobs = await add_row(queue, 50)
    running, started = asyncio.Event(), list[int]()

    async def handle(job: Job) -> None:
        started.append(job.data)
        if job.data == 3:
            running.set()
            await asyncio.Event().wait()

    def fail() -> bool:
        with SyncQueue(queue.name, url, on_failed="hold") as other:
            return other.fail(jobs[3].id, "declined")

    async with whatever_happens(Worker(queue, handle)):
        await running.wait()
        assert await asyncio.to_thread(fail)
        await eventually(lambda: _nothing_active(queue), "the handler was stopped")
        assert (await queue.get_group("g")).waiting == 50 - 4
        assert started == [0, 1, 2, 3]
        await queue.remove(jobs[3].id)
        assert await queue.wait_for_empty(10)
    assert started == list(range(50))


async def _only_the_paused_group_is_left(queue: Queue) -> bool:
    return await queue.get_unique_groups() == ["g1"]


async def test_a_rate_holds_for_what_was_prefetched(queue: Queue) -> None:
    handle = Acts(10, lambda: queue.set_group_rate_limit("g", RateLimit(1, 3600)))
    await add_row(queue, 100)
    async with whatever_happens(Worker(queue, handle)):
        await eventually(lambda: handle.acted_after is not None, "the rate is set")
        await eventually(lambda: _nothing_active(queue), "the running jobs have ended")
        assert len(handle.data) <= 12, "more than one job starts per hour"
        await queue.cancel_group("g")


async def test_a_handler_cancels_its_whole_group_and_nothing_more_of_it_starts(queue: Queue) -> None:
    jobs = await add_row(queue, 100)
    handle = Acts(1, lambda: queue.cancel_group("g"))
    async with whatever_happens(Worker(queue, handle)):
        assert await queue.wait_for_empty(10)
    assert list(handle.data) == [jobs[0].id, jobs[1].id]
    assert await jobs[1].get_state() in ("failed", "completed"), "its own handler may end before it is stopped"
    with pytest.raises(JobNotFound):
        await jobs[2].get_state()


async def test_purging_what_waits_takes_what_was_prefetched(queue: Queue) -> None:
    await add_row(queue, 100)
    handle = Acts(1, lambda: queue.purge())
    async with whatever_happens(Worker(queue, handle)):
        assert await queue.wait_for_empty(10)
    assert (len(handle.data), handle.answer) == (2, 98)


@pytest.mark.parametrize("data", [0, 1])
async def test_purging_what_is_active_takes_what_runs_and_nothing_else(queue: Queue, data: int) -> None:
    """A job that has ended but whose outcome has not been reported counts as running."""
    jobs = await add_row(queue, 20)
    running, let_go = asyncio.Event(), asyncio.Event()
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == data:
            running.set()
            await let_go.wait()

    async with whatever_happens(Worker(queue, handle)):
        await running.wait()
        assert 1 <= await queue.purge(("active",)) <= data + 1
        assert await queue.get_job(jobs[data].id) is None
        assert await queue.wait_for_empty(10)
    assert seen == list(range(20))


@pytest.mark.parametrize("data", [0, 1])
async def test_a_job_behind_a_run_that_is_cancelled_comes_after_it(queue: Queue, data: int) -> None:
    seen: list[int] = []
    cancelling = asyncio.Event()

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == data:
            cancelling.set()
            await asyncio.Event().wait()

    jobs = await add_row(queue, 5, max_attempts=3)
    async with whatever_happens(Worker(queue, handle)):
        await cancelling.wait()
        assert await jobs[data].cancel()
        assert await queue.wait_for_empty(10)
    assert seen == [0, 1, 2, 3, 4]
    assert await attempts_made(jobs) == [1] * 5
    assert [job.state for job in jobs] == ["failed" if i == data else "completed" for i in range(5)]


async def test_a_job_that_a_handler_fails_while_it_runs_itself_has_used_an_attempt(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        if job.data == 3:
            await job.fail("no use")

    jobs = await add_row(queue, 6)
    worker = whatever_happens(Worker(queue, handle))
    heard = Listener(worker, "lease-lost")
    async with worker:
        assert await queue.wait_for_empty(10)
        await eventually(lambda: heard.names() == ["lease-lost"], "the worker learns that the job was ended")
    assert await attempts_made(jobs) == [1] * 6
    assert (jobs[3].state, jobs[3].failed_reason) == ("failed", "no use")
