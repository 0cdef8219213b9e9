"""What the life of a lone job costs the server with a real worker that waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

import redis

from groupmq import Job, Queue, Worker
from tests.support.waiting import eventually
from tests.support.workers import looked_once

CALLS, COMMANDS = 2, 32
"""Script calls of a lone job's life (an add that grants it to the idle worker, complete), and the commands they make.

Stated, not bounded: a change that makes a job cheaper says so here.
"""
JOBS = 5
SCRIPT_CALLS = ("evalsha", "fcall", "fcall_ro")
OWN = ("config|resetstat", "info")


def counted(client: redis.Redis) -> dict[str, int]:
    found: dict[str, Any] = client.info("commandstats")
    rows = {name.removeprefix("cmdstat_"): entry["calls"] for name, entry in found.items()}
    return {row: calls for row, calls in rows.items() if row not in OWN}


async def test_the_life_of_a_lone_job_makes_as_many_calls_and_commands_as_stated(
    queue: Queue, client: redis.Redis
) -> None:
    handled = asyncio.Event()

    async def handle(job: Job) -> None:
        handled.set()

    def waits() -> bool:
        clients: Any = client.info("clients")
        return bool(clients["blocked_clients"] == 2)  # for work, and its heartbeat for mail

    lives = []
    async with Worker(queue, handle) as worker:
        await looked_once(worker)
        for number in range(JOBS + 1):
            await eventually(waits, "the worker waits")
            client.config_resetstat()
            handled.clear()
            await queue.add(number, group_id=f"group-{number}")
            await handled.wait()
            await eventually(waits, "the worker waits again")
            rows = counted(client)
            calls = sum(rows.get(row, 0) for row in SCRIPT_CALLS)
            rows.pop("bzpopmin", None)  # the one that waits is not counted yet
            lives.append((calls, sum(rows.values()) - calls))
    # The first one loads scripts. Of the others the smallest counts: a heartbeat may fall into any of them.
    assert min(lives[1:]) == (CALLS, COMMANDS)
