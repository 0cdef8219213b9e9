"""Which jobs a command is about: by state and group, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from groupmq.cli.options.target import UNSET_ATTEMPTS
from groupmq.sync import Job, Queue

PAGE = 500
EVERY = 2**31 - 1


def ids_of(
    queue: Queue, state: str, limit: int = EVERY, *, group_id: str | None = None, newest: bool = False
) -> list[str]:
    """Ids of a state, as the queue lists them; finished ones oldest first, or newest first.

    Only waiting jobs are indexed by group; for any other state all jobs are listed, whatever their group.
    """
    return queue.get_job_ids(state, limit, group_id=group_id if state == "waiting" else None, newest=newest)


def jobs_of(queue: Queue, ids: Sequence[str], state: str, group_id: str | None = None) -> Iterator[Job]:
    """The jobs that are still in that state, and in the group if one is given."""
    for at in range(0, len(ids), PAGE):
        for job in queue.get_jobs_by_id(ids[at : at + PAGE]):
            if job is not None and job.state == state and group_id in (None, job.group_id):
                yield job


def pick(queue: Queue, states: Sequence[str], group_id: str | None, limit: int) -> list[Job]:
    """At most `limit` jobs of these states."""
    found: list[Job] = []
    for state in states:
        # Only waiting jobs are indexed by group: to find others of a group, every job of the state has to be read.
        whole = group_id is not None and state != "waiting"
        ids = ids_of(queue, state, EVERY if whole else limit - len(found), group_id=group_id, newest=True)
        for job in jobs_of(queue, ids, state, group_id):
            if len(found) == limit:
                return found
            found.append(job)
    return found


def described(job: Job) -> dict[str, Any]:
    """A job for `--json`, with all that the library knows. `max_attempts` is null if it is not known."""
    found = job.to_dict()
    found["max_attempts"] = known_attempts(job)
    return found


def known_attempts(job: Job) -> int | None:
    """The job's own max_attempts, else the queue's."""
    return None if job.max_attempts == UNSET_ATTEMPTS else job.max_attempts
