"""Blocked groups and overtaken jobs in a queue with four partitions work as in a queue without partitions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupmq import ConfigurationError, FailJob, Job, JobFilter, Queue, Worker
from groupmq.client.queue import indexed_groups
from groupmq.core.partitions import place_of
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.waiting import eventually

P = 4
NAMES = [f"g{i}" for i in range(8)]


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue("spread", partitions=P, on_failed="hold")


async def block(queue: Queue, *groups: str, behind: int = 1) -> None:
    """Block these groups in order, each in a different millisecond."""
    for group_id in groups:
        await queue.add_many({"data": i, "group_id": group_id, "job_id": f"{group_id}-{i}"} for i in range(1 + behind))
        await queue.fail(f"{group_id}-0", "declined")
        await eventually(lambda: moved_on(queue), "the server's clock has left the millisecond of the last block")


async def moved_on(queue: Queue) -> bool:
    last = (await queue.get_blocked_groups())[-1].blocked_since
    assert last is not None
    return (await queue.survey()).at > last


async def test_blocked_groups_are_listed_the_longest_blocked_first(
    queue: Queue, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = [*NAMES[4:], *NAMES[:4]]
    assert len({place_of(g) % P for g in order}) == P
    assert await queue.get_blocked_groups() == []
    await block(queue, *order)
    await queue.add(1, group_id="fine")
    for per_call in (1000, 1):
        monkeypatch.setattr(indexed_groups, "LISTED_PER_CALL", per_call)
        found = await queue.get_blocked_groups()
        assert [(one.id, one.blocked_by, one.waiting) for one in found] == [(g, f"{g}-0", 1) for g in order]
        assert [one.id for one in await queue.get_blocked_groups(3, 2)] == order[2:5]
        assert [one.id for one in await queue.get_blocked_groups(5, 6)] == order[6:]
        assert await queue.get_blocked_groups(5, 8) == await queue.get_blocked_groups(0) == []
    with pytest.raises(ConfigurationError, match="limit"):
        await queue.get_blocked_groups(1001)
    with SyncQueue("spread", url) as blocking:
        assert [one.id for one in blocking.get_blocked_groups(3, 2)] == order[2:5]
    await queue.skip(f"{order[0]}-0")
    assert [one.id for one in await queue.get_blocked_groups()] == order[1:]


async def test_lanes_counts_survey_and_check_show_blocked_groups(queue: Queue) -> None:
    order = [*NAMES[2:], *NAMES[:2]]
    await block(queue, *order)
    await queue.add(1, group_id="fine")
    page = await queue.get_groups(state="blocked", limit=3)
    assert [lane.group.id for lane in page.groups] == order[:3]
    assert (page.total, page.scanned, page.matched, page.complete) == (8, 8, 8, True)
    named = await queue.get_groups(state="blocked", sort="name", match="G1")
    assert [lane.group.id for lane in named.groups] == ["g1"]
    assert [lane.group.id for lane in (await queue.get_groups(state="ready")).groups] == ["fine"]
    metrics, first = await queue.get_metrics(), await queue.get_group(order[0])
    assert metrics.groups_blocked == 8
    assert metrics.longest_blocked is not None
    survey = await queue.survey(groups=5)
    assert first.blocked_since is not None
    assert 0 < metrics.longest_blocked <= (survey.at - first.blocked_since).total_seconds()
    assert (survey.groups_blocked, [one.id for one in survey.blocked]) == (8, order[:5])
    (finding,) = [one for one in await queue.check(oldest=0.001) if one.name == "blocked groups"]
    assert (finding.status, f"by job '{order[0]}-0'" in finding.detail) == ("fail", True)


@pytest.mark.parametrize("how", ["skip", "retry", "remove", "resume_group"])
async def test_each_goes_on_when_someone_decides(queue: Queue, how: str) -> None:
    await block(queue, *NAMES)
    for g in NAMES:
        assert await (queue.resume_group(g) if how == "resume_group" else getattr(queue, how)(f"{g}-0"))
    await Worker(queue, nothing, concurrency=4).run(burst=True)
    assert await queue.get_blocked_groups() == []
    assert await queue.get_completed_count() == (16 if how == "retry" else 8)


async def nothing(job: Job) -> None: ...


async def fail_some(job: Job) -> None:
    if job.id.startswith("bad"):
        raise FailJob("not today")


async def add(queue: Queue, *ids: str, **fields: Any) -> None:
    await queue.add_many([{"data": {}, "max_attempts": 1, **fields, "job_id": job_id} for job_id in ids])


async def test_a_dry_run_reports_jobs_that_others_of_their_group_have_overtaken(
    make_queue: MakeQueue, url: str
) -> None:
    queue = make_queue("spread", partitions=P)
    for g in NAMES:
        await add(queue, f"bad-of-{g}", f"good-of-{g}", group_id=g)
        await add(queue, f"first-of-{g}", f"bad-behind-{g}", group_id=f"other-{g}")
    await add(queue, "bad-alone", group_id=None)
    await Worker(queue, fail_some, concurrency=4, prefetch=0).run(burst=True)
    report = await queue.retry_many(dry_run=True)
    assert (report.matched, report.overtaken) == (17, 8)
    assert sorted(report.overtaken_sample) == [f"bad-of-{g}" for g in NAMES]
    with SyncQueue("spread", url) as blocking:
        assert blocking.retry_many(dry_run=True).overtaken == 8
    running, let_go = asyncio.Event(), asyncio.Event()

    async def stay(job: Job) -> None:
        running.set()
        await let_go.wait()

    await add(queue, "runs", group_id="other-g1")
    async with Worker(queue, stay):
        await running.wait()
        found = await queue.retry_many(JobFilter(group_id="other-g1"), dry_run=True)
        let_go.set()
    assert found.overtaken_sample == ["bad-behind-g1"]
    assert (await queue.retry_many()).retried == 17
