"""Runs of a worker, without a server: each ends once, and a request to stop reaches even one that has not begun."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any

import pytest

from groupmq.client.job import Job
from groupmq.core.backoff import Backoff
from groupmq.core.codec import JSON
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Record
from groupmq.worker.fetching.prefetch import Prefetch
from groupmq.worker.running.executor import Executor
from groupmq.worker.running.outcome import OutcomePolicy, RunReport
from groupmq.worker.running.runs import Run
from groupmq.worker.running.stopping import GRACE

POLICY = OutcomePolicy(QueueOptions(name="q"), Backoff.fixed(1))


class Harness:
    """Starts runs and records how they end: the listener of the executor, and the requester of every job."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.go_on = asyncio.Event()
        self.ends: asyncio.Queue[tuple[str, RunReport | None]] = asyncio.Queue()
        self.executor = Executor(self._handle, POLICY, self, Prefetch("auto"))

    async def _handle(self, job: Job) -> str:
        self.ran.append(job.id)
        await self.go_on.wait()
        return "done"

    def begun(self, run: Run) -> None:
        pass

    def handler_raised(self, error: BaseException, job: Job) -> None:
        pass

    def lease_lost(self, job: Job) -> None:
        self.ends.put_nowait((job.id, None))

    def report(self, report: RunReport) -> None:
        assert report.kind != "begun", f"job {report.job.id!r} was not prefetched"
        if report.kind != "ended":
            self.ends.put_nowait((report.job.id, report))

    def report_later(self, report: RunReport) -> None:
        raise AssertionError(f"job {report.job.id!r} was not of a row")

    def slot_freed(self) -> None:
        pass

    def row_ended(self) -> None:
        pass

    def start(self, job_id: str, fence: int, timeout: float | None = None, *, leases_end: float = math.inf) -> Job:
        options: dict[str, Any] = {} if timeout is None else {"t": int(timeout * 1000)}
        job = Job(None, JSON, job_id, "active", Record(0, 0, 0, 0, 3, False, "g", options, b"1"), 3)
        job.fence = fence
        self.executor.start([job], self, leases_end)
        return job

    async def next_end(self, within: float) -> tuple[str, str]:
        """Wait for the next end of a run. Returns the job id, and a description of the end."""
        async with asyncio.timeout(within):
            job_id, report = await self.ends.get()
        if report is None:
            return job_id, "nothing to say"
        return job_id, f"{report.kind} {report.error or ''}".strip()


async def test_a_run_that_is_to_stop_ends_as_cancelled_and_its_job_knows() -> None:
    harness = Harness()
    job = harness.start("a", 1)
    await asyncio.sleep(0)
    event, flags = job.cancel_event, [job.cancelled]
    harness.executor.cancel([1])
    assert await harness.next_end(GRACE / 2) == ("a", "failed job 'a' was cancelled")
    assert [*flags, job.cancelled, event.is_set()] == [False, True, True]
    assert harness.executor.runs == {}


async def test_a_word_to_stop_that_comes_before_the_handler_has_begun_is_obeyed_at_once() -> None:
    harness = Harness()
    harness.start("a", 1)
    harness.executor.cancel([1])
    assert await harness.next_end(GRACE / 2) == ("a", "failed job 'a' was cancelled")
    assert harness.ran == []


async def test_one_that_was_asked_for_before_it_came_goes_back() -> None:
    harness = Harness()
    harness.start("newer", 9)
    await asyncio.sleep(0)
    assert harness.executor.withdraw([5]) == []
    harness.start("another", 10)
    harness.start("older", 5)
    assert await harness.next_end(GRACE / 2) == ("older", "released")
    harness.go_on.set()
    assert {await harness.next_end(1), await harness.next_end(1)} == {("newer", "completed"), ("another", "completed")}
    assert harness.ran == ["newer", "another"]


async def test_a_word_to_stop_concerns_its_own_run_alone() -> None:
    harness = Harness()
    for fence, job_id in enumerate("abc"):
        harness.start(job_id, fence)
    await asyncio.sleep(0)
    harness.executor.cancel([1, 77])
    assert await harness.next_end(GRACE / 2) == ("b", "failed job 'b' was cancelled")
    harness.go_on.set()
    assert {await harness.next_end(1), await harness.next_end(1)} == {("a", "completed"), ("c", "completed")}


async def test_the_first_reason_stands() -> None:
    harness = Harness()
    harness.start("a", 1, timeout=0.01)
    assert await harness.next_end(GRACE) == (
        "a",
        "retrying the handler of job 'a' ran longer than its timeout of 0.01 s",
    )
    harness.executor.cancel([1])
    harness.start("b", 2)
    await asyncio.sleep(0)
    harness.executor.lease_lost(2)
    harness.executor.cancel([2])
    assert await harness.next_end(GRACE) == ("b", "nothing to say")
    assert harness.ends.empty()


@pytest.mark.parametrize("reason", ["timeout", "closing", "lease-lost", "cancelled"])
async def test_however_a_run_is_stopped_it_ends_once(reason: Any) -> None:
    harness = Harness()
    harness.start("a", 1)
    await asyncio.sleep(0)
    run = harness.executor.runs[1]
    harness.executor.stop(run, reason)
    harness.executor.stop(run, "cancelled")
    await harness.next_end(GRACE)
    harness.executor.abandon_all()
    assert harness.ends.empty()


async def test_only_what_has_begun_is_renewed_and_cannot_be_asked_for() -> None:
    harness = Harness()
    harness.start("a", 1)
    assert harness.executor.slots_used == 1
    assert (harness.executor.leases(), harness.executor.running({1})) == ([], [])
    await asyncio.sleep(0)
    assert (harness.executor.leases(), [job.id for job in harness.executor.running({1})]) == ([("a", 1)], ["a"])
    assert harness.executor.withdraw([1]) == []
    harness.go_on.set()
    assert await harness.next_end(1) == ("a", "completed")


@pytest.mark.parametrize("how", ["asked for", "blocked loop"])
async def test_one_that_has_a_slot_and_has_not_begun_can_be_taken_back(how: str) -> None:
    """The thread that takes the job back also reports it, so the executor must not."""
    harness = Harness()
    harness.start("a", 1)
    harness.start("b", 2)
    taken = harness.executor.withdraw([1]) if how == "asked for" else harness.executor.withdraw_all()
    assert sorted(job.id for job, _ in taken) == (["a"] if how == "asked for" else ["a", "b"])
    harness.go_on.set()
    if how == "asked for":
        assert await harness.next_end(1) == ("b", "completed")
    await asyncio.sleep(0)
    assert "a" not in harness.ran
    assert (harness.executor.slots_used, harness.ends.qsize()) == (0, 0)


async def test_one_whose_lease_is_over_does_not_start() -> None:
    """The process may have been frozen, or the answer may be late, so another worker may have the job by now."""
    harness = Harness()
    harness.start("late", 1, leases_end=time.monotonic())
    harness.start("in time", 2)
    assert await harness.next_end(1) == ("late", "released")
    harness.go_on.set()
    assert await harness.next_end(1) == ("in time", "completed")
    assert harness.ran == ["in time"]


@pytest.mark.parametrize(
    ("reason", "end"),
    [("closing", "released"), ("cancelled", "failed job 'a' was cancelled"), ("lease-lost", "nothing to say")],
)
async def test_one_that_is_stopped_before_it_has_begun_ends_without_its_handler(reason: Any, end: str) -> None:
    harness = Harness()
    harness.start("a", 1)
    harness.executor.stop(harness.executor.runs[1], reason)
    assert await harness.next_end(1) == ("a", end)
    assert (harness.ran, harness.executor.slots_used) == ([], 0)
