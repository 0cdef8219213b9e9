"""Processes of the release before this one, on the same server and the same queue.

They are real: the engine of that release as it was, in processes of its own (`release.py`).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import redis

from groupmq import ConfigurationError, Every, FailJob, Job, Queue, Worker
from groupmq.protocol import commands, functions
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.older.release import FORMAT, OlderRelease
from tests.support import keyspace
from tests.support.dump import Dump
from tests.support.waiting import eventually
from tests.support.workers import one_kind

pytestmark = one_kind
REFUSED = "queue 'orders' is stored in format {}, this release of groupmq reads format {}; use the release that made it"


@pytest.fixture
def older(tmp_path: Path) -> OlderRelease:
    return OlderRelease(tmp_path)


@pytest.fixture
def another(tmp_path: Path) -> OlderRelease:
    return OlderRelease(tmp_path, same_format=True)


def stored(client: redis.Redis) -> dict[bytes, Any]:
    """A dump of every key of the server, whatever its type."""
    keys: Any = client.keys("*")
    return {key: client.dump(key) for key in keys}


def libraries(client: redis.Redis) -> set[str]:
    found: Any = client.function_list()
    flat = [[str(part, "utf-8") if isinstance(part, bytes) else part for part in one] for one in found]
    return {one[one.index("library_name") + 1] for one in flat}


async def filled(queue: Queue) -> None:
    """Fill a queue with jobs in several states, a paused group and a repeating job."""

    async def handle(job: Job) -> None:
        if job.data == "fails":
            raise FailJob("declined")

    await queue.add("fails", job_id="bad", group_id="g", on_failed="hold")
    await queue.add("works", job_id="good", group_id="h")
    await Worker(queue, handle).run(burst=True)
    await queue.add(1, job_id="a", group_id="g")
    await queue.add(2, job_id="later", delay=3600)
    await queue.pause_group("p")
    await queue.add(3, repeat=Every(3600, key="hourly"))


async def test_an_older_process_refuses_a_queue_of_this_format_and_changes_nothing(
    older: OlderRelease, make_queue: MakeQueue, client: redis.Redis, url: str
) -> None:
    """It refuses even with settings given to it, and even when asked to remove the queue."""
    client.function_flush()  # libraries that other tests have loaded
    await filled(make_queue("orders"))
    before = stored(client)
    said = await asyncio.to_thread(older.run, "try", url, "orders")
    assert len(said) == 18
    for one in said:
        assert one.get("error") == "ConfigurationError", one
        assert one["text"].startswith(REFUSED.format(commands.SCHEMA, FORMAT)), one
    assert stored(client) == before
    assert len(libraries(client)) == 2, "the older process has not loaded its own library"
    assert functions.library().name in libraries(client)


async def test_this_release_refuses_a_queue_of_the_older_format_and_changes_nothing(
    older: OlderRelease, make_queue: MakeQueue, client: redis.Redis, url: str
) -> None:
    """Older processes still work on the queue. Once they have removed it, this release creates it again."""
    await asyncio.to_thread(older.run, "make", url, "orders", "6")
    before = stored(client)
    queue = make_queue("orders", max_attempts=2)

    async def nothing(job: Job) -> None:
        raise AssertionError("no job of that queue may start here")

    with SyncQueue("orders", url) as blocking:
        for call in (blocking.get_job_counts, blocking.repair, lambda: blocking.add(1)):
            with pytest.raises(ConfigurationError, match=REFUSED.format(FORMAT, commands.SCHEMA)):
                call()
    for operation in (
        queue.add(1, group_id="g"),
        queue.get_job_counts(),
        queue.get_open_breakers(),
        Worker(queue, nothing).run(burst=True),
        queue.run_duty_once("recovery"),
        queue.reconfigure(max_attempts=9),
        queue.pause(),
        queue.repair(),
        queue.obliterate(),
        Queue.open("orders", url),
    ):
        with pytest.raises(ConfigurationError, match=REFUSED.format(FORMAT, commands.SCHEMA)):
            await operation
    assert stored(client) == before
    assert (await asyncio.to_thread(older.run, "obliterate", url, "orders")) == [{"obliterated": "orders"}]
    await queue.add(1, group_id="g")
    assert (await queue.get_job_counts()).waiting == 1


async def test_an_older_worker_that_runs_takes_nothing_of_a_queue_that_was_made_anew(
    older: OlderRelease, make_queue: MakeQueue, client: redis.Redis, url: str
) -> None:
    await asyncio.to_thread(older.run, "make", url, "orders", "6")
    process = older.start("work", url, "orders")
    try:
        await asyncio.to_thread(older.until, "works")
        await eventually(lambda: client.llen("log") == 6, "it has run all jobs")
        await asyncio.to_thread(older.run, "obliterate", url, "orders")
        queue = make_queue("orders")

        async def made() -> bool:
            """Create the queue. If the old worker has created it first, in its own format, remove it and try again."""
            try:
                await queue.add_many([{"data": n, "group_id": "g"} for n in range(20)])
            except ConfigurationError:
                await asyncio.to_thread(older.run, "obliterate", url, "orders")
                return False
            return True

        await eventually(made, "the queue is of the new format", 30)
        await asyncio.to_thread(older.until, f"is stored in format {commands.SCHEMA}")
        assert (await queue.get_job_counts()).waiting == 20
        ran: list[Any] = []

        async def handle(job: Job) -> None:
            ran.append(job.data)

        await Worker(queue, handle).run(burst=True)
        assert (ran, client.llen("log")) == (list(range(20)), 6)
        assert keyspace.violations(keyspace.read(Dump(client), "groupmq", "orders")) == []
    finally:
        process.communicate(timeout=30)


async def test_processes_of_two_releases_of_one_format_work_on_one_queue(
    another: OlderRelease, make_queue: MakeQueue, client: redis.Redis, url: str
) -> None:
    """Two releases of one format: both take jobs, take over from each other, and keep the order."""
    queue = make_queue("orders", keep_completed=1000)
    await queue.add(0, group_id="g0")
    process = another.start("work", url, "orders")

    async def handle(job: Job) -> None:
        await asyncio.to_thread(client.rpush, "log", json.dumps(["this", job.group_id, job.data]))

    worker = Worker(queue, handle, concurrency=4, name="this")
    try:
        await asyncio.to_thread(another.until, "works")
        await worker.start()
        for n in range(1, 400):
            await queue.add(n, group_id=f"g{n % 8}")
            if n == 200:
                await queue.reconfigure(max_attempts=7)
        await eventually(lambda: client.llen("log") == 400, "all have run", 60)
    finally:
        await worker.close()
        process.communicate(timeout=30)
    lines: Any = client.lrange("log", 0, -1)
    ran = [json.loads(line) for line in lines]
    assert {who for who, _, _ in ran} == {"older", "this"}
    for group in range(8):
        assert [data for _, group_id, data in ran if group_id == f"g{group}"] == list(range(group, 400, 8))
    counts = await queue.get_job_counts()
    assert (counts.completed, counts.failed, counts.total) == (400, 0, 0)
    assert (await queue.get_settings()).max_attempts == 7
    assert (await queue.repair()).mended == {}
    assert keyspace.violations(keyspace.read(Dump(client), "groupmq", "orders")) == []
    assert [one for one in another.said() if "error" in one] == []


async def test_what_is_refused_there_is_done_where_the_format_is_the_same(
    another: OlderRelease, make_queue: MakeQueue, url: str
) -> None:
    """This proves that the refusals above are due to the format and nothing else."""
    await filled(make_queue("orders", max_attempts=2))
    said = await asyncio.to_thread(another.run, "try", url, "orders")
    assert [one["tried"] for one in said if "tried" in one][-2:] == ["obliterate", "open"]
    errors = {one["tried"]: one["error"] for one in said if "error" in one}
    assert errors == {"open": "QueueNotFound"}, "the queue was obliterated just before"


async def test_an_older_process_with_settings_of_its_own_is_refused_with_both_values(
    another: OlderRelease, make_queue: MakeQueue, url: str
) -> None:
    """With the same format it is refused before it does anything, except when it asks to change the settings."""
    queue = make_queue("orders", max_attempts=5)
    await queue.add(1, job_id="a", group_id="g")
    said = {one["tried"]: one for one in await asyncio.to_thread(another.run, "try", url, "orders") if "tried" in one}
    for what in ("add", "add many", "count", "work", "recover", "pause", "remove"):
        assert said[what]["error"] == "ConfigurationError"
        assert "max_attempts is 5 there and 2 here" in said[what]["text"]
    assert "max_attempts=9" in said["reconfigure"]["answer"], "reconfigure may change a setting"
