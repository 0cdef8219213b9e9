"""Calls of producers and operators whose reply is lost, over a real network: each gets the same answer all the same.

The server executes the call, and the connection breaks before the reply gets through. The client then resends the call.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from groupmq import Every, Job, Queue, Worker
from groupmq.protocol import functions
from groupmq.sync import Queue as SyncQueue
from tests.faults.conftest import StartServer
from tests.support.proxy import Proxy
from tests.support.servers import Kind, Server, available_kinds, prefer
from tests.support.workers import Recorder


class Loses:
    """Drops the reply to the first call of a function. The second request is held back until `go_on` is set."""

    def __init__(self, server: Server, script: str) -> None:
        with redis.Redis.from_url(server.url) as client:
            client.function_load(functions.library().text, replace=True)
        self._function = functions.load(script).function.encode() + b"\r"
        self.sendings = 0
        self.go_on = threading.Event()

    def __call__(self, request: bytes) -> bool:
        if self._function not in request:
            return False
        self.sendings += 1
        if self.sendings == 2:
            assert self.go_on.wait(20)
        return self.sendings == 1


@pytest.mark.parametrize("kind", available_kinds())
@pytest.mark.parametrize("many", [False, True], ids=["add", "add_many"])
@pytest.mark.parametrize("kept", [0, 100])
async def test_a_job_whose_add_is_answered_late_runs_once(
    start_server: StartServer, kind: Kind, many: bool, kept: int
) -> None:
    """The job has completed and is no longer kept when its add is sent again."""
    server = start_server(kind)
    handler = Recorder()
    loses = Loses(server, "add")
    with Proxy(server.port, cut=loses) as proxy:
        direct = Queue("orders", server.url, keep_completed=kept)
        async with direct, Queue("orders", proxy.url, keep_completed=kept) as queue, Worker(direct, handler):
            adding = asyncio.ensure_future(queue.add_many([{"data": "once"}]) if many else queue.add("once"))
            await handler.has_run("once")
            await direct.add_many({"data": i} for i in range(kept + 1))
            assert await direct.wait_for_empty(20)
            loses.go_on.set()
            await adding
            assert await direct.wait_for_empty(20)
    assert loses.sendings == 2
    assert handler.started.count("once") == 1


async def failed(queue: Queue) -> None:
    await (await queue.add(1, job_id="job", group_id="g")).fail()


async def ended(queue: Queue) -> None:
    await queue.add_many({"data": i} for i in range(3))
    for job_id in await queue.get_waiting_jobs():
        await queue.fail(job_id)


async def one(queue: Queue) -> None:
    await queue.add(1, job_id="job", group_id="g")


async def later(queue: Queue) -> None:
    await queue.add(1, job_id="job", delay=60)


async def repeating(queue: Queue) -> None:
    await queue.add(1, group_id="g", repeat=Every(60))


Act = Callable[[Any], Any]
ACTIONS: dict[str, tuple[str, Callable[[Queue], Awaitable[Any]], Act, Any]] = {
    "remove": ("remove", one, lambda q: q.remove("job"), True),
    "fail": ("fail", one, lambda q: q.fail("job"), True),
    "retry": ("redrive", failed, lambda q: q.retry("job"), True),
    "promote": ("reschedule", later, lambda q: q.promote("job"), True),
    "cancel": ("cancel", one, lambda q: q.cancel("job"), True),
    "cancel_group": ("cancel", one, lambda q: q.cancel_group("g"), 1),
    "pause_group": ("switch", one, lambda q: q.pause_group("g"), True),
    "set_group_concurrency": ("switch", one, lambda q: q.set_group_concurrency("g", 3), True),
    "purge": ("remove", ended, lambda q: q.purge(("failed",)), 3),
    "clean": ("clean", ended, lambda q: q.clean("failed"), 3),
    "remove_repeating_job": ("undefine", repeating, lambda q: q.remove_repeating_job("g", Every(60)), True),
}


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize(("kind", "blocking"), [("valkey", False), ("redis", True)], ids=["async", "blocking"])
async def test_an_operator_whose_reply_is_lost_gets_the_answer_of_the_first_call(
    start_server: StartServer, kind: Kind, blocking: bool, name: str
) -> None:
    server = start_server(prefer(kind))
    script, prepare, act, expected = ACTIONS[name]
    loses = Loses(server, script)
    loses.go_on.set()
    async with Queue("orders", server.url) as direct:
        await prepare(direct)
        with Proxy(server.port, cut=loses) as proxy:
            if blocking:
                with SyncQueue("orders", proxy.url) as twin:
                    assert await asyncio.to_thread(act, twin) == expected
            else:
                async with Queue("orders", proxy.url) as queue:
                    assert await act(queue) == expected
    assert loses.sendings >= 2


async def test_a_line_of_a_log_is_written_once(start_server: StartServer) -> None:
    server = start_server(prefer("valkey"))
    loses = Loses(server, "append_log")
    loses.go_on.set()
    with Proxy(server.port, cut=loses) as proxy:
        async with Queue("orders", proxy.url) as queue:
            added = await queue.add(1)

            async def handle(job: Job) -> None:
                await job.log("once")

            await Worker(queue, handle).run(burst=True)
            assert [line.text for line in (await queue.require_job(added.id)).logs] == ["once"]
    assert loses.sendings == 2
