"""Worker processes that are killed: no job of any partition is lost, reordered or late."""

from __future__ import annotations

import asyncio
import random
from itertools import count, takewhile

from groupmq import Queue
from tests.faults.test_worker_deaths import LEASE, check_restarts, in_the_middle
from tests.support.fleet import Fleet
from tests.support.producing import produce


async def test_killed_workers_lose_nothing_and_keep_the_order(url: str) -> None:
    dice = random.Random(20)
    async with Queue("orders", url, job_timeout=LEASE, partitions=4) as queue:
        with Fleet(url, "orders", job_timeout=LEASE, partitions=4) as fleet:
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
