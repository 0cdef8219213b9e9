"""Blocked groups and snoozed jobs with real workers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import pytest

from groupmq import FailJob, Job, Queue, Snooze, Worker
from tests.support.rates import started_ms
from tests.support.waiting import eventually


def jobs_of(group: str, n: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"data": at, "group_id": group, "job_id": f"{group}{at}", **fields} for at in range(n)]


@pytest.mark.parametrize("prefetch", [0, "auto"])
async def test_nothing_of_a_group_starts_behind_a_job_that_was_given_up(
    queue: Queue, prefetch: Literal["auto"] | int
) -> None:
    """Neither the jobs that wait on the server nor those that this worker has prefetched."""
    runs: list[str] = []
    fails = {"a7"}

    async def handle(job: Job) -> None:
        runs.append(job.id)
        if job.id in fails:
            raise FailJob("no")

    await queue.add_many([*jobs_of("a", 30, on_failed="hold"), *jobs_of("b", 30, on_failed="hold")])
    async with Worker(queue, handle, concurrency=1, prefetch=prefetch):

        async def rests() -> bool:
            counts = await queue.get_job_counts()
            return (counts.active, counts.waiting, counts.completed, counts.failed) == (0, 22, 37, 1)

        await eventually(rests, "all jobs are done except those behind the failed job")
        assert [job_id for job_id in runs if job_id[0] == "a"] == [f"a{n}" for n in range(8)]
        group = await queue.get_group("a")
        assert (group.state, group.blocked_by, group.blockers) == ("blocked", "a7", 1)
        assert group.held is not None
        assert group.held.explanation == "job 'a7' failed for good, attempt 1; retry it, skip it or remove it"
        assert (await queue.get_metrics()).groups_blocked == 1
        fails.clear()
        await queue.retry("a7")
        assert await queue.wait_for_empty(20)
    assert [job_id for job_id in runs if job_id[0] == "a"] == [
        *(f"a{n}" for n in range(8)),
        *(f"a{n}" for n in range(7, 30)),
    ]


async def test_a_snoozed_job_holds_its_group_and_uses_no_attempt(queue: Queue) -> None:
    runs: list[tuple[int, int, int]] = []
    snoozes = 3

    async def handle(job: Job) -> None:
        nonlocal snoozes
        runs.append((job.data, job.attempt, started_ms([job])[0]))
        if job.data == 0 and snoozes:
            snoozes -= 1
            raise Snooze(0.1, "not yet")

    errors: list[BaseException] = []
    await queue.add_many(jobs_of("g", 3, max_attempts=1))
    async with Worker(queue, handle, on_error=lambda error, _job: errors.append(error)) as worker:
        assert await queue.wait_for_empty(10)
        metrics = worker.get_worker_metrics()
    assert [(data, attempt) for data, attempt, _ in runs] == [(0, 1)] * 4 + [(1, 1), (2, 1)]
    assert all(after - before >= 100 for (*_, before), (*_, after) in pairwise(runs[:4])), "it came back too early"
    assert (metrics.snoozed, metrics.completed, metrics.failed, metrics.retried) == (3, 3, 0, 0)
    assert (errors, await queue.get_failures()) == ([], [])
    assert [one.outcome for one in await queue.get_attempts("g0")] == ["snoozed"] * 3 + ["completed"]
