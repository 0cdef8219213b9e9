"""Retrying many failed jobs: each gets its sort key back, each once, in small steps that can be stopped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupmq import ConfigurationError, FailJob, Job, JobFilter, Queue, RetryReport, Worker
from groupmq.client.queue.matching import STEP, StepRate
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.by_hand import Operations


class ShopError(Exception):
    """An error class of the user."""


async def refuse(job: Job) -> None:
    if isinstance(job.data, dict) and job.data.get("shop"):
        raise ShopError("closed")
    raise FailJob("not today")


async def run_all(queue: Queue, handle: Any = refuse) -> list[str]:
    """Run every job that can start. Returns the ids in the order in which they started."""
    started: list[str] = []

    async def noting(job: Job) -> Any:
        started.append(job.id)
        return await handle(job)

    async with asyncio.timeout(30):
        await Worker(queue, noting, prefetch=0).run(burst=True)
    return started


async def nothing(job: Job) -> None:
    """A handler that returns at once."""


async def add(queue: Queue, *ids: str, **fields: Any) -> None:
    fields = {"data": {}, "group_id": "g", "max_attempts": 1, **fields}
    await queue.add_many([{**fields, "job_id": job_id} for job_id in ids])


async def test_each_job_goes_back_to_its_original_position(queue: Queue) -> None:
    await add(queue, "a", "b", "c", "d", "e")
    await run_all(queue)
    await add(queue, "f")
    report = await queue.retry_many()
    assert report == RetryReport(5, 5, 0, 5, False, 1, ["a", "b", "c", "d", "e"])
    page = await queue.get_group_jobs("g")
    assert [job.id for job in page.jobs] == ["a", "b", "c", "d", "e", "f"]
    assert await run_all(queue, nothing) == ["a", "b", "c", "d", "e", "f"]


async def fail_some(job: Job) -> None:
    if job.id.startswith("bad"):
        raise FailJob("not today")


async def test_a_dry_run_reports_jobs_that_others_of_their_group_have_overtaken(queue: Queue, url: str) -> None:
    """A failed job is overtaken by completed and running jobs of its group, but not by other failed jobs."""
    await add(queue, "bad-1", "good-1", group_id="g1")
    await add(queue, "bad-2", "bad-3", group_id="g2")
    await add(queue, "good-2", "bad-4", group_id="g3")
    await add(queue, "bad-5", group_id=None)
    await add(queue, "good-3", group_id=None)
    await add(queue, "waits-1", "good-4", group_id="g4")
    await queue.fail("waits-1", "by hand")
    await run_all(queue, fail_some)
    report = await queue.retry_many(dry_run=True)
    assert (report.matched, report.overtaken) == (6, 2)
    assert sorted(report.overtaken_sample) == ["bad-1", "waits-1"]
    with SyncQueue(queue.name, url) as same:
        assert same.retry_many(dry_run=True) == report
    assert (await queue.retry_many(JobFilter(group_id="g2"), dry_run=True)).overtaken == 0
    running, let_go = asyncio.Event(), asyncio.Event()

    async def stay(job: Job) -> None:
        running.set()
        await let_go.wait()

    await add(queue, "runs", group_id="g2")
    async with Worker(queue, stay):
        await running.wait()
        found = await queue.retry_many(JobFilter(group_id="g2"), dry_run=True)
        let_go.set()
    assert (found.overtaken, found.overtaken_sample) == (2, ["bad-2", "bad-3"])


async def test_a_job_that_blocks_its_group_is_overtaken_by_none(queue: Queue) -> None:
    await add(queue, "good-1", "bad-1", "good-2", on_failed="hold")
    await run_all(queue, fail_some)
    assert (await queue.retry_many(dry_run=True)).overtaken == 0
    await queue.skip("bad-1")
    await run_all(queue, fail_some)
    assert (await queue.retry_many(dry_run=True)).overtaken_sample == ["bad-1"]


async def test_redriving_many_jobs_unblocks_their_groups(queue: Queue) -> None:
    for group in ("g1", "g2"):
        await add(queue, f"bad-{group}", f"behind-{group}", group_id=group, on_failed="hold")
    await run_all(queue, fail_some)
    assert (await queue.get_metrics(0)).groups_blocked == 2
    assert (await queue.retry_many()).retried == 2
    assert (await queue.get_metrics(0)).groups_blocked == 0
    assert sorted(await run_all(queue, nothing)) == ["bad-g1", "bad-g2", "behind-g1", "behind-g2"]
    assert (await queue.get_job_counts()).completed == 4


async def test_only_those_that_match_are_retried(queue: Queue) -> None:
    await add(queue, "a", "b", group_id="g1")
    await add(queue, "c", group_id="g2", data={"shop": True})
    await add(queue, "d")
    await run_all(queue)
    for wanted, expected in (
        (JobFilter(error="ShopError"), ["c"]),
        (JobFilter(error="groupmq.errors"), ["a", "b", "d"]),
        (JobFilter(group_id="g1"), ["a", "b"]),
        (JobFilter(text="shop"), ["c"]),
        (JobFilter(job_id="d"), ["d"]),
        (JobFilter(job_id="nobody"), []),
        (JobFilter(older=3600), []),
        (JobFilter(newer=3600), ["a", "b", "c", "d"]),
    ):
        foretold = await queue.retry_many(wanted, dry_run=True)
        assert (foretold.sample, foretold.retried, foretold.dry_run) == (expected, 0, True), f"{wanted}"
    report = await queue.retry_many(JobFilter(group_id="g1"))
    assert (report.matched, report.retried, report.groups) == (2, 2, 1)
    counts = await queue.get_job_counts()
    assert (counts.waiting, counts.failed) == (2, 2)


async def test_a_job_that_fails_again_meanwhile_is_not_retried_twice(make_queue: MakeQueue) -> None:
    queue = make_queue(keep_failed=1000)
    many = [f"j{n:03}" for n in range(3 * STEP)]
    for job_id in many:
        await add(queue, job_id, group_id=job_id)
    await run_all(queue)
    seen: list[RetryReport] = []
    steps = Operations(queue.options, queue._make_job).retry_many(progress=seen.append)
    call = steps.send(None)
    report = None
    while report is None:
        answer = await queue._connection.call(call)
        if call.script == "redrive":
            await run_all(queue)  # all retried jobs fail again before the next page is read
        try:
            call = steps.send(answer)
        except StopIteration as stop:
            report = stop.value
    assert (report.matched, report.retried, report.skipped) == (len(many), len(many), 0)
    assert [one.retried for one in seen] == [STEP, 2 * STEP, 3 * STEP]
    assert await queue.get_failed_count() == len(many)


async def test_a_failure_that_another_has_dealt_with_is_skipped(make_queue: MakeQueue) -> None:
    queue = make_queue()
    await add(queue, "a", "b", "c")
    await run_all(queue)
    steps = Operations(queue.options, queue._make_job).retry_many()
    call = steps.send(None)
    report = None
    while report is None:
        if call.script == "redrive":
            await queue.retry("a")
            assert await run_all(queue) == ["a"]  # it failed again, so the page names an outdated failure
            await queue.remove("b")
        try:
            call = steps.send(await queue._connection.call(call))
        except StopIteration as stop:
            report = stop.value
    assert (report.matched, report.retried, report.skipped) == (3, 1, 2)
    assert await queue.get_failed_count() == 1


async def test_at_most_so_many_the_oldest_failures_first(queue: Queue) -> None:
    await add(queue, "a", "b", "c")
    await run_all(queue)
    assert (await queue.retry_many(limit=2)).sample == ["a", "b"]
    assert [job.id for job in await queue.get_failed_jobs()] == ["c"]
    assert (await queue.retry_many(limit=0)).matched == 0


async def test_a_report_of_no_failed_job_is_empty(queue: Queue) -> None:
    assert await queue.retry_many() == RetryReport()
    assert (await queue.remove_many()).removed == 0


async def test_cancelling_it_ends_it_between_two_steps(make_queue: MakeQueue) -> None:
    queue = make_queue(keep_failed=1000)
    await add(queue, *(f"j{n}" for n in range(4 * STEP)))
    await run_all(queue)
    first = asyncio.Event()
    work = asyncio.create_task(queue.retry_many(rate=STEP * 5, progress=lambda report: first.set()))
    await first.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    counts = await queue.get_job_counts()
    assert counts.waiting + counts.failed == 4 * STEP
    assert counts.waiting % STEP == 0
    assert 0 < counts.waiting < 4 * STEP
    await queue.retry_many()
    assert (await queue.get_job_counts()).waiting == 4 * STEP


async def test_an_error_that_progress_raises_ends_the_retries(queue: Queue) -> None:
    await add(queue, "a")
    await run_all(queue)

    def stop(report: RetryReport) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError):
        await queue.retry_many(progress=stop)
    assert await queue.get_failed_count() == 0


def test_a_rate_is_kept_by_small_steps_with_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("groupmq.client.queue.matching.time.monotonic", lambda: clock[0])
    pace = StepRate(20)
    assert (pace.step, pace.wait()) == (4, 0)
    pace.did(4)
    assert pace.wait() == pytest.approx(0.2)
    clock[0] += 0.05
    assert pace.wait() == pytest.approx(0.15)
    clock[0] += 10
    pace.did(4)
    assert pace.wait() == pytest.approx(0.2)
    assert (StepRate(0.5).step, StepRate(10_000).step, StepRate(None).step) == (1, STEP, STEP)
    unbounded = StepRate(None)
    unbounded.did(1000)
    assert unbounded.wait() == 0


async def test_removing_keeps_to_a_rate(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupmq.client.queue.matching.time.monotonic", lambda: 100.0)
    await add(queue, *(f"w{n}" for n in range(10)))
    make_call, waits = queue._call, []

    async def at_once(call: Any) -> Any:
        if call.script == "remove":
            waits.append(call.after)
        return await make_call(call._replace(after=0.0))

    monkeypatch.setattr(queue, "_call", at_once)
    report = await queue.remove_many(state="waiting", rate=20)
    assert report.removed == 10
    assert waits == pytest.approx([0, 0.2, 0.4]), "four jobs per call, five calls a second"


async def test_bad_arguments_are_named(queue: Queue) -> None:
    for wrong, named in (
        ({"rate": 0}, "rate: expected a number"),
        ({"limit": -1}, "limit"),
        ({"filter": {"group_id": "g"}}, "filter: expected a JobFilter or None"),
        ({"filter": JobFilter(state="waiting")}, "filter: expected a JobFilter with state='failed'"),
        ({"dry_run": 1}, "dry_run: expected True or False"),
        ({"progress": 5}, "progress: expected a callable"),
    ):
        with pytest.raises(ConfigurationError, match=named):
            await queue.retry_many(**wrong)
    with pytest.raises(ConfigurationError, match="rate: expected a number"):
        await queue.remove_many(rate=0)


async def test_matching_jobs_of_any_state_are_removed(queue: Queue) -> None:
    await add(queue, *(f"w{n}" for n in range(120)), group_id="g1")
    await add(queue, *(f"x{n}" for n in range(10)), group_id="g2")
    await add(queue, "d1", "d2", delay=60)
    foretold = await queue.remove_many(JobFilter(group_id="g1"), state="waiting", dry_run=True)
    assert (foretold.matched, foretold.removed, foretold.groups) == (120, 0, 1)
    report = await queue.remove_many(JobFilter(group_id="g1"), state="waiting", limit=100)
    assert (report.matched, report.removed, report.skipped) == (100, 100, 0)
    assert (await queue.remove_many(state="delayed")).removed == 2
    assert (await queue.get_job_counts()).total == 30
    assert (await queue.remove_many(JobFilter(state="waiting"))).removed == 30
    await add(queue, "f1", "f2")
    await run_all(queue)
    assert (await queue.remove_many(JobFilter(text="today"))).removed == 2


async def test_the_blocking_client_does_the_same(queue: Queue, url: str) -> None:
    await add(queue, "a", "b", "c")
    await run_all(queue)

    def work() -> tuple[Any, ...]:
        with SyncQueue(queue.name, url) as same:
            page = same.search(JobFilter(error="FailJob"), limit=2)
            seen: list[int] = []
            report = same.retry_many(rate=1000, progress=lambda report: seen.append(report.retried))
            attempts = same.require_job("a").get_attempts()
            lanes = same.get_groups(behind=1)
            position = same.get_position("b")
            removed = same.remove_many(state="waiting", rate=1000)
            kinds = same.get_failure_groups()
            return [job.id for job in page.jobs], report, seen[-1], attempts, lanes, position, removed, kinds

    found, report, last, attempts, lanes, position, removed, kinds = await asyncio.to_thread(work)
    assert (found, report.retried, last) == (["c", "b"], 3, 3)
    assert [one.outcome for one in attempts] == ["failed"]
    assert [(lane.group.id, [job.id for job in lane.next]) for lane in lanes.groups] == [("g", ["a"])]
    assert (position.position, position.of) == (2, 3)
    assert (removed.removed, kinds.total) == (3, 0)


async def test_large_failed_jobs_are_retried_in_as_many_calls_as_they_need(make_queue: MakeQueue) -> None:
    queue = make_queue()
    await add(queue, *(f"j{n}" for n in range(7)), data="x" * 400_000)
    await run_all(queue)
    calls = 0
    steps = Operations(queue.options, queue._make_job).retry_many()
    answer: Any = None
    while True:
        try:
            call = steps.send(answer)
        except StopIteration as stop:
            report = stop.value
            break
        calls += call.script == "redrive"
        answer = await queue._connection.call(call)
    assert (report.retried, report.skipped) == (7, 0)
    assert calls > 1
