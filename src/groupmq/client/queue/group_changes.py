"""Changing one group: pausing it, its limits, cancelling its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.client.queue.changes import LIVE
from groupmq.client.queue.settling import cancel_all, recall
from groupmq.core import limits
from groupmq.core.checks import text, whole
from groupmq.core.limits import RateLimit
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, UNSETTLED

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods


async def pause_group(queue: QueueMethods, group_id: str) -> bool:
    """Pause one group; True if it was not paused already. Once this returns, no job of the group starts."""
    changed = await queue._call(commands.switch(group_id=text(group_id, "group_id"), paused=True))
    await _recall_group(queue, group_id)
    return changed


async def resume_group(queue: QueueMethods, group_id: str) -> bool:
    """Let a paused or blocked group go on. The jobs that blocked it are given up, as by `skip`.

    If the group is both paused and blocked, only the pause ends: resuming it after a deployment must not run past
    a failed payment. A second call unblocks it.
    """
    if await queue._call(commands.switch(group_id=text(group_id, "group_id"), paused=False)):
        return True
    resumed = False
    while True:
        answer = await queue._call(commands.skip_group(group_id, CHUNK, queue.options.keep))
        resumed = resumed or any(change.status == commands.DONE for change in answer.changes)
        if not answer.left and not any(change.status == UNSETTLED for change in answer.changes):
            return resumed


async def set_group_concurrency(queue: QueueMethods, group_id: str, n: int | None) -> bool:
    """Let `n` jobs of one group run at once; None = the queue's setting again."""
    limit = 0 if n is None else whole(n, "n", 1, 65_535)
    return await queue._call(commands.switch(group_id=text(group_id, "group_id"), concurrency=limit))


async def set_group_rate_limit(queue: QueueMethods, group_id: str, rate_limit: RateLimit | None) -> bool:
    """Give one group its own rate of starts; None = the queue's setting again."""
    limit = limits.rate_limit(rate_limit, "rate_limit")
    packed_limit = limit.packed() if limit else []
    changed = await queue._call(commands.switch(group_id=text(group_id, "group_id"), rate=packed_limit))
    await _recall_group(queue, group_id)
    return changed


async def cancel_group(queue: QueueMethods, group_id: str) -> int:
    """Cancel every job of a group (waiting, delayed and running), and return how many."""
    text(group_id, "group_id")
    found = await cancel_all(queue._call, await _delayed_ids(queue, group_id))
    while True:
        # Prefetched jobs come back to the group and are cancelled there, with the waiting ones.
        any_back, running = await _recall_group(queue, group_id)
        waiting = await _cancel_waiting(queue, group_id)
        found += waiting
        if not any_back and not waiting:
            break
    found += await cancel_all(queue._call, running)
    return len({job_id for job_id, state in found if state in LIVE})


async def _cancel_waiting(queue: QueueMethods, group_id: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    while True:
        answer = await queue._call(commands.cancel_group(group_id, CHUNK))
        found += answer.found
        if answer.left == 0:
            return found


async def _delayed_ids(queue: QueueMethods, group_id: str) -> list[str]:
    """The delayed jobs of a group. They are not indexed by group, so all delayed jobs are read, page by page."""
    found: list[str] = []
    offset = 0
    while True:
        ids = await queue._list_ids("delayed", CHUNK, offset)
        jobs = await queue.get_jobs_by_id(ids)
        found += [job.id for job in jobs if job is not None and job.group_id == group_id]
        offset += len(ids)
        if len(ids) < CHUNK:
            return found


async def _recall_group(queue: QueueMethods, group_id: str) -> tuple[bool, list[str]]:
    _, _, active, *_ = await queue._call(commands.look_group(text(group_id, "group_id")))
    return await recall(queue._call, group_id) if active else (False, [])
