"""Rows whose handlers take no time share a task, and none of them waits for another that does take time."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from groupmq.client.job import Job
from groupmq.core.codec import JSON
from groupmq.core.record import Record
from groupmq.worker.fetching.prefetch import Prefetch
from groupmq.worker.running.executor import Executor
from tests.unit.worker.running.test_executor_rows import POLICY
from tests.unit.worker.running.test_executor_rows import Harness as RowHarness


class Harness(RowHarness):
    """Starts rows of one job each, every row in its own slot."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[str, Any] = {}
        self.executor = Executor(self._note_task, POLICY, self, Prefetch("auto"))

    async def _note_task(self, job: Job) -> None:
        self.tasks[job.id] = asyncio.current_task()
        if job.id in self.gates:
            await self.gates[job.id].wait()
        if job.id in self.errors:
            raise self.errors[job.id]

    def start_each(self, ids: str, **gates: asyncio.Event) -> None:
        self.gates = gates
        for fence, job_id in enumerate(ids, 1):
            job = Job(None, JSON, job_id, "active", Record(0, 0, 0, 0, 3, False, job_id, {}, b"1"), 3)
            job.fence = fence
            self.executor.start([job], self.requester, math.inf)


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prefetch, "shares_tasks", True)


async def test_rows_that_wait_for_nothing_run_in_one_task_in_their_order() -> None:
    harness = Harness()
    harness.start_each("abc")
    await harness.hears("c completed")
    assert list(harness.tasks) == ["a", "b", "c"]
    assert len(set(harness.tasks.values())) == 1
    assert harness.nothing_left


async def test_no_row_waits_for_a_handler_that_waits() -> None:
    harness, gate = Harness(), asyncio.Event()
    harness.start_each("abcd", a=gate, c=gate)
    await harness.hears("d completed")
    assert "b completed" in harness.said
    assert {job.id for job, _ in harness.executor.current()} == {"a", "c"}
    assert len({harness.tasks["a"], harness.tasks["c"], harness.tasks["d"]}) == 3
    gate.set()
    await harness.hears("c completed")
    assert harness.nothing_left


async def test_rows_that_come_while_others_wait_begin_at_once() -> None:
    harness, gate = Harness(), asyncio.Event()
    harness.start_each("ab", a=gate, b=gate)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert set(harness.tasks) == {"a", "b"}
    job = Job(None, JSON, "z", "active", Record(0, 0, 0, 0, 3, False, "z", {}, b"1"), 3)
    job.fence = 9
    harness.executor.start([job], harness.requester, math.inf)
    await harness.hears("z completed")
    gate.set()
    await harness.hears("b completed")


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError(), SystemExit(1)])
async def test_a_handler_that_raises_harms_no_other(error: BaseException) -> None:
    harness = Harness()
    harness.errors["b"] = error
    harness.start_each("abc")
    await harness.hears("c completed")
    assert "a completed" in harness.said
    assert "b retrying" in harness.said
    assert harness.nothing_left


async def test_one_that_is_stopped_before_it_has_begun_never_runs_and_the_others_do() -> None:
    harness = Harness()
    harness.start_each("abc")
    harness.executor.stop(harness.executor.runs[2], "closing")
    await harness.hears("c completed")
    await harness.hears("b released")
    assert list(harness.tasks) == ["a", "c"]
    assert harness.nothing_left


async def test_runs_that_are_abandoned_before_they_have_begun_never_run() -> None:
    harness = Harness()
    harness.start_each("ab")
    harness.executor.abandon_all()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert harness.tasks == {}
    assert harness.nothing_left


async def test_one_that_was_asked_for_before_it_came_goes_back() -> None:
    harness = Harness()
    harness.executor.withdraw([2])
    harness.start_each("abc")
    await harness.hears("c completed")
    await harness.hears("b released")
    assert "b" not in harness.tasks


async def test_one_that_is_taken_back_before_it_has_begun_never_runs_and_the_others_do() -> None:
    harness = Harness()
    harness.start_each("abc")
    assert [job.id for job, _ in harness.executor.withdraw([2])] == ["b"]
    await harness.hears("c completed")
    assert list(harness.tasks) == ["a", "c"]
    assert harness.nothing_left


async def test_a_task_that_its_handler_has_cancelled_runs_no_other_job() -> None:
    harness = Harness()

    async def handle(job: Job) -> None:
        harness.tasks[job.id] = asyncio.current_task()
        if job.id == "a":
            harness.tasks["a"].cancel()

    harness.executor = Executor(handle, POLICY, harness, Prefetch("auto"))
    harness.start_each("ab")
    await harness.hears("b completed")
    assert harness.tasks["a"] is not harness.tasks["b"]
