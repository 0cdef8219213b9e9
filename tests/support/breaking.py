"""Groups whose breaker is open."""

from __future__ import annotations

from groupmq import FailJob, Job, Queue, Worker
from tests.support.waiting import eventually


async def open_breakers(queue: Queue, *groups: str, behind: int = 1) -> None:
    """Open the breakers of these groups in order, each in a different millisecond: one job of each group fails, and
    `behind` more wait behind it.

    The queue has `breaker=Breaker(1, ...)`."""

    async def fail(job: Job) -> None:
        raise FailJob("the endpoint is down")

    for group_id in groups:
        await queue.add_many({"data": i, "group_id": group_id, "job_id": f"{group_id}-{i}"} for i in range(1 + behind))
        await Worker(queue, fail).run(burst=True)
        await eventually(lambda: moved_on(queue), "the server's clock has left the millisecond of the last opening")


async def moved_on(queue: Queue) -> bool:
    last = (await queue.get_open_breakers())[-1].breaker_since
    assert last is not None
    return (await queue.survey()).at > last
