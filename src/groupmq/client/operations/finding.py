"""Jobs by their ids."""

from __future__ import annotations

import json
from collections.abc import Sequence

from groupmq.client.operations.steps import Base, J, Steps
from groupmq.core.checks import text
from groupmq.core.errors import JobNotFound
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, Taken, View


class Finding(Base[J]):
    def get_jobs_by_id(self, ids: Sequence[str]) -> Steps[list[J | None]]:
        views = yield from self.views(ids)
        return [None if view is None else self.job_from(i, view) for i, view in zip(ids, views, strict=True)]

    def views(self, ids: Sequence[str]) -> Steps[list[View | None]]:
        """All that is stored about jobs: as many in one call as have room in its reply."""
        views: list[View | None] = []
        while len(views) < len(ids):
            views += yield commands.get(ids[len(views) : len(views) + CHUNK])
        return views

    def get_job(self, job_id: str) -> Steps[J | None]:
        return (yield from self.get_jobs_by_id([text(job_id, "job_id")]))[0]

    def require_job(self, job_id: str) -> Steps[J]:
        job = yield from self.get_job(job_id)
        if job is None:
            raise JobNotFound(job_id)
        return job

    def job_from(self, job_id: str, view: View) -> J:
        job = self.make(job_id, view.state, view.record)
        stored = view.stored
        job.attempts_made, job.stalls = stored.attempts, stored.stalls
        job._started_ms = view.started or stored.started
        job._finished_ms = stored.finished
        job.worker = view.worker or stored.worker or None
        job.failed_reason, job.stacktrace = stored.reason or None, stored.stack or None
        job.error_class = stored.error or None
        # A job that waits to run again has no fence yet: only what runs, or has ended, does.
        job.fence = view.token or (stored.fence if stored.finished else 0)
        job._raw_result = view.result
        if view.progress is not None:
            job.progress = json.loads(view.progress)
        if view.log is not None:
            job.logs = commands.log_lines(view.log)
        job._expires_ms = view.expires
        if view.state == "delayed":
            job._run_at_ms = int(view.score)
        elif view.hold:
            job._run_at_ms = view.hold
        return job

    def job_taken(self, taken: Taken, started_ms: int, worker: str) -> J:
        """A job this worker has just been given."""
        job = self.make(taken.id, "active", taken.record)
        job.fence = taken.token
        job._started_ms = started_ms
        job.worker = worker
        stored = taken.stored
        if stored is not commands.FRESH:
            job.attempts_made, job.stalls = stored.attempts, stored.stalls
            job.failed_reason, job.stacktrace = stored.reason or None, stored.stack or None
        return job
