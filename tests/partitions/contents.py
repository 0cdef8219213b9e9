"""A queue with all kinds of contents, and a snapshot of them through the public API."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from groupmq import Every, FailJob, Job, Queue, Throttle, Worker

GROUPS = [f"g{i}" for i in range(12)]
TWO_AT_A_TIME = "g8"
KEPT: dict[str, Any] = {"keep_completed": 1000, "keep_failed": 1000, "on_failed": "hold"}


async def handle(job: Job) -> Any:
    await job.log("a line")
    if job.data == "bad":
        raise FailJob("it was bad")
    if job.data == "again":
        raise RuntimeError("try again")
    return [job.data]


async def fill(queue: Queue) -> None:
    """Fill a queue with all kinds of contents."""
    for i, g in enumerate(GROUPS):
        await queue.add("done", group_id=g, job_id=f"done-{g}" if i % 2 else None)
    for g in GROUPS[:3]:
        await queue.add("bad", group_id=g)
        await queue.add("behind", group_id=g)
    for g in GROUPS[3:6]:
        await queue.add("again", group_id=g, backoff=3600, max_attempts=3)
    await queue.add("unique", job_id="taken", unique_for=3600)
    await Worker(queue, handle, concurrency=4).run(burst=True)
    for i in range(3):
        await queue.add_many({"data": i, "group_id": g, "priority": i} for g in GROUPS)
    await queue.add_many({"data": i, "group_id": g, "delay": 3600} for i in range(2) for g in GROUPS)
    await queue.add_many({"data": i, "delay": 3600 * (i % 2)} for i in range(20))
    await queue.add_many({"data": i, "job_id": f"loose-{i}"} for i in range(8))
    await queue.add("given", group_id="g1", job_id="given", ttl=3600)
    await queue.add("once", dedupe=Throttle("key", 3600))
    await queue.add("once", group_id="g2", dedupe=Throttle("key", 3600))
    await queue.add("tick", group_id="g3", repeat=Every(3600))
    await queue.add("tick", repeat=Every(7200))
    await queue.pause_group("g7")
    await queue.set_group_concurrency(TWO_AT_A_TIME, 2)
    await queue.mark("deployed")


async def snapshot(queue: Queue) -> dict[str, Any]:
    """The contents of a queue as users see them."""
    found: dict[str, Any] = {"counts": await queue.get_job_counts()}
    for state, ids in (await queue.get_jobs()).items():
        jobs = {job.id: job for job in await queue.get_jobs_by_id(ids) if job is not None}
        found[state] = {
            i: (
                job.data,
                job.group_id,
                job.attempts_made,
                job.return_value,
                job.failed_reason,
                job.run_at,
                job.priority,
            )
            for i, job in jobs.items()
        }
        assert len(jobs) == len(ids)
    lines = {}
    for g in GROUPS:
        info = await queue.get_group(g)
        jobs_of_group = await queue.get_group_jobs(g, limit=1000)
        held = info.state, info.paused, info.concurrency, info.blocked_by, info.blocked_since
        lines[g] = (held, info.held and info.held.reason, [job.id for job in jobs_of_group.jobs])
    found["lines"] = lines
    found["repeats"] = [(one.key, one.group_id, one.next_run, one.count) for one in await queue.get_repeating_jobs()]
    found["marks"] = await queue.get_marks()
    return found


async def run_all(queue: Queue) -> dict[str | None, list[Any]]:
    """Run all jobs. Returns them by group, in the order of their runs."""
    ran: dict[str | None, list[Any]] = defaultdict(list)
    fences: dict[str, int] = {}

    async def note(job: Job) -> None:
        ran[job.group_id].append((job.data, job.id))
        fences[job.id] = job.fence

    await queue.resume()
    await Worker(queue, note, concurrency=3).run(burst=True)
    # Two jobs of this group run at a time. They are granted in order, but two answers may arrive in any order.
    ran[TWO_AT_A_TIME].sort(key=lambda one: fences[one[1]])
    return ran
