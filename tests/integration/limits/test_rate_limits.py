"""Rate limits with real workers hold over any window of the server's clock, and no worker polls while throttled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest

from groupmq import Job, Queue, RateLimit, RateLimited, Worker
from tests.conftest import MakeQueue
from tests.support import handlers
from tests.support.fleet import Fleet
from tests.support.rates import excesses, started_ms
from tests.support.waiting import eventually
from tests.support.workers import Recorder, looked_once, one_kind


class Witness:
    """A handler that keeps the jobs that it ran, in order."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    async def __call__(self, job: Job) -> None:
        self.jobs.append(job)

    def starts(self, group: str | None = None) -> list[int]:
        return started_ms(job for job in self.jobs if group in (None, job.group_id))


@pytest.mark.parametrize("limit", [RateLimit(1, per=0.02), RateLimit(5, per=0.2), RateLimit(20, per=0.3)])
async def test_any_window_of_the_queue_has_no_more_starts_than_its_limit(
    make_queue: MakeQueue, limit: RateLimit
) -> None:
    queue, witness = make_queue(rate_limit=limit), Witness()
    await queue.add_many([{"data": n, "group_id": f"g{n % 7}"} for n in range(3 * limit.count + 4)])
    async with Worker(queue, witness, concurrency=10):
        assert await queue.wait_for_empty(20)
    assert len(witness.jobs) == 3 * limit.count + 4
    assert excesses(witness.starts(), limit) == []
    for g in range(7):
        data = [job.data for job in witness.jobs if job.group_id == f"g{g}"]
        assert data == sorted(data), "the limit changed the order of a group"


async def test_several_processes_share_one_limit(make_queue: MakeQueue, url: str) -> None:
    limit = RateLimit(10, per=0.3)
    queue = make_queue(rate_limit=limit)
    with Fleet(url, queue.name, rate_limit=limit) as fleet:
        fleet.start(3)
        jobs = await queue.add_many([{"data": {"n": n}, "group_id": f"g{n % 8}"} for n in range(45)])
        assert await queue.wait_for_empty(20)
    history = fleet.history()
    history.check([job.id for job in jobs])
    assert len(history.runs) == 45
    assert excesses(sorted(line["at"] for line in history.of_kind("start")), limit) == []
    assert len({run.pid for run in history.runs}) > 1, "one process did everything"


async def test_jobs_that_fail_and_run_again_count_each_time(make_queue: MakeQueue) -> None:
    limit = RateLimit(3, per=0.1)
    queue, starts = make_queue(rate_limit=limit), list[int]()

    async def handle(job: Job) -> None:
        starts.extend(started_ms([job]))
        if job.attempt < 3:
            raise ValueError

    await queue.add_many([{"data": n, "group_id": f"g{n}", "backoff": 0, "max_attempts": 3} for n in range(4)])
    async with Worker(queue, handle, concurrency=4):
        assert await queue.wait_for_empty(10)
    assert len(starts) == 12
    assert excesses(sorted(starts), limit) == []


async def test_each_group_has_its_own_share_of_a_group_limit(make_queue: MakeQueue) -> None:
    limit = RateLimit(2, per=0.2)
    queue, witness = make_queue(group_rate_limit=limit), Witness()
    await queue.add_many([{"data": n, "group_id": f"g{n % 3}"} for n in range(15)])
    await queue.add_many([{"data": n} for n in range(20)])
    async with Worker(queue, witness, concurrency=4):
        assert await queue.wait_for_empty(10)
    for g in range(3):
        starts = witness.starts(f"g{g}")
        assert len(starts) == 5
        assert excesses(starts, limit) == []
    # Jobs without a group have no limit, so all of them ran before the last job of a limited group.
    free = [started_ms([job])[0] for job in witness.jobs if job.group_id is None]
    assert len(free) == 20
    assert max(free) < max(witness.starts("g0"))


async def test_a_throttled_group_holds_no_slot(make_queue: MakeQueue) -> None:
    queue, handler = make_queue(group_rate_limit=RateLimit(1, per=30)), Recorder()
    await queue.add_many([{"data": n, "group_id": "throttled"} for n in range(3)])
    async with Worker(queue, handler, concurrency=1):
        await handler.has_run(0)
        await queue.add_many([{"data": f"other-{n}", "group_id": f"o{n}"} for n in range(5)])
        await eventually(lambda: len(handler.ended) == 6, "other groups go on")
        info = await queue.get_group("throttled")
    assert (info.state, info.waiting) == ("parked", 2)
    assert info.held_for is not None
    assert 20 < info.held_for <= 30.001


async def test_one_group_may_have_a_rate_of_its_own_and_lose_it_again(queue: Queue) -> None:
    limit = RateLimit(2, per=0.2)
    witness = Witness()
    assert await queue.set_group_rate_limit("slow", limit)
    await queue.add_many([{"data": n, "group_id": group} for n in range(8) for group in ("slow", "fast")])
    async with Worker(queue, witness, concurrency=2):
        await eventually(lambda: len(witness.starts("slow")) >= 5, "five jobs of the slow group have started")
        assert len(witness.starts("fast")) == 8
        limited = witness.starts("slow")
        await queue.set_group_rate_limit("slow", RateLimit(1, per=60))
        done = len(witness.starts("slow"))
        await queue.set_group_rate_limit("slow", None)
        assert await queue.wait_for_empty(10), f"still throttled after {done} jobs"
    assert excesses(limited, limit) == []
    assert [job.data for job in witness.jobs if job.group_id == "slow"] == list(range(8))


async def test_no_worker_polls_while_the_queue_is_throttled(make_queue: MakeQueue) -> None:
    limit = RateLimit(2, per=0.4)
    queue, witness = make_queue(rate_limit=limit), Witness()
    workers = [Worker(queue, witness, concurrency=3, blocking_timeout=30) for _ in range(2)]
    async with workers[0], workers[1]:
        for worker in workers:
            await looked_once(worker)
        await queue.add_many([{"data": n, "group_id": f"g{n}"} for n in range(8)])
        assert await queue.wait_for_empty(20)
        advances = sum(worker.get_worker_metrics().advances for worker in workers)
    assert excesses(witness.starts(), limit) == []
    # There are four windows of two starts. In each, every worker may wake up, take, and report once or twice. Polling
    # would make hundreds of calls.
    assert advances <= 60, f"{advances} calls for 8 jobs"


async def test_adds_to_a_throttled_queue_wake_nobody(make_queue: MakeQueue) -> None:
    queue, witness = make_queue(rate_limit=RateLimit(1, per=60)), Witness()
    async with Worker(queue, witness, concurrency=3, blocking_timeout=30) as worker:
        await queue.add_many([{"data": n, "group_id": f"g{n}"} for n in range(2)])
        await eventually(lambda: worker.get_worker_metrics().completed == 1, "the first job ran")
        before = worker.get_worker_metrics().advances
        for n in range(50):
            await queue.add(n, group_id=f"h{n}")
        assert len(witness.jobs) == 1
        assert worker.get_worker_metrics().advances <= before + 5


async def test_rate_limited_lets_its_group_rest_and_uses_no_attempt(queue: Queue) -> None:
    runs: list[tuple[str, int, int, int]] = []
    rests = 3

    async def handle(job: Job) -> None:
        nonlocal rests
        runs.append((str(job.group_id), job.data, job.attempt, started_ms([job])[0]))
        if job.data == 0 and job.group_id == "g" and rests:
            rests -= 1
            raise RateLimited("429", retry_after=0.2)

    errors: list[BaseException] = []
    worker = Worker(queue, handle, concurrency=1, on_error=lambda error, _job: errors.append(error))
    await queue.add_many([{"data": n, "group_id": "g", "max_attempts": 1} for n in range(3)])
    await queue.add_many([{"data": n, "group_id": "other"} for n in range(5)])
    async with worker:
        assert await queue.wait_for_empty(10)
        metrics = worker.get_worker_metrics()
    group = [run for run in runs if run[0] == "g"]
    assert [(data, attempt) for _, data, attempt, _ in group] == [(0, 1)] * 4 + [(1, 1), (2, 1)]
    starts = [start for _, _, _, start in group]
    assert all(after - before >= 200 for before, after in pairwise(starts[:4])), "a job started during the rest"
    assert [name for name, _, _, _ in runs[:6]] == ["g", *["other"] * 5], "another group had to wait"
    assert (metrics.rate_limited, metrics.completed, metrics.failed, metrics.retried) == (3, 8, 0, 0)
    assert (await queue.get_metrics()).rate_limited == 3
    assert (errors, await queue.get_failures()) == ([], [])
    assert metrics.advances <= 60


@one_kind
@pytest.mark.parametrize(
    ("handler", "counted"), [(handlers.limited_once, "rate_limited"), (handlers.snoozes_once, "snoozed")]
)
@pytest.mark.parametrize("executor", ["thread", "process"])
async def test_rate_limited_and_snooze_mean_the_same_in_a_thread_and_in_another_process(
    queue: Queue, tmp_path: Path, handler: Callable[[Job], None], counted: str, executor: Literal["thread", "process"]
) -> None:
    job = await queue.add(str(tmp_path / "once"), group_id="g", max_attempts=1)
    async with Worker(queue, handler, executor=executor) as worker:
        assert await queue.wait_for_empty(20)
        assert getattr(worker.get_worker_metrics(), counted) == 1
    await job.refresh()
    assert (job.state, job.attempts_made) == ("completed", 1)


async def test_rate_limited_without_a_group_lets_only_that_job_rest(queue: Queue) -> None:
    runs: list[int] = []

    async def handle(job: Job) -> None:
        runs.append(job.data)
        if job.data == 0 and runs.count(0) == 1:
            raise RateLimited(retry_after=0.2)

    for n in range(3):
        await queue.add(n, max_attempts=1)
    async with Worker(queue, handle):
        assert await queue.wait_for_empty(10)
    assert runs == [0, 1, 2, 0]


async def test_a_group_that_rests_goes_on_in_another_worker(make_queue: MakeQueue) -> None:
    """The rest belongs to the group: it outlives the worker that reported it, and applies to all others."""
    queue = make_queue("shared")
    starts: list[int] = []

    async def told_to_slow_down(job: Job) -> None:
        starts.extend(started_ms([job]))
        raise RateLimited(retry_after=0.5)

    async def works(job: Job) -> None:
        starts.extend(started_ms([job]))

    await queue.add(1, group_id="g")
    async with Worker(queue, told_to_slow_down) as first:
        await eventually(lambda: first.get_worker_metrics().rate_limited, "the handler was rate-limited")
        async with Worker(make_queue("shared"), works):
            await asyncio.gather(first.close(), eventually(lambda: len(starts) == 2, "the other worker runs the job"))
            assert await queue.wait_for_empty(5)
    assert starts[1] - starts[0] >= 500
