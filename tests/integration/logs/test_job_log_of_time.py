"""The lines about jobs that time has ended: their lease or their ttl ran out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import pytest

from groupmq import ExpiredJob, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.log_lines import lines
from tests.support.parts import parts_of
from tests.support.waiting import eventually
from tests.support.workers import Recorder


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "groupmq")


async def test_stalls_and_lost_leases_are_logged_with_queue_and_group(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    queue = make_queue(job_timeout=0.3)
    gate = asyncio.Event()

    async def hang(job: Job) -> None:
        await gate.wait()

    job = await queue.add(1, group_id="g", max_attempts=1)
    async with Worker(queue, hang, maintenance=False, name="dead") as dead:
        await eventually(dead.is_processing, "the job runs")
        parts_of(dead).heartbeat.stop()
        async with Worker(queue, Recorder(), stalled_interval=0.1) as other:
            await eventually(lambda: other.get_worker_metrics().stalled_seen, "it is taken back")
        gate.set()
        await eventually(lambda: dead.get_worker_metrics().lease_lost, "the old holder learns that it lost the lease")
    assert [(level, text) for level, _, text in lines(caplog, job) if level != "DEBUG"] == [
        (
            "ERROR",
            "group 'g') stalled because its lease expired: it has failed for good. It is kept until it is retried or "
            "removed, and its group goes on",
        ),
        (
            "WARNING",
            "group 'g') is no longer leased to worker dead: this run is not recorded, and the job runs "
            "again unless it has ended",
        ),
    ]


@pytest.mark.parametrize("noticed_by", ["a worker that asks for jobs", "recovery of a worker", "a duty run by hand"])
async def test_an_expired_job_is_logged_as_an_error_by_the_process_that_notices(
    queue: Queue, caplog: pytest.LogCaptureFixture, noticed_by: str
) -> None:
    await queue.pause()
    grouped = await queue.add(1, group_id="g", ttl=0.001)
    alone = await queue.add(2, ttl=0.001, on_failed="hold")
    if noticed_by == "a duty run by hand":
        logger = "groupmq.queue"
        found: list[ExpiredJob] = []
        await eventually(lambda: recovered(queue, found, 2), "both expire")
    else:
        logger = "groupmq.worker"
        recovers = noticed_by.startswith("recovery")
        async with Worker(queue, Recorder(), maintenance=recovers, stalled_interval=0.01 if recovers else 30):
            await eventually(lambda: lines(caplog, alone)[1:], "both expire")
    assert [line for line in lines(caplog, grouped) if line[0] != "DEBUG"] == [
        (
            "ERROR",
            logger,
            "group 'g') has failed for good, because it had not started when its ttl ended. It is kept until it is "
            "retried or removed, and its group goes on",
        )
    ]
    assert [line for line in lines(caplog, alone) if line[0] != "DEBUG"] == [
        (
            "ERROR",
            logger,
            "no group) has failed for good, because it had not started when its ttl ended. It is kept until it is "
            "retried or removed",
        )
    ]


async def recovered(queue: Queue, found: list[ExpiredJob], expected: int) -> bool:
    """Run recovery once more. Whether its runs have failed that many jobs in total."""
    found += (await queue.run_duty_once("recovery")).expired
    return len(found) == expected


@pytest.mark.parametrize("job_on_failed", ["hold", "continue"])
async def test_a_job_that_expires_says_whether_it_blocks_its_group(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture, job_on_failed: Any
) -> None:
    queue = make_queue(keep_failed=0, on_failed="hold")
    await queue.pause()
    job = await queue.add(1, group_id="g", ttl=0.001, on_failed=job_on_failed)
    await eventually(lambda: recovered(queue, [], 1), "it expires")
    [text] = [text for level, _, text in lines(caplog, job) if level == "ERROR"]
    if job_on_failed == "hold":
        assert text.endswith("It is kept, and blocks its group until it is retried, skipped or removed")
    else:
        assert text.endswith("It is not kept, and its group goes on")


async def test_a_cancelled_job_whose_lease_expires_is_no_error(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    queue = make_queue(job_timeout=0.2)
    gate = asyncio.Event()

    async def hang(job: Job) -> None:
        while not gate.is_set():  # a handler that cannot be cancelled
            with contextlib.suppress(asyncio.CancelledError):
                await gate.wait()

    job = await queue.add(1, group_id="g")
    async with Worker(queue, hang, maintenance=False) as dead:
        await eventually(dead.is_processing, "the job runs")
        parts_of(dead).heartbeat.stop()
        await queue.cancel(job.id)
        await eventually(lambda: stalls(queue), "its lease expires")
        gate.set()
    assert ("INFO", "groupmq.queue") in [line[:2] for line in lines(caplog, job)]
    [text] = [text for level, name, text in lines(caplog, job) if (level, name) == ("INFO", "groupmq.queue")]
    assert text == (
        "group 'g') stalled because its lease expired: it was cancelled and does not run again, and its group goes on"
    )
    assert "ERROR" not in [level for level, *_ in lines(caplog, job)]


async def stalls(queue: Queue) -> bool:
    return bool(await queue.check_stalled_jobs())
