"""The getters of a queue with partitions: sums, merged lists, and pages that continue in all partitions."""

from __future__ import annotations

import time
from collections.abc import Sequence

from groupmq.client.answers import merging
from groupmq.client.partitions.overriding import across, by_group, by_id, informed
from groupmq.client.partitions.spreading import Spreading
from groupmq.client.partitions.walks import Merged, OneByOne, after_of, inner_cursor
from groupmq.client.queue.groups import MOST_LISTED, Lanes
from groupmq.client.queue.indexed_groups import ids_since, look_at_groups
from groupmq.client.queue.methods import QueueMethods
from groupmq.client.queue.walks import Walk
from groupmq.core.checks import text, whole
from groupmq.core.durations import Duration, seconds
from groupmq.core.partitions import place_of
from groupmq.core.positions import Positions
from groupmq.core.settings import QueueSettings
from groupmq.core.survey_views import QueueSurvey
from groupmq.core.views import Failure, GroupInfo, JobCounts, Metrics, RepeatingJob, Turn, WorkerInfo
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, Index


class PartitionedInspection(Spreading):
    """The getters."""

    get_attempts = by_id(QueueMethods.get_attempts)
    get_position = by_id(QueueMethods.get_position)
    get_group = by_group(QueueMethods.get_group)
    get_group_jobs = by_group(QueueMethods.get_group_jobs)
    get_group_job_count = by_group(QueueMethods.get_group_job_count)
    search = informed(QueueMethods.search)

    # Counts

    @across(QueueMethods.get_job_counts)
    async def get_job_counts(self) -> JobCounts:
        return merging.counts(await self._each(lambda part: part.get_job_counts()))

    @across(QueueMethods.get_unique_groups_count)
    async def get_unique_groups_count(self) -> int:
        return sum(await self._each(lambda part: part.get_unique_groups_count()))

    @across(QueueMethods._counts)
    async def _counts(self) -> tuple[JobCounts, bool]:
        found = await self._each(lambda part: part._counts())
        return merging.counts([counted for counted, _ in found]), all(paused for _, paused in found)

    @across(QueueMethods.wait_for_empty)
    async def wait_for_empty(self, timeout: Duration) -> bool:
        end = time.monotonic() + seconds(timeout, "timeout")
        while True:
            left = max(0.0, end - time.monotonic())
            # Count twice: meanwhile a handler may add a job to a partition that was counted as empty, and then end.
            if not await super().wait_for_empty(left):
                return False
            counted = await self.get_job_counts()
            if not counted.total:
                return True

    # Lists

    def _walk(
        self,
        state: str,
        *,
        newest: bool = True,
        group_id: str | None = None,
        age_ms: int | None = None,
        cursor: str | None = None,
    ) -> Walk:
        parts = self._parts
        if not parts:
            return super()._walk(state, newest=newest, group_id=group_id, age_ms=age_ms, cursor=cursor)
        if state == "waiting" and group_id is not None:
            return self._at(place_of(group_id))._walk(state, newest=newest, group_id=group_id, cursor=cursor)
        if state == "waiting":
            at, inner = inner_cursor(cursor, len(parts))
            walks = [part._walk(state, cursor=inner if i == at else None) for i, part in enumerate(parts)]
            return OneByOne(walks, at, self.get_job_counts)
        walks = [part._walk(state, newest=newest, age_ms=age_ms, cursor=cursor) for part in parts]
        return Merged(walks, state, newest=newest, after=after_of(cursor, state))

    @across(QueueMethods._list_ids)
    async def _list_ids(self, state: str, limit: int, offset: int, *, newest: bool) -> list[str]:
        whole(limit, "limit", 0, 2**31)
        whole(offset, "offset", 0, 2**53)
        walk = self._walk(state, newest=newest)
        ids: list[str] = []
        while len(ids) < limit + offset and not walk.ended:
            page = await walk.next_page(min(CHUNK, limit + offset - len(ids)))
            ids += [job_id for job_id, _ in page]
        return ids[offset:]

    @across(QueueMethods._list_waiting)
    async def _list_waiting(self, limit: int, offset: int, group_id: str | None) -> list[str]:
        if group_id is None:
            return await self._list_ids("waiting", limit, offset)
        return await self._at(place_of(group_id))._list_waiting(limit, offset, group_id)

    @across(QueueMethods.get_unique_groups)
    async def get_unique_groups(self, limit: int | None) -> list[str]:
        found = await self._each(lambda part: part.get_unique_groups(limit))
        return [group for groups in found for group in groups][:limit]

    @across(QueueMethods._lanes)
    async def _lanes(self, sort: str, match: str | None, state: str | None, limit: int, behind: int) -> Lanes:
        found = await self._each(lambda part: part._lanes(sort, match, state, limit, behind))
        lanes = sorted((lane for one in found for lane in one.lanes), key=lambda keyed: keyed[0])[:limit]
        total, scanned, matched = (sum(column) for column in zip(*(one[1:4] for one in found), strict=True))
        return Lanes(lanes, total, scanned, matched, all(one.complete for one in found))

    @across(QueueMethods._listed)
    async def _listed(self, index: Index, limit: int, offset: int) -> list[GroupInfo]:
        end = whole(limit, "limit", 0, MOST_LISTED) + whole(offset, "offset", 0, 2**31)
        listed = await self._each(lambda part: ids_since(part._call, index, end))
        first = sorted((since, group_id) for found in listed for group_id, since in found)[offset:end]
        by_part: dict[int, list[str]] = {}
        for _, group_id in first:
            by_part.setdefault(id(self._at(place_of(group_id))), []).append(group_id)
        found = await self._each(lambda part: look_at_groups(part._call, index, by_part.get(id(part), [])))
        infos = {info.id: info for some in found for info in some}
        return [infos[group_id] for _, group_id in first if group_id in infos]

    @across(QueueMethods._reasons)
    async def _reasons(self, scan: int) -> tuple[list[commands.Reason], int, int]:
        found = await self._each(lambda part: part._reasons(scan))
        newest = sorted((one for reasons, _, _ in found for one in reasons), key=lambda one: -float(one.score))
        return newest[:scan], max(now for _, now, _ in found), sum(total for _, _, total in found)

    @across(QueueMethods.get_repeating_jobs)
    async def get_repeating_jobs(self) -> list[RepeatingJob]:
        found = await self._each(lambda part: part.get_repeating_jobs())
        jobs = [job for some in found for job in some]
        return sorted(jobs, key=lambda job: (job.next_run, job.group_id or "", job.key))

    # Measures

    @across(QueueMethods.get_metrics)
    async def get_metrics(self, minutes: int, *, step: int, look: int) -> Metrics:
        return merging.metrics(await self._each(lambda part: part.get_metrics(minutes, step=step, look=look)))

    @across(QueueMethods.get_failures)
    async def get_failures(self, limit: int) -> list[Failure]:
        found = await self._each(lambda part: part.get_failures(limit))
        failures = [failure for some in found for failure in some]
        return sorted(failures, key=lambda failure: failure.time, reverse=True)[:limit]

    @across(QueueMethods.get_workers)
    async def get_workers(self) -> list[WorkerInfo]:
        found = await self._each(lambda part: part.get_workers())
        return merging.workers(worker for some in found for worker in some)

    @across(QueueMethods.survey)
    async def survey(self, *, cursor: str, also: Sequence[str], groups: int, runs: int, failures: int) -> QueueSurvey:
        parts = self._parts or ()
        at = dict(zip(map(id, parts), merging.cursor_of_each(text(cursor, "cursor"), len(parts)), strict=True))
        stay: dict[int, list[str]] = {}
        for group_id in also:
            stay.setdefault(id(self._at(place_of(group_id))), []).append(group_id)
        found = await self._each(
            lambda part: part.survey(
                cursor=at[id(part)], also=stay.get(id(part), ()), groups=groups, runs=runs, failures=failures
            )
        )
        return merging.survey(found, groups, runs, failures)

    # The whole queue

    @across(QueueMethods.get_settings)
    async def get_settings(self) -> QueueSettings:
        await self._connection.reopen()
        return QueueSettings.of(self._connection.stored_settings)

    async def get_turn(self) -> Turn | None:
        return None if await self._learn() else await super().get_turn()

    @across(QueueMethods.get_last_event_id)
    async def get_last_event_id(self) -> str:
        return str(Positions.joined(await self._each(lambda part: part.get_last_event_id())))

    async def ensure_writable(self, timeout: Duration = 3.0) -> None:
        await super().ensure_writable(timeout)
        key = self._connection.session.settings_key
        # Only read: a caller of this method may not want the queue to be created.
        stored = commands.stored_queue(await self._connection.command(*commands.read_settings(key), key=key))
        if stored.schema == commands.PARTITIONED:
            await self._learn()
            await self._each(lambda part: QueueMethods.ensure_writable(part, timeout))
