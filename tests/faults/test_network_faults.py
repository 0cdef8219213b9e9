"""Replies that never arrive and connections that go silent, between real workers and a real server.

The proxy makes the faults, so one kind of server is enough for each test.
"""

from __future__ import annotations

import asyncio
import random

import pytest
import redis

from groupmq import Job, Queue, Worker
from tests.faults.conftest import StartServer
from tests.support.fleet import Fleet
from tests.support.producing import produce
from tests.support.proxy import Proxy
from tests.support.servers import prefer
from tests.support.waiting import eventually
from tests.support.workers import Listener, Recorder

LEASE = 15.0


async def test_a_call_whose_reply_is_lost_is_made_again_and_takes_effect_once(start_server: StartServer) -> None:
    """The server executes adds and advances whose replies are lost. Resent, they must not add or take anything."""
    server = start_server(prefer("valkey"))
    dice = random.Random(4)
    with Proxy(server.port, cut=lambda request: b"FCALL" in request and dice.random() < 0.06) as proxy:
        async with Queue("orders", proxy.url, job_timeout=LEASE) as queue:
            with Fleet(proxy.url, "orders", job_timeout=LEASE, blocking_timeout=0.5) as fleet:
                fleet.start(2)
                added = await produce(queue, range(250), seconds=0.002)
                assert await queue.wait_for_empty(40)
                proxy.cut = lambda request: False
            metrics = await queue.get_metrics()
        assert proxy.cuts >= 10
        assert (metrics.failed, metrics.stalled) == (0, 0)
    history = fleet.history()
    history.check(added)
    assert len(history.runs) == len(added), "a job ran twice though no lease expired"


async def test_a_lost_hint_starts_the_job_all_the_same(start_server: StartServer) -> None:
    """The marker is popped for a worker whose connection breaks before the reply arrives."""
    server = start_server(prefer("redis"))
    handler = Recorder()
    with Proxy(server.port) as proxy, redis.Redis.from_url(server.url) as client:
        proxy.drop = lambda reply: b":wake" in reply
        async with Queue("orders", proxy.url) as queue, Worker(queue, handler, blocking_timeout=30):
            for i in range(3):
                await eventually(lambda: blocked(client) == 2, "the worker blocks")
                await queue.add(i, ttl=60)  # a job with a ttl is not granted with its add
                await handler.has_run(i)
                assert proxy.cuts == i + 1
                # Lose no reply until one more job has run, so that the pauses between tries do not add up.
                proxy.drop = lambda reply: False
                await queue.add("between")
                await handler.has_run("between", times=i + 1)
                await eventually(lambda: blocked(client) == 2, "the worker blocks again")
                proxy.drop = lambda reply: b":wake" in reply


def blocked(client: redis.Redis) -> int:
    """The number of blocked reads: that of a worker for the marker, and that of its heartbeat for mail."""
    return int(client.info("clients")["blocked_clients"])


async def test_silent_connections_are_given_up_and_nothing_runs_twice(start_server: StartServer) -> None:
    """All connections go silent without being closed while handlers run longer than their lease.

    The heartbeat must replace its connection in time, and outcomes must arrive over a new one, once.
    """
    server = start_server(prefer("redis"))
    lease = 2.0
    with Proxy(server.port) as proxy:
        # A shorter call timeout than the default of 10 s, to keep the test short.
        url = f"{proxy.url}?socket_timeout=2.5"
        async with Queue("orders", server.url, job_timeout=lease) as queue:
            with Fleet(url, "orders", concurrency=4, job_timeout=lease, blocking_timeout=0.5) as fleet:
                fleet.start(2)
                added = await produce(queue, range(4), groups=4, seconds=3.0)
                await eventually(lambda: len(fleet.lines("start")) == 4, "all handlers run")
                proxy.freeze()
                more = await produce(queue, range(4, 12), groups=4)
                assert await queue.wait_for_empty(20)
                metrics = await queue.get_metrics()
    history = fleet.history()
    history.check([*added, *more])
    assert (len(history.runs), metrics.stalled) == (12, 0)


async def test_a_socket_timeout_in_the_url_does_not_end_blocking_reads(start_server: StartServer) -> None:
    server = start_server(prefer("valkey"))
    started: list[str] = []

    async def handle(job: Job) -> None:
        started.append(job.data)

    async with Queue("orders", f"{server.url}?socket_timeout=0.3") as queue:
        worker = Worker(queue, handle, blocking_timeout=1)
        heard = Listener(worker, "error")
        async with worker:
            await eventually(lambda: worker.get_worker_metrics().advances >= 3, "two blocking reads ran out")
            await queue.add("job")
            await eventually(lambda: started, "the job ran")
    assert heard.heard == []


@pytest.mark.parametrize("how", ["gone", "silent"])
async def test_a_worker_closes_in_time_though_its_server_does_not_answer(start_server: StartServer, how: str) -> None:
    server = start_server(prefer("valkey"), aof=True)
    handler = Recorder(seconds=60)
    loop = asyncio.get_running_loop()
    async with Queue("orders", server.url) as queue:
        worker = Worker(queue, handler)
        job = await queue.add(1, group_id="g")
        await worker.start()
        await eventually(lambda: handler.started, "the job runs")
        await asyncio.to_thread(server.kill if how == "gone" else server.pause)
        start = loop.time()
        await worker.close(timeout=0.2)
        took = loop.time() - start
        await asyncio.to_thread(server.restart if how == "gone" else server.resume)
        assert took < 0.2 + 1 + 1
        assert worker.is_closed()
        # A frozen server may have received the call, and executes it once it continues.
        assert await job.get_state() in (("active",) if how == "gone" else ("active", "waiting"))
