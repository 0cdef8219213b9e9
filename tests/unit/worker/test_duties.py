"""Duties of a worker, without a server: what one run does, and when the next one is made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from groupmq.client.queue import upkeep
from groupmq.core.errors import ConnectionLost
from groupmq.core.queue_options import QueueOptions
from groupmq.core.retention import Retention
from groupmq.core.worker_options import WorkerOptions
from groupmq.protocol.commands import REQUESTERS, Call, Due, Expired, Policy, Stalled
from groupmq.worker.duties import AgeRetention, DutyDone, EachInterval, PresenceCleanup, Promotion, Recovery, Scheduler
from groupmq.worker.duties.runner import DutyRunner
from groupmq.worker.outage import outage_log
from groupmq.worker.reachability import Reachability
from groupmq.worker.telemetry import Telemetry
from tests.support.waiting import eventually

STALLED = Stalled("j", "g", final=False)
EXPIRED = Expired("e", None, blocks=False)
NOTHING = DutyDone(0)


class Script:
    """Makes calls with answers that were written before."""

    def __init__(self, *answers: Any) -> None:
        self._answers: Iterator[Any] = iter(answers)
        self.calls: list[Call[Any]] = []

    async def __call__(self, call: Call[Any], /) -> Any:
        self.calls.append(call)
        return next(self._answers)


POLICY = Policy(3, -1, {})


def never(job: Any) -> None:
    raise AssertionError(f"nothing was to be said about {job}")


def options(**given: Any) -> QueueOptions:
    return QueueOptions(name="q", **given)


# What one run does


async def test_promotion_counts_what_it_moved_and_knows_when_to_come_back() -> None:
    assert await Promotion(Script(Due(2, 1, [], [], 500)), POLICY).run_once() == DutyDone(3, 0.5)
    assert await Promotion(Script(Due(0, 0, [], [], -1)), POLICY).run_once() == DutyDone(0, None)


async def test_promotion_does_not_wait_for_a_lease_that_has_expired() -> None:
    """It is due, but recovery's: promotion would look again without a pause."""
    assert await Promotion(Script(Due(0, 0, [], [], 0)), POLICY).run_once() == DutyDone(0, None)


async def test_recovery_announces_each_job_that_stalled() -> None:
    seen: list[Stalled] = []
    call = Script(Due(0, 1, [STALLED, STALLED], [], 250))
    recovery = Recovery(call, lambda: POLICY, seen.append, never)
    assert await recovery.run_once() == DutyDone(3, 0.25)
    assert seen == [STALLED, STALLED]


async def test_recovery_announces_each_job_past_its_ttl() -> None:
    seen: list[Expired] = []
    call = Script(Due(0, 1, [], [EXPIRED], 250))
    recovery = Recovery(call, lambda: POLICY, never, seen.append)
    assert await recovery.run_once() == DutyDone(2, 0.25)
    assert seen == [EXPIRED]


async def test_recovery_asks_again_until_nothing_is_left_that_has_expired() -> None:
    """With one call each run, entries that come faster than that would pile up."""
    seen: list[Stalled] = []
    call = Script(
        Due(0, 1, [STALLED], [], 250, more_expired=1), Due(0, 0, [], [], 240, more_expired=1), Due(0, 0, [], [], 230)
    )
    assert await Recovery(call, lambda: POLICY, seen.append, never).run_once() == DutyDone(2, 0.23)
    assert len(call.calls) == 3
    assert seen == [STALLED]


async def test_retention_removes_page_by_page_until_nothing_is_left() -> None:
    call = Script(1000, 7, 0)
    assert await AgeRetention(call, lambda: options(keep_failed=Retention(age=5))).run_once() == DutyDone(1007)
    assert [call.script for call in call.calls] == ["clean"] * 3


async def test_a_run_of_retention_that_has_nothing_to_remove_by_age_calls_nobody_and_says_so() -> None:
    """It must not end an outage."""
    call = Script()
    assert await AgeRetention(call, lambda: options(keep_failed=Retention(100))).run_once() == DutyDone(0, called=False)
    assert call.calls == []


async def test_dead_workers_are_deregistered_with_every_requester_that_a_worker_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upkeep, "gone_workers", lambda stats: ["a", "b"])
    seen: list[list[str]] = []
    call = Script(None, 2)
    cleanup = PresenceCleanup(call, lambda workers: seen.append(list(workers)))
    assert await cleanup.run_once() == DutyDone(2)
    assert seen == [["a", "b"]]
    [_, leave] = call.calls
    assert leave.script == "leave"
    assert all(f"{worker}:{requester}".encode() in leave.args for worker in "ab" for requester in range(REQUESTERS))


async def test_nobody_is_deregistered_where_all_are_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "gone_workers", lambda stats: [])
    call = Script(None)
    assert await PresenceCleanup(call).run_once() == DutyDone(0)
    assert [made.script for made in call.calls] == ["stats"]


class Counting:
    """A duty that answers what it was made with, and counts its runs."""

    task = "test"

    def __init__(self, *results: DutyDone | Exception, then: DutyDone | Exception = NOTHING) -> None:
        self._results = list(results)
        self._then = then
        self.runs = 0

    async def run_once(self) -> DutyDone:
        self.runs += 1
        result = self._results.pop(0) if self._results else self._then
        if isinstance(result, Exception):
            raise result
        return result


async def test_a_duty_for_each_interval_runs_at_once_and_then_not_before() -> None:
    duty = Counting(then=DutyDone(5))
    rare = EachInterval(duty, 60)
    assert await rare.run_once() == DutyDone(5, 60)
    again = await rare.run_once()
    assert (again.handled, duty.runs) == (0, 1)
    assert again.next_in is not None
    assert 0 < again.next_in <= 60


async def test_one_that_failed_is_not_put_off() -> None:
    duty = Counting(ConnectionLost("gone"))
    rare = EachInterval(duty, 60)
    with pytest.raises(ConnectionLost):
        await rare.run_once()
    assert (await rare.run_once()).next_in == 60
    assert duty.runs == 2


# When the next one is made


class Worker:
    """The parts of a worker that a runner needs."""

    def __init__(self) -> None:
        queue = QueueOptions(name="q")
        logger = logging.getLogger("groupmq.test")
        options = WorkerOptions.checked(queue, "w", {"logger": logger})
        self.telemetry = Telemetry(queue, options)
        self.reachability = Reachability(outage_log("w", "q", logger), self.telemetry, None, lambda: None)

    @property
    def failures(self) -> int:
        return self.telemetry.metrics.connection_errors


async def test_a_prompt_duty_runs_at_once_and_when_something_is_due() -> None:
    duty = Counting(DutyDone(0, 0.01), DutyDone(0, 0.01))
    runner = DutyRunner(duty, 60, Worker().reachability, prompt=True)
    runner.start()
    await eventually(lambda: duty.runs == 3, "twice more, because something was due")
    await runner.close()


async def test_a_prompt_duty_runs_earlier_when_it_hears_of_something_that_is_due_earlier() -> None:
    duty = Counting()
    runner = DutyRunner(duty, 60, Worker().reachability, prompt=True)
    runner.start()
    await eventually(lambda: runner._wakes_at, "it sleeps")
    runner.due_in(10)
    await eventually(lambda: duty.runs == 2, "it runs again")
    runner.due_in(10**6)
    assert runner._wakes_at < asyncio.get_running_loop().time() + 100
    await runner.close()


async def test_other_duties_wait_for_their_interval() -> None:
    duty = Counting(then=DutyDone(0, 0.0))
    runner = DutyRunner(duty, 0.02, Worker().reachability)
    began = asyncio.get_running_loop().time()
    runner.start()
    await eventually(lambda: duty.runs == 3, "it runs")
    assert asyncio.get_running_loop().time() - began >= 0.06
    await runner.close()


@pytest.mark.parametrize("failure", [ConnectionLost("gone"), DutyDone(0, 0.0, ("a repeat cannot be read",))])
async def test_a_prompt_duty_that_fails_pauses_whatever_is_due_and_goes_on_when_the_server_is_back(
    failure: Exception | DutyDone,
) -> None:
    duty, worker = Counting(failure, failure), Worker()
    runner = DutyRunner(duty, 60, worker.reachability, prompt=True)
    runner.start()
    await eventually(lambda: worker.failures == 1, "it has failed")
    runner.due_in(0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert duty.runs == 1, "news of what is due does not shorten a pause"
    runner.retry_now()
    await eventually(lambda: worker.failures == 2, "it was tried at once")
    runner.retry_now()
    await eventually(lambda: duty.runs == 3, "and again")
    await eventually(lambda: not runner._failed, "it is fine")
    await runner.close()


async def test_a_duty_that_is_not_prompt_is_not_woken_by_the_return_of_the_server() -> None:
    """Right after an outage every worker looks dead."""
    duty, worker = Counting(ConnectionLost("gone")), Worker()
    wakes = len(worker.reachability.outage._wakes)
    runner = DutyRunner(duty, 0.01, worker.reachability)
    runner.start()
    assert len(worker.reachability.outage._wakes) == wakes
    await eventually(lambda: duty.runs == 2, "it comes back after its interval")
    assert worker.failures == 1
    await runner.close()


async def test_the_scheduler_remembers_when_it_ran_last(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ran:
        added, now, wait_ms, errors = 2, 1234, -1, ["zone"]

    seen: list[int | None] = []

    async def run_due_repeats(call: Any, watched_since: int | None) -> Any:
        seen.append(watched_since)
        return Ran

    monkeypatch.setattr("groupmq.worker.duties.scheduler.run_due_repeats", run_due_repeats)
    scheduler = Scheduler(Script())
    assert await scheduler.run_once() == DutyDone(2, None, ("zone",))
    await scheduler.run_once()
    assert seen == [None, 1234]
