"""Reading jobs by their ids, and the ids of the jobs in a state, in bounded calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupmq.client.answers.jobs import job_from
from groupmq.client.job import Job
from groupmq.client.queue.walks import StateWalk, WaitingWalk, Walk
from groupmq.core.checks import whole
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, StoredJob

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods


async def get_jobs_by_id(queue: QueueMethods, ids: Sequence[str]) -> list[Job | None]:
    """Many jobs at once, in the order of `ids`; None where there is no such job."""
    views = await views_of(queue, ids)
    make = queue._make_job
    return [None if view is None else job_from(make, i, view) for i, view in zip(ids, views, strict=True)]


async def views_of(queue: QueueMethods, ids: Sequence[str]) -> list[StoredJob | None]:
    """Read all that is stored about jobs, in each call as many as its reply has room for."""
    views: list[StoredJob | None] = []
    while len(views) < len(ids):
        page = await queue._call(commands.get(ids[len(views) : len(views) + CHUNK]))
        views += page
    return views


def walk(
    queue: QueueMethods,
    state: str,
    *,
    newest: bool = True,
    group_id: str | None = None,
    age_ms: int | None = None,
    cursor: str | None = None,
) -> Walk:
    """All jobs of a state, a page at a time."""
    return StateWalk(queue._call, state, newest=newest, group_id=group_id, age_ms=age_ms, cursor=cursor)


async def list_ids(queue: QueueMethods, state: str, limit: int, offset: int = 0, *, newest: bool = False) -> list[str]:
    """The ids of the jobs in a state."""
    whole(limit, "limit", 0, 2**31)
    whole(offset, "offset", 0, 2**53)
    if state == "waiting":
        return await queue._list_waiting(limit, offset)
    ids: list[str] = []
    while len(ids) < limit:
        size = min(CHUNK, limit - len(ids))
        page = await queue._call(commands.list_jobs(state, offset + len(ids), size, newest=newest))
        ids += page
        if len(page) < size:
            break
    return ids


async def list_waiting(queue: QueueMethods, limit: int, offset: int = 0, group_id: str | None = None) -> list[str]:
    """Waiting jobs of the queue, or of one group in its order."""
    waiting = WaitingWalk(queue._call, group_id)
    ids: list[str] = []
    while len(ids) < limit + offset:
        page = await waiting.next_page(min(CHUNK, limit + offset - len(ids)))
        if not page:
            break
        ids += page
    return ids[offset:]
