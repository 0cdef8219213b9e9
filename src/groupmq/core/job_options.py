"""The options of a job, declared once: `add` takes them, and `add_many` as the keys of its items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from groupmq.core.backoff import Backoff, BackoffPolicy
from groupmq.core.durations import Duration, Instant
from groupmq.core.limits import Dedupe
from groupmq.core.queue_options import OnFailed, OnRetry


class JobOptions(TypedDict, total=False):
    """The options of a job. An option that is left out, or None, has its default."""

    group_id: str | None
    """Jobs of one group run in order, one at a time."""
    order_ms: int | None
    """The order in the group: smaller runs first. Default: the time of the add."""
    priority: int
    """From 0, the most urgent, to 1023. Within a group, jobs with a smaller number run first."""
    delay: Duration | None
    """Do not start the job before this time has passed."""
    run_at: Instant | None
    """Do not start the job before this instant."""
    max_attempts: int | None
    """How many attempts the job has. Default: the worker's number, else the queue's."""
    timeout: Duration | None
    """Cancel the handler after this long."""
    backoff: BackoffPolicy | Duration | None
    """How long to wait before the next attempt."""
    on_retry: OnRetry | None
    """`hold`: the group waits for the next attempt. `yield`: it goes on."""
    on_failed: OnFailed | None
    """`hold`: if the job fails for good, its group is blocked until the job is retried, skipped or removed. Default:
    that of the queue."""
    job_id: str | None
    """An id chosen by the caller. If a job with this id exists, nothing is added."""
    unique_for: Duration | None
    """With `job_id`: the id stays taken for this long after the job has ended, even if the job is not kept."""
    ttl: Duration | None
    """Fail the job if it has not started within this long."""
    dedupe: Dedupe | None
    """A Throttle or a Debounce: several adds that count as one job."""


STORED_OPTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "t": ("timeout", lambda ms: ms / 1000),
    "b": ("backoff", Backoff.unpacked),
    "y": ("on_retry", lambda yields: "yield" if yields else "hold"),
    "f": ("on_failed", lambda holds: "hold" if holds else "continue"),
}
"""How the rarely used options are stored with a job (`core/drafts.py` writes them)."""


def from_stored(options: Mapping[str, Any]) -> dict[str, Any]:
    """The rarely used options of a job, by name; those that it was not given are left out."""
    fields = ((STORED_OPTIONS[short], value) for short, value in options.items() if short in STORED_OPTIONS)
    return {name: read(value) for (name, read), value in fields}


JOB_OPTIONS = frozenset(JobOptions.__annotations__)
JOB_DEFAULTS: dict[str, Any] = dict.fromkeys(JobOptions.__annotations__) | {"priority": 0}
