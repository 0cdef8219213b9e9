"""The methods of a queue, whether or not it has partitions. With one partition they are those of `QueueMethods`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from groupmq.client import registry
from groupmq.client.answers import merging
from groupmq.client.connection.connections import Connection
from groupmq.client.job import Job
from groupmq.client.partitions.cleanup import CleanupAcross
from groupmq.client.partitions.inspection import PartitionedInspection
from groupmq.client.partitions.moving import Repartition
from groupmq.client.partitions.overriding import across, by_group, by_id, informed
from groupmq.client.queue.bulk import OnProgress, Tally
from groupmq.client.queue.matching import MatchingJobs, StepRate
from groupmq.client.queue.methods import QueueMethods
from groupmq.core.checks import whole
from groupmq.core.durations import Duration, Instant
from groupmq.core.duty import DutyName
from groupmq.core.errors import ConfigurationError, GroupMQError
from groupmq.core.partitions import MOST_PARTITIONS
from groupmq.core.queue_options import SHARED, QueueArguments, refuse_with_partitions
from groupmq.core.server_views import Mark
from groupmq.core.views import DutyReport, RepairReport
from groupmq.core.wording import number
from groupmq.protocol import commands

if TYPE_CHECKING:
    pass


class PartitionedMethods(PartitionedInspection):
    """All methods that both clients share."""

    _cleanup: CleanupAcross

    def _set_up_duties(self) -> None:
        super()._set_up_duties()
        self._cleanup = CleanupAcross(self)

    remove = by_id(QueueMethods.remove)
    retry = by_id(QueueMethods.retry)
    skip = by_id(QueueMethods.skip)
    promote = by_id(QueueMethods.promote)
    change_delay = by_id(QueueMethods.change_delay)
    update_data = by_id(QueueMethods.update_data)
    fail = by_id(QueueMethods.fail)
    cancel = by_id(QueueMethods.cancel)
    pause_group = by_group(QueueMethods.pause_group)
    resume_group = by_group(QueueMethods.resume_group)
    set_group_concurrency = by_group(QueueMethods.set_group_concurrency)
    set_group_rate_limit = by_group(QueueMethods.set_group_rate_limit)
    cancel_group = by_group(QueueMethods.cancel_group)
    retry_many = informed(QueueMethods.retry_many)
    remove_many = informed(QueueMethods.remove_many)

    async def _retry_found(self, found: Sequence[tuple[Job, str]], matching: MatchingJobs, step_rate: StepRate) -> None:
        if not self._parts:
            return await super()._retry_found(found, matching, step_rate)
        by_part: dict[int, list[tuple[Job, str]]] = {}
        for job, stamp in found:
            by_part.setdefault(id(job._queue), []).append((job, stamp))
        for there in by_part.values():
            await there[0][0]._queue._retry_found(there, matching, step_rate)
        return None

    async def _remove_found(self, jobs: Sequence[Job], state: str, wait: float) -> int:
        if not self._parts:
            return await super()._remove_found(jobs, state, wait)
        by_part: dict[int, list[Job]] = {}
        for job in jobs:
            by_part.setdefault(id(job._queue), []).append(job)
        removed = 0
        for there in by_part.values():
            removed += await there[0]._queue._remove_found(there, state, wait)
            wait = 0.0
        return removed

    # The whole queue

    @across(QueueMethods.pause)
    async def pause(self) -> None:
        await self._each(lambda part: part.pause())
        return None

    @across(QueueMethods.resume)
    async def resume(self) -> None:
        await self._each(lambda part: part.resume())
        return None

    @across(QueueMethods.is_paused)
    async def is_paused(self) -> bool:
        return all(await self._each(lambda part: part.is_paused()))

    @across(QueueMethods.clean)
    async def clean(self, state: str, *, grace: Duration, limit: int, progress: OnProgress | None) -> int:
        left, removed = whole(limit, "limit", 0, 2**31), 0
        for part in self._parts or ():
            removed += await part.clean(state, grace=grace, limit=left - removed, progress=_beyond(progress, removed))
        return removed

    @across(QueueMethods.purge)
    async def purge(self, states: Sequence[str], *, progress: OnProgress | None) -> int:
        removed = 0
        for part in self._parts or ():
            removed += await part.purge(states, progress=_beyond(progress, removed))
        return removed

    @across(QueueMethods.obliterate)
    async def obliterate(self) -> None:
        await self._each(lambda part: part.pause())
        await self._each(lambda part: QueueMethods.obliterate(part))
        # The queue itself goes last: while it exists, a second call can remove what an interrupted one has left.
        while await self._connection.call(commands.obliterate()) > 0:
            pass
        await registry.strike_own(self._connection)
        return None

    @across(QueueMethods.repair)
    async def repair(self, *, progress: OnProgress | None) -> RepairReport:
        reports, tally = [], Tally(None)
        for part in self._parts or ():

            def count(n: int, before: int = tally.done) -> None:
                tally.done = before + n
                if progress is not None:
                    progress(tally.done)

            reports.append(await part.repair(progress=count))
        return merging.repair(reports)

    async def _spread_settings(self, wanted: QueueArguments, *, changed: bool) -> bool:
        if not await self._learn():
            return changed
        # The queue itself is written first, and its settings count. A partition that is not reached keeps older
        # settings, never newer ones, and every process that uses it replaces them.
        await self._each(lambda part: part._connection.reopen())
        # Even if nothing has changed now: an earlier call may have been interrupted before its repair.
        return changed or any(name in SHARED for name in wanted)

    async def repartition(self, to: int, *, progress: Callable[[int], object] | None = None) -> int:
        """Spread the queue over `to` partitions; returns how many jobs it has. It must be paused, with no running job.

        This works in bounded steps. Meanwhile no process can use the queue. If a run was killed, the same call
        continues it. Order, attempts, delays, results and repeats are kept; counters, charts and events start empty.
        Other processes that use the queue have to be restarted. `progress` is called with the number of entries copied.
        """
        whole(to, "partitions", 1, MOST_PARTITIONS)
        run = Repartition(self._connection, lambda: self._connections_of(to), to, progress)
        begun = await run.pending()
        if begun is None:
            parts = await self._learn()
            before = max(1, len(parts))
            counted, paused = await self._counts()
            if before == to:
                return counted.total + counted.completed + counted.failed
            if not paused:
                raise ConfigurationError(f"queue {self.name!r} is not paused; pause it, and wait until no job runs")
            if counted.active:
                running = number(counted.active, "running job")
                raise ConfigurationError(f"queue {self.name!r} has {running}; wait until it has none")
            refuse_with_partitions(self.options, to)
            await run.begin(before)
            begun = before, to, "copy"
        elif begun[1] != to:
            raise ConfigurationError(
                f"queue {self.name!r} is being repartitioned from {begun[0]} to {begun[1]}; finish that first: "
                f"repartition it to {begun[1]} again"
            )
        jobs = await run.finish(begun[0], begun[2])
        for part in self._parts or ():
            await part.close()
        self._parts = None
        self._connection.has_repartitioned(to)
        await self._connection.reopen()
        await self.repair()  # the jobs without a group were spread over the partitions: put them in order again
        report = await self.repair()
        if not report.clean:
            raise GroupMQError(f"queue {self.name!r} was repartitioned, but a repair finds damage: {report.mended}")
        return jobs

    def _connections_of(self, partitions: int) -> list[Connection]:
        return [part._connection for part in self._make_parts(partitions)]

    # Duties

    @across(QueueMethods.run_duty_once)
    async def run_duty_once(self, duty: DutyName) -> DutyReport:
        reports = await self._each(lambda part: part.run_duty_once(duty))
        return merging.duty([*reports, await self._cleanup.run_once()] if duty == "cleanup" else reports)

    @across(QueueMethods.run_scheduler_once)
    async def run_scheduler_once(self) -> int:
        return sum(await self._each(lambda part: part.run_scheduler_once()))

    @across(QueueMethods.promote_delayed_jobs)
    async def promote_delayed_jobs(self) -> int:
        return sum(await self._each(lambda part: part.promote_delayed_jobs()))

    @across(QueueMethods.recover_delayed_groups)
    async def recover_delayed_groups(self) -> int:
        return sum(await self._each(lambda part: part.recover_delayed_groups()))

    @across(QueueMethods.check_stalled_jobs)
    async def check_stalled_jobs(self) -> list[str]:
        found = await self._each(lambda part: part.check_stalled_jobs())
        return [job_id for ids in found for job_id in ids]

    # Marks

    @across(QueueMethods.mark)
    async def mark(self, label: str, *, at: Instant | None) -> Mark:
        return await self._at(0).mark(label, at=at)

    @across(QueueMethods.get_marks)
    async def get_marks(self, since: Instant | None) -> list[Mark]:
        return await self._at(0).get_marks(since)


def _beyond(progress: OnProgress | None, before: int) -> OnProgress | None:
    """Progress in one partition as progress in the whole queue."""
    return None if progress is None else lambda done: progress(before + done)
