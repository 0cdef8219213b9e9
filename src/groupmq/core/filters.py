"""Filters for jobs: by state, error, group, worker, text, age."""

from __future__ import annotations

import json
from dataclasses import dataclass

from groupmq.core.checks import one_of, text
from groupmq.core.durations import Duration, millis
from groupmq.core.errors import ConfigurationError
from groupmq.core.snapshot import Snapshot

STATES = ("active", "waiting", "delayed", "completed", "failed")


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Selects the jobs for which every condition that is given is true.

    >>> JobFilter(error="shop.errors", group_id="user:42", older=600)
    """

    state: str | None = None
    """active, waiting, delayed, completed or failed."""
    error: str | None = None
    """Class of the error: its name (`CardDeclined`), its path (`shop.errors.CardDeclined`) or how the path begins."""
    group_id: str | None = None
    job_id: str | None = None
    worker: str | None = None
    """The worker that runs or last ran the job: its id, or how the id begins."""
    text: str | None = None
    """A text in the data or in the reason of the failure. Case is ignored."""
    older: Duration | None = None
    """At least this long ago: the end of a finished job, the start of a running one, else when it was added."""
    newer: Duration | None = None
    """At most this long ago."""

    def __post_init__(self) -> None:
        if self.state is not None:
            one_of(self.state, "JobFilter.state", *STATES)
        for name in ("error", "group_id", "job_id", "worker", "text"):
            value = getattr(self, name)
            if value is not None:
                text(value, f"JobFilter.{name}")
        for name in ("older", "newer"):
            value = getattr(self, name)
            if value is not None:
                millis(value, f"JobFilter.{name}")


class Matcher:
    """A filter prepared for many jobs."""

    def __init__(self, wanted: JobFilter) -> None:
        self._wanted = wanted
        self.older_ms = None if wanted.older is None else millis(wanted.older, "JobFilter.older")
        self.newer_ms = None if wanted.newer is None else millis(wanted.newer, "JobFilter.newer")
        folded = (wanted.text or "").casefold()
        # JSON writes quotes, backslashes and line ends differently, and some serializers everything that is not ASCII.
        self._texts = {folded, json.dumps(folded)[1:-1], json.dumps(folded, ensure_ascii=False)[1:-1]}

    def matches(self, job: Snapshot, now_ms: int) -> bool:
        wanted = self._wanted
        return (
            (wanted.job_id is None or job.id == wanted.job_id)
            and (wanted.group_id is None or job.group_id == wanted.group_id)
            and (wanted.worker is None or (job.worker or "").startswith(wanted.worker))
            and (wanted.error is None or is_error(job.error_class, wanted.error))
            and self._age_matches(now_ms - age_from(job))
            and (wanted.text is None or self._text_matches(job))
        )

    def is_past(self, job: Snapshot, now_ms: int) -> bool:
        """Whether no job behind this one is new enough. The jobs must be finished and come newest first."""
        return self.newer_ms is not None and job._finished_ms > 0 and now_ms - job._finished_ms > self.newer_ms + 1_000

    def _age_matches(self, age_ms: int) -> bool:
        return (self.older_ms is None or age_ms >= self.older_ms) and (self.newer_ms is None or age_ms <= self.newer_ms)

    def _text_matches(self, job: Snapshot) -> bool:
        for found in ((job.failed_reason or ""), job._raw_data.decode("utf-8", "replace")):
            folded = found.casefold()
            if any(wanted in folded for wanted in self._texts):
                return True
        return False


def age_from(job: Snapshot) -> int:
    """The instant, in ms, that the age of a job counts from."""
    return job._finished_ms or (job._started_ms if job.state == "active" else 0) or job._created_ms


def is_error(error_class: str | None, wanted: str) -> bool:
    if error_class is None:
        return False
    return error_class.startswith(wanted) or error_class.rpartition(".")[2] == wanted


def checked_filter(value: object) -> JobFilter:
    if value is None:
        return JobFilter()
    if isinstance(value, JobFilter):
        return value
    raise ConfigurationError.expected("filter", "a JobFilter or None", value)
