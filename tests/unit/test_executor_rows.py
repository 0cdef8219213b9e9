"""Jobs that were taken together, without a server: one after the other, and given back as soon as that is in doubt."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from groupmq.backoff import Backoff
from groupmq.codec import JSON
from groupmq.errors import FailJob
from groupmq.job import Job
from groupmq.options import QueueOptions
from groupmq.record import Record
from groupmq.worker import executor
from groupmq.worker.executor import PATIENCE, Executor
from groupmq.worker.outcome import Judge, Report
from groupmq.worker.pace import Pace

JUDGE = Judge(QueueOptions(name="q"), Backoff.fixed(1))
LANE = object()
seen: ContextVar[str] = ContextVar("seen", default="nothing")


class Desk:
    """Starts a row and notes all that is said of it, in order."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.lanes: set[Any] = set()
        self.urgent: list[bool] = []
        self.running = 0
        self.gates: dict[str, asyncio.Event] = {}
        self.errors: dict[str, BaseException] = {}
        self.contexts: list[str] = []
        self.heard = asyncio.Event()
        self.executor = Executor(self._handle, JUDGE, self, Pace("auto"))

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

    def run_starts(self, job: Job) -> None:
        self.say(f"{job.id} starts")

    def run_ended(self, job: Job, report: Report | None, lane: Any) -> None:
        self.say(f"{job.id} {report.event if report else 'lost'}")
        self.lanes.add(lane)
        if report is not None:
            self.urgent.append(True)

    def run_completed(self, report: Report, lane: Any) -> None:
        self.say(f"{report.job.id} {report.event}")
        self.lanes.add(lane)
        self.urgent.append(False)

    def row_ended(self, lane: Any) -> None:
        pass

    def run_goes_on(self, report: Report, lane: Any) -> None:
        self.lanes.add(lane)
        self.say(f"{report.job.id} {report.event}")

    def say(self, what: str) -> None:
        self.said.append(what)
        self.heard.set()

    def start(self, ids: str, *, together: bool = False, **gates: asyncio.Event) -> None:
        self.gates = gates
        jobs = []
        for token, job_id in enumerate(ids, 1):
            job = Job(None, JSON, job_id, "active", Record(0, 0, 0, 0, 3, False, "g", {}, b"1"), 3)
            job.fence = token
            jobs.append(job)
        self.executor.start(jobs, LANE, together=together)

    async def hears(self, what: str) -> None:
        async with asyncio.timeout(10):
            while what not in self.said:
                self.heard.clear()
                await self.heard.wait()

    @property
    def nothing_left(self) -> bool:
        return not (self.executor.runs or self.executor.ahead or self.executor._rows)


async def test_one_after_the_other_and_each_report_but_the_last_can_wait() -> None:
    desk = Desk()
    desk.start("abc")
    assert desk.executor.held() == [("b", 2), ("c", 3), ("a", 1)]
    await desk.hears("c completed")
    assert desk.said == ["a starts", "a completed", "b starts", "b completed", "c starts", "c completed"]
    assert (desk.urgent, desk.lanes) == ([False, False, True], {LANE})
    assert desk.nothing_left


async def test_none_sees_the_context_of_the_one_before() -> None:
    desk = Desk()
    desk.start("abc")
    await desk.hears("c completed")
    assert desk.contexts == ["nothing"] * 3


@pytest.mark.parametrize(
    ("error", "event"), [(ValueError("x"), "retrying"), (FailJob("x"), "failed"), (SystemExit(1), "retrying")]
)
async def test_after_one_that_did_not_complete_the_rest_is_given_back(error: BaseException, event: str) -> None:
    desk = Desk()
    desk.errors["b"] = error
    desk.start("abcd")
    await desk.hears("d released")
    assert desk.said == ["a starts", "a completed", "b starts", f"b {event}", "c released", "d released"]
    assert desk.nothing_left


async def test_nobody_waits_for_long_behind_one_that_takes_long() -> None:
    desk = Desk()
    gate = asyncio.Event()
    desk.start("abcd", b=gate)
    await desk.hears("b begun")
    assert desk.said == ["a starts", "a completed", "b starts", "c released", "d released", "b begun"]
    assert desk.executor.held() == [("b", 2)]
    gate.set()
    await desk.hears("b completed")
    assert desk.nothing_left


async def test_one_that_is_left_alone_of_its_row_is_told_to_run_as_well() -> None:
    desk = Desk()
    gate = asyncio.Event()
    desk.start("a", together=True, a=gate)
    await desk.hears("a begun")
    gate.set()
    await desk.hears("a completed")
    assert desk.said == ["a starts", "a begun", "a completed"]
    assert desk.nothing_left


async def test_a_row_of_runs_that_are_each_short_enough_ends_when_it_takes_long_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, row, taken = 0.2, 0.5, 0.04  # seconds: far apart, for a machine that is busy
    monkeypatch.setattr(executor, "PATIENCE", one)
    monkeypatch.setattr(executor, "ROW_PATIENCE", row)
    desk = Desk()

    async def handle(job: Job) -> None:
        await asyncio.sleep(taken)

    desk.executor = Executor(handle, JUDGE, desk, Pace("auto"))
    ids = [chr(ord("a") + n) for n in range(26)]
    desk.start("".join(ids))
    await desk.hears("z released")
    started = [said[0] for said in desk.said if said.endswith("starts")]
    assert started == ids[: len(started)]
    assert 1 < len(started) <= (row + one) / taken + 1


async def test_a_last_that_takes_long_is_told_once() -> None:
    desk = Desk()
    gate = asyncio.Event()
    desk.start("ab", b=gate)
    await desk.hears("b begun")
    await asyncio.sleep(3 * PATIENCE)
    gate.set()
    await desk.hears("b completed")
    assert desk.said.count("b begun") == 1


async def test_closing_gives_back_what_has_not_started() -> None:
    desk = Desk()
    gate = asyncio.Event()
    desk.start("abc", a=gate)
    await asyncio.sleep(0)
    desk.executor.give_back_all()
    assert desk.said == ["a starts", "b released", "c released"]
    gate.set()
    await desk.hears("a completed")
    assert desk.nothing_left


@pytest.mark.parametrize("verdict", ["timeout", "closing", "lease-lost", "cancelled"])
async def test_when_a_run_is_stopped_nobody_follows(verdict: Any) -> None:
    desk = Desk()
    desk.start("abc", a=asyncio.Event())
    await asyncio.sleep(0)
    desk.executor.stop(desk.executor.runs[1], verdict)
    await desk.hears("c released")
    await asyncio.sleep(0)
    assert [said for said in desk.said if said.endswith("starts")] == ["a starts"]
    await asyncio.sleep(0)
    assert desk.nothing_left


async def test_a_run_that_swallows_its_cancellation_is_not_followed_either() -> None:
    desk = Desk()
    gate = asyncio.Event()

    async def stubborn(job: Job) -> None:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)

    desk.executor = Executor(stubborn, JUDGE, desk, Pace("auto"))
    desk.start("ab")
    await asyncio.sleep(0)
    desk.executor.stop(desk.executor.runs[1], "cancelled")
    await desk.hears("a completed")
    assert desk.said == ["a starts", "b released", "a completed"]
    assert desk.nothing_left


async def test_one_whose_lease_is_lost_before_it_starts_is_left_out() -> None:
    desk = Desk()
    gate = asyncio.Event()
    desk.start("abc", a=gate)
    await asyncio.sleep(0)
    desk.executor.lease_lost(2)
    desk.executor.lease_lost(77)
    gate.set()
    await desk.hears("c completed")
    assert desk.said == ["a starts", "b lost", "a completed", "c starts", "c completed"]
    assert desk.nothing_left


async def test_one_that_is_cancelled_before_it_starts_never_runs() -> None:
    desk = Desk()
    gate = asyncio.Event()
    desk.start("abc", a=gate)
    await asyncio.sleep(0)
    desk.executor.cancel([2])
    gate.set()
    await desk.hears("b failed")
    assert desk.said[-4:] == ["a completed", "b starts", "c released", "b failed"]
    assert len(desk.contexts) == 1, "only the first handler was called"
    assert desk.nothing_left
