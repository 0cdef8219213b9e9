"""Progress, logs, results, cancelling and presence across processes, while connections are cut and servers die."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from groupmq import JobFailed, Queue
from tests.faults.conftest import StartServer
from tests.support.begun import known_to_have_begun
from tests.support.fleet import Fleet
from tests.support.listening import Heard, hears
from tests.support.servers import Kind, prefer
from tests.support.waiting import eventually

AT_ONCE = 1.5
"""Seconds: one, and a margin for a busy machine. Heartbeats come only every 10 s here."""
STEPS = 30


def cut_all(client: Any) -> int:
    """End every connection but this one."""
    own, cuts = str(client.client_id()), 0
    for one in client.client_list():
        if one["id"] != own:
            with contextlib.suppress(redis.ResponseError):
                cuts += client.client_kill_filter(_id=one["id"])
    return cuts


@pytest.mark.parametrize("fault", ["cut", "restart"])
async def test_what_handlers_in_another_process_say_arrives_whole_and_in_order(
    start_server: StartServer, fault: str
) -> None:
    server = start_server(prefer("redis" if fault == "cut" else "valkey"), aof=True)
    heard = Heard()
    with redis.Redis.from_url(server.url) as client, Fleet(server.url, "orders") as fleet:
        async with Queue("orders", server.url) as queue:
            fleet.start()
            job = await queue.add({"do": "talk", "times": STEPS, "seconds": 0.02})
            for kind in ("progress", "completed"):
                job.on(kind, heard.append)
            task = asyncio.create_task(job.result(30))
            for n in range(1, 4):
                await heard.has("progress", n * STEPS // 5)
                if fault == "cut":
                    assert cut_all(client) > 0
                elif n == 2:
                    server.kill()
                    server.restart()
            assert await task == job.id
            await heard.has("completed")
            found = await queue.require_job(job.id)
    # A report whose answer was lost is resent: it may be published twice, but never out of order.
    told = [event.progress["done"] for event in heard.of("progress")]
    assert sorted(told) == told
    assert sorted(set(told)) == list(range(STEPS))
    lines = [line.text for line in found.logs]
    assert sorted(set(lines), key=lines.index) == [f"line {n}" for n in range(STEPS)]
    assert (found.progress, found.state, found.attempts_made) == ({"done": STEPS - 1}, "completed", 1)


@pytest.mark.parametrize(
    ("handler", "kind"), [("async", "valkey"), ("thread that looks", "redis"), ("process", "valkey")]
)
async def test_a_handler_of_any_kind_is_stopped_in_another_process_though_its_connections_were_cut(
    start_server: StartServer, tmp_path: Path, handler: str, kind: Kind
) -> None:
    server = start_server(prefer(kind))
    options = {"executor": "process"} if handler == "process" else {}
    mark = tmp_path / "mark"
    # A worker whose only slot is taken waits for nothing but mail.
    with (
        redis.Redis.from_url(server.url) as client,
        Fleet(server.url, "orders", concurrency=1, worker=options) as fleet,
    ):
        async with Queue("orders", server.url) as queue:
            fleet.start(handler=handler)
            job = await queue.add([str(mark), 60] if handler == "process" else {"seconds": 60}, max_attempts=5)
            fleet.wait_for(lambda: fleet.lines("start") or is_written(mark), "the handler runs")
            assert cut_all(client) > 0
            await eventually(lambda: "bzpopmin" in commands(client), "the worker waits for mail again", 5)
            began = time.monotonic()
            assert await queue.cancel(job.id)
            with pytest.raises(JobFailed, match="cancelled"):
                await job.result(AT_ONCE)
            assert time.monotonic() - began < AT_ONCE
            if handler == "process":
                fleet.wait_for(lambda: not is_alive(int(mark.read_text())), "its process has ended", AT_ONCE)
            else:
                fleet.wait_for(lambda: fleet.lines("end"), "the handler has ended", AT_ONCE)
                assert fleet.lines("end")[0]["how"] == ("cancelled" if handler == "async" else "told")
            assert (await job.refresh()).attempts_made == 1


def is_written(path: Path) -> bool:
    return path.exists() and path.read_text() != ""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def commands(client: Any) -> set[str]:
    return {one["cmd"] for one in client.client_list()}


async def test_a_cancel_is_not_forgotten_over_the_restart_of_its_server(start_server: StartServer) -> None:
    server = start_server(prefer("redis"), aof=True)
    with Fleet(server.url, "orders", worker={"heartbeat": 1.0}) as fleet:
        async with Queue("orders", server.url) as queue:
            [process] = fleet.start()
            job = await queue.add({"seconds": 60}, group_id="g", max_attempts=5)
            after = await queue.add({}, group_id="g")
            await known_to_have_begun(server.url, "orders")  # otherwise the cancel waits for the end of the lease
            fleet.freeze(process)
            async with asyncio.timeout(10):
                assert await queue.cancel(job.id)
            server.kill()
            server.restart()
            fleet.thaw(process)
            with pytest.raises(JobFailed, match="cancelled"):
                await job.result(20)
            assert await after.result(20) == after.id
        assert [line["how"] for line in fleet.lines("end")] == ["cancelled", "returned"]


async def test_workers_are_known_again_after_their_server_forgot_them(start_server: StartServer) -> None:
    server = start_server(prefer("redis"))
    with Fleet(server.url, "orders", worker={"heartbeat": 0.2}) as fleet:
        processes = fleet.start(2)
        async with Queue("orders", server.url) as queue:

            async def all_there() -> bool:
                return {one.pid for one in await queue.get_workers()} == {process.pid for process in processes}

            await eventually(all_there, "both are registered")
            server.kill()
            server.restart()
            await eventually(all_there, "both are registered again")


async def test_a_thousand_who_wait_all_get_their_results_though_everything_is_cut_and_restarted(
    start_server: StartServer,
) -> None:
    server = start_server(prefer("redis"), aof=True)
    with (
        redis.Redis.from_url(server.url) as client,
        Fleet(server.url, "orders", concurrency=20, keep_completed=0) as fleet,
    ):
        async with Queue("orders", server.url, keep_completed=0) as queue:
            jobs = await queue.add_many({"data": {}, "group_id": f"g{n % 40}"} for n in range(1000))
            waiting = [asyncio.create_task(job.result(60)) for job in jobs]
            await hears(client)
            fleet.start(2)
            await eventually(lambda: len(fleet.lines("completed")) > 100, "some are done")
            assert cut_all(client) > 0
            await eventually(lambda: len(fleet.lines("completed")) > 300, "some more are done")
            server.kill()
            server.restart()
            assert await asyncio.gather(*waiting) == [job.id for job in jobs]
