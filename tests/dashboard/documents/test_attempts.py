"""How often a job may run: its own number, its worker's, or the queue's."""

from __future__ import annotations

import asyncio

from groupmq import Backoff, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually


async def fails(job: Job) -> None:
    raise TimeoutError("no answer")


async def _held(queue: Queue, group_id: str) -> bool:
    held = (await queue.get_group(group_id)).held
    return held is not None and held.reason == "backoff"


async def seen(site: Site, job_id: str) -> tuple[int | None, str, int | None]:
    """The number of attempts in the lane, and the two on the page of the job."""
    (lane,) = (await site.json("lanes", queue="orders", match="user:1"))["lanes"]
    page = await site.json("job", queue="orders", job=job_id)
    return lane["held"]["max_attempts"], page["attempts_words"], page["job"]["max_attempts"]


async def test_the_number_is_stored_with_the_queue(make_queue: MakeQueue, site: Site) -> None:
    queue = make_queue("orders", max_attempts=5, backoff=600)
    async with Worker(queue, fails):
        job = await queue.add(1, group_id="user:1")
        await eventually(lambda: _held(queue, "user:1"), "the group is held")
        assert await seen(site, job.id) == (5, "1 of 5", 5)
        await queue.reconfigure(max_attempts=9)
        assert await seen(site, job.id) == (9, "1 of 9", 9)


async def test_a_worker_has_a_number_of_its_own(make_queue: MakeQueue, site: Site) -> None:
    queue = make_queue("orders", max_attempts=5, backoff=600)
    async with Worker(queue, fails, max_attempts=7):
        job = await queue.add(1, group_id="user:1")
        own = await queue.add(1, group_id="user:2", max_attempts=4)
        await eventually(lambda: _held(queue, "user:1"), "the group is held")
        await eventually(lambda: _held(queue, "user:2"), "the other group is held")
        await eventually(queue.get_workers, "the worker is listed")
        assert await seen(site, job.id) == (7, "1 of 7", 7)
        assert (await site.json("job", queue="orders", job=own.id))["attempts_words"] == "1 of 4"


async def test_workers_with_different_numbers(make_queue: MakeQueue, site: Site) -> None:
    """It is unknown which worker takes the next attempt. For a running job the number is that of its worker."""
    queue, gate = make_queue("orders", max_attempts=5, backoff=Backoff.fixed(600)), asyncio.Event()

    async def handle(job: Job) -> None:
        if job.data == "stay":
            await gate.wait()
        raise TimeoutError("no answer")

    async with Worker(queue, handle, max_attempts=7, name="seven", concurrency=2) as seven:
        stays = await queue.add("stay", group_id="user:3")
        job = await queue.add("fail", group_id="user:1")
        await eventually(lambda: _held(queue, "user:1"), "the group is held")
        async with Worker(queue, handle, name="five"):
            await eventually(lambda: _workers(queue, 2), "both workers are listed")
            assert await seen(site, job.id) == (None, "1", None)
            page = await site.json("job", queue="orders", job=stays.id)
            assert page["job"]["worker"] in (seven.id, "seven")
            assert page["attempts_words"] == "attempt 1 of 7 is running"
        gate.set()


async def _workers(queue: Queue, n: int) -> bool:
    return len(await queue.get_workers()) == n
