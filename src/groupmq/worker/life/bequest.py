"""Taking back the leases of a worker that died, for a supervisor that has seen its process end.

Any other process has to wait until the leases expire: a silent worker may only be frozen, or cut off from the server,
and still run its jobs.
"""

from __future__ import annotations

import json

from groupmq.client.queue.access import QueueAccess
from groupmq.client.queue.queue import Queue
from groupmq.core.worker_options import WorkerOptions
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy, Stalled

_PER_CALL = 30
"""Leases that one call takes back: the same number as of leases that have expired."""


def bequest_of(worker: str, options: WorkerOptions, access: QueueAccess) -> str | None:
    """The facts that `take_back` needs, as text; None if the leases have to expire. `worker`: its id."""
    url = access.endpoint.url
    # A handler in a child process outlives the worker, and the supervisor cannot see when it ends.
    if url is None or options.executor == "process":
        return None
    shared = access.queue.options
    return json.dumps(
        {
            "worker": worker,
            "queue": shared.name,
            "prefix": shared.prefix,
            "url": url,
            # None: the queue's setting. The bequest is made before the worker has called the server, so it is not known
            # here.
            "max_attempts": options.own_max_attempts,
            "max_stalled": options.max_stalled,
        }
    )


async def take_back(bequest: str) -> list[str]:
    """End every lease of that worker as if it had expired; returns the ids of the jobs that had begun."""
    facts = json.loads(bequest)
    worker = facts["worker"]
    async with Queue.attach(facts["queue"], facts["url"], prefix=facts["prefix"]) as queue:
        access = QueueAccess(queue)
        parts = await access.partitions()
        attempts = facts["max_attempts"] or queue.options.max_attempts
        policy = Policy(attempts, facts["max_stalled"], queue.options.keep)
        stalled: list[Stalled] = []
        for part in parts or (access,):
            some = await _take_back(part, worker, policy)
            part.log_ended_by_time(some, ())
            stalled += some
    return [one.id for one in stalled]


async def _take_back(access: QueueAccess, worker: str, policy: Policy) -> list[Stalled]:
    call = access.connection.call
    leases, cursor = [], ""
    while cursor != "0":
        page = await call(commands.list_runs(cursor or "0"))
        leases += [(run.id, run.fence) for run in page.found if run.worker == worker]
        cursor = page.cursor
    stalled: list[Stalled] = []
    for at in range(0, max(1, len(leases)), _PER_CALL):
        some = await call(commands.take_back(worker, leases[at : at + _PER_CALL], policy))
        stalled += some
    await call(commands.leave([worker], commands.requester_names(worker)))
    return stalled
