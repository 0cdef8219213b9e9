"""A group that has been held for a while."""

from __future__ import annotations

from groupmq.core.drafts import draft
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy
from groupmq.sync import Queue


def blocked(queue: Queue, group_id: str, minutes: float, *, backs_off: bool = False, prefix: str = "") -> None:
    """Add two jobs to a group, this long ago: `stuck` runs, or is in its back-off, and `behind` waits.

    `prefix` begins the ids of the jobs, their worker and its requester, for a second group of the same queue.
    """
    call = queue._connection.call
    then = call(commands.stats()).now - int(minutes * 60_000)
    drafts = [draft(queue.options, 1, group_id=group_id, job_id=prefix + job_id) for job_id in ("stuck", "behind")]
    call(commands.add(drafts, now=then))
    policy = Policy(3, -1, {"completed": 0, "failed": 0})
    hour = 3_600_000
    taken = call(
        commands.advance(
            worker=f"{prefix}w",
            requester=f"{prefix}l",
            request=1,
            outcomes=[],
            take=1,
            lease_ms=hour,
            policy=policy,
            now=then,
        )
    ).jobs[0]
    if backs_off:
        outcome = commands.retried(taken.id, taken.fence, hour, False, "no", "")
        call(
            commands.advance(
                worker=f"{prefix}w",
                requester=f"{prefix}l",
                request=2,
                outcomes=[outcome],
                take=0,
                lease_ms=hour,
                policy=policy,
                now=then,
            )
        )
