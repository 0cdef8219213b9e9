"""Workers of several servers that share slots: a server that is down does not stop the queues of the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupmq import Job, Queue, Worker, Workers
from groupmq.worker.fetching.fetcher import LATE
from tests.faults.conftest import StartServer
from tests.support.servers import prefer
from tests.support.waiting import eventually


@pytest.mark.parametrize("how", ["kill", "pause"])
@pytest.mark.parametrize("concurrency", [1, 4, 32])
async def test_a_server_that_is_away_does_not_stop_the_queue_of_another(
    start_server: StartServer, how: str, concurrency: int
) -> None:
    here, away = start_server(prefer("redis")), start_server(prefer("valkey"))
    ran: list[Any] = []

    async def handle(job: Job) -> None:
        ran.append(job.data)

    async with Queue("a", here.url) as a, Queue("b", away.url) as b:
        workers = [Worker(queue, handle, blocking_timeout=1) for queue in (a, b)]
        async with Workers(workers, concurrency=concurrency):
            await a.add("a before")
            await b.add("b before")
            await eventually(lambda: len(ran) == 2, "both queues are served")
            away.kill() if how == "kill" else away.pause()
            for wave in range(4):  # its calls fail, or are late, from the first wave on
                await a.add(wave, group_id="g")
                await eventually(lambda wave=wave: ran[-1] == wave, "the queue here is served")  # type: ignore[misc]
                await asyncio.sleep(LATE)
            away.restart() if how == "kill" else away.resume()
            await b.add("b after")
            await eventually(lambda: "b after" in ran, "the other queue is served again", timeout=40)
    assert sorted(map(str, ran)) == ["0", "1", "2", "3", "a before", "b after", "b before"]
