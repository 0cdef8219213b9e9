# Generated from src/groupmq/client/queue/adding.py by `make sync`; do not edit.
"""Adding jobs, one or many, and recognising those that exist already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from groupmq.client.answers.jobs import added_job, gone_job, job_from
from groupmq.core import middleware as middlewares
from groupmq.core import record
from groupmq.core.draft_chain import JobDraft
from groupmq.core.drafts import Draft, check, draft, drafts_from
from groupmq.core.errors import ConfigurationError, GroupFull
from groupmq.core.job_options import JOB_DEFAULTS, JOB_OPTIONS, JobOptions
from groupmq.core.schedule import Repeat
from groupmq.core.signatures import shows_options, unknown_option
from groupmq.protocol import commands
from groupmq.protocol.commands import Added
from groupmq.sync.job import Job
from groupmq.sync.queue.base import Chunk
from groupmq.sync.queue.reading import views_of

if TYPE_CHECKING:
    from groupmq.sync.queue.methods import QueueMethods

A = TypeVar("A", bound=Job | GroupFull)
SavedJob = Job
"""The type that `JobDraft.save` returns."""


@shows_options(JobOptions, JOB_DEFAULTS)
def add(queue: QueueMethods, /, data: Any, *, repeat: Repeat | None = None, **options: Unpack[JobOptions]) -> Job:
    """Add a job. Once this returns, the job runs to completion or is recorded as failed, whichever process dies.

    If a job with the same `job_id` exists, nothing is added and that job is returned with `job.duplicate` set. The
    id is free again once that job is gone (ended and not kept, or removed); `unique_for` keeps it taken longer.
    With `repeat`, this defines a job that is added at each tick, and returns the next occurrence, which exists
    from its tick on.

    Options:
        group_id: Jobs of one group run in order, one at a time.
        order_ms: The order in the group: smaller runs first. Default: the time of the add.
        priority: From 0, the most urgent, to 1023. Within a group, jobs with a smaller number run first.
        delay: Do not start the job before this time has passed.
        run_at: Do not start the job before this instant.
        max_attempts: How many attempts the job has. Default: the worker's number, else the queue's.
        timeout: Cancel the handler after this long.
        backoff: How long to wait before the next attempt.
        on_retry: `hold`: the group waits for the next attempt. `yield`: it goes on.
        on_failed: `hold`: if the job fails for good, its group is blocked until the job is retried, skipped or removed.
            Default: that of the queue.
        job_id: An id chosen by the caller. If a job with this id exists, nothing is added.
        unique_for: With `job_id`: the id stays taken for this long after the job has ended, even if the job is not
            kept.
        ttl: Fail the job if it has not started within this long.
        dedupe: A Throttle or a Debounce: several adds that count as one job.
    """
    headers = middlewares.headers(queue._middleware)
    try:
        if repeat is None:
            return queue._submit(draft(queue.options, data, headers, **options))
        job = queue._add_repeating(data, repeat, headers, **options)
    except TypeError:
        unknown = unknown_option("Queue.add", options, JOB_OPTIONS)
        if unknown is None:
            raise
        raise unknown from None
    if queue._job_log.debugging():
        queue._job_log.repeats(job)
    return job


def add_many(queue: QueueMethods, items: Iterable[Mapping[str, Any] | JobDraft[Any]]) -> list[Job]:
    """Add many jobs in order, atomically per 100 jobs. A bad item is refused before anything is written.

    An item is what `create_job` returns, or a mapping of `data` and any options of `add`.
    If it raises later (a full group, an outage), the jobs that were added are the first ones of the list: no job is
    added behind one that was not. With partitions, all of this holds for the jobs of each partition.
    """
    return queue._submit_all(chunks(drafts_of(queue, items)))


def drafts_of(queue: QueueMethods, items: Iterable[Mapping[str, Any] | JobDraft[Any]]) -> list[Draft]:
    """The items of an `add_many`, checked."""
    if not isinstance(items, Iterable):
        raise ConfigurationError.expected("items", "an iterable of mappings or JobDrafts", items)
    return drafts_from(queue.options, items, middlewares.headers(queue._middleware))


def chunks(drafts: Sequence[Draft]) -> Iterator[Chunk]:
    """Split drafts into calls of bounded size."""
    for chunk in commands.chunked(drafts, lambda d: len(d.body)):
        yield chunk, commands.add(chunk, whole=True)


def create_job(queue: QueueMethods, data: Any) -> JobDraft[SavedJob]:
    """Describe a job step by step, then save it: `queue.create_job(d).group("g").delay(5).save()`."""
    return JobDraft(queue.options, queue.add, data)


def check_job(queue: QueueMethods, fields: Mapping[str, Any]) -> None:
    """Raise what `add_many` would raise for this item; nothing is sent."""
    check(queue.options, fields)


def save_all(queue: QueueMethods, drafts: Iterable[JobDraft[Any]]) -> list[Job]:
    """Save many drafts at once, in order."""
    return queue.add_many(drafts)


def added_together(queue: QueueMethods, drafts: Sequence[Draft], added: Added) -> list[Job]:
    """The jobs of an add that one caller made: all of them are added, or none."""
    if added.full:
        raise _full(queue, drafts[added.full[0]])
    return _logged(queue, _added(queue, drafts, added))


def added_apart(queue: QueueMethods, drafts: Sequence[Draft], added: Added) -> list[Job | GroupFull]:
    """The jobs of adds of several callers that share a call: a refused job does not affect the others."""
    jobs: list[Job | GroupFull] = [*_added(queue, drafts, added)]
    for i in added.full:
        jobs[i] = _full(queue, drafts[i])
    return _logged(queue, jobs)


def _logged(queue: QueueMethods, jobs: list[A]) -> list[A]:
    if queue._job_log.debugging():
        queue._job_log.added(jobs)
    return jobs


def _full(queue: QueueMethods, d: Draft) -> GroupFull:
    return GroupFull(d.group_id or "", queue.options.max_group_size or 0)


def _added(queue: QueueMethods, drafts: Sequence[Draft], added: Added) -> list[Job]:
    """The jobs of an add. A draft that added nothing gets the existing job, as it is stored."""
    make = queue._make_job
    jobs = [added_job(make, d, added) for d in drafts]
    if added.stood_for:
        views = views_of(queue, list(added.stood_for.values()))
        for (i, job_id), view in zip(added.stood_for.items(), views, strict=True):
            if view is None:
                jobs[i] = gone_job(make, drafts[i]._replace(id=job_id), added, added.made.get(i, 0))
            else:
                jobs[i] = job_from(make, job_id, view)
            jobs[i].duplicate = True
    if added.duplicates:
        views = views_of(queue, [drafts[i].id for i in added.duplicates])
        for i, view in zip(added.duplicates, views, strict=True):
            nonce = drafts[i].nonce
            # An add of this process that was sent twice is not a duplicate: this process made the id or the nonce.
            if view is None:
                jobs[i] = gone_job(make, drafts[i], added)
                jobs[i].duplicate = nonce is not None
                continue
            jobs[i] = job_from(make, drafts[i].id, view)
            jobs[i].duplicate = nonce is not None and record.unpack(view.record).options.get("n") != nonce
    return jobs
