"""Counts, lists and groups."""

from __future__ import annotations

from groupmq.client.operations.finding import Finding
from groupmq.client.operations.steps import STATES, J, Steps, one
from groupmq.client.operations.walking import WaitingWalk
from groupmq.core.checks import one_of, text, whole
from groupmq.core.errors import ConfigurationError
from groupmq.core.events import Position, read
from groupmq.core.views import GroupInfo, JobCounts
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK

FINISHED = ("completed", "failed")


class Looking(Finding[J]):
    def get_job_counts(self) -> Steps[JobCounts]:
        active, waiting, delayed, completed, failed, groups, *_ = yield commands.counts()
        return JobCounts(active, waiting, delayed, completed, failed, active + waiting + delayed, groups)

    def get_job_ids(
        self, state: str, limit: int, offset: int, group_id: str | None, *, newest: bool
    ) -> Steps[list[str]]:
        one_of(state, "state", *STATES)
        if group_id is None:
            return (yield from self.list_ids(state, limit, offset, newest=newest and state in FINISHED))
        if state != "waiting":
            raise ConfigurationError("group_id: only waiting jobs are listed by group; use search() for other states")
        whole(limit, "limit", 0, 2**31)
        whole(offset, "offset", 0, 2**53)
        return (yield from self.list_waiting(limit, offset, text(group_id, "group_id")))

    def list_ids(self, state: str, limit: int, offset: int = 0, *, newest: bool = False) -> Steps[list[str]]:
        whole(limit, "limit", 0, 2**31)
        whole(offset, "offset", 0, 2**53)
        if state == "waiting":
            return (yield from self.list_waiting(limit, offset))
        ids: list[str] = []
        while len(ids) < limit:
            size = min(CHUNK, limit - len(ids))
            page = yield commands.list_jobs(state, offset + len(ids), size, newest=newest)
            ids += page
            if len(page) < size:
                break
        return ids

    def list_waiting(self, limit: int, offset: int = 0, group_id: str | None = None) -> Steps[list[str]]:
        """Of the queue, or of one group in its order."""
        walk = WaitingWalk(group_id)
        ids: list[str] = []
        while len(ids) < limit + offset:
            page = yield from walk.next_page(min(CHUNK, limit + offset - len(ids)))
            if not page:
                break
            ids += page
        return ids[offset:]

    def list_jobs(self, state: str, limit: int, offset: int) -> Steps[list[J]]:
        ids = yield from self.list_ids(state, limit, offset, newest=True)
        jobs = yield from self.get_jobs_by_id(ids)
        return [job for job in jobs if job is not None and job.state == state]

    def get_jobs(self, limit: int) -> Steps[dict[str, list[str]]]:
        found: dict[str, list[str]] = {}
        for state in STATES:
            found[state] = yield from self.list_ids(state, limit, newest=state in ("completed", "failed"))
        return found

    def get_unique_groups(self, limit: int | None) -> Steps[list[str]]:
        if limit is not None:
            whole(limit, "limit", 0, 2**31)
        groups: dict[str, None] = {}
        cursor = "0"
        while limit is None or len(groups) < limit:
            cursor, page = yield commands.list_groups(cursor)
            groups.update(dict.fromkeys(page))
            if cursor == "0":
                break
        return list(groups)[:limit]

    def get_group(self, group_id: str) -> Steps[GroupInfo]:
        place, waiting, active, delayed, limit, paused, held_ms = yield commands.look_group(text(group_id, "group_id"))
        held = None if held_ms < 0 else held_ms / 1000
        return GroupInfo(group_id, place, waiting, active, delayed, limit, paused == 1, held)

    def get_group_job_count(self, group_id: str) -> Steps[int]:
        group = yield from self.get_group(group_id)
        return group.waiting + group.active

    def get_last_event_id(self) -> Steps[str]:
        raw = yield from one(commands.log_end())
        if not raw:
            return str(Position("0-0", 0, -1))
        entry = read(raw, self.options.serializer)
        return str(Position(entry.stream_id, entry.number, max(0, len(entry.events) - 1)))

    def is_paused(self) -> Steps[bool]:
        return (yield from one(commands.counts()))[6] == 1
