"""Workers that die, freeze or lose an answer while they hold a reserve of jobs of many groups."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from groupmq import Queue, Worker
from tests.faults.conftest import StartServer
from tests.faults.rows import (
    add_all_and_start,
    check,
    failed_of,
    freeze_in_a_row,
    of_interest,
    start_used_to_short_handlers,
)
from tests.support.fleet import Fleet
from tests.support.proxy import Proxy
from tests.support.rows import add_reserve, whatever_happens
from tests.support.servers import prefer
from tests.support.waiting import eventually
from tests.support.workers import Listener, Recorder

QUEUE: dict[str, Any] = {"job_timeout": 1.0, "keep_completed": 10_000, "backoff": 0}
GROUPS = 1000


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_workers_that_are_killed_with_jobs_of_many_groups_ahead_lose_nothing(
    start_server: StartServer, concurrency: int
) -> None:
    server = start_server(prefer("redis"))
    async with Queue("orders", server.url, **QUEUE) as queue:
        with Fleet(server.url, "orders", concurrency=concurrency, **QUEUE) as fleet:
            victim = await start_used_to_short_handlers(fleet, queue)
            added = await add_all_and_start(fleet, queue, victim, GROUPS, 8, max_attempts=9)
            await freeze_in_a_row(fleet, queue, victim, concurrency)
            held = (await queue.get_job_counts()).active
            fleet.kill(victim)
            await asyncio.to_thread(fleet.start, 2)
            assert await queue.wait_for_empty(30)
        jobs = [await queue.require_job(job_id) for job_id in added]
    history = of_interest(fleet.history())
    check(history, added)
    assert held > concurrency
    # A job that has ended counts as started too: its report may have been on its way when the process froze.
    charged = {job.id for job in jobs if job.stalls}
    started = {run.job for run in history.runs if run.pid == victim.pid}
    assert len(charged - started) <= concurrency, "charged without a start"
    assert all(job.stalls <= 1 for job in jobs)


async def test_a_frozen_worker_starts_no_job_that_others_have_run_meanwhile(start_server: StartServer) -> None:
    server = start_server(prefer("valkey"))
    async with Queue("orders", server.url, **QUEUE) as queue:
        with Fleet(server.url, "orders", concurrency=1, **QUEUE) as fleet:
            sleeper = await start_used_to_short_handlers(fleet, queue)
            added = await add_all_and_start(fleet, queue, sleeper, GROUPS, 2, max_attempts=9)
            await freeze_in_a_row(fleet, queue, sleeper, 1)
            await asyncio.to_thread(fleet.start, 2)
            assert await queue.wait_for_empty(30)
            fleet.thaw(sleeper)
            await eventually(lambda: fleet.lines("lease-lost"), "the frozen worker learns that it lost its leases")
            await queue.add_many([{"data": {}, "group_id": f"more-{i}", "job_id": f"more-{i}"} for i in range(20)])
            added += [f"more-{i}" for i in range(20)]
            assert await queue.wait_for_empty(10)
        assert await failed_of(queue) == []
    history = of_interest(fleet.history())
    check(history, added)
    assert {run.pid for run in history.runs if run.lost} <= {sleeper.pid}


@pytest.mark.parametrize("groups", [True, False], ids=["groups", "no groups"])
async def test_answers_that_are_lost_bring_no_reserve_twice(start_server: StartServer, groups: bool) -> None:
    server = start_server(prefer("redis"))
    handler, requests = Recorder(), count()
    async with Queue("orders", server.url, job_timeout=15) as direct:
        await add_reserve(direct, 500, groups=groups)
        with Proxy(server.port, cut=lambda request: b"FCALL" in request and next(requests) % 4 == 3) as proxy:
            async with Queue("orders", proxy.url, job_timeout=15) as queue:
                worker = whatever_happens(Worker(queue, handler, concurrency=3, prefetch=20))
                heard = Listener(worker, "lease-lost", "stalled", "retrying", "failed")
                await worker.start()
                assert await direct.wait_for_empty(30)
                proxy.cut = lambda request: False
                await worker.close()
            assert proxy.cuts >= 4
        assert worker.get_worker_metrics().completed == 500
    assert heard.heard == []
    assert sorted(handler.started) == list(range(500))
