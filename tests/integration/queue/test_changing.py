"""Changing jobs: in each state each operation works, or raises WrongState or JobNotFound, and the group goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from groupmq import ConfigurationError, FailJob, Job, JobNotFound, PayloadTooLarge, Queue, Retention, Worker, WrongState
from tests.conftest import MakeQueue
from tests.support.waiting import eventually

STATES = ("waiting", "in its back-off", "delayed", "active", "completed", "failed", "gone")


async def drain(queue: Queue) -> list[Any]:
    """Run every job that can start. Returns their data in the order in which they ran."""
    seen: list[Any] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)

    await Worker(queue, handle).run(burst=True)
    return seen


class Stage:
    """A queue with the job `x` in some state, and the job `next` behind it in its group."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.stop = asyncio.Event()
        self.worker: Worker | None = None

    async def bring(self, state: str) -> None:
        queue = self.queue
        if state != "gone":
            await queue.add("x", group_id="g", job_id="x", delay=60 if state == "delayed" else None)
        if state in ("active", "completed", "failed", "in its back-off"):
            self.worker = Worker(queue, self.handle(state), backoff=60)
            await self.worker.start()
            if state == "active":
                await eventually(lambda: self.worker and self.worker.is_processing(), "x runs")
            else:
                wanted = "waiting" if state == "in its back-off" else state

                async def arrived() -> bool:
                    job = await queue.require_job("x")
                    return job.state == wanted and job.attempts_made == 1

                await eventually(arrived, f"x is {state}")
                await self.worker.close()
        await queue.add("next", group_id="g", job_id="next")

    def handle(self, state: str) -> Callable[[Job], Awaitable[None]]:
        async def handler(_job: Job) -> None:
            if state == "active":
                await self.stop.wait()
            elif state == "failed":
                raise FailJob("on purpose")
            elif state == "in its back-off":
                raise ValueError("boom")

        return handler

    async def end(self) -> None:
        self.stop.set()
        if self.worker is not None:
            await self.worker.close()


OPERATIONS: dict[str, tuple[Callable[[Queue], Awaitable[Any]], tuple[str, ...], tuple[str, ...]]] = {
    # name: (call, states it works in, states named by WrongState)
    "remove": (lambda q: q.remove("x"), STATES[:-1], ()),
    "retry": (lambda q: q.retry("x"), ("failed",), ("failed",)),
    "promote": (lambda q: q.promote("x"), ("delayed", "in its back-off"), ("delayed",)),
    "change_delay": (
        lambda q: q.change_delay("x", 0),
        ("delayed", "waiting", "in its back-off"),
        ("delayed", "waiting"),
    ),
    "fail": (
        lambda q: q.fail("x", "why"),
        ("waiting", "in its back-off", "delayed", "active"),
        ("waiting", "delayed", "active"),
    ),
    "update_data": (lambda q: q.update_data("x", "new"), STATES[:-1], ()),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_change_works_or_says_why_not_and_the_group_goes_on(
    make_queue: MakeQueue, operation: str, state: str
) -> None:
    queue = make_queue()
    stage = Stage(queue)
    await stage.bring(state)
    call, works_in, named = OPERATIONS[operation]
    if state in works_in:
        assert await call(queue) in (True, None)
    elif operation == "remove":
        assert await call(queue) is False
    elif state == "gone":
        with pytest.raises(JobNotFound):
            await call(queue)
    else:
        with pytest.raises(WrongState) as caught:
            await call(queue)
        actual = "waiting" if state == "in its back-off" else state
        assert (caught.value.job_id, caught.value.actual, caught.value.expected) == ("x", actual, named)
    await stage.end()
    if await queue.get_job("x") and (await queue.get_group("g")).state == "parked":
        await queue.promote("x")
    assert "next" in [*await drain(queue), *(job.data for job in await queue.get_completed_jobs())]
    assert (await queue.get_group("g")).state == "idle"


async def test_changes_are_methods_of_a_job_too(queue: Queue) -> None:
    job = await queue.add("x", delay=60)
    assert await job.change_delay(90) is True
    assert await job.promote() is True
    await job.update_data("y")
    assert job.data == "y"
    await job.update("z")
    assert (await queue.require_job(job.id)).data == "z"
    assert await job.fail("why") is True
    assert await job.get_state() == "failed"
    assert await job.retry() is True
    assert await drain(queue) == ["z"]
    assert await job.remove() is True
    assert await job.remove() is False
    with pytest.raises(JobNotFound):
        await job.retry()


async def test_a_failed_job_says_who_said_so(queue: Queue) -> None:
    job = await queue.add("x")
    await queue.fail(job.id)
    assert (await queue.require_job(job.id)).failed_reason == "failed by operator"


async def test_a_retried_job_has_all_its_attempts_again(queue: Queue) -> None:
    runs: list[int] = []

    async def handle(job: Job) -> None:
        runs.append(job.attempt)
        raise ValueError("boom")

    job = await queue.add("x", max_attempts=2, backoff=0)
    await Worker(queue, handle).run(burst=True)
    assert (await queue.require_job(job.id)).attempts_made == 2
    await queue.retry(job.id)
    assert (await queue.require_job(job.id)).attempts_made == 0
    await Worker(queue, handle).run(burst=True)
    assert runs == [1, 2, 1, 2]


async def test_new_data_must_be_storable_like_old(make_queue: MakeQueue) -> None:
    queue = make_queue(max_payload=100)
    job = await queue.add("x")
    with pytest.raises(ConfigurationError, match=r"^data: cannot be serialized"):
        await queue.update_data(job.id, object())
    with pytest.raises(PayloadTooLarge, match=r"^data: "):
        await job.update_data("x" * 100)
    assert (await queue.require_job(job.id)).data == job.data == "x"


async def test_a_paused_queue_starts_nothing_until_it_is_resumed(queue: Queue) -> None:
    await queue.pause()
    await queue.add(1)
    assert await queue.is_paused()
    assert await drain(queue) == []
    await queue.resume()
    assert not await queue.is_paused()
    assert await drain(queue) == [1]


async def test_a_paused_group_starts_nothing_until_it_is_resumed(queue: Queue) -> None:
    assert await queue.pause_group("a") is True
    assert await queue.pause_group("a") is False
    await queue.add("a", group_id="a")
    await queue.add("b", group_id="b")
    assert await drain(queue) == ["b"]
    assert await queue.resume_group("a") is True
    assert await queue.resume_group("a") is False
    assert await drain(queue) == ["a"]


async def test_a_group_may_run_more_at_once_than_the_others(queue: Queue) -> None:
    together = asyncio.Barrier(3)

    async def handle(_job: Job) -> None:
        await together.wait()

    await queue.set_group_concurrency("g", 3)
    assert (await queue.get_group("g")).concurrency == 3
    await queue.add_many({"data": i, "group_id": "g"} for i in range(6))
    await Worker(queue, handle, concurrency=5).run(burst=True)
    assert (await queue.get_job_counts()).completed == 6
    await queue.set_group_concurrency("g", None)
    assert (await queue.get_group("g")).concurrency == 1


@pytest.mark.parametrize("state", ["waiting", "delayed", "completed", "failed"])
async def test_cleaning_removes_jobs_of_one_state(queue: Queue, state: str) -> None:
    await queue.add("later", delay=60)
    await queue.add("done")
    await drain(queue)
    broken = await queue.add("broken")
    await queue.fail(broken.id)
    await queue.add("waits", group_id="g")
    assert await queue.clean(state, grace=3600) == 0
    assert await queue.clean(state, limit=0) == 0
    assert await queue.clean(state) == 1
    counts = await queue.get_job_counts()
    left = {name: getattr(counts, name) for name in ("waiting", "delayed", "completed", "failed")}
    assert left == {name: 0 if name == state else 1 for name in left}


async def test_cleaning_takes_no_more_than_its_limit(queue: Queue) -> None:
    await queue.add_many({"data": i, "group_id": f"g{i % 3}"} for i in range(2500))
    assert await queue.clean("waiting", limit=1100) == 1100
    assert (await queue.get_job_counts()).waiting == 1400
    assert len(await drain(queue)) == 1400


async def test_purging_removes_what_waits_and_nothing_else(queue: Queue) -> None:
    await queue.add("done")
    await drain(queue)
    await queue.add_many({"data": i, "group_id": f"g{i % 50}"} for i in range(1500))
    await queue.add_many({"data": i, "delay": 60} for i in range(5))
    assert await queue.purge() == 1505
    counts = await queue.get_job_counts()
    assert (counts.total, counts.completed, counts.unique_groups) == (0, 1, 0)
    assert await queue.purge(["completed"]) == 1
    assert await queue.purge() == 0


async def test_retention_is_a_number_an_age_or_both(make_queue: MakeQueue) -> None:
    queue = make_queue(keep_completed=2, keep_failed=Retention(age=3600))
    await queue.add_many({"data": i, "group_id": "g"} for i in range(5))
    assert await drain(queue) == [0, 1, 2, 3, 4]
    assert [job.data for job in await queue.get_completed_jobs()] == [4, 3]
    for i in range(150):
        await queue.fail((await queue.add(i)).id)
    assert (await queue.get_job_counts()).failed == 150


async def test_the_duties_of_a_scheduler_can_be_done_by_hand(make_queue: MakeQueue) -> None:
    queue = make_queue(job_timeout=0.05)
    assert await queue.run_scheduler_once() == 0
    soon = await queue.add("soon", group_id="g", delay=0.05)

    async def promoted() -> bool:
        return await queue.promote_delayed_jobs() == 1

    await eventually(promoted, "the delayed job is due")
    assert await soon.get_state() == "waiting"
    assert await queue.recover_delayed_groups() == 0
    assert await queue.check_stalled_jobs() == []
    assert await drain(queue) == ["soon"]
