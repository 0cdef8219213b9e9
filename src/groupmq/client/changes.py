"""What operators and producers do to a queue: to its jobs, its groups, all of it. `inspection.py` only looks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from groupmq.client.connection.connections import Connection
from groupmq.client.job import Job
from groupmq.client.operations import Operations, Steps, one
from groupmq.core.durations import Duration
from groupmq.core.limits import RateLimit
from groupmq.core.views import RepairReport
from groupmq.protocol import commands

T = TypeVar("T")


class Runs(Protocol):
    """What carries out an operation."""

    _operations: Operations[Job]
    _connection: Connection

    def _run(self, steps: Steps[T]) -> Awaitable[T]: ...


class Acting:
    """The methods of a queue that change something."""

    async def remove(self: Runs, job_id: str, *, states: Sequence[str] | None = None) -> bool:
        """Remove a job in whatever state, or only in one of `states`; False if there is no such job.

        The handler of a running one is stopped, and its group goes on when it has ended.
        """
        return await self._run(self._operations.remove(job_id, states))

    async def retry(self: Runs, job_id: str) -> bool:
        """Run a failed job again, from its original place, attempts counted anew."""
        return await self._run(self._operations.retry(job_id))

    async def promote(self: Runs, job_id: str) -> bool:
        """Let a delayed job, or one in its back-off, start now."""
        return await self._run(self._operations.promote(job_id))

    async def change_delay(self: Runs, job_id: str, delay: Duration) -> bool:
        """Let a delayed or waiting job start `delay` from now instead."""
        return await self._run(self._operations.change_delay(job_id, delay))

    async def update_data(self: Runs, job_id: str, data: Any) -> None:
        """Replace a job's data; a handler that runs already keeps what it was given."""
        await self._run(self._operations.update_data(job_id, data))

    async def fail(self: Runs, job_id: str, reason: str = "failed by operator") -> bool:
        """Fail a job for good, whatever attempts remain.

        The handler of a running one is stopped, and its group goes on when it has ended.
        """
        return await self._run(self._operations.fail(job_id, reason))

    async def cancel(self: Runs, job_id: str) -> bool:
        """Remove a job that waits; stop the handler of one that runs, in whichever process, within a second.

        A stopped job is recorded as failed with the reason "cancelled".
        """
        return await self._run(self._operations.cancel(job_id))

    async def cancel_group(self: Runs, group_id: str) -> int:
        """Cancel every job of a group: waiting, delayed and running; how many."""
        return await self._run(self._operations.cancel_group(group_id))

    async def pause(self: Runs) -> None:
        """Once this returns nothing starts any more; what runs goes on."""
        await self._run(self._operations.pause())

    async def resume(self: Runs) -> None:
        await self._run(one(commands.switch(paused=False)))

    async def is_paused(self: Runs) -> bool:
        return await self._run(self._operations.is_paused())

    async def pause_group(self: Runs, group_id: str) -> bool:
        """Stop one group; True if it was not paused already."""
        return await self._run(self._operations.pause_group(group_id))

    async def resume_group(self: Runs, group_id: str) -> bool:
        return await self._run(self._operations.resume_group(group_id))

    async def set_group_concurrency(self: Runs, group_id: str, n: int | None) -> bool:
        """Let `n` jobs of one group run at once; None = the queue's own setting again."""
        return await self._run(self._operations.set_group_concurrency(group_id, n))

    async def set_group_rate_limit(self: Runs, group_id: str, rate_limit: RateLimit | None) -> bool:
        """Let one group start jobs at a rate of its own; None = the queue's own setting again."""
        return await self._run(self._operations.set_group_rate_limit(group_id, rate_limit))

    async def clean(
        self: Runs,
        state: str,
        *,
        grace: Duration = 0,
        limit: int = 1000,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """Remove jobs of a state that are older than `grace` (finished before, or created before); how many.

        `progress` is called after each bounded step with how many are gone; what it raises ends the work there.
        """
        return await self._run(self._operations.clean(state, grace, limit, progress))

    async def purge(
        self: Runs,
        states: Sequence[str] = ("waiting", "delayed"),
        *,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """Remove all jobs in these states, in bounded steps; how many. `progress` as in `clean`."""
        return await self._run(self._operations.purge(states, progress))

    async def obliterate(self: Runs) -> None:
        """Delete the queue and everything in it, running jobs too."""
        await self._run(self._operations.obliterate())
        await self._connection.drive(self._connection.dialogue.entry.strike())

    async def repair(self: Runs, *, progress: Callable[[int], object] | None = None) -> RepairReport:
        """Look for damage and mend it, in bounded steps, while the queue works. Reports none in normal life.

        `progress` is called after each step with how many entries were looked at so far.
        """
        return await self._run(self._operations.repair(progress))

    async def promote_delayed_jobs(self: Runs) -> int:
        """Move delayed jobs that are due into their groups; how many."""
        return (await self._run(self._operations.run_due(unpark=False, expire=False))).promoted

    async def recover_delayed_groups(self: Runs) -> int:
        """Wake groups whose back-off is over; how many."""
        return (await self._run(self._operations.run_due(promote=False, expire=False))).woken

    async def check_stalled_jobs(self: Runs) -> list[str]:
        """Take back jobs whose lease expired; their ids."""
        due = await self._run(self._operations.run_due(promote=False, unpark=False))
        return [stalled.id for stalled in due.stalled]
