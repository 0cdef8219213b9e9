"""Jobs that an add has granted to a worker that does not get them: killed, cut off, or with a blocked event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from groupmq import Job, Queue, Worker
from tests.faults.conftest import StartServer
from tests.support.offering import idle
from tests.support.parts import parts_of
from tests.support.proxy import Proxy
from tests.support.servers import Kind, available_kinds
from tests.support.waiting import eventually
from tests.support.workers import Recorder


@pytest.mark.parametrize("kind", available_kinds())
async def test_a_job_whose_grant_is_lost_runs_once_and_at_once(start_server: StartServer, kind: Kind) -> None:
    """The server has handed the job out, and the connection breaks before the worker has it."""
    server, handler = start_server(kind), Recorder()
    with Proxy(server.port) as proxy:
        direct, queue = Queue("orders", server.url), Queue("orders", proxy.url)
        async with direct, queue, Worker(queue, handler, concurrency=3) as worker:
            for i in range(5):
                await idle(worker)
                proxy.drop = lambda reply: b":grants:" in reply
                before = proxy.cuts
                await direct.add(i, group_id=f"g{i}")
                await handler.has_run(i)
                assert proxy.cuts > before
                proxy.drop = lambda reply: False
    assert handler.started == list(range(5))
    assert handler.attempts == [1] * 5


async def test_a_job_that_was_granted_to_a_killed_worker_runs_at_another_one(start_server: StartServer) -> None:
    """No worker has popped it, so the next worker that asks gets it, and no attempt is used."""
    server, handler = start_server(available_kinds()[0]), Recorder()
    async with Queue("orders", server.url) as queue:
        dead = Worker(queue, Recorder(), name="dead")
        await dead.start()
        await idle(dead)
        parts_of(dead).fetcher._demand.close()  # it no longer waits for jobs, and does not deregister
        await asyncio.wait_for(parts_of(dead).fetcher.stop_watching(), 10)
        await queue.add("x", group_id="g")
        async with Worker(queue, handler, blocking_timeout=0.2):
            await handler.has_run("x")
        assert handler.attempts == [1]
        await dead.close(timeout=0)


async def test_a_blocked_loop_does_not_keep_a_job_that_it_has_not_received(start_server: StartServer) -> None:
    server, handler = start_server(available_kinds()[0]), Recorder()
    go_on, blocks, over = threading.Event(), threading.Event(), threading.Event()
    seen: list[str] = []
    workers: list[Worker] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == "blocks":
            blocks.set()
            assert go_on.wait(60)  # the loop is meant to hang

    async def work() -> None:
        async with Queue("orders", server.url) as queue, Worker(queue, handle, concurrency=2) as worker:
            workers.append(worker)
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        async with Queue("orders", server.url) as queue:
            await eventually(lambda: workers, "the worker has started")
            await idle(workers[0])
            await queue.add("blocks", group_id="g")
            await asyncio.to_thread(blocks.wait, 20)
            # It may not have offered a slot before it was blocked. Restore the offer, so that a job is granted to it.
            connection, keys = queue._connection, queue._connection.session.keys
            raw = b"o" + (60_000).to_bytes(6, "big") + workers[0].id.encode()
            await connection.execute("HSET", keys.meta, "offer", raw)
            await queue.add("next", group_id="h")
            async with Worker(queue, handler, blocking_timeout=0.2):
                await handler.has_run("next", timeout=20)
                go_on.set()
                await eventually(lambda: not workers[0].health().blocked_for, "the loop goes on", 20)
                await queue.add("last", group_id="i")
                await eventually(lambda: "last" in (*seen, *handler.started), "work goes on")
            assert "next" not in seen, "the job was taken back, and must not start here as well"
    finally:
        go_on.set()
        over.set()
        thread.join(30)
