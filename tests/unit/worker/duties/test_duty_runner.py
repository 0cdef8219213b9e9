"""The duties of a worker, without a server: when each of them runs again, and where its report goes."""

from __future__ import annotations

import asyncio
import logging

import pytest

from groupmq.core.errors import ConnectionLost
from groupmq.core.queue_options import QueueOptions
from groupmq.core.views import DutyReport
from groupmq.core.worker_options import WorkerOptions
from groupmq.worker.duties.duty_runner import DutyRunner
from groupmq.worker.outage import outage_log
from groupmq.worker.reachability import Reachability
from groupmq.worker.telemetry import Telemetry
from tests.support.waiting import eventually

NOTHING = DutyReport()


class Counting:
    """A duty with prepared results, which counts its runs."""

    task = "test"

    def __init__(self, *results: DutyReport | Exception, then: DutyReport | Exception = NOTHING) -> None:
        self._results = list(results)
        self._then = then
        self.runs = 0

    async def run_once(self) -> DutyReport:
        self.runs += 1
        result = self._results.pop(0) if self._results else self._then
        if isinstance(result, Exception):
            raise result
        return result


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
    duty = Counting(DutyReport(0, 0.01), DutyReport(0, 0.01))
    runner = DutyRunner(duty, 60, Worker().reachability, prompt=True)
    runner.start()
    await eventually(lambda: duty.runs == 3, "twice more, because something was due")
    await runner.close()


async def test_a_prompt_duty_runs_earlier_when_it_hears_of_something_that_is_due_earlier() -> None:
    duty = Counting()
    runner = DutyRunner(duty, 60, Worker().reachability, prompt=True)
    runner.start()
    await eventually(lambda: runner._wakes_at, "the runner sleeps")
    runner.due_in(10)
    await eventually(lambda: duty.runs == 2, "the duty runs again")
    runner.due_in(10**6)
    assert runner._wakes_at < asyncio.get_running_loop().time() + 100
    await runner.close()


class Held(Counting):
    """Each of its runs has read the server, and ends when the test lets it."""

    def __init__(self, *results: DutyReport | Exception) -> None:
        super().__init__(*results)
        self.go_on = asyncio.Event()

    async def run_once(self) -> DutyReport:
        try:
            return await super().run_once()
        finally:
            await self.go_on.wait()
            self.go_on.clear()


async def test_what_a_prompt_duty_hears_of_during_a_run_is_not_forgotten_when_the_run_ends() -> None:
    """The run may have read the server before that became due: its own report says that nothing is."""
    duty = Held()
    runner = DutyRunner(duty, 60, Worker().reachability, prompt=True)
    runner.start()
    await eventually(lambda: duty.runs == 1, "the first run is under way")
    runner.due_in(20)
    runner.due_in(10**6)
    duty.go_on.set()
    await eventually(lambda: duty.runs == 2, "the duty runs when that is due")
    duty.go_on.set()
    await eventually(lambda: not runner._running, "it has ended")
    assert runner._wakes_at > asyncio.get_running_loop().time() + 30, "what was due is done"
    await runner.close()


async def test_a_run_that_fails_while_the_server_comes_back_is_tried_again_at_once() -> None:
    duty, worker = Held(ConnectionLost("gone"), ConnectionLost("gone")), Worker()
    runner = DutyRunner(duty, 60, worker.reachability, prompt=True)
    runner._pauses.next = lambda most=0.0: 60.0  # type: ignore[method-assign]
    runner.start()
    await eventually(lambda: duty.runs == 1, "the first run is under way")
    runner.retry_now()
    duty.go_on.set()
    await eventually(lambda: duty.runs == 2, "the duty is retried at once")
    duty.go_on.set()
    await eventually(lambda: worker.failures == 2, "it has failed again")
    assert duty.runs == 2, "it pauses, because the server was not heard of since"
    await runner.close()


async def test_other_duties_wait_for_their_interval() -> None:
    duty = Counting(then=DutyReport(0, 0.0))
    runner = DutyRunner(duty, 0.02, Worker().reachability)
    began = asyncio.get_running_loop().time()
    runner.start()
    await eventually(lambda: duty.runs == 3, "the duty has run three times")
    assert asyncio.get_running_loop().time() - began >= 0.06
    await runner.close()


@pytest.mark.parametrize("failure", [ConnectionLost("gone"), DutyReport(errors=("a repeat cannot be read",))])
async def test_a_prompt_duty_that_fails_pauses_whatever_is_due_and_goes_on_when_the_server_is_back(
    failure: Exception | DutyReport,
) -> None:
    duty, worker = Counting(failure, failure), Worker()
    runner = DutyRunner(duty, 60, worker.reachability, prompt=True)
    runner.start()
    await eventually(lambda: worker.failures == 1, "the duty has failed")
    runner.due_in(0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert duty.runs == 1, "a due time must not shorten a pause after a failure"
    runner.retry_now()
    await eventually(lambda: worker.failures == 2, "the duty is retried at once")
    runner.retry_now()
    await eventually(lambda: duty.runs == 3, "the duty is retried again")
    await eventually(lambda: not runner._failed, "the duty no longer counts as failed")
    await runner.close()


async def test_a_duty_that_is_not_prompt_is_not_woken_by_the_return_of_the_server() -> None:
    """Right after an outage every worker seems to be dead, so this duty must wait."""
    duty, worker = Counting(ConnectionLost("gone")), Worker()
    wakes = len(worker.reachability._outage._wakes)
    runner = DutyRunner(duty, 0.01, worker.reachability)
    runner.start()
    assert len(worker.reachability._outage._wakes) == wakes
    await eventually(lambda: duty.runs == 2, "the duty runs again after its interval")
    assert worker.failures == 1
    await runner.close()


async def test_the_report_of_each_run_is_passed_on() -> None:
    some, errors, more = DutyReport(1), DutyReport(errors=("one cannot be read",)), DutyReport(2)
    duty, heard = Counting(some, errors, ConnectionLost("gone"), more), list[DutyReport]()
    runner = DutyRunner(duty, 0.001, Worker().reachability, heard.append)
    runner.start()
    await eventually(lambda: len(heard) >= 3, "three reports are passed on")
    assert heard[:3] == [some, errors, more]
    await runner.close()


async def test_a_run_that_did_not_call_the_server_does_not_end_an_outage() -> None:
    duty, worker = Counting(DutyReport(called=False), DutyReport(1)), Worker()
    answered: list[str] = []
    worker.reachability.answered = lambda task, began: answered.append(task)  # type: ignore[method-assign]
    runner = DutyRunner(duty, 0.01, worker.reachability)
    runner.start()
    await eventually(lambda: duty.runs == 1, "the first run")
    assert answered == []
    await eventually(lambda: duty.runs == 2 and answered, "the second run")
    assert answered[0] == "test"
    await runner.close()
