"""The options of a worker: frozen, and checked when they are made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from groupmq.core import backoff as backoffs
from groupmq.core import loggers
from groupmq.core import middleware as middlewares
from groupmq.core.backoff import BackoffPolicy
from groupmq.core.checks import Logger, flag, one_of, takes, text, whole
from groupmq.core.durations import Duration, millis, seconds
from groupmq.core.errors import ConfigurationError
from groupmq.core.queue_options import MAX_ATTEMPTS, QueueOptions
from groupmq.core.retention import UNBOUNDED
from groupmq.core.signatures import complete

MAX_BATCH = 1000


class ProcessArguments(TypedDict, total=False):
    """The options of `Worker` without `concurrency`, which `Queue.process` also takes by position."""

    name: str | None
    """The name in `get_workers` and in log lines. Default: the queue and the id of the worker."""
    logger: Logger | Literal[True] | None
    """An object with the methods of a logger; True: the console."""
    heartbeat: Duration | None
    """The time between two renewals of leases. Default: a third of `job_timeout`."""
    max_attempts: int | None
    """How many attempts a job has if it does not set a number itself. Default: the queue's."""
    backoff: BackoffPolicy | Duration | None
    """How long a job without its own back-off waits for its next attempt. Default: the queue's."""
    on_error: Callable[..., Any] | None
    """Called with the error and the job of each failed attempt; without a job if the server is out of reach."""
    maintenance: bool
    """Whether this worker also runs the scheduler, the recovery and the clean-up."""
    cleanup_interval: Duration
    """The time between two clean-ups."""
    stalled_interval: Duration
    """The longest time between two checks for expired leases. Usually a check comes when a lease is due."""
    max_stalled: int | None
    """A job whose lease has expired more often than this fails for good."""
    blocking_timeout: Duration
    """The longest time for which one read waits for work."""
    atomic_completion: bool
    """Whether one call may report outcomes and take new jobs."""
    batch_size: int | None
    """Jobs of one turn, in an exclusive queue. Default: `concurrency`."""
    batch: int | None
    """The handler gets up to this many jobs of one group, as a list."""
    batch_wait: Duration
    """How long a group waits for its batch to fill."""
    on_startup: Callable[[], Any] | None
    """Awaited before the first job; every handler finds the value that it returns in `job.context`."""
    on_shutdown: Callable[..., Any] | None
    """Awaited after the last job."""
    prefetch: Literal["auto"] | int
    """`auto`: jobs are prefetched while handlers are short. A number: at most that many; 0: none."""
    executor: Literal["thread", "process"]
    """Where a `def` handler runs."""
    middleware: Sequence[Any]
    """Hooks around each run."""
    unreachable_timeout: Duration | None
    """`run` raises ConnectionLost when the server has been out of reach for this long. Default: it tries for ever."""


class WorkerArguments(ProcessArguments, total=False):
    """The options of `Worker`, declared once. WORKER_DEFAULTS has the value of each one that is left out."""

    concurrency: int
    """Jobs that run at once."""


WORKER_DEFAULTS: dict[str, Any] = {
    "concurrency": 1,
    "name": None,
    "logger": None,
    "heartbeat": None,
    "max_attempts": None,
    "backoff": None,
    "on_error": None,
    "maintenance": True,
    "cleanup_interval": 60,
    "stalled_interval": 30,
    "max_stalled": None,
    "blocking_timeout": 5,
    "atomic_completion": True,
    "batch_size": None,
    "batch": None,
    "batch_wait": 0,
    "on_startup": None,
    "on_shutdown": None,
    "prefetch": "auto",
    "executor": "thread",
    "middleware": (),
    "unreachable_timeout": None,
}


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of a worker, checked."""

    concurrency: int
    name: str
    logger: Logger
    heartbeat: float
    max_attempts: int
    backoff: BackoffPolicy
    own_heartbeat: float | None
    """These three: the value that the worker itself was given; None = the value stored with the queue at the time."""
    own_max_attempts: int | None
    own_backoff: BackoffPolicy | None
    on_error: Callable[..., Any] | None
    maintenance: bool
    cleanup_interval: float
    stalled_interval: float
    max_stalled: int
    blocking_timeout: float
    atomic_completion: bool
    executor: Literal["thread", "process"]
    batch_size: int
    prefetch: Literal["auto"] | int
    middleware: tuple[Any, ...]
    unreachable_timeout: float | None
    batch: int | None
    """The most jobs that one call of the handler gets; None = the handler gets one job, not a list."""
    batch_wait_ms: int
    on_startup: Callable[..., Any] | None
    on_shutdown: Callable[..., Any] | None

    @classmethod
    def checked(cls, queue: QueueOptions, default_name: str, arguments: WorkerArguments) -> WorkerOptions:
        """Make options from what the user passed; what was left out comes from the queue."""
        given = complete("Worker", arguments, WORKER_DEFAULTS)
        on_error, prefetch = given["on_error"], given["prefetch"]
        if on_error is not None and not callable(on_error):
            raise ConfigurationError.expected("on_error", "a callable (exc, job)", on_error)
        if prefetch != "auto" and not (type(prefetch) is int and 0 <= prefetch <= 10_000):
            raise ConfigurationError.expected("prefetch", "'auto' or an integer from 0 to 10000", prefetch)
        concurrency = whole(given["concurrency"], "concurrency", 1, 10_000)
        turn_size, patience = given["batch_size"], given["unreachable_timeout"]
        jobs, wait = _batch(queue, given)
        lease = queue.job_timeout_ms / 1000
        beat = given["heartbeat"]
        own_beat = None if beat is None else seconds(beat, "heartbeat", minimum=0.01)
        heartbeat = lease / 3 if own_beat is None else own_beat
        # A lease that is only the default may differ from the stored one. The worker checks that when it starts.
        if heartbeat >= lease and (queue.is_stored or "job_timeout" in queue.given):
            raise ConfigurationError.expected("heartbeat", f"less than job_timeout ({lease:g} s)", beat)
        attempts, policy, name, stalls = (given[key] for key in ("max_attempts", "backoff", "name", "max_stalled"))
        own_attempts = None if attempts is None else whole(attempts, "max_attempts", 1, MAX_ATTEMPTS)
        own_backoff = None if policy is None else backoffs.checked(policy, "backoff")
        return cls(
            concurrency=concurrency,
            name=default_name if name is None else text(name, "name"),
            logger=loggers.checked(given["logger"]) or queue.logger or logging.getLogger("groupmq.worker"),
            heartbeat=heartbeat,
            max_attempts=queue.max_attempts if own_attempts is None else own_attempts,
            backoff=queue.backoff if own_backoff is None else own_backoff,
            own_heartbeat=own_beat,
            own_max_attempts=own_attempts,
            own_backoff=own_backoff,
            on_error=on_error,
            maintenance=flag(given["maintenance"], "maintenance"),
            cleanup_interval=seconds(given["cleanup_interval"], "cleanup_interval", minimum=0.01),
            stalled_interval=seconds(given["stalled_interval"], "stalled_interval", minimum=0.01),
            max_stalled=UNBOUNDED if stalls is None else whole(stalls, "max_stalled", 0, MAX_ATTEMPTS),
            blocking_timeout=seconds(given["blocking_timeout"], "blocking_timeout", minimum=0.05),
            atomic_completion=flag(given["atomic_completion"], "atomic_completion"),
            executor="process" if one_of(given["executor"], "executor", "thread", "process") == "process" else "thread",
            batch_size=concurrency if turn_size is None else whole(turn_size, "batch_size", 1, 10_000),
            prefetch=prefetch,
            middleware=middlewares.checked(given["middleware"]),
            unreachable_timeout=None if patience is None else seconds(patience, "unreachable_timeout", minimum=0.1),
            batch=jobs,
            batch_wait_ms=wait,
            on_startup=_hook(given["on_startup"], "on_startup", "a callable without arguments", 0),
            on_shutdown=_hook(given["on_shutdown"], "on_shutdown", "a callable that takes the context, or nothing", 1),
        )


def _batch(queue: QueueOptions, given: dict[str, Any]) -> tuple[int | None, int]:
    """How many jobs a handler gets in one call, and how many milliseconds a group waits for that many."""
    wait = millis(given["batch_wait"], "batch_wait")
    if given["batch"] is None:
        if wait:
            raise ConfigurationError("batch_wait: needs batch, the number of jobs to wait for")
        return None, 0
    jobs = whole(given["batch"], "batch", 1, MAX_BATCH)
    refusals = {
        "exclusive=True, whose turns count jobs one by one (see batch_size)": queue.exclusive,
        "group_concurrency above 1: jobs that run side by side have no order that a batch could keep": (
            queue.group_concurrency > 1
        ),
        "group_rate_limit, which counts the jobs of a group one by one": queue.group_rate_limit is not None,
        "executor='process', which gets one job at a time": given["executor"] == "process",
        "middleware, whose hooks get one job at a time": bool(given["middleware"]),
    }
    for what, refused in refusals.items():
        if refused:
            raise ConfigurationError(f"batch: cannot be combined with {what}")
    return jobs, wait


def _hook(value: Any, argument: str, expected: str, most: int) -> Callable[..., Any] | None:
    if value is None:
        return None
    if not callable(value) or not any(takes(value, count) for count in range(most + 1)):
        raise ConfigurationError.expected(argument, expected, value)
    called: Callable[..., Any] = value
    return called
