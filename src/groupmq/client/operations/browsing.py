"""Groups as lanes, the line of one group, the place and the attempts of one job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from groupmq.client.operations.cursors import packed, refused, unpacked
from groupmq.client.operations.measuring import LATEST_MS
from groupmq.client.operations.searching import Searching
from groupmq.client.operations.steps import J, Steps, one
from groupmq.client.operations.walks import StateWalk
from groupmq.core.checks import one_of, text, whole
from groupmq.core.durations import moment
from groupmq.core.errors import ConfigurationError, JobNotFound
from groupmq.core.limits import RateLimit
from groupmq.core.pages import Attempt, AttemptOutcome, GroupPage, JobPage, JobPosition, Lane
from groupmq.core.views import GroupInfo, HeldGroup
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, GroupLook, ListedRun, ScannedGroup

SORTS = ("held", "oldest", "deepest", "busiest", "name")
MOST_GROUP_PAGES = 20
"""Calls that look through the groups: about 10,000 groups."""
MOST_RUN_PAGES = 6
"""Calls that look for running jobs: about 3,000 leases."""
LOOKS_PER_CALL = 100
FIRST = 200
"""Of each kind that are looked at where there are more groups than anybody goes through."""
MOST_DELAYED = 2_000
"""Delayed jobs that are looked at for one page of a group."""
_SEEN = re.compile(r"[0-9]{0,9}")
"""Running jobs that earlier pages of a group have shown."""
SPARE_READS = 10
"""Calls that jobs with much data may take beyond what others take."""


class Browsing(Searching[J]):
    def get_attempts(self, job_id: str) -> Steps[list[Attempt]]:
        found: commands.Attempts = yield commands.attempts(text(job_id, "job_id"))
        if not found.state:
            raise JobNotFound(job_id)
        return attempts_of(found)

    def get_position(self, job_id: str) -> Steps[JobPosition | None]:
        found: commands.Position | None = yield commands.position(text(job_id, "job_id"))
        if found is None or found.state in ("completed", "failed"):
            return None
        return JobPosition(found.group_id or None, found.position, found.of, found.state)

    def get_group_info(self, group_id: str) -> Steps[GroupInfo]:
        """A group and what holds it; `get_group` is one call and does not say which job does."""
        now, (look,) = yield from one(commands.look_groups([text(group_id, "group_id")]))
        runs, complete = (yield from self._runs([group_id], look.running)) if look.why == "running" else ([], True)
        return group_info(group_id, look, runs, now, complete=complete)

    def _runs(self, groups: Sequence[str], expected: int) -> Steps[tuple[list[ListedRun], bool]]:
        """The runs of these groups, the one that began first in front; and whether all were looked at."""
        found: dict[str, ListedRun] = {}
        cursor, complete = "0", expected == 0
        for _ in range(0 if complete else MOST_RUN_PAGES):
            page: commands.Runs = yield commands.list_runs(cursor, groups)
            found.update((run.id, run) for run in page.found)
            cursor = page.cursor
            complete = cursor == "0" or len(found) >= expected
            if complete:
                break
        return sorted(found.values(), key=lambda run: (run.ahead, run.started, run.token)), complete

    def get_groups(self, sort: str, match: str | None, limit: int, behind: int) -> Steps[GroupPage[J]]:
        one_of(sort, "sort", *SORTS)
        whole(limit, "limit", 0, 1_000)
        whole(behind, "behind", 0, 100)
        if match is not None and not isinstance(match, str):
            raise ConfigurationError.expected("match", "a part of group ids, or None", match)
        groups, total, complete = yield from self._scan_groups(sizes=sort in ("deepest", "busiest"))
        wanted = (match or "").casefold()
        matching = [group for group in groups.values() if wanted in group.id.casefold()]
        chosen = first_groups(matching, sort, limit)
        now, looks = yield from self._look(chosen, behind)
        infos: dict[str, GroupInfo] = {}
        running = [(group_id, look.running) for group_id, look in looks.items() if look.running]
        runs, all_runs = yield from self._runs([group_id for group_id, _ in running], sum(n for _, n in running))
        by_group: dict[str, list[ListedRun]] = {}
        for run in runs:
            by_group.setdefault(run.group_id, []).append(run)
        for group_id, look in looks.items():
            infos[group_id] = group_info(group_id, look, by_group.get(group_id, []), now, complete=all_runs)
        shown = sorted(infos.values(), key=lambda info: _order(info, looks[info.id], sort))[:limit]
        running_ids = {info.id: [run.id for run in by_group.get(info.id, []) if not run.ahead] for info in shown}
        next_ids: dict[str, list[str]] = {}
        for info in shown:
            # What a worker has prefetched starts before all that waits.
            ahead = [run.id for run in by_group.get(info.id, []) if run.ahead]
            next_ids[info.id] = (ahead + looks[info.id].next)[:behind]
        wanted_ids = [job_id for found in (running_ids, next_ids) for ids in found.values() for job_id in ids]
        jobs, all_jobs = yield from self._read(wanted_ids)
        lanes = [
            Lane(
                info,
                info.held,
                [jobs[job_id] for job_id in running_ids[info.id] if job_id in jobs],
                [jobs[job_id] for job_id in next_ids[info.id] if job_id in jobs],
            )
            for info in shown
        ]
        return GroupPage(lanes, total, len(groups), len(matching), complete and all_runs and all_jobs)

    def _scan_groups(self, *, sizes: bool) -> Steps[tuple[dict[str, ScannedGroup], int, bool]]:
        """The groups, as many as one looks through; how many there are, and whether these are all."""
        groups: dict[str, ScannedGroup] = {}
        cursor = "0"
        for _ in range(MOST_GROUP_PAGES):
            page: commands.ScannedGroups = yield commands.scan_groups(cursor, sizes=sizes)
            groups.update((group.id, group) for group in page.found)
            cursor = page.cursor
            if cursor == "0":
                return groups, page.total, True
        front: commands.ScannedGroups = yield commands.scan_groups(first=FIRST, sizes=sizes)
        groups.update((group.id, group) for group in front.found)
        return groups, front.total, False

    def _look(self, groups: Sequence[str], behind: int) -> Steps[tuple[int, dict[str, GroupLook]]]:
        found: dict[str, GroupLook] = {}
        now = 0
        for at in range(0, len(groups), LOOKS_PER_CALL):
            page = groups[at : at + LOOKS_PER_CALL]
            now, looks = yield from one(commands.look_groups(page, behind))
            found.update(zip(page, looks, strict=True))
        return now, found

    def _read(self, ids: Sequence[str]) -> Steps[tuple[dict[str, J], bool]]:
        """The jobs, as far as a bounded number of calls reads them; and whether these are all."""
        found: dict[str, J] = {}
        at = 0
        for _ in range(-(-len(ids) // CHUNK) + SPARE_READS):
            if at >= len(ids):
                break
            views = yield from one(commands.get(ids[at : at + CHUNK]))
            for job_id, view in zip(ids[at:], views, strict=False):
                if view is not None:
                    found[job_id] = self.job_from(job_id, view)
            at += len(views)
        return found, at >= len(ids)

    def get_group_jobs(self, group_id: str, limit: int, cursor: str | None) -> Steps[JobPage[J]]:
        """Running, then waiting, then delayed: a page may hold the end of one kind and the beginning of the next."""
        whole(limit, "limit", 1, 10_000)
        _, (look,) = yield from one(commands.look_groups([text(group_id, "group_id")]))
        kind, inner = unpacked(cursor, "line", str, str) if cursor is not None else ("active", "")
        if kind not in ("active", "waiting", "delayed") or (kind == "active" and not _SEEN.fullmatch(inner)):
            raise refused(cursor)
        found: list[J] = []
        scanned, following = 0, None
        for state in ("active", "waiting", "delayed"):
            if state == kind and len(found) < limit:
                room = limit - len(found)
                reader: Callable[..., Steps[Any]] = getattr(self, f"_{state}_of_group")
                jobs, following, looked_at = yield from reader(group_id, look, room, inner or None)
                found, scanned, inner = found + jobs, scanned + looked_at, ""
                if following is not None:
                    following = packed("line", state, following)
                    break
                kind = {"active": "waiting", "waiting": "delayed"}.get(state, "")
        if following is None and kind and len(found) == limit:
            following = packed("line", kind, "")
        return JobPage(found, following, scanned, look.running + look.waiting + look.delayed)

    def _active_of_group(
        self, group_id: str, look: GroupLook, room: int, cursor: str | None
    ) -> Steps[tuple[list[J], str | None, int]]:
        if not look.running:
            return [], None, 0
        runs, _ = yield from self._runs([group_id], look.running)
        seen = int(cursor or 0)
        page = runs[seen : seen + room]
        jobs = yield from self.get_jobs_by_id([run.id for run in page])
        found = [job for job in jobs if job is not None and job.state == "active"]
        return found, str(seen + room) if len(runs) > seen + room else None, len(page)

    def _waiting_of_group(
        self, group_id: str, look: GroupLook, room: int, cursor: str | None
    ) -> Steps[tuple[list[J], str | None, int]]:
        walk = StateWalk("waiting", group_id=group_id, cursor=cursor)
        found: list[J] = []
        scanned = 0
        while len(found) < room and not walk.ended:
            entries = list((yield from walk.next_page(room - len(found))))
            jobs = yield from self.get_jobs_by_id([job_id for job_id, _ in entries])
            scanned += len(entries)
            found += [job for job in jobs if job is not None and job.state == "waiting"]
        return found, walk.cursor(), scanned

    def _delayed_of_group(
        self, group_id: str, look: GroupLook, room: int, cursor: str | None
    ) -> Steps[tuple[list[J], str | None, int]]:
        """Delayed jobs are not indexed by group: look at all of them, some for each page."""
        if not look.delayed:
            return [], None, 0
        walk = StateWalk("delayed", cursor=cursor)
        found: list[J] = []
        scanned = 0
        while scanned < MOST_DELAYED and not walk.ended:
            entries = list((yield from walk.next_page(CHUNK)))
            jobs = yield from self.get_jobs_by_id([job_id for job_id, _ in entries])
            for at, (job, (_, place)) in enumerate(zip(jobs, entries, strict=True), start=1):
                scanned += 1
                if job is not None and job.group_id == group_id and job.state == "delayed":
                    found.append(job)
                if len(found) == room:
                    walk.stop_at(place, last=at == len(entries))
                    return found, walk.cursor(), scanned
            if cursor is None and len(found) == look.delayed:
                return found, None, scanned
        return found, walk.cursor(), scanned


def attempts_of(found: commands.Attempts) -> list[Attempt]:
    """The runs of a job, oldest first: those that are stored, and the one that its state or its lease tells of."""
    stored = found.stored
    attempts = [attempt_of(kept) for kept in found.history]
    last = found.history[-1].token if found.history else 0
    if found.history and stored.fence == last and stored.stack and not stored.finished:
        attempts[-1] = attempt_of(found.history[-1]._replace(reason=stored.reason, stack=stored.stack))
    if stored.finished and stored.fence and stored.fence != last:
        outcome = "completed" if found.state == "completed" else failed_outcome(stored)
        attempts.append(
            attempt_of(
                commands.StoredAttempt(
                    stored.attempts,
                    outcome,
                    stored.error,
                    stored.reason,
                    stored.stack,
                    stored.worker,
                    stored.started,
                    stored.finished,
                    stored.fence,
                )
            )
        )
    if found.run is not None:
        started, number, worker = found.run
        attempts.append(Attempt(number, "running", None, None, None, worker, moment(started), None, None))
    return attempts


def attempt_of(kept: commands.StoredAttempt) -> Attempt:
    return Attempt(
        kept.number,
        cast(AttemptOutcome, kept.outcome),
        kept.error or None,
        kept.reason or None,
        kept.stack or None,
        kept.worker or None,
        moment(kept.started),
        moment(kept.ended),
        max(0, kept.ended - kept.started) / 1000,
    )


def failed_outcome(stored: commands.StoredState) -> str:
    """How the run that ended a job ended; the same decision as in `lua/lib/history.lua`."""
    if stored.error:
        return "failed"
    if stored.reason == "cancelled":
        return "cancelled"
    return "stalled" if stored.reason.startswith("stalled:") else "failed"


def group_info(group_id: str, look: GroupLook, runs: Sequence[ListedRun], now: int, *, complete: bool) -> GroupInfo:
    """`runs`: of this group, the one that began first in front; `complete`: there are no others."""
    held = None
    if look.why:
        reason, job_id, attempt = look.why, look.holder, look.attempts
        if reason == "running" and runs:
            job_id, attempt = runs[0].id, runs[0].attempt
        elif reason == "running" and complete:
            reason = "stopping"  # its slots are taken, and by no job that has a lease
        held = HeldGroup(
            group_id,
            reason,
            job_id or None,
            attempt or None,
            _instant(look.since or now),
            _instant(look.until) if 0 < look.until < LATEST_MS else None,
            look.waiting,
            max(0, now - (look.since or now)) / 1000,
            look.failures or None,
        )
    rate = RateLimit(look.rate[0], look.rate[1] / 1000) if look.rate else None
    return GroupInfo(
        group_id,
        look.place,
        look.waiting,
        look.running,
        look.delayed,
        look.limit,
        look.paused == 1,
        None if look.held_ms < 0 else look.held_ms / 1000,
        held,
        rate,
        look.blocked_by or None,
        _instant(look.blocked) if look.blocked else None,
        look.blockers,
    )


def first_groups(groups: Iterable[ScannedGroup], sort: str, limit: int) -> list[str]:
    """Those that can be among the first `limit`. How long a head has waited is in its record, which is not read yet: it
    is its arrival or its order, so the first by either are looked at."""
    found = list(groups)
    if sort == "name":
        return [group.id for group in sorted(found, key=lambda group: group.id)[:limit]]
    if sort == "deepest":
        return [group.id for group in sorted(found, key=lambda group: (-group.waiting, group.id))[:limit]]
    if sort == "busiest":
        found.sort(key=lambda group: (-group.running, -group.waiting, group.id))
        return [group.id for group in found[:limit]]
    chosen: dict[str, None] = {}
    for by in ("arrival", "order"):
        found.sort(key=lambda group: (_rank(group, sort), getattr(group, by), group.id))
        chosen.update((group.id, None) for group in found[:limit])
    return list(chosen)


def _rank(group: ScannedGroup, sort: str) -> int:
    """Held groups before others, and those with a waiting job before those without."""
    if not group.has_head:
        return 2
    return 0 if sort == "oldest" or group.place in ("busy", "parked", "paused") else 1


def _order(info: GroupInfo, look: GroupLook, sort: str) -> tuple[Any, ...]:
    if sort == "name":
        return (info.id,)
    if sort == "deepest":
        return -info.waiting, info.id
    if sort == "busiest":
        return -info.active, -info.waiting, info.id
    held = sort == "oldest" or info.held is not None
    return (2 if not look.since else 0 if held else 1), look.since, info.id


def _instant(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
