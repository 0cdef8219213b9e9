"""Reading a queue: counts, lists, groups, metrics, failures, workers."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest

from groupmq import ConfigurationError, FailJob, Job, JobNotFound, Queue, Worker
from groupmq.core.views import GroupInfo, JobCounts, Metrics
from tests.conftest import MakeQueue
from tests.support.waiting import eventually


class Busy:
    """A worker whose jobs with the data "hold" run until the end of the block."""

    def __init__(self, queue: Queue, concurrency: int = 5) -> None:
        self.queue = queue
        self.gate = asyncio.Event()
        self.worker = Worker(queue, self.handle, concurrency=concurrency, name="busy", backoff=60)

    async def handle(self, job: Job) -> object:
        if job.data == "hold":
            await self.gate.wait()
        elif job.data == "fail":
            raise FailJob("on purpose")
        elif job.data == "retry":
            raise ValueError("boom")
        return {"got": job.data}

    async def __aenter__(self) -> Worker:
        return await self.worker.start()

    async def __aexit__(self, *_: object) -> None:
        self.gate.set()
        await self.worker.close()


async def fill(queue: Queue) -> None:
    """Add one job for each way to end, and some that wait behind a running one."""
    await queue.add("hold", group_id="a", job_id="runs")
    for name in ("waits1", "waits2"):
        await queue.add("x", group_id="a", job_id=name)
    await queue.add("x", group_id="b", job_id="later", delay=60)
    await queue.add("x", group_id="b", job_id="sooner", delay=30)
    await queue.add("x", group_id="c", job_id="done")
    await queue.add("fail", group_id="c", job_id="broken")
    await queue.add("retry", group_id="d", job_id="held")


async def one_of_each(queue: Queue) -> None:
    async def all_are_there() -> bool:
        counts = await queue.get_job_counts()
        held = (await queue.get_group("d")).state == "parked"
        return (counts.active, counts.completed, counts.failed, held) == (1, 1, 1, True)

    await eventually(all_are_there, "one runs, one is done, one has failed, one is in its back-off")


async def test_every_job_is_seen_in_exactly_one_state(queue: Queue) -> None:
    await fill(queue)
    async with Busy(queue):
        await one_of_each(queue)
        assert await queue.get_job_counts() == JobCounts(
            active=1, waiting=3, delayed=2, completed=1, failed=1, total=6, unique_groups=3
        )
        assert [
            await queue.get_active_count(),
            await queue.get_waiting_count(),
            await queue.get_delayed_count(),
            await queue.get_completed_count(),
            await queue.get_failed_count(),
            await queue.get_unique_groups_count(),
        ] == [1, 3, 2, 1, 1, 3]
        assert await queue.get_jobs() == {
            "active": ["runs"],
            "waiting": ["waits1", "waits2", "held"],
            "delayed": ["sooner", "later"],
            "completed": ["done"],
            "failed": ["broken"],
        }
        assert await queue.get_active_jobs() == ["runs"]
        assert await queue.get_waiting_jobs() == ["waits1", "waits2", "held"]
        assert await queue.get_delayed_jobs(limit=1) == ["sooner"]
        assert await queue.get_delayed_jobs(offset=1) == ["later"]
        assert sorted(await queue.get_unique_groups()) == ["a", "b", "d"]


async def test_each_job_says_what_became_of_it(queue: Queue) -> None:
    await fill(queue)
    async with Busy(queue):
        await one_of_each(queue)
        runs = await queue.require_job("runs")
        assert (runs.state, runs.attempt, runs.attempts_made, runs.finished_at) == ("active", 1, 0, None)
        assert runs.fence > 0
        assert runs.worker is not None
        assert runs.started_at is not None
        done = await queue.require_job("done")
        assert (done.state, done.return_value, done.attempts_made) == ("completed", {"got": "x"}, 1)
        assert done.finished_at is not None
        assert done.created_at is not None
        assert done.created_at <= done.finished_at
        broken = await queue.require_job("broken")
        assert (broken.state, broken.failed_reason, broken.attempts_made) == ("failed", "on purpose", 1)
        assert "FailJob" in (broken.stacktrace or "")
        held = await queue.require_job("held")
        assert (held.state, held.failed_reason, held.attempts_made, held.attempt) == (
            "waiting",
            "ValueError: boom",
            1,
            2,
        )
        assert held.run_at is not None
        assert held.run_at > datetime.now(UTC) + timedelta(seconds=30)


async def test_finished_jobs_are_listed_newest_first_page_by_page(queue: Queue) -> None:
    await queue.add_many({"data": i, "group_id": "g", "job_id": f"j{i}"} for i in range(10))
    async with Busy(queue):
        assert await queue.wait_for_empty(10)
    assert [job.id for job in await queue.get_completed_jobs(limit=3)] == ["j9", "j8", "j7"]
    assert [job.id for job in await queue.get_completed_jobs(limit=3, offset=8)] == ["j1", "j0"]
    assert [job.return_value for job in await queue.get_completed_jobs(limit=1)] == [{"got": 9}]
    assert await queue.get_completed_jobs(limit=0) == []
    assert await queue.get_failed_jobs() == []


async def test_a_group_shows_its_state(queue: Queue) -> None:
    assert await queue.get_group("a") == GroupInfo("a", "idle", 0, 0, 0, 1, paused=False, held_for=None)
    await fill(queue)
    assert (await queue.get_group("a")).state == "ready"
    async with Busy(queue):
        await one_of_each(queue)
        busy = await queue.get_group("a")
        assert replace(busy, held=None) == GroupInfo("a", "busy", 2, 1, 0, 1, paused=False, held_for=None)
        assert busy.held is not None
        assert (busy.held.reason, busy.held.job_id, busy.held.waiting) == ("running", "runs", 2)
        assert await queue.get_group_job_count("a") == 3
        assert (await queue.get_group("b")).delayed == 2
        assert await queue.get_group_job_count("b") == 0
        held = await queue.get_group("d")
        assert held.state == "parked"
        assert held.held_for is not None
        assert 30 < held.held_for <= 60
        await queue.pause_group("a")
        assert (await queue.get_group("a")).state == "paused"


def counters(metrics: Metrics) -> dict[str, int]:
    """The counts of job events that are not 0."""
    return {name: n for name, n in asdict(metrics).items() if isinstance(n, int) and n and "groups" not in name}


async def test_metrics_and_failures_show_what_happened(queue: Queue) -> None:
    await fill(queue)
    async with Busy(queue):
        await one_of_each(queue)
    assert counters(await queue.get_metrics()) == {"completed": 2, "failed": 1, "retried": 1}
    failures = {failure.job_id: failure for failure in await queue.get_failures()}
    assert set(failures) == {"broken", "held"}
    broken, held = failures["broken"], failures["held"]
    assert (broken.attempt, broken.error, broken.final) == (1, "on purpose", True)
    assert (held.attempt, held.error, held.final) == (1, "ValueError: boom", False)
    assert "ValueError: boom" in held.stack
    assert abs(datetime.now(UTC) - held.time) < timedelta(seconds=60)
    assert len(await queue.get_failures(limit=1)) == 1


async def test_a_worker_is_seen_while_it_lives(queue: Queue) -> None:
    assert await queue.get_workers() == []
    async with Busy(queue, concurrency=3):
        await eventually(queue.get_workers, "the worker is registered")
        [worker] = await queue.get_workers()
        assert (worker.name, worker.concurrency) == ("busy", 3)
        assert abs(datetime.now(UTC) - worker.last_seen) < timedelta(seconds=60)
    assert await queue.get_workers() == []


async def test_a_job_that_does_not_exist_is_none_or_an_error(queue: Queue) -> None:
    assert await queue.get_job("ghost") is None
    with pytest.raises(JobNotFound, match="job 'ghost' does not exist"):
        await queue.require_job("ghost")


async def test_a_jobs_state_is_read_anew_each_time(queue: Queue) -> None:
    job = await queue.add("x", group_id="g")
    assert await job.get_state() == "waiting"
    async with Busy(queue):
        await queue.wait_for_empty(10)
    assert (job.state, await job.get_state()) == ("waiting", "completed")
    assert await job.refresh() is job
    assert (job.state, job.return_value) == ("completed", {"got": "x"})
    await job.remove()
    with pytest.raises(JobNotFound):
        await job.get_state()
    with pytest.raises(JobNotFound):
        await job.refresh()


async def test_waiting_for_an_empty_queue_ends_with_the_last_job_or_in_time(queue: Queue) -> None:
    assert await queue.wait_for_empty(0) is True
    await queue.add("x", delay=60)
    assert await queue.wait_for_empty(0.05) is False
    await queue.purge()
    waiting = asyncio.ensure_future(queue.wait_for_empty(10))
    await queue.add("x")
    async with Busy(queue):
        assert await waiting is True


async def test_an_empty_queue_is_no_special_case(queue: Queue) -> None:
    assert await queue.get_job_counts() == JobCounts(0, 0, 0, 0, 0, 0, 0)
    assert await queue.get_jobs() == {"active": [], "waiting": [], "delayed": [], "completed": [], "failed": []}
    assert (await queue.get_unique_groups(), await queue.get_failures(), await queue.is_paused()) == ([], [], False)
    metrics = await queue.get_metrics()
    assert (counters(metrics), metrics.oldest_wait, metrics.wait.count, metrics.run.count) == ({}, None, 0, 0)


@pytest.mark.parametrize("limit", [-1, True, 1.5, "10", None])
async def test_a_bad_limit_is_refused_by_name(make_queue: MakeQueue, limit: object) -> None:
    queue = make_queue()
    for getter in (queue.get_waiting_jobs, queue.get_active_jobs, queue.get_completed_jobs, queue.get_failures):
        with pytest.raises(ConfigurationError, match=r"^limit: expected "):
            await getter(limit=limit)  # type: ignore[arg-type]


async def test_lists_longer_than_a_call_may_answer_are_complete(queue: Queue) -> None:
    await queue.add_many({"data": i, "group_id": f"g{i % 500}", "job_id": f"j{i}"} for i in range(2500))
    await queue.add_many({"data": i, "job_id": f"d{i}", "delay": 60} for i in range(1500))
    assert sorted(await queue.get_waiting_jobs(limit=10_000)) == sorted(f"j{i}" for i in range(2500))
    assert sorted(await queue.get_delayed_jobs(limit=10_000)) == sorted(f"d{i}" for i in range(1500))
    assert len(await queue.get_unique_groups()) == 500
    assert len(await queue.get_unique_groups(limit=7)) == 7


async def test_the_longest_waits_are_looked_for_in_as_many_calls_as_are_given(queue: Queue) -> None:
    for n in range(250):
        await queue.pause_group(f"g{n}")
    await queue.add_many([{"data": n, "group_id": f"g{n}"} for n in range(250)])
    few, all_of_them = await queue.get_metrics(look=1), await queue.get_metrics()
    assert few.longest_held is not None
    assert all_of_them.longest_held is not None
    assert all_of_them.longest_held.wait >= few.longest_held.wait - 1
    with pytest.raises(ConfigurationError, match="look"):
        await queue.get_metrics(look=0)
