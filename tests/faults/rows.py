"""Worker processes that take jobs of a group together, and every way in which their history breaks a promise."""

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
    """A worker that has seen enough short handlers to take jobs of a group together."""
    (process,) = await asyncio.to_thread(fleet.start, short_handlers=True)

    async def takes_rows() -> bool:
        await see_short_handlers(queue, 200)
        # Of those that are taken together the fences follow each other.
        fences = [line["fence"] for line in fleet.lines("start")[-6:]]
        return fences == list(range(fences[0], fences[0] + 6))

    await eventually(takes_rows, "it takes jobs of a group together", timeout=30)
    return process


async def add_all(queue: Queue, groups: int, each: int, **options: Any) -> list[str]:
    """Jobs in groups, all there before anybody looks; every tenth may run but once."""
    items = [
        {"data": {"n": i}, "group_id": f"g{g}", "job_id": f"g{g}-{i}", "max_attempts": 1 if i % 10 == 7 else 9}
        | options
        for i in range(each)
        for g in range(groups)
    ]
    return [job.id for job in await queue.add_many(items)]


def in_rows(history: History) -> int:
    """Runs of jobs that were taken behind another: their fences follow each other."""
    return sum(
        after.fence == before.fence + 1 for runs in history.by_group().values() for before, after in pairwise(runs)
    )


def of_interest(history: History) -> History:
    """Without the runs that only got a worker used to short handlers."""
    return History([run for run in history.runs if not run.job.startswith("warm")], history.lines, history.kills)


def check(history: History, added: list[str], failed: Iterable[str] = ()) -> None:
    """Nothing lost, nothing twice that was recorded, nothing beside its own group, and ends in their order."""
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
            found.append(f"{group}: some were recorded twice")
        if jobs != sorted(jobs, key=place.__getitem__):
            found.append(f"{group}: recorded in another order: {jobs}")
    for group, timed in first_ends.items():
        jobs = [job for _, job in sorted(timed)]
        if jobs != sorted(jobs, key=place.__getitem__):
            found.append(f"{group}: first ended in another order: {jobs}")
    assert not found, f"{len(found)} broken promises:\n  " + "\n  ".join(found[:40])


async def failed_of(queue: Queue) -> list[str]:
    """Those that failed; only one that may run but once may."""
    failed = await queue.get_failed_jobs()
    for job in failed:
        assert job.max_attempts == 1
        assert "stalled" in (job.failed_reason or "")
    return [job.id for job in failed]


async def in_the_middle(fleet: Fleet, more: int) -> None:
    enough = len(fleet.lines("end")) + more
    await eventually(lambda: len(fleet.lines("end")) >= enough, f"{more} more handlers have ended")


async def freeze_in_a_row(fleet: Fleet, queue: Queue, process: subprocess.Popen[bytes], concurrency: int) -> None:
    """Stop the only worker at a moment at which it holds more jobs than it can run.

    Whoever is to be killed has to be stopped before: a kill may cut the line short that it is writing.
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
    """Five jobs of a group, the third of which is special."""
    items = [{"data": {}, "group_id": "g", "max_attempts": 9} for _ in range(5)]
    items[2] |= {"data": data, **options}
    return await queue.add_many(items)
