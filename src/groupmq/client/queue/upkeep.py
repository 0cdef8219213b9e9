"""One run of each duty of a queue: due jobs, expired leases, retention by age, workers that are gone, ticks.

Any number of processes may do this at once.
"""

from __future__ import annotations

from typing import Any

from groupmq.client.answers.measures import gone_workers
from groupmq.client.answers.repeats import Definition, Ran, tick_of
from groupmq.client.queue.caller import Caller
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, Due, Expired, Policy, Stalled

TICKS_PER_CALL = 25


async def run_due(
    call: Caller, policy: Policy, *, promote: bool = True, unpark: bool = True, expire: bool = True
) -> Due:
    """Do everything that is due now, in as many bounded calls as it takes."""
    promoted = woken = 0
    stalled: list[Stalled] = []
    expired: list[Expired] = []
    while True:
        due = await call(commands.due(policy, promote=promote, unpark=unpark, expire=expire))
        promoted, woken = promoted + due.promoted, woken + due.woken
        stalled += due.stalled
        expired += due.expired
        has_more = due.wait_ms == 0 and (due.promoted or due.woken or due.stalled or due.overdue)
        if not has_more and not due.more_expired:
            return Due(promoted, woken, stalled, expired, due.wait_ms)


async def remove_by_age(call: Caller, options: QueueOptions) -> int:
    """Remove ended jobs that are too old, and return how many.

    A process that keeps none of its own jobs does not remove the jobs that other processes keep.
    """
    removed = 0
    for kind, kept in (("completed", options.keep_completed), ("failed", options.keep_failed)):
        if kept.age_ms is not None and kept.kept != 0:
            while (n := await call(commands.clean(kind, kept.age_ms, CHUNK))) > 0:
                removed += n
    return removed


async def forget_gone_workers(call: Caller) -> list[str]:
    """Remove the entries of workers that stopped without deregistering, and return their ids."""
    gone = gone_workers(await call(commands.stats()))
    if gone:
        await call(
            commands.leave(gone, [requester for worker in gone for requester in commands.requester_names(worker)])
        )
    return gone


async def run_due_repeats(call: Caller, watched_since: int | None = None) -> Ran:
    """Add the occurrences of every tick that is due. `watched_since`: when this scheduler looked last, if it did.

    For each tick exactly one scheduler adds a job.
    """
    added, watched = 0, watched_since is not None
    while True:
        due = await call(commands.repeats_due())
        ticks: list[list[Any]] = []
        errors: list[str] = []
        for rid, raw in due.found.items():
            try:
                ticks.append(tick_of(rid, Definition.read(raw), due.now, watched=watched))
            except Exception as error:
                # One that cannot be read here (a zone this machine does not know) must not stop the others.
                errors.append(f"repeat {rid}: {type(error).__name__}: {error}")
        if not ticks:
            return Ran(added, due.now, due.wait_ms, errors)
        for at in range(0, len(ticks), TICKS_PER_CALL):
            ticked = await call(commands.tick(ticks[at : at + TICKS_PER_CALL]))
            added += ticked.added
        watched = True
