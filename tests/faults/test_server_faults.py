"""Servers that lose their functions, drop clients, die, lose all data or stop answering, under load.

Each test runs on one kind of server. Tests that depend on how a server stores its data run on both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from groupmq import Queue
from tests.faults.conftest import StartServer
from tests.support.fleet import Fleet
from tests.support.producing import produce
from tests.support.servers import Kind, Server, available_kinds, prefer
from tests.support.waiting import eventually

LEASE = 15.0
"""Longer than any fault here: no lease expires, so every job must run exactly once."""
JOBS = 300
Fault = Callable[[Server], Awaitable[None]]


async def under_load(server: Server, fault: Fault, *, workers: int = 2) -> Fleet:
    """Run producers and worker processes during the fault. Afterwards every job must have run exactly once."""
    async with Queue("orders", server.url, job_timeout=LEASE) as queue:
        with Fleet(server.url, "orders", job_timeout=LEASE, blocking_timeout=0.5) as fleet:
            fleet.start(workers)
            producing = asyncio.create_task(produce(queue, range(JOBS), seconds=0.005, pause=0.002))
            await eventually(lambda: len(fleet.lines("completed")) > 10, "the work goes on")
            await fault(server)
            added = await producing
            assert await queue.wait_for_empty(30)
        metrics = await queue.get_metrics()
        assert (metrics.failed, metrics.stalled, metrics.lost) == (0, 0, 0)
    history = fleet.history()
    history.check(added)
    assert len(history.runs) == JOBS, "a job ran twice though no lease expired"
    return fleet


async def repeatedly(times: int, pause: float, action: Callable[[], Any]) -> None:
    for _ in range(times):
        action()
        await asyncio.sleep(pause)


async def test_flushed_functions_are_loaded_again_without_a_word(start_server: StartServer) -> None:
    async def fault(server: Server) -> None:
        with redis.Redis.from_url(server.url) as client:
            await repeatedly(50, 0.02, client.function_flush)

    fleet = await under_load(start_server(prefer("valkey")), fault)
    assert fleet.history().of_kind("error") == []


async def test_dropped_connections_cost_neither_a_job_nor_a_second_run(start_server: StartServer) -> None:
    async def fault(server: Server) -> None:
        with redis.Redis.from_url(server.url) as client:
            await repeatedly(12, 0.1, lambda: client.client_kill_filter(_type="normal"))

    fleet = await under_load(start_server(prefer("redis")), fault)
    assert fleet.history().of_kind("error")


@pytest.mark.parametrize("kind", available_kinds())
async def test_a_killed_server_that_comes_back_with_its_data_has_lost_nothing(
    start_server: StartServer, kind: Kind
) -> None:
    async def fault(server: Server) -> None:
        for _ in range(2):
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(0.2)
            await asyncio.to_thread(server.restart)
            await asyncio.sleep(0.3)

    await under_load(start_server(kind, aof=True), fault)


async def test_a_server_that_stops_answering_is_outlasted_blocking_reads_and_all(start_server: StartServer) -> None:
    """The pause is longer than the blocking read and its margin, so that the watchdog replaces the connection."""

    async def fault(server: Server) -> None:
        server.pause()
        try:
            await asyncio.sleep(3.5)
        finally:
            server.resume()

    await under_load(start_server(prefer("valkey")), fault)


async def test_a_client_pause_delays_and_breaks_nothing(start_server: StartServer) -> None:
    async def fault(server: Server) -> None:
        with redis.Redis.from_url(server.url) as client:
            client.client_pause(800)
            await asyncio.sleep(1)
            client.client_pause(800, all=False)

    fleet = await under_load(start_server(prefer("redis")), fault)
    assert fleet.history().of_kind("error") == []


async def test_workers_survive_a_flushed_server_and_run_what_is_added_then(start_server: StartServer) -> None:
    server = start_server(prefer("redis"))
    async with Queue("orders", server.url, job_timeout=LEASE) as queue:
        with Fleet(server.url, "orders", job_timeout=LEASE, blocking_timeout=0.5) as fleet:
            processes = fleet.start(2)
            before = await produce(queue, range(100), seconds=0.05)
            await eventually(lambda: len(fleet.lines("completed")) > 10, "the work goes on")
            with redis.Redis.from_url(server.url) as client:
                client.flushall()
            after = await produce(queue, range(100, 160))
            assert await queue.wait_for_empty(10)
            # The server has recorded the outcomes before the workers emit their events.
            await eventually(lambda: {line["job"] for line in fleet.lines("completed")} >= set(after), "all ran")
            assert [process.poll() for process in processes] == [None, None]
    history = fleet.history()
    history.check(after, maybe=before)
    assert all(run.lost for run in history.runs if not run.accepted), "an outcome of a forgotten job was recorded"


@pytest.mark.parametrize("kind", available_kinds())
async def test_a_worker_finds_its_server_again_soon_after_its_return(start_server: StartServer, kind: Kind) -> None:
    """The workers are idle, and a job is added as soon as the server is back."""
    server = start_server(kind, aof=True)
    async with Queue("orders", server.url, job_timeout=LEASE) as queue:
        with Fleet(server.url, "orders", job_timeout=LEASE, blocking_timeout=0.5) as fleet:
            fleet.start(2)
            await asyncio.to_thread(server.kill)
            await eventually(lambda: len(fleet.lines("error")) >= 3, "the workers notice")
            await asyncio.to_thread(server.restart)
            job = await queue.add({})
            # By now they pause for one or two seconds between tries, and never longer than the cap.
            await eventually(lambda: fleet.lines("completed"), "the job ran", timeout=6)
    fleet.history().check([job.id])
