"""The getters of a queue with partitions: sums, merged lists, and pages that continue in all partitions."""

from __future__ import annotations

import time
from collections.abc import Sequence

from groupmq.client.answers import merging
from groupmq.client.partitions.routing import by_group, by_id, informed
from groupmq.client.partitions.spreading import Spreading
from groupmq.client.partitions.walks import Merged, OneByOne, after_of, inner_cursor
from groupmq.client.queue.groups import MOST_LISTED, Lanes
from groupmq.client.queue.methods import QueueMethods
from groupmq.client.queue.since import ids_since, look_at_groups
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

    async def get_job_counts(self) -> JobCounts:
        if not await self._learn():
            return await super().get_job_counts()
        return merging.counts(await self._each(lambda part: part.get_job_counts()))

    async def get_unique_groups_count(self) -> int:
        if not await self._learn():
            return await super().get_unique_groups_count()
        return sum(await self._each(lambda part: part.get_unique_groups_count()))

    async def _counts(self) -> tuple[JobCounts, bool]:
        if not await self._learn():
            return await super()._counts()
        found = await self._each(lambda part: part._counts())
        return merging.counts([counted for counted, _ in found]), all(paused for _, paused in found)

    async def wait_for_empty(self, timeout: Duration = 60) -> bool:
        if not await self._learn():
            return await super().wait_for_empty(timeout)
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

    async def _list_ids(self, state: str, limit: int, offset: int = 0, *, newest: bool = False) -> list[str]:
        if not await self._learn():
            return await super()._list_ids(state, limit, offset, newest=newest)
        whole(limit, "limit", 0, 2**31)
        whole(offset, "offset", 0, 2**53)
        walk = self._walk(state, newest=newest)
        ids: list[str] = []
        while len(ids) < limit + offset and not walk.ended:
            page = await walk.next_page(min(CHUNK, limit + offset - len(ids)))
            ids += [job_id for job_id, _ in page]
        return ids[offset:]

    async def _list_waiting(self, limit: int, offset: int = 0, group_id: str | None = None) -> list[str]:
        if not await self._learn():
            return await super()._list_waiting(limit, offset, group_id)
        if group_id is None:
            return await self._list_ids("waiting", limit, offset)
        return await self._at(place_of(group_id))._list_waiting(limit, offset, group_id)

    async def get_unique_groups(self, limit: int | None = None) -> list[str]:
        if not await self._learn():
            return await super().get_unique_groups(limit)
        found = await self._each(lambda part: part.get_unique_groups(limit))
        return [group for groups in found for group in groups][:limit]

    async def _lanes(self, sort: str, match: str | None, state: str | None, limit: int, behind: int) -> Lanes:
        if not await self._learn():
            return await super()._lanes(sort, match, state, limit, behind)
        found = await self._each(lambda part: part._lanes(sort, match, state, limit, behind))
        lanes = sorted((lane for one in found for lane in one.lanes), key=lambda keyed: keyed[0])[:limit]
        total, scanned, matched = (sum(column) for column in zip(*(one[1:4] for one in found), strict=True))
        return Lanes(lanes, total, scanned, matched, all(one.complete for one in found))

    async def _listed(self, index: Index, limit: int, offset: int = 0) -> list[GroupInfo]:
        if not await self._learn():
            return await super()._listed(index, limit, offset)
        end = whole(limit, "limit", 0, MOST_LISTED) + whole(offset, "offset", 0, 2**31)
        listed = await self._each(lambda part: ids_since(part._call, index, end))
        first = sorted((since, group_id) for found in listed for group_id, since in found)[offset:end]
        by_part: dict[int, list[str]] = {}
        for _, group_id in first:
            by_part.setdefault(id(self._at(place_of(group_id))), []).append(group_id)
        found = await self._each(lambda part: look_at_groups(part._call, index, by_part.get(id(part), [])))
        infos = {info.id: info for some in found for info in some}
        return [infos[group_id] for _, group_id in first if group_id in infos]

    async def _reasons(self, scan: int) -> tuple[list[commands.Reason], int, int]:
        if not await self._learn():
            return await super()._reasons(scan)
        found = await self._each(lambda part: part._reasons(scan))
        newest = sorted((one for reasons, _, _ in found for one in reasons), key=lambda one: -float(one.score))
        return newest[:scan], max(now for _, now, _ in found), sum(total for _, _, total in found)

    async def get_repeating_jobs(self) -> list[RepeatingJob]:
        if not await self._learn():
            return await super().get_repeating_jobs()
        found = await self._each(lambda part: part.get_repeating_jobs())
        jobs = [job for some in found for job in some]
        return sorted(jobs, key=lambda job: (job.next_run, job.group_id or "", job.key))

    # Measures

    async def get_metrics(self, minutes: int = 60, *, step: int = 1, look: int = 500) -> Metrics:
        if not await self._learn():
            return await super().get_metrics(minutes, step=step, look=look)
        return merging.metrics(await self._each(lambda part: part.get_metrics(minutes, step=step, look=look)))

    async def get_failures(self, limit: int = 100) -> list[Failure]:
        if not await self._learn():
            return await super().get_failures(limit)
        found = await self._each(lambda part: part.get_failures(limit))
        failures = [failure for some in found for failure in some]
        return sorted(failures, key=lambda failure: failure.time, reverse=True)[:limit]

    async def get_workers(self) -> list[WorkerInfo]:
        if not await self._learn():
            return await super().get_workers()
        found = await self._each(lambda part: part.get_workers())
        return merging.workers(worker for some in found for worker in some)

    async def survey(
        self,
        *,
        cursor: str = "0",
        also: Sequence[str] = (),
        groups: int = 20,
        runs: int = 50,
        failures: int = 50,
    ) -> QueueSurvey:
        parts = await self._learn()
        if not parts:
            return await super().survey(cursor=cursor, also=also, groups=groups, runs=runs, failures=failures)
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

    async def get_settings(self) -> QueueSettings:
        if not await self._learn():
            return await super().get_settings()
        await self._connection.reopen()
        return QueueSettings.of(self._connection.session.whole.stored)

    async def get_turn(self) -> Turn | None:
        return None if await self._learn() else await super().get_turn()

    async def get_last_event_id(self) -> str:
        if not await self._learn():
            return await super().get_last_event_id()
        return str(Positions.joined(await self._each(lambda part: part.get_last_event_id())))

    async def ensure_writable(self, timeout: Duration = 3.0) -> None:
        await super().ensure_writable(timeout)
        key = self._connection.session.settings_key
        # Only read: a caller of this method may not want the queue to be created.
        stored = commands.stored_queue(await self._connection.command(*commands.read_settings(key), key=key))
        if stored.schema == commands.PARTITIONED:
            await self._learn()
            await self._each(lambda part: QueueMethods.ensure_writable(part, timeout))
