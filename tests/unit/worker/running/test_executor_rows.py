"""Rows, without a server: their jobs run one after the other, or are given back if they might wait too long."""

from __future__ import annotations

import asyncio
import math
from contextvars import ContextVar
from typing import Any

import pytest

from groupmq.client.job import Job
from groupmq.core.backoff import Backoff
from groupmq.core.codec import JSON
from groupmq.core.errors import FailJob
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Record
from groupmq.worker.fetching.prefetch import Prefetch
from groupmq.worker.running import executor
from groupmq.worker.running.executor import PATIENCE, Executor
from groupmq.worker.running.outcome import OutcomePolicy, RunReport
from groupmq.worker.running.runs import Run

POLICY = OutcomePolicy(QueueOptions(name="q"), Backoff.fixed(1))
seen: ContextVar[str] = ContextVar("seen", default="nothing")


class Requester:
    """Records what the executor reports to it."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness

    def report(self, report: RunReport) -> None:
        if report.kind != "ended":
            self._note(report)
        if report.kind not in ("begun", "ended"):
            self._harness.urgent.append(True)

    def report_later(self, report: RunReport) -> None:
        self._note(report)
        self._harness.urgent.append(False)

    def slot_freed(self) -> None:
        self._harness.requesters.add(self)

    def row_ended(self) -> None:
        self._harness.rows_ended += 1

    def _note(self, report: RunReport) -> None:
        self._harness.requesters.add(self)
        self._harness.say(f"{report.job.id} {report.kind}")


class Harness:
    """Starts a row and records all that the executor announces and reports, in order."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.requester, self.other_requester = Requester(self), Requester(self)
        self.requesters: set[Requester] = set()
        self.rows_ended = 0
        self.raised: list[BaseException] = []
        self.urgent: list[bool] = []
        self.running = 0
        self.gates: dict[str, asyncio.Event] = {}
        self.errors: dict[str, BaseException] = {}
        self.contexts: list[str] = []
        self.heard = asyncio.Event()
        self.executor = Executor(self._handle, POLICY, self, Prefetch("auto"))

    async def _handle(self, job: Job) -> None:
        self.running += 1
        assert self.running == 1, "two of a row run at once"
        self.contexts.append(seen.get())
        seen.set(job.id)
        try:
            if job.id in self.gates:
                await self.gates[job.id].wait()
            if job.id in self.errors:
                raise self.errors[job.id]
        finally:
            self.running -= 1

    def begun(self, run: Run) -> None:
        for job in run.jobs:
            self.say(f"{job.id} starts")

    def handler_raised(self, error: BaseException, job: Job) -> None:
        self.raised.append(error)

    def lease_lost(self, job: Job) -> None:
        self.say(f"{job.id} lost")

    def say(self, what: str) -> None:
        self.said.append(what)
        self.heard.set()

    def start(self, ids: str, *, together: bool = False, **gates: asyncio.Event) -> None:
        self.gates = gates
        jobs = []
        for fence, job_id in enumerate(ids, 1):
            job = Job(None, JSON, job_id, "active", Record(0, 0, 0, 0, 3, False, "g", {}, b"1"), 3)
            job.fence = fence
            jobs.append(job)
        self.executor.start(jobs, self.requester, math.inf, together=together)

    async def hears(self, what: str) -> None:
        async with asyncio.timeout(10):
            while what not in self.said:
                self.heard.clear()
                await self.heard.wait()

    @property
    def nothing_left(self) -> bool:
        return not (self.executor.runs or self.executor.unstarted or self.executor._rows)


async def test_one_after_the_other_and_each_report_but_the_last_can_wait() -> None:
    harness = Harness()
    harness.start("abc")
    await harness.hears("c completed")
    assert harness.said == ["a starts", "a completed", "b starts", "b completed", "c starts", "c completed"]
    assert (harness.urgent, harness.requesters) == ([False, False, True], {harness.requester})
    assert harness.nothing_left


async def test_none_sees_the_context_of_the_one_before() -> None:
    harness = Harness()
    harness.start("abc")
    await harness.hears("c completed")
    assert harness.contexts == ["nothing"] * 3


@pytest.mark.parametrize(
    ("error", "event"), [(ValueError("x"), "retrying"), (FailJob("x"), "failed"), (SystemExit(1), "retrying")]
)
async def test_after_one_that_did_not_complete_the_rest_is_given_back(error: BaseException, event: str) -> None:
    harness = Harness()
    harness.errors["b"] = error
    harness.start("abcd")
    await harness.hears("d released")
    assert harness.said == ["a starts", "a completed", "b starts", f"b {event}", "c released", "d released"]
    assert harness.nothing_left


async def test_nobody_waits_for_long_behind_one_that_takes_long() -> None:
    harness = Harness()
    gate = asyncio.Event()
    harness.start("abcd", b=gate)
    await harness.hears("b begun")
    assert harness.said == ["a starts", "a completed", "b starts", "c released", "d released", "b begun"]
    assert harness.executor.leases() == [("b", 2)]
    gate.set()
    await harness.hears("b completed")
    assert harness.nothing_left


async def test_a_job_that_is_alone_in_its_row_is_reported_as_begun_as_well() -> None:
    harness = Harness()
    gate = asyncio.Event()
    harness.start("a", together=True, a=gate)
    await harness.hears("a begun")
    gate.set()
    await harness.hears("a completed")
    assert harness.said == ["a starts", "a begun", "a completed"]
    assert harness.nothing_left


async def test_a_row_of_runs_that_are_each_short_enough_ends_when_it_takes_long_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, row, taken = 0.2, 0.5, 0.04  # seconds: far apart, for a machine that is busy
    monkeypatch.setattr(executor, "PATIENCE", one)
    monkeypatch.setattr(executor, "ROW_PATIENCE", row)
    harness = Harness()

    async def handle(job: Job) -> None:
        await asyncio.sleep(taken)

    harness.executor = Executor(handle, POLICY, harness, Prefetch("auto"))
    ids = [chr(ord("a") + n) for n in range(26)]
    harness.start("".join(ids))
    await harness.hears("z released")
    started = [said[0] for said in harness.said if said.endswith("starts")]
    assert started == ids[: len(started)]
    assert 1 < len(started) <= (row + one) / taken + 1


async def test_the_last_job_of_a_row_is_reported_as_begun_once() -> None:
    harness = Harness()
    gate = asyncio.Event()
    harness.start("ab", b=gate)
    await harness.hears("b begun")
    await asyncio.sleep(3 * PATIENCE)
    gate.set()
    await harness.hears("b completed")
    assert harness.said.count("b begun") == 1


async def test_closing_gives_back_what_has_not_started() -> None:
    harness = Harness()
    gate = asyncio.Event()
    harness.start("abc", a=gate)
    await asyncio.sleep(0)
    harness.executor.give_back_all()
    assert harness.said == ["a starts", "b released", "c released"]
    gate.set()
    await harness.hears("a completed")
    assert harness.nothing_left


@pytest.mark.parametrize("reason", ["timeout", "closing", "lease-lost", "cancelled"])
async def test_when_a_run_is_stopped_nobody_follows(reason: Any) -> None:
    harness = Harness()
    harness.start("abc", a=asyncio.Event())
    await asyncio.sleep(0)
    harness.executor.stop(harness.executor.runs[1], reason)
    await harness.hears("c released")
    await asyncio.sleep(0)
    assert [said for said in harness.said if said.endswith("starts")] == ["a starts"]
    await asyncio.sleep(0)
    assert harness.nothing_left


async def test_a_run_that_swallows_its_cancellation_is_not_followed_either() -> None:
    harness = Harness()
    gate = asyncio.Event()

    async def stubborn(job: Job) -> None:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)

    harness.executor = Executor(stubborn, POLICY, harness, Prefetch("auto"))
    harness.start("ab")
    await asyncio.sleep(0)
    harness.executor.stop(harness.executor.runs[1], "cancelled")
    await harness.hears("a completed")
    assert harness.said == ["a starts", "b released", "a completed"]
    assert harness.nothing_left


@pytest.mark.parametrize(("fences", "back"), [([2], "bcd"), ([4], "d"), ([3, 4], "cd"), ([1], ""), ([77], "")])
async def test_those_that_are_withdrawn_and_all_behind_them_do_not_start(fences: list[int], back: str) -> None:
    harness = Harness()
    gate = asyncio.Event()
    harness.start("abcd", a=gate)
    await asyncio.sleep(0)
    assert [(job.id, requester) for job, requester in harness.executor.withdraw(fences)] == [
        (one, harness.requester) for one in back
    ]
    assert harness.executor.withdraw(fences) == []
    gate.set()
    left = [one for one in "abcd" if one not in back]
    await harness.hears(f"{left[-1]} completed")
    assert harness.said == [f"{one} {what}" for one in left for what in ("starts", "completed")]
    assert harness.nothing_left
    assert harness.urgent[-1], "the last report does not wait for another"


async def test_one_that_is_asked_for_before_it_has_come_is_given_back_when_it_comes() -> None:
    harness = Harness()
    assert harness.executor.withdraw([2]) == []
    harness.start("abc")
    await harness.hears("a completed")
    assert harness.said == ["b released", "c released", "a starts", "a completed"]
    assert harness.nothing_left
    assert harness.executor.withdraw([]) == []
    harness.start("abc")
    await harness.hears("c completed")


async def test_a_row_that_is_asked_for_whole_before_it_has_come_does_not_start() -> None:
    harness = Harness()
    harness.executor.withdraw([1])
    harness.start("ab", together=True)
    assert harness.said == ["a released", "b released"]
    assert harness.nothing_left


async def test_everything_that_has_not_started_can_be_withdrawn() -> None:
    harness = Harness()
    gate = asyncio.Event()
    harness.start("abc", a=gate)
    await asyncio.sleep(0)
    assert [job.id for job, _ in harness.executor.withdraw_all()] == ["b", "c"]
    gate.set()
    await harness.hears("a completed")
    assert harness.nothing_left


async def test_a_row_that_waited_too_long_here_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process was frozen, the leases of the jobs behind the first may be over."""
    monkeypatch.setattr(executor, "ROW_LASTS", -1)
    harness = Harness()
    harness.start("abc")
    await harness.hears("a completed")
    assert harness.said == ["a starts", "a completed", "b released", "c released"]
    assert harness.nothing_left


async def test_a_lost_lease_concerns_only_a_run() -> None:
    harness = Harness()
    gate = asyncio.Event()
    harness.start("abc", a=gate)
    await asyncio.sleep(0)
    harness.executor.lease_lost(77)
    gate.set()
    await harness.hears("c completed")
    assert harness.nothing_left
