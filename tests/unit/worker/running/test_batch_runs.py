"""Batches of a worker, without a server: stopping one job stops the handler, and each job has its own outcome."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

import pytest

from groupmq.client.job import Job
from groupmq.core.backoff import Backoff
from groupmq.core.codec import JSON
from groupmq.core.errors import RateLimited, Snooze
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Record
from groupmq.worker.running.batches import BatchExecutor
from groupmq.worker.running.outcome import OutcomePolicy, RunReport
from groupmq.worker.running.runs import Run
from groupmq.worker.running.stopping import GRACE

POLICY = OutcomePolicy(QueueOptions(name="q"), Backoff.fixed(1))


class Harness:
    """Starts batches: the listener of the executor, and the requester of every job."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.go_on = asyncio.Event()
        self.ran: list[list[str]] = []
        self.raised: list[str] = []
        self.said: list[str] = []
        self.over = asyncio.Event()
        self.executor = BatchExecutor(self._handle, POLICY, self)

    async def _handle(self, jobs: list[Job]) -> None:
        self.ran.append([job.id for job in jobs])
        if self.error is not None:
            raise self.error
        await self.go_on.wait()

    def begun(self, run: Run) -> None:
        pass

    def handler_raised(self, error: BaseException, job: Job) -> None:
        self.raised.append(job.id)

    def lease_lost(self, job: Job) -> None:
        self.said.append(f"{job.id} lost")

    def report(self, report: RunReport) -> None:
        self.said.append(f"{report.job.id} {report.kind}")

    def report_later(self, report: RunReport) -> None:
        raise AssertionError("nothing follows a batch")

    def slot_freed(self) -> None:
        pass

    def row_ended(self) -> None:
        self.over.set()

    def start(self, ids: str = "abc", timeout: float | None = None) -> None:
        options = {} if timeout is None else {"t": int(timeout * 1000)}
        jobs = []
        for fence, job_id in enumerate(ids, 1):
            job = Job(None, JSON, job_id, "active", Record(0, 0, 0, 0, 3, False, "g", options, b"1"), 3)
            job.fence = fence
            jobs.append(job)
        self.executor.start(jobs, self, math.inf, together=True)

    async def ends(self) -> list[str]:
        async with asyncio.timeout(10):
            await self.over.wait()
        assert self.executor.slots_used == 0
        return self.said


async def test_all_jobs_of_a_batch_have_one_slot_and_are_renewed_once_it_has_begun() -> None:
    harness = Harness()
    harness.start()
    assert (harness.executor.slots_used, harness.executor.leases()) == (1, [])
    await asyncio.sleep(0)
    assert harness.executor.leases() == [("a", 1), ("b", 2), ("c", 3)]
    assert [job.id for job in harness.executor.running({2, 9})] == ["b"]
    assert harness.executor.withdraw([2]) == []
    harness.go_on.set()
    assert await harness.ends() == ["a completed", "b completed", "c completed"]


@pytest.mark.parametrize("how", ["asked for", "blocked loop"])
async def test_a_batch_that_has_not_begun_is_taken_back_whole(how: str) -> None:
    harness = Harness()
    harness.start()
    taken = harness.executor.withdraw([2, 3]) if how == "asked for" else harness.executor.withdraw_all()
    assert [job.id for job, _ in taken] == ["a", "b", "c"]
    assert await harness.ends() == []
    assert harness.ran == []


async def test_a_batch_with_a_job_that_was_asked_for_before_it_came_goes_back() -> None:
    harness = Harness()
    harness.executor.withdraw([3])
    harness.start()
    assert await harness.ends() == ["a released", "b released", "c released"]
    assert harness.ran == []


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        (lambda executor: executor.cancel([2]), ["a released", "b failed", "c released"]),
        (lambda executor: executor.cancel([], [2]), ["a released", "b lost", "c released", "b ended"]),
        (lambda executor: executor.lease_lost(2), ["a released", "b lost", "c released", "b ended"]),
        (lambda executor: executor.stop_all(lambda _: None), ["a released", "b released", "c released"]),
    ],
)
@pytest.mark.parametrize("begun", [True, False])
async def test_stopping_one_job_stops_the_handler(
    stop: Callable[[BatchExecutor], None], said: list[str], begun: bool
) -> None:
    harness = Harness()
    harness.start()
    if begun:
        await asyncio.sleep(0)
    stop(harness.executor)
    assert await harness.ends() == said
    assert len(harness.ran) == begun


async def test_a_batch_ends_at_the_smallest_timeout_of_its_jobs() -> None:
    harness = Harness()
    harness.start(timeout=0.01)
    assert await harness.ends() == ["a retrying", "b released", "c released"]


async def test_no_lease_of_a_batch_that_is_to_stop_is_renewed_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    harness.start()
    await asyncio.sleep(0)
    harness.executor.request_stop([2])
    assert harness.executor.given_up() == set()
    later = time.monotonic() + GRACE
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert harness.executor.given_up() == {1, 2, 3}
    monkeypatch.undo()
    harness.go_on.set()
    await harness.ends()


@pytest.mark.parametrize(
    ("error", "raised"), [(ValueError("boom"), ["a"]), (RateLimited(retry_after=1), []), (Snooze(1), [])]
)
async def test_only_the_error_of_a_failed_attempt_is_announced(error: Exception, raised: list[str]) -> None:
    """As with single jobs: a handler that asks for a pause has not failed."""
    harness = Harness(error)
    harness.start()
    await harness.ends()
    assert harness.raised == raised
