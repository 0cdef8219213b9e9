"""A producer that retries each add until it is acknowledged, and returns the ids in order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from groupmq import ConnectionLost, Queue, ServerRefused


async def produce(
    queue: Queue, numbers: Iterable[int], *, groups: int = 10, pause: float = 0.0, **data: Any
) -> list[str]:
    """Add jobs one by one and retry each until it is acknowledged. Its id makes the retry harmless."""
    added = []
    for n in numbers:
        while True:
            try:
                job = await queue.add({"n": n, **data}, group_id=f"g{n % groups}", job_id=f"job-{n}", max_attempts=9)
                break
            except (ConnectionLost, ServerRefused):
                await asyncio.sleep(0.05)
        assert not job.duplicate, f"{job} was added twice though it was acknowledged once"
        added.append(job.id)
        await asyncio.sleep(pause)
    return added
