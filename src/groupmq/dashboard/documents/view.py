"""The source of a document: a queue as one reader sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from groupmq.dashboard.documents.attempts import attempts_of
from groupmq.dashboard.documents.job_row import JobRow, first_line, job_row
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.redaction import Redactor

if TYPE_CHECKING:
    from groupmq import Job, Queue
    from groupmq.dashboard.live.shared_state import SharedState


@dataclass(frozen=True, slots=True)
class View:
    """The server, or one of its queues, as one user sees it at one time."""

    shared: SharedState
    """What all readers of this process share."""
    redactor: Redactor
    user: str
    can: Callable[[str], bool]
    fresh: bool = True
    """False: an answer that another reader got a moment ago will do."""
    named: str | None = None
    opened: Queue | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def queue(self) -> Queue:
        if self.opened is None:
            raise LookupError("this page has no queue")
        return self.opened

    async def row(self) -> QueueRow:
        """The queue in one row, which every page of a queue shows at the top."""
        return await self.shared.queue_row(self.queue, fresh=self.fresh)

    def job(self, job: Job) -> JobRow:
        return job_row(job, self.redactor, self.now, self.attempts(job))

    def attempts(self, job: Job) -> int | None:
        """How often the job may run, if that is known. It may depend on the workers, which are those of the last row of
        the queue."""
        return attempts_of(job, self.shared.attempts.get(self.queue.name))

    def error(self, job: Job | None) -> str | None:
        """First line of why its last attempt failed."""
        return None if job is None else first_line(self.redactor.text(job.failed_reason, "error"))

    def jobs(self, jobs: list[Job]) -> list[JobRow]:
        return [self.job(job) for job in jobs]
