"""What operators and producers do to a queue: to its jobs, its groups, all of it. `inspect.py` only looks."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypeVar

from groupmq import commands
from groupmq.durations import Duration
from groupmq.job import Job
from groupmq.limits import RateLimit
from groupmq.operations import Operations, Steps, one
from groupmq.views import RepairReport

T = TypeVar("T")


class Runs(Protocol):
    """What carries out an operation."""

    operations: Operations[Job]

    def run(self, steps: Steps[T]) -> Awaitable[T]: ...


class Acting:
    """The methods of a queue that change something."""

    async def remove(self: Runs, job_id: str) -> bool:
        """Remove a job in whatever state. A running one loses its lease; False if there is no such job."""
        return await self.run(self.operations.remove(job_id))

    async def retry(self: Runs, job_id: str) -> bool:
        """Run a failed job again, from its original place, attempts counted anew."""
        return await self.run(self.operations.retry(job_id))

    async def promote(self: Runs, job_id: str) -> bool:
        """Let a delayed job, or one in its back-off, start now."""
        return await self.run(self.operations.promote(job_id))

    async def change_delay(self: Runs, job_id: str, delay: Duration) -> bool:
        """Let a delayed or waiting job start `delay` from now instead."""
        return await self.run(self.operations.change_delay(job_id, delay))

    async def update_data(self: Runs, job_id: str, data: Any) -> None:
        """Replace a job's data; a handler that runs already keeps what it was given."""
        await self.run(self.operations.update_data(job_id, data))

    async def fail(self: Runs, job_id: str, reason: str = "failed by operator") -> bool:
        """Fail a job for good, whatever attempts remain. A running one loses its lease."""
        return await self.run(self.operations.fail(job_id, reason))

    async def cancel(self: Runs, job_id: str) -> bool:
        """Remove a job that waits; stop the handler of one that runs, in whichever process, within a second.

        A stopped job is recorded as failed with the reason "cancelled".
        """
        return await self.run(self.operations.cancel(job_id))

    async def cancel_group(self: Runs, group_id: str) -> int:
        """Cancel every job of a group: waiting, delayed and running; how many."""
        return await self.run(self.operations.cancel_group(group_id))

    async def pause(self: Runs) -> None:
        """From now on nothing starts; what runs goes on."""
        await self.run(one(commands.switch(paused=True)))

    async def resume(self: Runs) -> None:
        await self.run(one(commands.switch(paused=False)))

    async def is_paused(self: Runs) -> bool:
        return await self.run(self.operations.is_paused())

    async def pause_group(self: Runs, group_id: str) -> bool:
        """Stop one group; True if it was not paused already."""
        return await self.run(self.operations.switch_group(group_id, paused=True))

    async def resume_group(self: Runs, group_id: str) -> bool:
        return await self.run(self.operations.switch_group(group_id, paused=False))

    async def set_group_concurrency(self: Runs, group_id: str, n: int | None) -> bool:
        """Let `n` jobs of one group run at once; None = the queue's own setting again."""
        return await self.run(self.operations.set_group_concurrency(group_id, n))

    async def set_group_rate_limit(self: Runs, group_id: str, rate_limit: RateLimit | None) -> bool:
        """Let one group start jobs at a rate of its own; None = the queue's own setting again."""
        return await self.run(self.operations.set_group_rate_limit(group_id, rate_limit))

    async def clean(self: Runs, state: str, *, grace: Duration = 0, limit: int = 1000) -> int:
        """Remove jobs of a state that are older than `grace` (finished before, or created before); how many."""
        return await self.run(self.operations.clean(state, grace, limit))

    async def purge(self: Runs, states: Sequence[str] = ("waiting", "delayed")) -> int:
        """Remove all jobs in these states, in bounded steps; how many."""
        return await self.run(self.operations.purge(states))

    async def obliterate(self: Runs) -> None:
        """Delete the queue and everything in it, running jobs too."""
        await self.run(self.operations.obliterate())

    async def repair(self: Runs) -> RepairReport:
        """Look for damage and mend it, in bounded steps, while the queue works. Reports none in normal life."""
        return await self.run(self.operations.repair())
