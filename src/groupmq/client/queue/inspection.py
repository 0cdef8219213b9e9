"""The read model of a queue: methods that only look at jobs. All are bounded: none lists a whole queue at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from groupmq.client.answers.attempts import attempts_of
from groupmq.client.job import Job
from groupmq.core.checks import one_of, text, whole
from groupmq.core.durations import Duration, seconds
from groupmq.core.errors import ConfigurationError, JobNotFound
from groupmq.core.events import Position, read
from groupmq.core.filters import STATES
from groupmq.core.pages import Attempt, JobPosition
from groupmq.core.views import JobCounts, Turn
from groupmq.protocol import commands
from groupmq.runtime.pauses import growing

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods

FINISHED = ("completed", "failed")


async def get_job(queue: QueueMethods, job_id: str) -> Job | None:
    """The job with this id; None if there is none."""
    return (await queue.get_jobs_by_id([text(job_id, "job_id")]))[0]


async def require_job(queue: QueueMethods, job_id: str) -> Job:
    """Like `get_job`, but raises JobNotFound."""
    job = await queue.get_job(job_id)
    if job is None:
        raise JobNotFound(job_id)
    return job


async def get_job_ids(
    queue: QueueMethods,
    state: str,
    limit: int = 1000,
    offset: int = 0,
    *,
    group_id: str | None = None,
    newest: bool = False,
) -> list[str]:
    """Ids of the jobs in a state; finished ones oldest first, or newest first. `group_id`: waiting jobs only."""
    one_of(state, "state", *STATES)
    if group_id is None:
        return await queue._list_ids(state, limit, offset, newest=newest and state in FINISHED)
    if state != "waiting":
        raise ConfigurationError("group_id: only waiting jobs are listed by group; use search() for other states")
    whole(limit, "limit", 0, 2**31)
    whole(offset, "offset", 0, 2**53)
    return await queue._list_waiting(limit, offset, text(group_id, "group_id"))


async def get_job_counts(queue: QueueMethods) -> JobCounts:
    """How many jobs are in each state, and how many groups have a live job."""
    active, waiting, delayed, completed, failed, groups, *_ = await queue._call(commands.counts())
    return JobCounts(active, waiting, delayed, completed, failed, active + waiting + delayed, groups)


async def get_active_count(queue: QueueMethods) -> int:
    """How many jobs run."""
    return (await queue.get_job_counts()).active


async def get_waiting_count(queue: QueueMethods) -> int:
    """How many jobs wait in their groups."""
    return (await queue.get_job_counts()).waiting


async def get_delayed_count(queue: QueueMethods) -> int:
    """How many jobs are delayed."""
    return (await queue.get_job_counts()).delayed


async def get_completed_count(queue: QueueMethods) -> int:
    """How many completed jobs are kept."""
    return (await queue.get_job_counts()).completed


async def get_failed_count(queue: QueueMethods) -> int:
    """How many failed jobs are kept."""
    return (await queue.get_job_counts()).failed


async def get_active_jobs(queue: QueueMethods, limit: int = 1000, offset: int = 0) -> list[str]:
    """Ids of running jobs, the one whose lease ends next first."""
    return await queue._list_ids("active", limit, offset)


async def get_waiting_jobs(queue: QueueMethods, limit: int = 1000, offset: int = 0) -> list[str]:
    """Ids of waiting jobs, group by group; in a small queue, in the order of their arrival."""
    return await queue._list_ids("waiting", limit, offset)


async def get_delayed_jobs(queue: QueueMethods, limit: int = 1000, offset: int = 0) -> list[str]:
    """Ids of delayed jobs, the next one due first."""
    return await queue._list_ids("delayed", limit, offset)


async def get_completed_jobs(queue: QueueMethods, limit: int = 100, offset: int = 0) -> list[Job]:
    """Kept completed jobs, newest first."""
    return await _list_jobs(queue, "completed", limit, offset)


async def get_failed_jobs(queue: QueueMethods, limit: int = 100, offset: int = 0) -> list[Job]:
    """Kept failed jobs, newest first."""
    return await _list_jobs(queue, "failed", limit, offset)


async def _list_jobs(queue: QueueMethods, state: str, limit: int, offset: int) -> list[Job]:
    ids = await queue._list_ids(state, limit, offset, newest=True)
    return [job for job in await queue.get_jobs_by_id(ids) if job is not None and job.state == state]


async def get_jobs(queue: QueueMethods, limit: int = 1000) -> dict[str, list[str]]:
    """Ids by state, at most `limit` of each."""
    found: dict[str, list[str]] = {}
    for state in STATES:
        found[state] = await queue._list_ids(state, limit, newest=state in FINISHED)
    return found


async def get_attempts(queue: QueueMethods, job_id: str) -> list[Attempt]:
    """The runs of a job, oldest first: how each ended, with error, stack, worker and times.

    The newest 20 that did not complete are kept, as long as the job is. Raises JobNotFound.
    """
    found = await queue._call(commands.attempts(text(job_id, "job_id")))
    if not found.state:
        raise JobNotFound(job_id)
    return attempts_of(found)


async def get_position(queue: QueueMethods, job_id: str) -> JobPosition | None:
    """The position of a job in its group, 1 = the next to start; None if the job has ended or does not exist."""
    found = await queue._call(commands.position(text(job_id, "job_id")))
    if found is None or found.state in FINISHED:
        return None
    return JobPosition(found.group_id or None, found.position, found.of, found.state)


async def get_turn(queue: QueueMethods) -> Turn | None:
    """Which worker has the turn of an exclusive queue; None if none has."""
    answer = await queue._call(commands.look_turn())
    return Turn(answer[0], answer[1], answer[2] / 1000, answer[3]) if answer else None


async def get_last_event_id(queue: QueueMethods) -> str:
    """The id of the newest event. `events(since=...)` with this id yields all that happens after this call."""
    raw = await queue._call(commands.log_end())
    if not raw:
        return str(Position("0-0", 0, -1))
    entry = read(raw, queue.options.serializer)
    return str(Position(entry.stream_id, entry.number, max(0, len(entry.events) - 1)))


async def wait_for_empty(queue: QueueMethods, timeout: Duration = 60) -> bool:
    """Wait until no job is active, waiting or delayed; False if that takes longer than `timeout`."""
    end = time.monotonic() + seconds(timeout, "timeout")
    pauses = growing(0.005, 0.25, factor=1.5)
    while (await queue.get_job_counts()).total:
        left = end - time.monotonic()
        if left <= 0:
            return False
        await queue._connection.sleep(min(next(pauses), left))
    return True
