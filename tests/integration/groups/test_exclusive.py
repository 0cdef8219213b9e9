"""Exclusive queues: one worker at a time, across all machines, in turns, and no worker polls for its turn."""

from __future__ import annotations

import asyncio
import statistics
from itertools import groupby
from typing import Any

import pytest

from groupmq import Job, Queue, RateLimit, Worker, Workers
from tests.conftest import MakeQueue
from tests.support.fleet import Fleet
from tests.support.history import History
from tests.support.listening import workers_asleep
from tests.support.waiting import eventually
from tests.support.workers import Recorder, looked_once, one_kind

BLOCK = 30
"""Longer than any test, so a worker that wakes was woken."""


def streaks(history: History) -> list[tuple[int, int]]:
    """The process of each series of consecutive runs, and how many runs it has, in the order of their grants."""
    return [(pid, len(list(runs))) for pid, runs in groupby(history.runs, key=lambda run: run.pid)]


async def test_only_one_process_works_at_a_time_and_all_of_them_get_turns(
    make_queue: MakeQueue, url: str, client: Any
) -> None:
    queue = make_queue(exclusive=True)
    with Fleet(url, queue.name, concurrency=4, blocking_timeout=BLOCK, exclusive=True) as fleet:
        fleet.start(3)
        # All turns together take 0.3 s, so a process that does not wait yet could miss every one of them.
        fleet.wait_for(lambda: workers_asleep(client) == 3, "all of them wait for a turn")
        items = [{"data": {"n": n, "seconds": 0.01}, "group_id": f"g{n % 9}"} for n in range(90)]
        jobs = await queue.add_many(items)
        assert await queue.wait_for_empty(30)
    history = fleet.history()
    history.check([job.id for job in jobs])
    assert len(history.runs) == 90
    assert history.intrusions() == []
    assert {run.pid for run in history.runs} == {process.pid for process in fleet.processes}
    assert await queue.get_turn() is None


@one_kind
@pytest.mark.parametrize("batch", [1, 3, 6])
async def test_a_turn_is_handed_over_after_a_batch(make_queue: MakeQueue, url: str, client: Any, batch: int) -> None:
    queue = make_queue(exclusive=True)
    worker = {"batch_size": batch}
    with Fleet(url, queue.name, concurrency=3, blocking_timeout=BLOCK, worker=worker, exclusive=True) as fleet:
        fleet.start(2)
        fleet.wait_for(lambda: workers_asleep(client) == 2, "both wait for a turn")
        # Long enough for the last holder to queue up again before the other's turn ends, on a busy machine too.
        items = [{"data": {"n": n, "seconds": 0.03}, "group_id": f"g{n % 6}"} for n in range(60)]
        jobs = await queue.add_many(items)
        assert await queue.wait_for_empty(30)
    history = fleet.history()
    history.check([job.id for job in jobs])
    assert history.intrusions() == []
    lengths = [length for _, length in streaks(history)]
    assert statistics.median(lengths) == batch, lengths
    assert {run.pid for run in history.runs} == {process.pid for process in fleet.processes}


class Team:
    """Workers on one exclusive queue, each with its own connections; every handler waits for the gate."""

    def __init__(self, make_queue: MakeQueue, size: int, **options: Any) -> None:
        self.queues = [make_queue("shared", exclusive=True) for _ in range(size)]
        self.handlers = [Recorder() for _ in range(size)]
        self.gate = asyncio.Event()
        for handler in self.handlers:
            handler.gate = self.gate
        self.workers = [
            Worker(queue, handler, name=f"w{i}", blocking_timeout=BLOCK, **options)
            for i, (queue, handler) in enumerate(zip(self.queues, self.handlers, strict=True))
        ]

    @property
    def queue(self) -> Queue:
        return self.queues[0]

    async def __aenter__(self) -> Team:
        for worker in self.workers:
            await worker.start()
            await looked_once(worker)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gate.set()
        await asyncio.gather(*(worker.close() for worker in self.workers))

    def busy(self) -> list[int]:
        return [i for i, worker in enumerate(self.workers) if worker.is_processing()]

    async def holder(self) -> int:
        await eventually(self.busy, "a worker has the turn")
        (found,) = self.busy()
        return found

    def advances(self) -> int:
        return sum(worker.get_worker_metrics().advances for worker in self.workers)


async def test_a_job_added_while_the_holder_has_a_free_slot_starts_there_at_once(make_queue: MakeQueue) -> None:
    async with Team(make_queue, 3, concurrency=4) as team:
        await team.queue.add(0, group_id="g0")
        holder = await team.holder()
        for n in range(1, 4):
            await team.queue.add(n, group_id=f"g{n}")
            await eventually(lambda: len(team.handlers[holder].started) > n, "it runs beside the others")  # noqa: B023
        turn = await team.queue.get_turn()
        assert turn is not None
        assert (turn.worker, turn.taken, turn.epoch) == (team.workers[holder].id, 4, 1)
        assert 0 < turn.expires_in <= 30
        assert team.busy() == [holder]


async def test_a_full_batch_takes_no_more_even_with_free_slots_and_the_next_worker_goes_on(
    make_queue: MakeQueue,
) -> None:
    async with Team(make_queue, 2, concurrency=4, batch_size=2) as team:
        await team.queue.add_many([{"data": n, "group_id": f"g{n}"} for n in range(4)])
        holder = await team.holder()
        await eventually(lambda: len(team.handlers[holder].started) == 2, "the batch runs")
        await team.queue.add(4, group_id="g4")
        before = team.advances()
        assert (await team.queue.get_job_counts()).waiting == 3
        team.gate.set()
        assert await team.queue.wait_for_empty(10)
        assert team.advances() - before < 40
    assert sorted(team.handlers[holder].started[:2] + team.handlers[1 - holder].started[:2]) == [0, 1, 2, 3]


async def test_workers_that_wait_for_their_turn_do_not_poll_and_wake_at_its_end(make_queue: MakeQueue) -> None:
    async with Team(make_queue, 4, concurrency=1) as team:
        await team.queue.add(0, group_id="g")
        holder = await team.holder()
        before = team.advances()
        await team.queue.add_many([{"data": n, "group_id": f"g{n}"} for n in range(1, 12)])
        # Adds wake only the holder, which has no free slot, so no worker asks.
        assert team.advances() - before <= 4
        assert team.busy() == [holder]
        team.gate.set()
        assert await team.queue.wait_for_empty(10), "no worker woke up at the end of the turn"
        calls = team.advances() - before
    served = [len(handler.ended) for handler in team.handlers]
    assert sum(served) == 12
    assert all(served), f"a worker never had a turn: {served}"
    assert calls <= 12 * 4, f"{calls} calls for 12 turns"


async def test_a_holder_that_closes_hands_its_turn_over_at_once(make_queue: MakeQueue) -> None:
    async with Team(make_queue, 2, concurrency=1) as team:
        await team.queue.add_many([{"data": n, "group_id": "g"} for n in range(3)])
        holder = await team.holder()
        # Its handler does not end, so the job is given back untouched, and the other worker runs it.
        await team.workers[holder].close(timeout=0.1)
        await eventually(lambda: team.handlers[1 - holder].started == [0], "the other one takes over", timeout=5)
        team.gate.set()
        assert await team.queue.wait_for_empty(5)
    assert team.handlers[1 - holder].ended == [0, 1, 2]
    assert team.handlers[1 - holder].attempts == [1, 1, 1]


async def test_a_turn_ends_when_nothing_is_left_and_the_next_job_begins_another(make_queue: MakeQueue) -> None:
    async with Team(make_queue, 2, concurrency=2) as team:
        team.gate.set()
        for n in range(6):
            await team.queue.add(n, group_id="g")
            assert await team.queue.wait_for_empty(5)
            assert await team.queue.get_turn() is None
        team.gate.clear()
        await team.queue.add("last", group_id="g")
        await team.holder()
        turn = await team.queue.get_turn()
        assert turn is not None
        assert turn.epoch == 7
    assert sum(len(handler.ended) for handler in team.handlers) == 7


async def test_a_removed_job_ends_the_turn_that_consisted_of_it(make_queue: MakeQueue) -> None:
    async with Team(make_queue, 2, concurrency=1) as team:
        job = await team.queue.add(0, group_id="g")
        holder = await team.holder()
        await team.queue.remove(job.id)
        await team.queue.add(1, group_id="g")
        await eventually(lambda: team.handlers[1 - holder].started == [1], "the other one begins a turn", timeout=5)
        assert (await team.queue.get_job_counts()).active == 1


@pytest.mark.parametrize("backoff", [0, 1])
async def test_failed_attempts_are_recorded_one_by_one_and_the_job_keeps_its_priority(
    make_queue: MakeQueue, backoff: float
) -> None:
    queue = make_queue("shared", exclusive=True)
    ran: list[tuple[str, int]] = []

    async def handle(job: Job) -> None:
        ran.append((job.data, job.attempt))
        if job.data == "fails":
            raise ValueError(f"attempt {job.attempt}")

    await queue.add("later", group_id="b", priority=9)
    await queue.add("fails", group_id="a", priority=1, max_attempts=3, backoff=backoff)
    workers = [Worker(make_queue("shared", exclusive=True), handle, blocking_timeout=BLOCK) for _ in range(2)]
    async with workers[0], workers[1]:
        assert await queue.wait_for_empty(10)
    # Without a back-off it is first again each time; with one the others go on meanwhile.
    assert ran == [
        ("fails", 1),
        *[("later", 1)] * bool(backoff),
        ("fails", 2),
        ("fails", 3),
        *[("later", 1)] * (not backoff),
    ]
    failures = await queue.get_failures()
    assert [(failure.attempt, failure.error, failure.final) for failure in failures] == [
        (3, "ValueError: attempt 3", True),
        (2, "ValueError: attempt 2", False),
        (1, "ValueError: attempt 1", False),
    ]


async def test_a_rate_limit_and_turns_together_drain_without_polling(make_queue: MakeQueue) -> None:
    limit = RateLimit(2, per=0.15)
    queues = [make_queue("limited", exclusive=True, rate_limit=limit) for _ in range(2)]
    handler = Recorder()
    workers = [Worker(queue, handler, concurrency=2, blocking_timeout=BLOCK) for queue in queues]
    async with workers[0], workers[1]:
        await queues[0].add_many([{"data": n, "group_id": f"g{n}"} for n in range(8)])
        assert await queues[0].wait_for_empty(10)
        advances = sum(worker.get_worker_metrics().advances for worker in workers)
    assert sorted(handler.ended) == list(range(8))
    assert advances <= 60


async def test_turns_beside_another_queue_lose_no_marker(make_queue: MakeQueue) -> None:
    """Each turn ends in a call, and the marker that this call sets may be popped before its answer is read."""
    turns, other = make_queue(exclusive=True), make_queue()
    for _ in range(6):
        await turns.add_many({"data": i, "group_id": f"g{i % 11}"} for i in range(200))
        await other.add_many({"data": i, "group_id": f"g{i % 11}"} for i in range(1000))
        workers = [
            Worker(queue, Recorder(), concurrency=8, blocking_timeout=60, stalled_interval=60)
            for queue in (turns, other)
        ]
        async with asyncio.timeout(40):
            await Workers(workers, concurrency=8).run(burst=True)
    assert (await turns.get_job_counts()).total == (await other.get_job_counts()).total == 0
