"""`add_many` sends its calls before the earlier ones are answered: they still take effect in order, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
import redis

from groupmq import GroupFull, Job, Queue
from groupmq.core.errors import ServerRefused
from groupmq.protocol.commands import CHUNK
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.waiting import eventually

CALLS = 6


def items(calls: int = CALLS, **fields: Any) -> list[dict[str, Any]]:
    return [{"data": i, "job_id": f"j{i}", "group_id": "g", **fields} for i in range(calls * CHUNK)]


def ids(calls: int = CALLS) -> list[str]:
    return [f"j{i}" for i in range(calls * CHUNK)]


class HeldBack:
    """Holds back the first `add` of a queue until later ones have been answered."""

    def __init__(self, queue: Queue, until: int) -> None:
        self._execute, self._until = queue._connection.execute, until
        self.refused = 0
        self._answered = 0
        self._adds = 0
        queue._connection.execute = self.execute  # type: ignore[method-assign]

    async def execute(self, *parts: Any) -> Any:
        if not (parts[0].startswith("FCALL") and parts[1].endswith("_add")):
            return await self._execute(*parts)
        self._adds += 1
        if self._adds == 1:
            await eventually(lambda: self._answered >= self._until, "later calls are answered")
        try:
            return await self._execute(*parts)
        except Exception as error:
            self.refused += "GROUPMQ_ORDER" in str(error)
            raise
        finally:
            self._answered += 1


@pytest.mark.parametrize("later", [1, 2])
async def test_a_call_that_arrives_late_is_not_overtaken(queue: Queue, later: int) -> None:
    await queue.add("opens the queue", job_id="first")
    held = HeldBack(queue, later)
    jobs = await queue.add_many(items())
    assert held.refused >= later, "no call came too early"
    assert [job.id for job in jobs] == ids()
    assert await queue.get_waiting_jobs(limit=2000) == ["first", *ids()]
    assert not any(job.duplicate for job in jobs)


async def test_the_order_holds_while_the_functions_are_flushed_again_and_again(queue: Queue, client: Any) -> None:
    await queue.add("opens the queue", job_id="first")
    adding = asyncio.ensure_future(queue.add_many(items(30)))
    flushes = 0
    while not adding.done():
        await asyncio.to_thread(client.function_flush)
        flushes += 1
        await asyncio.sleep(0)
    assert [job.id for job in await adding] == ids(30)
    assert flushes > 1
    assert await queue.get_waiting_jobs(limit=5000) == ["first", *ids(30)]


async def test_nothing_is_added_behind_a_call_that_finds_its_group_full(make_queue: MakeQueue) -> None:
    queue = make_queue(max_group_size=CHUNK + 1)
    await queue.add("opens the queue", job_id="first")
    others = items()
    for i, item in enumerate(others):
        item["group_id"] = "full" if CHUNK <= i < 3 * CHUNK else f"g{i}"
    with pytest.raises(GroupFull):
        await queue.add_many(others)
    assert sorted(await queue.get_waiting_jobs(limit=2000)) == sorted(["first", *ids(2)])


def test_the_blocking_client_keeps_the_order_too(url: str) -> None:
    with SyncQueue("sync-full", url, max_group_size=CHUNK + 1) as queue:
        others = items()
        for i, item in enumerate(others):
            item["group_id"] = "full" if CHUNK <= i < 3 * CHUNK else f"g{i}"
        with pytest.raises(GroupFull):
            queue.add_many(others)
        assert sorted(queue.get_waiting_jobs(limit=2000)) == sorted(ids(2))


async def test_nothing_is_added_behind_a_call_that_is_refused(queue: Queue, client: Any) -> None:
    """The server is full for the first call only."""
    await queue.add("opens the queue", job_id="first")
    execute, adds = queue._connection.execute, 0

    async def full_for_the_first(*parts: Any) -> Any:
        nonlocal adds
        if not (parts[0].startswith("FCALL") and parts[1].endswith("_add")):
            return await execute(*parts)
        adds += 1
        if adds > 1:
            return await execute(*parts)
        client.config_set("maxmemory", 1)
        try:
            return await execute(*parts)
        finally:
            client.config_set("maxmemory", 0)

    queue._connection.execute = full_for_the_first  # type: ignore[method-assign]
    with pytest.raises(ServerRefused, match="out of memory"):
        await queue.add_many(items())
    assert await queue.get_waiting_jobs(limit=2000) == ["first"]


async def test_an_add_that_is_cancelled_leaves_no_task_and_no_gap(queue: Queue) -> None:
    await queue.add("opens the queue", job_id="first")
    before = asyncio.all_tasks()
    for pause in range(12):
        adding = asyncio.ensure_future(queue.add_many(items()))
        for _ in range(pause):
            await asyncio.sleep(0)
        adding.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await adding
        assert asyncio.all_tasks() <= before
    found = await queue.get_waiting_jobs(limit=2000)
    assert found == ["first", *ids()][: len(found)]
    assert len(found) % CHUNK == 1


async def test_the_first_adds_of_a_process_open_the_queue_once(make_queue: MakeQueue, client: redis.Redis) -> None:
    name = "opened-once"
    await make_queue(name).add("loads the functions")
    calls: list[str] = []
    queue = make_queue(name)
    execute = queue._connection.execute

    async def noted(*parts: Any) -> Any:
        calls.append(str(parts[1]).rpartition("_")[2])
        return await execute(*parts)

    queue._connection.execute = noted  # type: ignore[method-assign]
    jobs: list[Job] = await queue.add_many(items())
    assert len(jobs) == CALLS * CHUNK
    assert calls.count("open") == 1
