"""Job objects, made from the server's replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from groupmq.core.drafts import Draft
from groupmq.core.record import Record, Stored
from groupmq.core.snapshot import GONE, Snapshot
from groupmq.core.tuples import of_class
from groupmq.protocol import commands
from groupmq.protocol.commands import Added, StoredJob, Taken

J = TypeVar("J", bound=Snapshot)
MakeJob = Callable[[str, str, Stored], J]
"""Makes a job object from its id, its state, and its record or the bytes of it."""
_NONE: dict[str, Any] = {}


def job_from(make: MakeJob[J], job_id: str, view: StoredJob) -> J:
    """A job as it is stored."""
    job = make(job_id, view.state, view.record)
    stored = view.stored
    job.attempts_made, job.stalls = stored.attempts, stored.stalls
    job._started_ms = view.started or stored.started
    job._finished_ms = stored.finished
    job.worker = view.worker or stored.worker or None
    job.failed_reason, job.stacktrace = stored.reason or None, stored.stack or None
    job.error_class = stored.error or None
    # A job that waits to run again has no fence yet: only a job that runs, or has ended, has one.
    job.fence = view.fence or (stored.fence if stored.finished else 0)
    job._raw_result = view.result
    if view.progress is not None:
        job.progress = json.loads(view.progress)
    if view.log is not None:
        job.logs = commands.log_lines(view.log)
    job._expires_ms = view.expires
    job._blocks_ms = view.blocks
    if view.state == "delayed":
        job._run_at_ms = int(view.score)
    elif view.hold:
        job._run_at_ms = view.hold
    return job


def job_taken(make: MakeJob[J], taken: Taken, started_ms: int, worker: str) -> J:
    """A job that a worker has just taken."""
    job = make(taken.id, "active", taken.record)
    job.fence = taken.fence
    job._started_ms = started_ms
    job.worker = worker
    stored = taken.stored
    if stored is not commands.FRESH:
        job.attempts_made, job.stalls = stored.attempts, stored.stalls
        job.failed_reason, job.stacktrace = stored.reason or None, stored.stack or None
    return job


def job_ended(job: Snapshot, state: str, finished_ms: int, result: bytes | None = None) -> None:
    """The server has recorded how a run of this job, which was its last one, ended."""
    job.attempts_made += 1
    job.state, job._raw_result, job._finished_ms = state, result, finished_ms


def added_job(make: MakeJob[J], d: Draft, added: Added) -> J:
    """A job that was just added. Its stored form is known, so the server need not be asked for it."""
    due = added.now + d.delay_ms if d.delay_ms else d.run_at_ms
    later = due > added.now
    order = d.order_ms if d.order_ms is not None else (due if later else added.order_ms)
    own_id, group, priority, _, _, _, attempts, options, data, *_ = d
    stored = of_class(Record, (priority, order, 0, added.now, attempts, False, group, options or _NONE, data))
    job = make(own_id, "delayed" if later else "waiting", stored)
    if later:
        job._run_at_ms = due
    return job


def gone_job(make: MakeJob[J], d: Draft, added: Added, made_ms: int = 0) -> J:
    """A job that ended or was removed, and is not kept: its id is known, its own data are not.

    `made_ms`: when it was made, 0 = not known. The log is searched from then on for how it ended.
    """
    job = added_job(make, d, added)
    job.state, job._run_at_ms, job._created_ms = GONE, 0, made_ms
    return job
