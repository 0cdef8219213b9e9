"""Tasks of the dashboard: jobs for them to act on, and the wait for their end."""

from __future__ import annotations

from typing import Any

from groupmq import Queue
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually


async def finished(site: Site, answer: Any, queue: str = "orders") -> Any:
    """Wait until the task that an action began has ended. Returns the task."""
    task_id = answer["task"]["id"]
    found: dict[str, Any] = {}

    async def over() -> bool:
        found.update((await site.json("task", queue=queue, task=task_id))["task"])
        return bool(found["state"] != "running")

    await eventually(over, "the task has ended")
    return found


async def failures(queue: Queue, n: int) -> None:
    for i in range(n):
        job = await queue.add({"n": i}, group_id=f"g{i % 3}")
        await queue.fail(job.id, f"number {i}")
