"""Repeating jobs while schedulers die and servers fail: no tick runs twice, and only ticks of the outage are lost."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterable
from itertools import pairwise

import pytest
import redis

from groupmq import Every, Queue
from tests.faults.conftest import StartServer
from tests.support.fleet import Fleet
from tests.support.history import Line
from tests.support.servers import Kind, Server, available_kinds, prefer
from tests.support.ticking import check_grid, check_unbroken, holes, server_ms
from tests.support.waiting import eventually

PERIOD = 50
LEASE = 1.0


def ticks_of(starts: Iterable[Line]) -> list[int]:
    """The ticks that ran, in the order of their first grants. A second run after a death does not count."""
    by_grant = sorted(starts, key=lambda line: int(line["fence"]))
    return list({line["job"]: int(line["order"]) for line in by_grant}.values())


def check_runs(fleet: Fleet) -> None:
    """Check that no occurrence ran twice except after a death, beside another of its group, or before its tick."""
    history = fleet.history()
    assert not history.duplicates()
    assert not history.overlaps()
    early = [line for line in history.of_kind("start") if line["at"] < line["order"]]
    assert not early, f"started before their tick: {early}"


async def watched(fleet: Fleet, count: int) -> list[subprocess.Popen[bytes]]:
    """Start workers and wait until each has read the repeating jobs, so that none misses a tick from then on."""
    workers = fleet.start(count)
    await eventually(lambda: len(fleet.lines("watching")) == count, "all of them watch")
    return workers


async def more_ticks(fleet: Fleet, count: int) -> None:
    wanted = len(ticks_of(fleet.lines("start"))) + count
    await eventually(lambda: len(ticks_of(fleet.lines("start"))) >= wanted, f"{count} more ticks ran", timeout=20)


async def test_ticks_of_several_processes_come_once_each(start_server: StartServer) -> None:
    server = start_server(prefer("valkey"))
    async with Queue("ticking", server.url) as queue:
        with Fleet(server.url, "ticking", concurrency=2) as fleet:
            await watched(fleet, 3)
            first = await queue.add({}, group_id="g", repeat=Every(PERIOD / 1000))
            await more_ticks(fleet, 30)
    check_unbroken(ticks_of(fleet.history().of_kind("start")), first.order_ms, PERIOD)
    check_runs(fleet)


async def test_when_the_scheduler_is_killed_the_next_tick_is_made_by_another(start_server: StartServer) -> None:
    """Two of three workers are killed one after the other. The others were watching, so no tick is missing."""
    server = start_server(prefer("redis"))
    async with Queue("ticking", server.url, job_timeout=LEASE) as queue:
        with Fleet(server.url, "ticking", concurrency=2, job_timeout=LEASE) as fleet:
            workers = await watched(fleet, 3)
            first = await queue.add({}, group_id="g", repeat=Every(PERIOD / 1000), max_attempts=9)
            for victim in workers[:2]:
                await more_ticks(fleet, 8)
                fleet.kill(victim)
            await more_ticks(fleet, 8)
    check_unbroken(ticks_of(fleet.history().of_kind("start")), first.order_ms, PERIOD)
    check_runs(fleet)


@pytest.mark.parametrize("catch_up", ["one", "all", "none"])
async def test_when_all_schedulers_are_killed_missed_ticks_are_caught_up_as_catch_up_demands(
    start_server: StartServer, catch_up: str
) -> None:
    server = start_server(prefer("valkey"))
    async with Queue("ticking", server.url, job_timeout=LEASE) as queue:
        with Fleet(server.url, "ticking", concurrency=2, job_timeout=LEASE) as fleet:
            workers = await watched(fleet, 2)
            repeat = Every(PERIOD / 1000, catch_up=catch_up)  # type: ignore[arg-type]
            first = await queue.add({}, group_id="g", repeat=repeat, max_attempts=9)
            await more_ticks(fleet, 8)
            for worker in workers:
                fleet.kill(worker)
            with redis.Redis.from_url(server.url) as client:
                killed = server_ms(client)
                await eventually(lambda: server_ms(client) > killed + 5 * PERIOD, "ticks are missed")
                back = server_ms(client)
            await asyncio.to_thread(fleet.start)
            await more_ticks(fleet, 10)
    ticks = ticks_of(fleet.history().of_kind("start"))
    check_grid(ticks, first.order_ms, PERIOD)
    check_runs(fleet)
    missing = holes(ticks, PERIOD)
    if catch_up == "all":
        assert missing == []
        return
    ((before, after),) = missing
    assert before <= killed < back - PERIOD < after, "a tick outside the outage is missing"
    assert catch_up == "one" or after > back


Fault = Callable[[Server], Awaitable[None]]


async def ticks_through(server: Server, fault: Fault, repeat: Every) -> tuple[list[int], int]:
    """The ticks that ran before, during and after a fault of the server, and the first tick of the grid."""
    async with Queue("ticking", server.url, job_timeout=15) as queue:
        with Fleet(server.url, "ticking", concurrency=2, job_timeout=15, blocking_timeout=0.5) as fleet:
            await watched(fleet, 2)
            first = await queue.add({}, group_id="g", repeat=repeat)
            await more_ticks(fleet, 5)
            await fault(server)
            await more_ticks(fleet, 10)
    check_runs(fleet)
    assert all(before.fence < after.fence for before, after in pairwise(fleet.history().runs))
    return ticks_of(fleet.history().of_kind("start")), first.order_ms


async def test_flushed_functions_cost_no_tick(start_server: StartServer) -> None:
    async def fault(server: Server) -> None:
        with redis.Redis.from_url(server.url) as client:
            for _ in range(100):
                client.function_flush()
                await asyncio.sleep(0.005)

    ticks, first = await ticks_through(start_server(prefer("redis")), fault, Every(PERIOD / 1000))
    check_unbroken(ticks, first, PERIOD)


@pytest.mark.parametrize("kind", available_kinds())
async def test_a_server_that_comes_back_with_its_data_goes_on_with_the_grid(
    start_server: StartServer, kind: Kind
) -> None:
    async def fault(server: Server) -> None:
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.restart)

    ticks, first = await ticks_through(start_server(kind, aof=True), fault, Every(PERIOD / 1000, catch_up="all"))
    check_unbroken(ticks, first, PERIOD)
