"""The queue, blocking: method for method the twin of `groupmq/client/queue.py` (a test compares the two)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from groupmq.client import operations
from groupmq.client.connection.connections import BlockingConnection, Endpoint
from groupmq.client.duties import Duties
from groupmq.client.events import JobListeners
from groupmq.client.operations import Operations
from groupmq.client.repeats import Repeating
from groupmq.core import middleware as middlewares
from groupmq.core.backoff import DEFAULT, BackoffPolicy
from groupmq.core.checks import Logger
from groupmq.core.codec import JSON, Serializer
from groupmq.core.draft_chain import JobDraft
from groupmq.core.drafts import check, draft
from groupmq.core.durations import Duration, Instant, seconds
from groupmq.core.errors import ConfigurationError
from groupmq.core.events import Event
from groupmq.core.job_log import JobLog
from groupmq.core.limits import Dedupe, RateLimit
from groupmq.core.options import Fairness, OnRetry, QueueOptions, Retention
from groupmq.core.ordering import Ordering
from groupmq.core.record import Stored
from groupmq.core.schedule import Repeat
from groupmq.core.views import RepairReport
from groupmq.protocol import commands
from groupmq.sync.browsing import Browsing
from groupmq.sync.inspection import Looking
from groupmq.sync.job import Job
from groupmq.sync.listening import Listeners, Listening
from groupmq.sync.oversight import Overseeing

T = TypeVar("T")


class Queue(Looking, Browsing, Overseeing):
    """A queue of jobs. Jobs of one group run strictly in order, one at a time; groups run in parallel.

    >>> with Queue("orders") as queue:
    ...     queue.add({"amount": 999}, group_id="user:42", max_attempts=5)
    """

    def __init__(
        self,
        name: str,
        redis: Any = None,
        *,
        job_timeout: Duration = 30,
        max_attempts: int = 3,
        backoff: BackoffPolicy | Duration = DEFAULT,
        on_retry: OnRetry = "hold",
        keep_completed: int | Retention = 100,
        keep_failed: int | Retention = 100,
        ordering: Ordering | None = None,
        fairness: Fairness = "oldest",
        group_concurrency: int = 1,
        exclusive: bool = False,
        rate_limit: RateLimit | None = None,
        group_rate_limit: RateLimit | None = None,
        max_group_size: int | None = None,
        priority_ageing: Duration | None = None,
        events: bool = True,
        middleware: Sequence[Any] = (),
        max_payload: int = 1024 * 1024,
        serializer: Serializer = JSON,
        prefix: str = "groupmq",
        logger: Logger | Literal[True] | None = None,
    ) -> None:
        self.options = QueueOptions.checked(
            name,
            job_timeout=job_timeout,
            max_attempts=max_attempts,
            backoff=backoff,
            on_retry=on_retry,
            keep_completed=keep_completed,
            keep_failed=keep_failed,
            ordering=ordering,
            fairness=fairness,
            group_concurrency=group_concurrency,
            exclusive=exclusive,
            rate_limit=rate_limit,
            group_rate_limit=group_rate_limit,
            max_group_size=max_group_size,
            priority_ageing=priority_ageing,
            events=events,
            max_payload=max_payload,
            serializer=serializer,
            prefix=prefix,
            logger=logger,
        )
        self.name = self.options.name
        self.logger = self.options.logger or logging.getLogger("groupmq.queue")
        self._job_log = JobLog(self.logger, self.name)
        self._endpoint = Endpoint.of(redis)
        self._connection = BlockingConnection(self._endpoint, self.options)
        self._operations: Operations[Job] = Operations(self.options, self._make_job)
        self._repeating = Repeating(self._operations)
        self._middleware = middlewares.checked(middleware)
        self._listening = Listening(self._endpoint, self._connection, self._operations)
        self._listeners = Listeners(self._listening, self.name)
        self._duties = Duties(self._operations, self._repeating)

    def _make_job(self, job_id: str, state: str, stored: Stored) -> Job:
        return Job(self, self.options.serializer, job_id, state, stored, self.options.max_attempts)

    def _run(self, steps: operations.Steps[T]) -> T:
        """Carry out an operation: make each call it yields, and send back the answer."""
        try:
            call = next(steps)
            while True:
                try:
                    answer = self._connection.call(call)
                except Exception as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    # Adding

    def add(
        self,
        data: Any,
        *,
        group_id: str | None = None,
        order_ms: int | None = None,
        priority: int = 0,
        delay: Duration | None = None,
        run_at: Instant | None = None,
        max_attempts: int | None = None,
        timeout: Duration | None = None,
        backoff: BackoffPolicy | Duration | None = None,
        on_retry: OnRetry | None = None,
        job_id: str | None = None,
        ttl: Duration | None = None,
        dedupe: Dedupe | None = None,
        repeat: Repeat | None = None,
    ) -> Job:
        """Add a job. Once this returns, the job runs to completion or is recorded as failed, whatever dies.

        An existing `job_id` adds nothing: the existing job is returned with `job.duplicate` set. With `repeat` a job
        is defined that is added anew at each tick; what is returned is its next occurrence, which exists from its
        tick on.
        """
        given: dict[str, Any] = {
            "group_id": group_id,
            "order_ms": order_ms,
            "priority": priority,
            "delay": delay,
            "run_at": run_at,
            "max_attempts": max_attempts,
            "timeout": timeout,
            "backoff": backoff,
            "on_retry": on_retry,
            "job_id": job_id,
            "ttl": ttl,
            "dedupe": dedupe,
            "headers": middlewares.headers(self._middleware),
        }
        if repeat is not None:
            job = self._run(self._repeating.add(data, repeat, **given))
            if self._job_log.debugging():
                self._job_log.repeats(job)
            return job
        return self._added([self._run(self._operations.add_one(draft(self.options, data, **given)))])[0]

    def _added(self, jobs: list[Job]) -> list[Job]:
        if self._job_log.debugging():
            self._job_log.added(jobs)
        return jobs

    def add_many(self, items: Iterable[Mapping[str, Any] | JobDraft[Any]]) -> list[Job]:
        """Add many jobs, in order, atomically per 100. A bad item is refused before anything is written."""
        return self._added(self._run(self._operations.add_many(items, middlewares.headers(self._middleware))))

    def create_job(self, data: Any) -> JobDraft[Job]:
        """A job to be described step by step, then saved: `queue.create_job(d).group("g").delay(5).save()`."""
        return JobDraft(self.options, self.add, data)

    def check_job(self, fields: Mapping[str, Any]) -> None:
        """Raise what `add_many` would raise for this item; nothing is sent."""
        check(self.options, fields)

    def save_all(self, drafts: Iterable[JobDraft[Any]]) -> list[Job]:
        """Save many drafts at once, in order."""
        return self.add_many(drafts)

    def remove_repeating_job(self, group_id: str | None, repeat_or_key: Repeat | str) -> bool:
        """Stop a repeating job; what it has added already stays. False if there is no such repeat."""
        return self._run(self._repeating.remove(group_id, repeat_or_key))

    # Changing

    def remove(self, job_id: str, *, states: Sequence[str] | None = None) -> bool:
        """Remove a job in whatever state, or only in one of `states`; False if there is no such job.

        The handler of a running one is stopped, and its group goes on when it has ended.
        """
        return self._run(self._operations.remove(job_id, states))

    def retry(self, job_id: str) -> bool:
        """Run a failed job again, from its original place, attempts counted anew."""
        return self._run(self._operations.retry(job_id))

    def promote(self, job_id: str) -> bool:
        """Let a delayed job, or one in its back-off, start now."""
        return self._run(self._operations.promote(job_id))

    def change_delay(self, job_id: str, delay: Duration) -> bool:
        """Let a delayed or waiting job start `delay` from now instead."""
        return self._run(self._operations.change_delay(job_id, delay))

    def update_data(self, job_id: str, data: Any) -> None:
        """Replace a job's data; a handler that runs already keeps what it was given."""
        self._run(self._operations.update_data(job_id, data))

    def fail(self, job_id: str, reason: str = "failed by operator") -> bool:
        """Fail a job for good, whatever attempts remain. A running one loses its lease."""
        return self._run(self._operations.fail(job_id, reason))

    def cancel(self, job_id: str) -> bool:
        """Remove a job that waits; stop the handler of one that runs, in whichever process, within a second.

        A stopped job is recorded as failed with the reason "cancelled".
        """
        return self._run(self._operations.cancel(job_id))

    def cancel_group(self, group_id: str) -> int:
        """Cancel every job of a group: waiting, delayed and running; how many."""
        return self._run(self._operations.cancel_group(group_id))

    def pause(self) -> None:
        """From now on nothing starts; what runs goes on."""
        self._run(self._operations.pause())

    def resume(self) -> None:
        self._connection.call(commands.switch(paused=False))

    def is_paused(self) -> bool:
        return self._run(self._operations.is_paused())

    def pause_group(self, group_id: str) -> bool:
        """Stop one group; True if it was not paused already."""
        return self._run(self._operations.pause_group(group_id))

    def resume_group(self, group_id: str) -> bool:
        return self._run(self._operations.resume_group(group_id))

    def set_group_concurrency(self, group_id: str, n: int | None) -> bool:
        """Let `n` jobs of one group run at once; None = the queue's own setting again."""
        return self._run(self._operations.set_group_concurrency(group_id, n))

    def set_group_rate_limit(self, group_id: str, rate_limit: RateLimit | None) -> bool:
        """Let one group start jobs at a rate of its own; None = the queue's own setting again."""
        return self._run(self._operations.set_group_rate_limit(group_id, rate_limit))

    def clean(
        self,
        state: str,
        *,
        grace: Duration = 0,
        limit: int = 1000,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """Remove jobs of a state that are older than `grace` (finished before, or created before); how many.

        `progress` is called after each bounded step with how many are gone; what it raises ends the work there.
        """
        return self._run(self._operations.clean(state, grace, limit, progress))

    def purge(
        self,
        states: Sequence[str] = ("waiting", "delayed"),
        *,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """Remove all jobs in these states, in bounded steps; how many. `progress` as in `clean`."""
        return self._run(self._operations.purge(states, progress))

    def obliterate(self) -> None:
        """Delete the queue and everything in it, running jobs too."""
        self._run(self._operations.obliterate())
        self._connection.drive(self._connection.dialogue.entry.strike())

    def repair(self, *, progress: Callable[[int], object] | None = None) -> RepairReport:
        """Look for damage and mend it, in bounded steps, while the queue works. Reports none in normal life.

        `progress` is called after each step with how many entries were looked at so far.
        """
        return self._run(self._operations.repair(progress))

    def reconfigure(self) -> None:
        """Store the shared settings of this object (ordering, limits ...) with the queue, whatever was there before."""
        self._connection.drive(self._connection.dialogue.open(replace=True))
        self.repair()

    # Time

    def run_scheduler_once(self) -> int:
        """Do everything that is due now: repeats, delayed jobs, back-offs, expired leases; how many things it did."""
        return self._run(self._duties.run_all_due())

    def promote_delayed_jobs(self) -> int:
        """Move delayed jobs that are due into their groups; how many."""
        return self._run(self._operations.run_due(unpark=False, expire=False)).promoted

    def recover_delayed_groups(self) -> int:
        """Wake groups whose back-off is over; how many."""
        return self._run(self._operations.run_due(promote=False, expire=False)).woken

    def check_stalled_jobs(self) -> list[str]:
        """Take back jobs whose lease expired; their ids."""
        due = self._run(self._operations.run_due(promote=False, unpark=False))
        return [stalled.id for stalled in due.stalled]

    def wait_for_empty(self, timeout: Duration = 60) -> bool:
        """Wait until no job is active, waiting or delayed; False if that takes longer than `timeout`."""
        end = time.monotonic() + seconds(timeout, "timeout")
        pause = 0.005
        while self.get_job_counts().total:
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, 0.25)
        return True

    # Listening

    def events(self, since: str | None = None) -> Iterator[Event]:
        """What happens to the jobs of this queue, in all processes, from now on or after the event with id `since`.

        >>> for event in queue.events():
        ...     print(event.kind, event.job_id)
        """
        self._require_events()
        return self._listening.follow(since)

    def on(self, event: str, listener: Callable[[Event], Any]) -> Callable[[Event], Any]:
        """Call `listener(event)`, in a thread of its own, for events of all workers in all processes."""
        self._require_events()
        self._listeners.on(event, listener)
        return listener

    def off(self, event: str, listener: Callable[[Event], Any]) -> bool:
        return self._listeners.off(event, listener)

    def remove_all_listeners(self, event: str | None = None) -> None:
        self._listeners.remove_all(event)

    def _require_events(self) -> None:
        if not self.options.events:
            raise ConfigurationError("events: this queue was made with events=False; there is nothing to listen to")

    def _result_of(self, job: Job, timeout: Duration | None) -> Any:
        """Wait for the end of a job; see `Job.result`."""
        limit = None if timeout is None else seconds(timeout, "timeout")
        return self._listening.result_of(job, limit)

    def _listen_to(self, job: Job, event: str, listener: Callable[[Event], Any]) -> JobListeners:
        """Listen to one job; see `Job.on`."""
        self._require_events()
        return self._listening.listen_to(job, event, listener)

    def _stop_listening_to(self, listeners: JobListeners, event: str, listener: Callable[[Event], Any]) -> bool:
        """See `Job.off`."""
        return self._listening.stop_listening_to(listeners, event, listener)

    def close(self) -> None:
        """Close our connections (never the user's)."""
        self._listeners.remove_all()
        self._listening.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} at {self.address}>"
