"""Runs of a worker, without a server: each ends once, and a word to stop reaches even one that has not begun."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupmq.backoff import Backoff
from groupmq.codec import JSON
from groupmq.job import Job
from groupmq.options import QueueOptions
from groupmq.record import Record
from groupmq.worker.executor import GRACE, Executor
from groupmq.worker.outcome import Judge, Report
from groupmq.worker.pace import Pace

JUDGE = Judge(QueueOptions(name="q"), Backoff.fixed(1))


class Desk:
    """Starts runs and notes how they end."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.go_on = asyncio.Event()
        self.ends: asyncio.Queue[tuple[str, Report | None]] = asyncio.Queue()
        self.executor = Executor(self._handle, JUDGE, self, Pace("auto"))

    async def _handle(self, job: Job) -> str:
        self.ran.append(job.id)
        await self.go_on.wait()
        return "done"

    def run_starts(self, job: Job) -> None:
        pass

    def run_ended(self, job: Job, report: Report | None, lane: Any) -> None:
        self.ends.put_nowait((job.id, report))

    def run_completed(self, report: Report, lane: Any) -> None:
        raise AssertionError(f"job {report.job.id!r} was not of a row")

    def row_ended(self, lane: Any) -> None:
        pass

    def run_goes_on(self, report: Report, lane: Any) -> None:
        raise AssertionError(f"job {report.job.id!r} was not taken ahead")

    def start(self, job_id: str, token: int, timeout: float | None = None) -> Job:
        options: dict[str, Any] = {} if timeout is None else {"t": int(timeout * 1000)}
        job = Job(None, JSON, job_id, "active", Record(0, 0, 0, 0, 3, False, "g", options, b"1"), 3)
        job.fence = token
        self.executor.start([job])
        return job

    async def next_end(self, within: float) -> tuple[str, str]:
        """Job, and how it ended, in words."""
        async with asyncio.timeout(within):
            job_id, report = await self.ends.get()
        if report is None:
            return job_id, "nothing to say"
        return job_id, f"{report.event} {report.error or ''}".strip()


async def test_a_run_that_is_to_stop_ends_as_cancelled_and_its_job_knows() -> None:
    desk = Desk()
    job = desk.start("a", 1)
    await asyncio.sleep(0)
    event, flags = job.cancel_event, [job.cancelled]
    desk.executor.cancel([1])
    assert await desk.next_end(GRACE / 2) == ("a", "failed job 'a' was cancelled")
    assert [*flags, job.cancelled, event.is_set()] == [False, True, True]
    assert desk.executor.runs == {}


async def test_a_word_to_stop_that_comes_before_the_handler_has_begun_is_obeyed_at_once() -> None:
    desk = Desk()
    desk.start("a", 1)
    desk.executor.cancel([1])
    assert await desk.next_end(GRACE / 2) == ("a", "failed job 'a' was cancelled")
    assert desk.ran == []


async def test_a_word_to_stop_that_is_ahead_of_its_job_waits_for_it() -> None:
    desk = Desk()
    desk.start("newer", 9)
    await asyncio.sleep(0)
    desk.executor.cancel([5])
    desk.start("another", 10)
    desk.start("older", 5)
    assert await desk.next_end(GRACE / 2) == ("older", "failed job 'older' was cancelled")
    desk.go_on.set()
    assert {await desk.next_end(1), await desk.next_end(1)} == {("newer", "completed"), ("another", "completed")}
    assert desk.ran == ["newer", "another"]


async def test_a_word_to_stop_concerns_its_own_run_alone() -> None:
    desk = Desk()
    for token, job_id in enumerate("abc"):
        desk.start(job_id, token)
    await asyncio.sleep(0)
    desk.executor.cancel([1, 77])
    assert await desk.next_end(GRACE / 2) == ("b", "failed job 'b' was cancelled")
    desk.go_on.set()
    assert {await desk.next_end(1), await desk.next_end(1)} == {("a", "completed"), ("c", "completed")}


async def test_the_first_verdict_stands() -> None:
    desk = Desk()
    desk.start("a", 1, timeout=0.01)
    assert await desk.next_end(GRACE) == ("a", "retrying the handler of job 'a' ran longer than its timeout of 0.01 s")
    desk.executor.cancel([1])
    desk.start("b", 2)
    await asyncio.sleep(0)
    desk.executor.lease_lost(2)
    desk.executor.cancel([2])
    assert await desk.next_end(GRACE) == ("b", "nothing to say")
    assert desk.ends.empty()


@pytest.mark.parametrize("verdict", ["timeout", "closing", "lease-lost", "cancelled"])
async def test_however_a_run_is_stopped_it_ends_once(verdict: Any) -> None:
    desk = Desk()
    desk.start("a", 1)
    await asyncio.sleep(0)
    run = desk.executor.runs[1]
    desk.executor.stop(run, verdict)
    desk.executor.stop(run, "cancelled")
    await desk.next_end(GRACE)
    desk.executor.abandon_all()
    assert desk.ends.empty()
