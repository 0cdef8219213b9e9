"""Workers that share slots: a call that is answered late does not keep slots from the other workers."""

from __future__ import annotations

import asyncio
from typing import Any

from groupmq import Job, Worker, Workers
from groupmq.worker.parts import WorkerParts
from tests.conftest import MakeQueue
from tests.support.parts import at_start
from tests.support.waiting import eventually


class Gates:
    """A handler that records its runs, and waits for the gate of its job's data if there is one."""

    def __init__(self) -> None:
        self.runs: list[Any] = []
        self.attempts: list[int] = []
        self.gates: dict[Any, asyncio.Event] = {}
        self.running = self.most = 0

    async def __call__(self, job: Job) -> None:
        self.runs.append(job.data)
        self.attempts.append(job.attempt)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if job.data in self.gates:
                await self.gates[job.data].wait()
        finally:
            self.running -= 1


class HeldBack:
    """Holds back the answer that brings jobs to a worker, until it is released."""

    def __init__(self, worker: Worker) -> None:
        self.released, self.jobs = asyncio.Event(), 0
        at_start(worker, self._hold_back)

    def _hold_back(self, parts: WorkerParts) -> None:
        self._persist = parts.fetcher._persist
        parts.fetcher._persist = self._late  # type: ignore[method-assign]

    async def _late(self, call: Any, requester: Any) -> Any:
        answer = await self._persist(call, requester)
        if answer.jobs and not self.released.is_set():
            self.jobs += len(answer.jobs)
            await self.released.wait()
        return answer


async def test_jobs_of_an_answer_that_comes_after_its_slots_were_used_go_back(make_queue: MakeQueue) -> None:
    """One slot: the answer to the first worker is held back, the second takes the slot meanwhile."""
    a, b, handle = make_queue(), make_queue(), Gates()
    handle.gates["b"] = asyncio.Event()
    first = Worker(a, handle)
    workers = Workers([first, Worker(b, handle)], concurrency=1)
    answer = HeldBack(first)
    async with workers:
        await a.add("a", group_id="g")
        await eventually(lambda: answer.jobs == 1, "the server has given the job to the first worker")
        await b.add("b")
        await eventually(lambda: handle.runs == ["b"], "the second worker has taken the slot")
        answer.released.set()
        await eventually(lambda: a.get_waiting_count(), "the job is back in its group")
        assert handle.runs == ["b"]
        handle.gates["b"].set()
        await eventually(lambda: handle.runs == ["b", "a"], "it runs when the slot is free")
        assert await a.wait_for_empty(10)
    assert (handle.most, handle.attempts) == (1, [1, 1])


async def test_a_batch_that_comes_after_its_slot_was_used_goes_back_too(make_queue: MakeQueue) -> None:
    a, b, handle = make_queue(), make_queue(), Gates()
    handle.gates["b"] = asyncio.Event()
    batches: list[list[Any]] = []

    async def handle_batch(jobs: list[Job]) -> None:
        batches.append([(job.data, job.attempt) for job in jobs])

    await a.add_many([{"data": i, "group_id": "g"} for i in range(5)])
    first = Worker(a, handle_batch, batch=5)
    workers = Workers([first, Worker(b, handle)], concurrency=1)
    answer = HeldBack(first)
    async with workers:
        await eventually(lambda: answer.jobs == 5, "the server has given the batch to the first worker")
        await b.add("b")
        await eventually(lambda: handle.runs == ["b"], "the second worker has taken the slot")
        answer.released.set()
        await eventually(lambda: a.get_waiting_count(), "the batch is back in its group")
        assert batches == []
        handle.gates["b"].set()
        assert await a.wait_for_empty(10)
    assert batches == [[(i, 1) for i in range(5)]]
