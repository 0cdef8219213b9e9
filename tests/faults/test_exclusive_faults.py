"""Exclusive queues whose worker with the turn freezes, dies or is cut off: another takes over, never two at once."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

import redis

from groupmq import Queue
from tests.faults.conftest import StartServer
from tests.support.fleet import Fleet
from tests.support.history import History
from tests.support.producing import produce
from tests.support.servers import prefer
from tests.support.waiting import eventually

LEASE = 1.0


def exclusive(
    url: str, concurrency: int = 2, blocking_timeout: float = 30, lease: float = LEASE, **worker: Any
) -> Fleet:
    return Fleet(
        url,
        "orders",
        concurrency=concurrency,
        blocking_timeout=blocking_timeout,
        worker=worker,
        job_timeout=lease,
        exclusive=True,
    )


async def working(fleet: Fleet) -> subprocess.Popen[bytes]:
    """The living process that runs a handler now."""
    found: list[subprocess.Popen[bytes]] = []

    def somebody() -> bool:
        ended = {line["fence"] for line in fleet.lines("end")}
        busy = {line["pid"] for line in fleet.lines("start") if line["fence"] not in ended}
        found[:] = [process for process in fleet.processes if process.pid in busy and process.poll() is None]
        return bool(found)

    await eventually(somebody, "a worker is in a handler")
    return found[0]


async def more_completed(fleet: Fleet, count: int) -> None:
    wanted = len(fleet.lines("completed")) + count
    await eventually(lambda: len(fleet.lines("completed")) >= wanted, "another took over")


def check(history: History, added: list[str]) -> None:
    history.check(added)
    assert history.intrusions() == []


async def test_a_frozen_holder_loses_its_turn_and_when_it_wakes_its_handlers_are_cancelled(
    start_server: StartServer,
) -> None:
    server = start_server(prefer("valkey"))
    async with Queue("orders", server.url, job_timeout=LEASE, exclusive=True) as queue:
        with exclusive(server.url) as fleet:
            fleet.start()
            # Only the first run of a job takes long, so the worker that takes over is done soon.
            slow = {"do": "work-once", "seconds": 60.0}
            added = [(await queue.add(slow, group_id=f"g{n}", max_attempts=9)).id for n in range(2)]
            added += await produce(queue, range(6), groups=3)
            frozen = await working(fleet)
            await eventually(lambda: len(fleet.lines("start")) == 2, "both slots are taken")
            fleet.start()
            fleet.freeze(frozen)
            assert await queue.wait_for_empty(15), "no other worker took over"
            fleet.thaw(frozen)
            await eventually(lambda: len(fleet.lines("lease-lost")) == 2, "it learns that its turn is over")
            await eventually(lambda: len(fleet.lines("end")) == 10, "its handlers end")
            # It continues to work as if nothing had happened.
            more = await produce(queue, range(10, 16), groups=3, seconds=0.02)
            assert await queue.wait_for_empty(10)
        assert (await queue.get_metrics()).stalled == 2
        failures = await queue.get_failures()
        assert [(failure.attempt, failure.final) for failure in failures] == [(1, False)] * 2
    history = fleet.history()
    check(history, [*added, *more])
    lost = [run for run in history.runs if run.lost]
    assert {run.pid for run in lost} == {frozen.pid}
    assert [(run.how, run.accepted) for run in lost] == [("cancelled", "")] * 2


async def test_an_outcome_of_a_turn_that_was_lost_is_refused(start_server: StartServer) -> None:
    """The process freezes when its handler is about to end: the outcome it reports afterwards is refused."""
    server = start_server(prefer("redis"))
    async with Queue("orders", server.url, job_timeout=3, exclusive=True) as queue:
        # The heartbeat is rare, so that the outcome reaches the server before the next heartbeat, but not so rare that
        # the lease expires on a busy machine before the process is frozen.
        with exclusive(server.url, lease=3, heartbeat=2) as fleet:
            fleet.start()
            job = await queue.add({"do": "block-once", "seconds": 2.5}, group_id="g", max_attempts=9)
            frozen = await working(fleet)
            fleet.freeze(frozen)
            await asyncio.to_thread(fleet.start)
            assert await queue.wait_for_empty(15), "no other worker took over"
            fleet.thaw(frozen)
            await eventually(lambda: fleet.lines("lease-lost"), "it learns that it lost the lease")
        await job.refresh()
        assert (job.state, job.attempts_made) == ("completed", 2)
    history = fleet.history()
    check(history, [job.id])
    first, second = history.by_job()[job.id]
    assert (first.pid, first.lost, first.accepted) == (frozen.pid, True, "")
    assert (second.pid != frozen.pid, second.accepted, second.attempt) == (True, "completed", 2)


async def test_a_killed_holder_is_replaced_after_its_lease_and_nothing_is_lost(start_server: StartServer) -> None:
    server = start_server(prefer("redis"))
    async with Queue("orders", server.url, job_timeout=LEASE, exclusive=True) as queue:
        with exclusive(server.url) as fleet:
            fleet.start(3)
            added = await produce(queue, range(40), groups=8, seconds=0.05)
            for _ in range(2):
                fleet.kill(await working(fleet))
                await more_completed(fleet, 5)
            assert await queue.wait_for_empty(15)
    history = fleet.history()
    check(history, added)
    assert not history.gaps()
    for pid, killed in history.kills.items():
        after = [run.start for run in history.runs if run.start > killed]
        assert min(after) - killed < LEASE + 3, (
            f"no job started for {min(after) - killed:.2f} s after the death of {pid}"
        )


async def test_a_holder_that_leaves_hands_over_before_its_lease_would_have_ended(start_server: StartServer) -> None:
    server = start_server(prefer("valkey"))
    async with Queue("orders", server.url, job_timeout=20, exclusive=True) as queue:
        with Fleet(
            server.url, "orders", concurrency=1, blocking_timeout=30, close_timeout=0.1, job_timeout=20, exclusive=True
        ) as fleet:
            fleet.start(2)
            job = await queue.add({"do": "work", "seconds": 60.0}, group_id="g")
            holder = await working(fleet)
            holder.terminate()
            assert await asyncio.to_thread(holder.wait, 5) == 0
            await eventually(lambda: len(fleet.lines("start")) == 2, "the other one runs the job", timeout=5)
            turn = await queue.get_turn()
            assert turn is not None
            assert (turn.epoch, turn.taken) == (2, 1)
            await queue.remove(job.id)
    first, second = fleet.history().runs
    assert (first.how, first.attempt, second.attempt) == ("cancelled", 1, 1)
    assert first.pid != second.pid


async def test_turns_survive_dropped_connections_and_flushed_functions(start_server: StartServer) -> None:
    server = start_server(prefer("valkey"))
    async with Queue("orders", server.url, job_timeout=15, exclusive=True) as queue:
        with Fleet(server.url, "orders", concurrency=3, blocking_timeout=1, job_timeout=15, exclusive=True) as fleet:
            fleet.start(3)
            producing = asyncio.create_task(produce(queue, range(150), groups=12, seconds=0.005, pause=0.005))
            with redis.Redis.from_url(server.url) as client:
                for _ in range(6):
                    client.function_flush()
                    client.client_kill_filter(_type="normal")
                    await asyncio.sleep(0.1)
            added = await producing
            assert await queue.wait_for_empty(30)
        assert (await queue.get_metrics()).stalled == 0
    history = fleet.history()
    check(history, added)
    assert len(history.runs) == 150, "a job ran twice though no lease expired"
