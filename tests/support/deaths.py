"""Worker processes that are killed in the middle of their work, and what must follow."""

from __future__ import annotations

import asyncio
import random
import subprocess
from itertools import count, takewhile

from groupmq import Queue
from tests.support.fleet import Fleet
from tests.support.history import History
from tests.support.producing import produce
from tests.support.waiting import eventually

LEASE = 1.0
LATE = 1.0
"""Seconds beyond its lease within which the job of a dead worker must start again."""
BUSY_MACHINE = 1.0


async def kill_workers_in_the_middle(url: str, partitions: int = 1) -> History:
    """Kill and replace three workers under load, and check that no job is lost, reordered or late."""
    dice = random.Random(20)
    async with Queue("orders", url, job_timeout=LEASE, partitions=partitions) as queue:
        with Fleet(url, "orders", job_timeout=LEASE, partitions=partitions) as fleet:
            workers = fleet.start(3)
            dying = True
            numbers = takewhile(lambda n: dying or n < 300, count())
            producing = asyncio.create_task(produce(queue, numbers, seconds=0.03, pause=0.008))
            for _ in range(3):
                victim = workers.pop(dice.randrange(len(workers)))
                await in_the_middle(fleet, victim, more=10)
                fleet.kill(victim)
                workers += await asyncio.to_thread(fleet.start)
            dying = False
            added = await producing
            assert await queue.wait_for_empty(20)
        assert (await queue.get_metrics()).failed == 0
    history = fleet.history()
    history.check(added)
    check_restarts(history)
    return history


async def in_the_middle(fleet: Fleet, process: subprocess.Popen[bytes], more: int) -> None:
    """Wait until workers have started `more` handlers, and this one runs a handler."""
    before = len(fleet.lines("start"))
    await eventually(
        lambda: len(fleet.lines("start")) >= before + more and open_runs(fleet, process), "it runs a handler"
    )


def open_runs(fleet: Fleet, process: subprocess.Popen[bytes]) -> bool:
    ended = {line["fence"] for line in fleet.lines("end")}
    mine = [line["fence"] for line in fleet.lines("start") if line["pid"] == process.pid]
    return any(fence not in ended for fence in mine)


def check_restarts(history: History) -> None:
    """Check that each run that was killed before its end was followed by another within the lease and `LATE`."""
    cut_short = [run for run in history.runs if run.killed and not run.how]
    assert cut_short
    for run in cut_short:
        after = [other for other in history.by_job()[run.job] if other.fence > run.fence]
        assert after, f"{run} was never repeated"
        waited = after[0].start - history.kills[run.pid]
        assert waited < LEASE + LATE + BUSY_MACHINE, f"{run} was repeated only after {waited:.2f} s"
