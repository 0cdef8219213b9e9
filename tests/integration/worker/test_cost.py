"""The cost at the server of a single job, with a real worker that waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

import redis

from groupmq import Job, Queue, Worker
from tests.support.waiting import eventually
from tests.support.workers import looked_once

CALLS, COMMANDS = 2, 32
"""The number of script calls for a single job (the add that grants it to the idle worker, and its completion), and of
the commands that they make.

These are exact numbers, not bounds, so that a change that makes a job cheaper must state it here.
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
        return bool(clients["blocked_clients"] == 2)  # the worker waits for work, its heartbeat for mail

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
            rows.pop("bzpopmin", None)  # a read that still blocks is not counted yet
            lives.append((calls, sum(rows.values()) - calls))
    # The first life includes loading the scripts. Of the others the smallest counts, since any may include a heartbeat.
    assert min(lives[1:]) == (CALLS, COMMANDS)
