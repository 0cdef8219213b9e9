"""How often a job may run: its own number, else that of the worker that runs it, else the queue's. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupmq.dashboard.documents.record import record

if TYPE_CHECKING:
    from groupmq import Job, WorkerInfo

UNSET_ATTEMPTS = 65_535
"""The `max_attempts` of a queue that was opened with its stored settings, if they do not include it."""


@record
class AllowedAttempts:
    """How often jobs without a number of their own may run."""

    most: int | None
    """None if it is not stored with the queue, or if the workers differ: it is not known which one takes the job."""
    by_worker: dict[str, int]
    """The numbers of the workers that were started with one of their own, by their ids."""


def attempts(stored: int, workers: Sequence[WorkerInfo]) -> AllowedAttempts:
    by_worker = {worker.id: worker.max_attempts for worker in workers if worker.max_attempts is not None}
    found = {by_worker.get(worker.id, stored) for worker in workers} or {stored}
    most = found.pop() if len(found) == 1 else None
    return AllowedAttempts(most=None if most is None or most >= UNSET_ATTEMPTS else most, by_worker=by_worker)


def attempts_of(job: Job, known: AllowedAttempts | None) -> int | None:
    if job.own_max_attempts is not None:
        return job.own_max_attempts
    if known is None:
        return None if job.max_attempts >= UNSET_ATTEMPTS else job.max_attempts
    if job.state == "active" and job.worker in known.by_worker:
        return known.by_worker[job.worker]
    return known.most
