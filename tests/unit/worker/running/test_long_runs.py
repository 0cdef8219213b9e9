"""Runs that take long are reported as begun, once; short ones are not."""

from __future__ import annotations

import asyncio
import math
import time

import pytest

from groupmq.client.job import Job
from groupmq.core.backoff import Backoff
from groupmq.core.codec import JSON
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Record
from groupmq.worker.running import long_runs
from groupmq.worker.running.long_runs import LongRuns
from groupmq.worker.running.outcome import OutcomePolicy, RunReport
from groupmq.worker.running.runs import JobRun, RunRow

POLICY = OutcomePolicy(QueueOptions(name="q"), Backoff.fixed(1))


class Harness:
    """The reporter of runs without handlers."""

    def __init__(self) -> None:
        self.runs: dict[int, JobRun] = {}
        self.reported: list[JobRun] = []
        self.heard = asyncio.Event()
        self.long_runs = LongRuns(self.runs, POLICY)

    def start(self) -> JobRun:
        job = Job(None, JSON, "j", "active", Record(0, 0, 0, 0, 3, False, "g", {}, b"1"), 3)
        job.fence, now = len(self.runs), time.monotonic()
        run = self.runs[job.fence] = JobRun(job, RunRow([job], self, math.inf), now)
        run.begun_at = now
        if not self.long_runs.are_watched:
            self.long_runs.watch()
        return run

    def report(self, report: RunReport) -> None:
        assert report.kind == "begun"
        self.reported.append(self.runs[report.job.fence])
        self.heard.set()

    def _never(self, *_: object) -> None:
        raise AssertionError("it only begins")

    report_later = slot_freed = row_ended = _never

    async def hears(self) -> None:
        async with asyncio.timeout(10):
            await self.heard.wait()
        self.heard.clear()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_runs, "LONG", 0.02)


async def test_each_is_reported_once_when_it_has_lasted_for_long() -> None:
    harness = Harness()
    first = harness.start()
    await harness.hears()
    assert harness.reported == [first]
    second = harness.start()
    await harness.hears()
    assert harness.reported == [first, second]


async def test_one_that_has_ended_or_was_reported_otherwise_is_not_reported() -> None:
    harness = Harness()
    confirmed, unbegun, last, ended = (harness.start() for _ in range(4))
    del harness.runs[ended.fence]
    confirmed.confirmed, unbegun.begun_at = True, None
    await harness.hears()
    assert harness.reported == [last]


async def test_one_that_began_later_is_looked_at_again() -> None:
    harness = Harness()
    harness.start()
    later = harness.start()
    later.begun_at = time.monotonic() + 0.05
    await harness.hears()
    assert later not in harness.reported
    await harness.hears()
    assert harness.reported[1:] == [later]


async def test_nothing_is_reported_after_the_end() -> None:
    harness = Harness()
    harness.start()
    harness.long_runs.close()
    await asyncio.sleep(0.05)
    assert harness.reported == []
