"""Acting on jobs that are still on their way to a worker with many slots: once an operation has returned, it holds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from groupmq import Job, JobNotFound, Queue, Worker, WrongState
from tests.support.handlers import sleep_and_mark
from tests.support.waiting import eventually

SLOTS, JOBS, AHEAD = 50, 400, 23


class Starts:
    """Records which jobs start, and which of them start after an operation on them has returned."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.ended_by_hand: set[int] = set()
        self.too_late: list[int] = []

    def note(self, number: int) -> None:
        self.started.append(number)
        if number in self.ended_by_hand:
            self.too_late.append(number)


async def add_each_to_its_group(queue: Queue) -> None:
    await queue.add_many([{"data": i, "group_id": f"g{i}", "job_id": f"job-{i}"} for i in range(JOBS)])


@pytest.mark.parametrize("prefetch", [0, "auto"])
@pytest.mark.parametrize("operation", ["remove", "fail", "cancel"])
async def test_no_job_starts_after_an_operation_on_it_has_returned(queue: Queue, operation: str, prefetch: Any) -> None:
    await add_each_to_its_group(queue)
    starts = Starts()

    async def handle(job: Job) -> None:
        starts.note(job.data)
        if job.data % 5:
            await asyncio.sleep(0.001)
            return
        target = job.data + AHEAD
        try:
            if await getattr(queue, operation)(f"job-{target}"):
                starts.ended_by_hand.add(target)
        except (JobNotFound, WrongState):
            pass  # the job does not exist, or has ended

    await Worker(queue, handle, concurrency=SLOTS, prefetch=prefetch).run(burst=True)
    assert len(starts.ended_by_hand) > JOBS / 50
    assert starts.too_late == []


@pytest.mark.parametrize("prefetch", [0, "auto"])
async def test_no_job_starts_after_pause_has_returned(queue: Queue, prefetch: Any) -> None:
    await add_each_to_its_group(queue)
    starts = Starts()
    paused_after: list[int] = []

    async def handle(job: Job) -> None:
        starts.note(job.data)
        if len(starts.started) == JOBS // 4:
            await queue.pause()
            paused_after.append(len(starts.started))
        await asyncio.sleep(0.001)

    async with Worker(queue, handle, concurrency=SLOTS, prefetch=prefetch) as worker:
        await eventually(
            lambda: bool(paused_after) and not worker.is_processing(), "the queue is paused and nothing runs"
        )
        assert len(starts.started) == paused_after[0]
        await queue.resume()
        assert await queue.wait_for_empty(20)
    assert sorted(starts.started) == list(range(JOBS))


async def test_a_child_process_that_is_still_being_started_has_not_begun_its_job(queue: Queue, tmp_path: Path) -> None:
    """Starting a process takes some tenths of a second, in which the job can be given back."""
    mark = tmp_path / "begun"
    job = await queue.add([str(mark), 0])
    async with Worker(queue, sleep_and_mark, executor="process") as worker:
        await eventually(worker.is_processing, "the job has a slot")
        await queue.pause()
        began = mark.exists()
        await eventually(lambda: not worker.is_processing(), "nothing runs")
        assert mark.exists() == began
        assert await job.get_state() == ("completed" if began else "waiting")
        await queue.resume()
        assert await queue.wait_for_empty(20)
    assert mark.exists()
