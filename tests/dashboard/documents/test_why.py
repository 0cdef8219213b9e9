"""Why a job does not run: each page that shows it says so, even if the reason is not in its group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from groupmq import Job, Queue, RateLimit, Snooze, Worker
from tests.conftest import MakeQueue
from tests.dashboard.busy import HELD, Busy
from tests.dashboard.conftest import MakeSite
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually

READY = "Ready to start"


async def idle(job: Job) -> None:
    pass


@pytest.fixture
async def full(make_queue: MakeQueue) -> AsyncIterator[Queue]:
    """A queue whose worker has one slot, which is taken; otherwise the job `waits` could start."""
    queue, gate = make_queue("orders"), asyncio.Event()

    async def stay(job: Job) -> None:
        await gate.wait()

    await queue.add(1, group_id="first", job_id="runs")
    async with Worker(queue, stay, prefetch=0):
        await eventually(lambda: _active(queue), "the slot is taken")
        await queue.add(1, group_id="user:1", job_id="waits")
        yield queue
        gate.set()


async def _active(queue: Queue) -> bool:
    return await queue.get_active_count() == 1


async def everywhere(site: Site, queue: Queue, words: str) -> None:
    """Check that the lanes, the page of the group and that of the job contain these words."""
    for name in ("lanes", "group", "job"):
        assert words in await site.page(name, queue=queue.name, group="user:1", job="waits"), name


async def test_a_queue_without_workers_says_so_everywhere(make_queue: MakeQueue, site: Site) -> None:
    queue = make_queue("orders")
    await queue.add(1, group_id="user:1", job_id="waits")
    await everywhere(site, queue, "This queue has no worker.")
    page = await site.json("lanes", queue="orders")
    assert page["queue"]["starting"]["reason"] == "no-worker"
    lanes = await site.page("lanes", queue="orders")
    assert READY not in lanes
    assert "No worker" in lanes


async def test_the_whole_queue_is_paused(make_queue: MakeQueue, site: Site) -> None:
    queue = make_queue("orders")
    async with Worker(queue, idle):
        await queue.pause()
        await queue.add(1, group_id="user:1", job_id="waits")
        await eventually(queue.get_workers, "the worker is listed")
        await everywhere(site, queue, "The whole queue is paused.")
        lanes = await site.page("lanes", queue="orders")
        assert READY not in lanes
        assert 'data-action="resume"' in lanes


async def test_every_slot_is_taken(full: Queue, site: Site) -> None:
    await eventually(full.get_workers, "the worker is listed")
    await everywhere(site, full, "Every slot of its workers is taken: ready jobs wait for one.")
    assert "Waits for a slot" in await site.page("lanes", queue="orders")


async def test_the_queue_starts_no_more_than_its_rate(make_queue: MakeQueue, site: Site) -> None:
    queue = make_queue("orders", rate_limit=RateLimit(1, per=3600))
    async with Worker(queue, idle, concurrency=4):
        await queue.add(1, group_id="user:1", job_id="goes")
        await eventually(queue.get_completed_count, "the first has run")
        await queue.add(1, group_id="user:1", job_id="waits")
        await everywhere(site, queue, "The whole queue starts at most 1 in 3600 s.")


async def test_an_idle_queue_has_nothing_to_explain(make_queue: MakeQueue, site: Site) -> None:
    queue = make_queue("orders")
    await queue.add(1, job_id="later", delay=3600)
    await queue.pause()
    await queue.remove("later")
    assert "This queue has no worker" not in await site.page("lanes", queue="orders")


async def test_a_held_lane_says_why_its_attempt_failed(busy: Busy, make_site: MakeSite) -> None:
    site = make_site(redact=["password"])
    page = await site.json("lanes", queue="orders", match=HELD)
    assert page["lanes"][0]["error"] == "TimeoutError: no answer for password=[redacted] in 10 s"
    for name in ("lanes", "group"):
        html = await site.page(name, queue="orders", group=HELD)
        assert "TimeoutError: no answer for password=[redacted] in 10 s" in html
        assert busy.secret not in html


async def test_a_job_behind_a_held_one_says_what_holds_its_group(busy: Busy, site: Site) -> None:
    page = await site.json("job", queue="orders", job=busy.ids["behind2"])
    assert page["lane"]["held"]["job_id"] == busy.ids["held"]
    assert (page["lane"]["held"]["attempt"], page["lane"]["held"]["max_attempts"]) == (1, 2)
    html = await site.page("job", queue="orders", job=busy.ids["behind2"])
    assert "attempt 1 of 2 failed" in html
    assert (await site.json("job", queue="orders", job=busy.ids["active"]))["lane"] is None


async def test_a_blocked_lane_says_why_the_job_that_blocks_it_failed(busy: Busy, site: Site) -> None:
    job = await busy.queue.add(busy.data("fail"), group_id="user:stuck", on_failed="hold")
    await eventually(lambda: _blocked(busy.queue, "user:stuck"), "the group is blocked")
    await busy.queue.add(busy.data("complete"), group_id="user:stuck")
    for page in (
        await site.json("lanes", queue="orders", state="blocked"),
        await site.json("lanes", queue="orders", match="user:stuck"),
    ):
        (lane,) = page["lanes"]
        assert (lane["blocked_by"], lane["error"]) == (job.id, f"password={busy.secret} is wrong")
    assert "is wrong" in await site.page("group", queue="orders", group="user:stuck")


async def _blocked(queue: Queue, group_id: str) -> bool:
    return (await queue.get_group(group_id)).state == "blocked"


async def test_what_can_be_done_about_the_job_that_blocks_a_group(busy: Busy, site: Site) -> None:
    """The page of its group offers to retry, edit, skip and remove it."""
    job = await busy.queue.add(busy.data("fail"), group_id="user:stuck", on_failed="hold")
    await busy.queue.add(busy.data("complete"), group_id="user:stuck")
    await eventually(lambda: _blocked(busy.queue, "user:stuck"), "the group is blocked")
    html = await site.page("group", queue="orders", group="user:stuck")
    for action in ("retry", "edit", "skip", "remove"):
        assert f"/actions/{action}?back=%2Fqueues%2Forders%2Fgroups%2Fuser%3Astuck&amp;job={job.id}" in html, action


async def test_a_snoozed_job_at_the_head_is_called_now(make_queue: MakeQueue, site: Site) -> None:
    queue, called = make_queue("orders"), []

    async def handle(job: Job) -> None:
        called.append(job.id)
        if len(called) == 1:
            raise Snooze(3600)

    async with Worker(queue, handle):
        job = await queue.add(1, group_id="user:1")
        await eventually(lambda: _held_by(queue, "user:1", "snoozed"), "the job is snoozed")
        assert f"job={job.id}" in await site.page("group", queue="orders", group="user:1")
        page = await site.json("job", queue="orders", job=job.id)
        assert page["actions"][0] == {
            "action": "promote",
            "label": "Run now",
            "danger": False,
            "params": {"job": job.id},
        }
        plan = await site.plan("promote", job=job.id)
        assert plan["refused"] is None
        await site.act("promote", job=job.id)
        await eventually(queue.get_completed_count, "it is called again")
    assert called == [job.id, job.id]


async def _held_by(queue: Queue, group_id: str, reason: str) -> bool:
    held = (await queue.get_group(group_id)).held
    return held is not None and held.reason == reason


async def test_the_warning_about_blocked_groups_leads_to_them(busy: Busy, site: Site) -> None:
    await busy.queue.add(busy.data("fail"), group_id="user:stuck", on_failed="hold")
    await eventually(lambda: _blocked(busy.queue, "user:stuck"), "the group is blocked")
    assert '/queues/orders/lanes?state=blocked"' in await site.page("queues")


async def test_of_the_warnings_of_all_queues_the_worst_comes_first(make_queue: MakeQueue, site: Site) -> None:
    """A queue without a worker (`xyz`) comes before one with a blocked group (`abc`)."""
    first, second = make_queue("abc"), make_queue("xyz")
    job = await first.add(1, group_id="user:1", on_failed="hold")
    await first.fail(job.id, "declined")
    await second.add(1)
    page = await site.page("queues")
    assert page.index("xyz: This queue has no worker.") < page.index("abc: A failed job blocks its group.")
