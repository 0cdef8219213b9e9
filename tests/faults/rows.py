"""Worker processes that prefetch rows, and checks of their history."""

from __future__ import annotations

import asyncio
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from groupmq import Job, Queue
from groupmq.core.ids import new_id
from tests.support.fleet import Fleet
from tests.support.history import History
from tests.support.waiting import eventually


async def see_short_handlers(queue: Queue, n: int) -> None:
    await queue.add_many([{"data": {}, "group_id": "warm", "job_id": f"warm-{new_id()}"} for _ in range(n)])
    assert await queue.wait_for_empty(20)


async def start_used_to_short_handlers(fleet: Fleet, queue: Queue) -> subprocess.Popen[bytes]:
    """Start a worker that has seen enough short handlers to prefetch rows."""
    (process,) = await asyncio.to_thread(fleet.start, short_handlers=True)

    async def takes_rows() -> bool:
        await see_short_handlers(queue, 200)
        # Jobs that were taken together have consecutive fences.
        fences = [line["fence"] for line in fleet.lines("start")[-6:]]
        return fences == list(range(fences[0], fences[0] + 6))

    await eventually(takes_rows, "it takes jobs of a group together", timeout=30)
    return process


async def add_all(queue: Queue, groups: int, each: int, **options: Any) -> list[str]:
    """Add jobs to several groups at once; every tenth job has only one attempt."""
    items = [
        {"data": {"n": i}, "group_id": f"g{g}", "job_id": f"g{g}-{i}", "max_attempts": 1 if i % 10 == 7 else 9}
        | options
        for i in range(each)
        for g in range(groups)
    ]
    return [job.id for job in await queue.add_many(items)]


async def add_all_and_start(
    fleet: Fleet, queue: Queue, process: subprocess.Popen[bytes], groups: int, each: int, **options: Any
) -> list[str]:
    """Add the jobs of `add_all` and wait until the only worker has run some of them.

    The worker is frozen while they are added: a fast one would have run all of them when the last is added.
    """
    before = len(fleet.lines("end"))
    fleet.freeze(process)
    added = await add_all(queue, groups, each, **options)
    fleet.thaw(process)
    await in_the_middle(fleet, 100, before)
    return added


def in_rows(history: History) -> int:
    """The number of runs of jobs that were prefetched in a row: their fences are consecutive."""
    return sum(
        after.fence == before.fence + 1 for runs in history.by_group().values() for before, after in pairwise(runs)
    )


def of_interest(history: History) -> History:
    """The history without the warm-up runs."""
    return History([run for run in history.runs if not run.job.startswith("warm")], history.lines, history.kills)


def check(history: History, added: list[str], failed: Iterable[str] = ()) -> None:
    """Check that nothing is lost, no job completes twice, no runs of a group overlap, and jobs end in order."""
    failed = set(failed)
    found = [
        *history.lost(job for job in added if job not in failed),
        *history.unexpected(added),
        *history.duplicates(),
        *history.overlaps(),
    ]
    recorded: dict[str, list[str]] = defaultdict(list)
    first_ends: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for run in history.runs:
        if run.accepted == "completed":
            recorded[str(run.group)].append(run.job)
    for runs in history.by_job().values():
        ends = [run.end for run in runs if run.how == "returned" and not run.lost]
        if ends:
            first_ends[str(runs[0].group)].append((min(ends), runs[0].job))
    place = {job: number for number, job in enumerate(added)}
    for group, jobs in recorded.items():
        if len(set(jobs)) != len(jobs):
            found.append(f"{group}: some jobs completed twice")
        if jobs != sorted(jobs, key=place.__getitem__):
            found.append(f"{group}: completed in another order: {jobs}")
    for group, timed in first_ends.items():
        jobs = [job for _, job in sorted(timed)]
        if jobs != sorted(jobs, key=place.__getitem__):
            found.append(f"{group}: handlers first ended in another order: {jobs}")
    assert not found, f"{len(found)} broken promises:\n  " + "\n  ".join(found[:40])


async def failed_of(queue: Queue) -> list[str]:
    """The failed jobs. Only jobs with one attempt may have failed."""
    failed = await queue.get_failed_jobs()
    for job in failed:
        assert job.max_attempts == 1
        assert "stalled" in (job.failed_reason or "")
    return [job.id for job in failed]


async def in_the_middle(fleet: Fleet, more: int, since: int | None = None) -> None:
    """Wait until this many handlers have ended, counted from now, or from a number of ended handlers."""
    enough = (len(fleet.lines("end")) if since is None else since) + more
    await eventually(lambda: len(fleet.lines("end")) >= enough, f"{more} more handlers have ended")


async def freeze_in_a_row(fleet: Fleet, queue: Queue, process: subprocess.Popen[bytes], concurrency: int) -> None:
    """Freeze the only worker while it holds more jobs than it can run.

    A worker is frozen before it is killed, since a kill may truncate the line that it is writing.
    """

    async def frozen() -> bool:
        fleet.freeze(process)
        counts = await queue.get_job_counts()
        if counts.active > concurrency:
            return True
        assert counts.total > 0, "all jobs have run before it was caught in the middle of a row"
        fleet.thaw(process)
        return False

    await eventually(frozen, "it is in the middle of a row")


async def add_with_third(queue: Queue, data: dict[str, Any], **options: Any) -> list[Job]:
    """Add five jobs of a group; the third one has this data and these options."""
    items = [{"data": {}, "group_id": "g", "max_attempts": 9} for _ in range(5)]
    items[2] |= {"data": data, **options}
    return await queue.add_many(items)
