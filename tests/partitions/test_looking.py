"""Reading a queue with partitions: counts, pages, metrics and reports are those of the whole queue."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from groupmq import ConfigurationError, FailJob, Job, JobFilter, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.waiting import eventually

P = 4
GROUPS = [f"g{i:02}" for i in range(24)]


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue("spread", partitions=P, keep_completed=1000, keep_failed=1000)


async def handle(job: Job) -> Any:
    if job.data % 3 == 0:
        raise FailJob(f"number {job.data}")
    return job.data


async def work(queue: Queue, jobs: int = 90) -> list[Job]:
    added = await queue.add_many({"data": i, "group_id": GROUPS[i % len(GROUPS)]} for i in range(jobs))
    await Worker(queue, handle, concurrency=4).run(burst=True)
    return added


async def test_counts_are_sums(queue: Queue) -> None:
    await work(queue)
    await queue.add_many({"data": i, "group_id": g, "delay": 60} for i in range(2) for g in GROUPS)
    await queue.add_many({"data": i, "group_id": g} for i in range(3) for g in GROUPS)
    counts = await queue.get_job_counts()
    assert (counts.completed, counts.failed, counts.waiting, counts.delayed) == (60, 30, 72, 48)
    assert (counts.total, counts.unique_groups) == (120, 24)
    assert await queue.get_unique_groups_count() == 24
    assert sorted(await queue.get_unique_groups()) == GROUPS
    assert len(await queue.get_unique_groups(5)) == 5
    assert await queue.get_failed_count() == 30
    assert {state: len(ids) for state, ids in (await queue.get_jobs()).items()} == {
        "active": 0,
        "waiting": 72,
        "delayed": 48,
        "completed": 60,
        "failed": 30,
    }


async def test_finished_jobs_come_newest_first_and_delayed_ones_as_they_are_due(queue: Queue) -> None:
    await work(queue)
    ended = [job.finished_at for job in await queue.get_completed_jobs(60)]
    assert len(ended) == 60
    assert ended == sorted(ended, reverse=True)  # type: ignore[type-var]
    assert [job.id for job in await queue.get_completed_jobs(7, 20)] == [
        job.id for job in (await queue.get_completed_jobs(27))[20:]
    ]
    later = [await queue.add(i, group_id=g, delay=100 - i) for i, g in enumerate(GROUPS)]
    assert await queue.get_delayed_jobs(10) == [job.id for job in later[::-1][:10]]


@pytest.mark.parametrize("state", ["failed", "completed", "waiting", "delayed"])
@pytest.mark.parametrize("limit", [1, 7, 50])
async def test_pages_of_a_search_hold_every_job_once(queue: Queue, state: str, limit: int) -> None:
    await work(queue)
    await queue.add_many({"data": i, "group_id": g} for i in range(3) for g in GROUPS)
    await queue.add_many({"data": i, "group_id": g, "delay": 60} for i in range(2) for g in GROUPS)
    expected = {"failed": 30, "completed": 60, "waiting": 72, "delayed": 48}[state]
    found: list[Job] = []
    cursor = None
    for _ in range(1 + expected):
        page = await queue.search(state=state, limit=limit, cursor=cursor)
        assert page.total == expected
        assert len(page.jobs) <= limit
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            break
    assert len(found) == len({job.id for job in found}) == expected
    if state in ("failed", "completed"):
        assert found == sorted(found, key=lambda job: job.finished_at or 0, reverse=True)


async def test_pages_with_a_filter_go_on_where_they_stopped(queue: Queue) -> None:
    await work(queue)
    found: list[int] = []
    cursor = None
    while True:
        page = await queue.search(JobFilter(text="number 1"), limit=2, cursor=cursor, scan=5)
        found += [job.data for job in page.jobs]
        if (cursor := page.cursor) is None:
            break
    assert sorted(found) == [i for i in range(0, 90, 3) if str(i).startswith("1")]
    for wrong in ("nonsense", "kQ", page.cursor or "abc"):
        with pytest.raises(ConfigurationError, match="cursor"):
            await queue.search(cursor=wrong)


async def test_failed_jobs_are_retried_and_removed_over_all_partitions(queue: Queue) -> None:
    await work(queue)
    assert (await queue.retry_many(dry_run=True)).matched == 30
    report = await queue.retry_many(JobFilter(text="number 3"))
    assert (report.matched, report.retried) == (5, 5)  # 3, 30, 33, 36, 39
    assert (await queue.get_job_counts()).waiting == 5
    assert (await queue.remove_many(state="waiting")).removed == 5
    assert (await queue.remove_many(limit=4)).removed == 4
    kinds = await queue.get_failure_groups()
    assert (kinds.total, kinds.scanned, [group.count for group in kinds.groups]) == (21, 21, [21])


async def test_clean_and_purge_have_one_limit_for_the_whole_queue(queue: Queue) -> None:
    await work(queue)
    steps: list[int] = []
    assert await queue.clean("completed", limit=17, progress=steps.append) == 17
    assert steps == sorted(steps)
    assert steps[-1] == 17
    assert await queue.clean("failed", grace=timedelta(hours=1)) == 0
    await queue.add_many({"data": i, "group_id": g} for i in range(3) for g in GROUPS)
    assert await queue.purge() == 72
    assert (await queue.repair()).clean


async def test_metrics_failures_and_workers_are_those_of_the_whole_queue(queue: Queue) -> None:
    await work(queue)
    metrics = await queue.get_metrics(5)
    assert (metrics.completed, metrics.failed) == (60, 30)
    assert sum(minute.completed for minute in metrics.series) == 60
    assert len(metrics.series) == 5
    assert metrics.run.count == 90
    failures = await queue.get_failures(20)
    assert len(failures) == 20
    assert [one.time for one in failures] == sorted((one.time for one in failures), reverse=True)
    running = asyncio.Event()

    async def block(job: Job) -> None:
        running.set()
        await asyncio.Event().wait()

    async with Worker(queue, block, concurrency=3, name="one", heartbeat=0.1) as worker:
        await queue.add_many({"data": 1, "group_id": g} for g in GROUPS)
        await running.wait()

        async def presence() -> bool:
            found = [(one.name, one.concurrency, one.current_jobs) for one in await queue.get_workers()]
            return found == [("one", 3, 3)]

        await eventually(presence, "one worker runs three jobs")
        survey = await queue.survey()
        assert (survey.counts.active, len(survey.runs), survey.counts.waiting) == (3, 3, 21)
        assert [(one.name, one.busy) for one in survey.workers] == [("one", 3)]
        assert survey.totals.completed == 60
        assert worker.is_processing()
        assert len(worker.get_current_jobs()) == 3
        assert worker.get_worker_metrics().running == 3
        assert worker.health().ready
        await worker.close(timeout=0)
    assert await queue.get_workers() == []


@pytest.mark.parametrize("sort", ["held", "oldest", "deepest", "busiest", "name"])
async def test_lanes_are_sorted_over_all_partitions(queue: Queue, make_queue: MakeQueue, sort: Any) -> None:
    single = make_queue("single")
    for one in (queue, single):
        await one.add_many({"data": i, "group_id": g} for n, g in enumerate(GROUPS) for i in range(1 + n % 5))
    page, other = await queue.get_groups(sort=sort, limit=10), await single.get_groups(sort=sort, limit=10)
    assert page.total == other.total == 24
    if sort in ("deepest", "name"):
        assert [lane.group.id for lane in page.groups] == [lane.group.id for lane in other.groups]
    assert len(page.groups) == 10


async def test_walks_through_a_survey_see_every_group(queue: Queue) -> None:
    await queue.add_many({"data": i, "group_id": g} for i in range(2) for g in GROUPS)
    seen: Counter[str | None] = Counter()
    cursor = "0"
    for _ in range(50):
        survey = await queue.survey(cursor=cursor, groups=24, also=GROUPS[:2])
        seen.update(group.id for group in survey.busiest)
        cursor = survey.cursor
        if cursor == "0":
            break
    assert sorted(filter(None, seen)) == GROUPS


async def test_reconfigure_stores_settings_in_all_partitions(queue: Queue, make_queue: MakeQueue) -> None:
    await queue.add_many({"data": 1, "group_id": g} for g in GROUPS)
    new = make_queue("spread", group_concurrency=3)
    with pytest.raises(ConfigurationError, match="group_concurrency is 1 there and 3 here"):
        await new.add(1)
    await new.reconfigure()
    assert {(await new.get_group(g)).concurrency for g in GROUPS} == {3}
    assert (await new.get_settings()).partitions == P
    assert (await make_queue("spread", group_concurrency=3, partitions=P).get_job_counts()).waiting == 24


async def test_marks_and_checks(queue: Queue) -> None:
    await work(queue, 6)
    await queue.mark("deployed")
    assert [mark.label for mark in await queue.get_marks()] == ["deployed"]
    assert all(finding.status != "fail" for finding in await queue.check())
    await queue.ensure_writable()
    assert await queue.get_turn() is None
