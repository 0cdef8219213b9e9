"""Subscribing and waiting for results while connections are cut and servers die: nothing is missed without a gap."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import time
from collections import Counter
from typing import Any

import pytest
import redis

from groupmq import Job, JobRemoved, Queue, Worker
from groupmq.sync import Queue as SyncQueue
from tests.faults.conftest import StartServer
from tests.support.fleet import Fleet
from tests.support.listening import hears, listening, readers
from tests.support.producing import produce
from tests.support.proxy import Proxy
from tests.support.servers import Kind, available_kinds, prefer
from tests.support.waiting import eventually

JOBS = 200
SOME = 500
NEVER = 3600.0


async def echo(job: Job) -> Any:
    return job.data


def cut_readers(client: Any) -> int:
    """End every connection that reads a log."""
    found = readers(client)
    for one in found:
        with contextlib.suppress(redis.ResponseError):
            client.client_kill_filter(_id=one["id"])
    return len(found)


async def test_a_loop_whose_connection_is_cut_again_and_again_misses_nothing(start_server: StartServer) -> None:
    server = start_server(prefer("redis"))
    with redis.Redis.from_url(server.url) as client:
        async with Queue("orders", server.url) as queue, listening(queue, client) as heard:
            with Fleet(server.url, "orders") as fleet:
                fleet.start(2)
                producing = asyncio.create_task(produce(queue, range(JOBS), seconds=0.005, pause=0.002))
                cuts = 0

                async def cut() -> bool:
                    nonlocal cuts
                    cuts += cut_readers(client)
                    return cuts >= 5

                await eventually(cut, "the subscriber was cut off five times", 20)
                added = await producing
                await heard.has("completed", JOBS, timeout=20)
    for kind in ("added", "active", "completed"):
        assert sorted(heard.ids(kind)) == sorted(added), kind  # type: ignore[type-var]
    assert heard.of("gap") == []
    where = {job_id: [heard.kinds(job_id)] for job_id in added}
    assert all(found == [["added", "active", "completed"]] for found in where.values())


@pytest.mark.parametrize("kind", available_kinds())
async def test_a_waiting_result_call_gets_what_ended_while_the_server_was_away(
    start_server: StartServer, kind: Kind
) -> None:
    """The server keeps its data, and the subscriber comes back later than the worker."""
    server = start_server(kind, aof=True)
    with redis.Redis.from_url(server.url) as client:
        async with Queue("orders", server.url, keep_completed=0) as queue, listening(queue, client) as heard:
            jobs = await queue.add_many({"data": n, "group_id": f"g{n % 10}"} for n in range(50))
            waiting = [asyncio.create_task(job.result(30)) for job in jobs]
            server.kill()
            server.restart()
            async with Worker(queue, echo, concurrency=10):
                assert await asyncio.gather(*waiting) == list(range(50))
            await heard.has("completed", 50)
    assert sorted(heard.ids("completed")) == sorted(job.id for job in jobs)  # type: ignore[type-var]
    assert heard.of("gap") == []


@pytest.mark.parametrize("hears_all", [True, False])
async def test_a_result_call_for_a_job_that_the_server_lost_ends_as_soon_as_the_server_is_back(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, hears_all: bool
) -> None:
    """It does not depend on the periodic check of the job, which never comes here."""
    monkeypatch.setattr("groupmq.client.events.results._LOOK_AGAIN", NEVER)
    server = start_server(prefer("valkey"))
    with redis.Redis.from_url(server.url) as client:
        async with Queue("orders", server.url) as queue, listening(queue, client if hears_all else None):
            job = await queue.add(1)
            task = asyncio.create_task(job.result(30))
            await hears(client)
            server.kill()
            server.restart()
            with pytest.raises(JobRemoved):
                await task


async def test_an_end_that_comes_while_the_listener_is_cut_off_is_delivered(start_server: StartServer) -> None:
    server = start_server(prefer("redis"))
    with redis.Redis.from_url(server.url) as client:
        async with Queue("orders", server.url, keep_completed=0) as queue, Worker(queue, echo):
            for n in range(20):
                job = await queue.add(n, delay=0.02)
                task = asyncio.create_task(job.result(10))
                await hears(client)
                cut_readers(client)
                assert await task == n


async def test_a_listener_on_a_connection_that_went_silent_comes_back(start_server: StartServer) -> None:
    server = start_server(prefer("valkey"))
    with Proxy(server.port) as proxy, redis.Redis.from_url(server.url) as client:
        async with (
            Queue("orders", proxy.url) as queue,
            Queue("orders", server.url) as direct,
            listening(queue, client) as heard,
        ):
            proxy.freeze()
            await direct.add(1, job_id="x")
            await heard.has("added", timeout=30)
    assert heard.ids("added") == ["x"]


async def test_a_result_outlives_lost_replies(start_server: StartServer) -> None:
    """Every second reply to XREAD and every third reply to a function call is lost."""
    server = start_server(prefer("redis"))
    asked = {b"XREAD": 0, b"FCALL": 0}

    def cut(request: bytes) -> bool:
        for name, every in ((b"XREAD", 2), (b"FCALL", 3)):
            if name in request:
                asked[name] += 1
                return asked[name] % every == 0
        return False

    with Proxy(server.port) as proxy:
        async with (
            Queue("orders", proxy.url) as queue,
            Queue("orders", server.url) as direct,
            Worker(direct, echo, concurrency=5),
        ):
            await direct.pause()
            jobs = await direct.add_many({"data": n, "delay": 0.01 * n} for n in range(30))
            mine = [await queue.require_job(job.id) for job in jobs]
            proxy.cut = cut
            waiting = [asyncio.create_task(job.result(30)) for job in mine]
            await eventually(lambda: asked[b"XREAD"] > 0, "they are subscribed")
            await direct.resume()
            assert await asyncio.gather(*waiting) == list(range(30))
            assert proxy.cuts > 0
            proxy.cut = lambda _: False


@pytest.mark.parametrize("client", ["async", "sync"])
async def test_an_outage_is_one_warning_of_the_listener_and_one_line_at_its_end(
    start_server: StartServer, caplog: pytest.LogCaptureFixture, client: str
) -> None:
    server = start_server(prefer("redis"), aof=True)
    heard: list[object] = []
    async with Queue("orders", server.url) as queue, contextlib.AsyncExitStack() as stack:
        if client == "async":
            queue.on("added", heard.append)
        else:
            listener = SyncQueue("orders", server.url)
            stack.push_async_callback(asyncio.to_thread, listener.close)
            await asyncio.to_thread(listener.on, "added", heard.append)

        async def hears() -> bool:
            await queue.add(1)
            return bool(heard)

        await eventually(hears, "events are received")
        with caplog.at_level(logging.INFO, "groupmq.events"):
            await asyncio.to_thread(server.kill)
            pauses = "tries again, with pauses of up to 5 s"
            await eventually(lambda: pauses in caplog.text, "the outage is logged")
            began = time.monotonic()
            await eventually(lambda: time.monotonic() - began > 2, "several more tries have failed")
            await asyncio.to_thread(server.restart)
            await eventually(lambda: "reaches its server again" in caplog.text, "the end of the outage is logged", 15)
            heard.clear()
            await eventually(hears, "events are received again")
        lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 2, lines
    where = f"the listener for events at {queue.address}"
    assert lines[0].startswith(f"{where} cannot read the log of events: ")
    assert "The last answer of the server came " in lines[0]
    assert lines[1].startswith(f"{where} reaches its server again, after ")


def living_jobs() -> int:
    gc.collect()
    return sum(isinstance(one, Job) for one in gc.get_objects())


async def test_a_producers_memory_is_flat_over_many_jobs(start_server: StartServer) -> None:
    """It waits for each job and subscribes to its events and those of the queue; no object of an ended job stays."""
    server = start_server(prefer("valkey"))
    heard, others = 0, living_jobs()

    def count(event: object) -> None:
        nonlocal heard
        heard += 1

    async with Queue("orders", server.url, keep_completed=0) as queue, Worker(queue, echo, concurrency=100):
        queue.on("completed", count)

        async def round_trip() -> None:
            jobs = await queue.add_many({"data": n, "group_id": f"g{n % 50}"} for n in range(SOME))
            for job in jobs[::5]:
                job.on("completed", count)
            assert await asyncio.gather(*(job.result(20) for job in jobs)) == list(range(SOME))

        def objects() -> Counter[str]:
            gc.collect()
            return Counter(type(one).__name__ for one in gc.get_objects())

        for _ in range(8):
            await round_trip()  # afterwards all bounded caches are full
        await eventually(lambda: living_jobs() < others + 20, "the jobs are gone")
        first = objects()
        for _ in range(6):
            await round_trip()
        more = Counter[str]()

        def flat() -> bool:
            # `job.on` may still be reading back the log, and hold a page of events.
            nonlocal more
            more = objects() - first
            return living_jobs() < others + 20 and more.total() < SOME

        try:
            await eventually(flat, "as many objects as before")
        except AssertionError as error:
            raise AssertionError(f"{error}; more after {6 * SOME} jobs: {more.most_common(10)}") from None
    assert heard >= 14 * SOME
