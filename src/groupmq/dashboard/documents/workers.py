"""The page `workers`: the workers of the queue, their jobs, and their last heartbeats."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING

from groupmq.dashboard.documents.job_row import JobRow
from groupmq.dashboard.documents.page import Page, QueueQuery
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.view import View

if TYPE_CHECKING:
    from groupmq import Turn, WorkerInfo

MOST_JOBS = 200


@record
class WorkerRow:
    id: str
    name: str
    host: str
    pid: int
    version: str
    concurrency: int
    busy: int
    use: float
    jobs: list[JobRow]
    """The jobs that it runs, as far as they were read."""
    more_jobs: int
    last_seen: datetime
    late: bool
    """It has missed a heartbeat."""
    blocked: float
    """Seconds that a handler had been blocking its event loop at its last heartbeat."""


@record
class TurnRow:
    worker: str
    epoch: int
    expires_in: float
    taken: int


@record
class WorkersPage:
    queue: QueueRow
    workers: list[WorkerRow]
    turn: TurnRow | None
    """Whose turn it is in an exclusive queue."""
    orphans: list[JobRow]
    """Running jobs whose worker is not in the list: it died, and the jobs wait for their leases to expire."""


async def build(view: View, query: QueueQuery) -> WorkersPage:
    row, workers, active, turn = await asyncio.gather(
        view.row(),
        view.queue.get_workers(),
        view.queue.search(None, state="active", limit=MOST_JOBS),
        view.queue.get_turn(),
    )
    by_worker: dict[str, list[JobRow]] = defaultdict(list)
    for job in view.jobs(active.jobs):
        by_worker[job.worker or ""].append(job)
    known = {name for worker in workers for name in (worker.id, worker.name)}
    return WorkersPage(
        queue=row,
        workers=[
            worker_row(worker, by_worker, view.now, complete=active.cursor is None)
            for worker in sorted(workers, key=in_order)
        ],
        turn=turn_row(turn),
        orphans=[job for name, jobs in by_worker.items() if name not in known for job in jobs],
    )


def in_order(worker: WorkerInfo) -> list[tuple[int, str]]:
    """By name, with numbers by their value: web-2 before web-10. The server lists them in no order."""
    return [(len(part), part) if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", worker.name)] + [
        (0, worker.id)
    ]


def worker_row(
    worker: WorkerInfo, by_worker: dict[str, list[JobRow]], now: datetime, *, complete: bool = False
) -> WorkerRow:
    """`complete`: all running jobs were read. They are counted then, since the number in a heartbeat is older."""
    jobs = by_worker.get(worker.id) or by_worker.get(worker.name) or []
    listed = min(len(jobs), worker.concurrency)
    busy = listed if complete else max(listed, worker.current_jobs)
    return WorkerRow(
        id=worker.id,
        name=worker.name,
        host=worker.host,
        pid=worker.pid,
        version=worker.version,
        concurrency=worker.concurrency,
        busy=busy,
        use=min(1.0, busy / worker.concurrency) if worker.concurrency else 0.0,
        jobs=jobs,
        more_jobs=max(0, busy - len(jobs)),
        last_seen=worker.last_seen,
        late=(now - worker.last_seen).total_seconds() > 1.5 * worker.heartbeat + 1,
        blocked=worker.blocked,
    )


def turn_row(turn: Turn | None) -> TurnRow | None:
    if turn is None:
        return None
    return TurnRow(worker=turn.worker, epoch=turn.epoch, expires_in=turn.expires_in, taken=turn.taken)


PAGE = Page(
    "workers", "Workers", QueueQuery, WorkersPage, build, "The workers of the queue, and the jobs that they run."
)
