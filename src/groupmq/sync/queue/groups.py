# Generated from src/groupmq/client/queue/groups.py by `make sync`; do not edit.
"""Looking at groups: how they are listed as lanes, what holds one, and its jobs in their order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from groupmq.client.answers.cursors import packed, refused, unpacked
from groupmq.client.answers.groups import first_groups, group_info, order_of
from groupmq.client.answers.jobs import job_from
from groupmq.core.checks import one_of, text, whole
from groupmq.core.errors import ConfigurationError
from groupmq.core.pages import GroupPage, JobPage, Lane
from groupmq.core.views import GroupInfo
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, GroupLook, Index, ListedRun, ScannedGroup
from groupmq.sync.job import Job
from groupmq.sync.queue.indexed_groups import LOOKS_PER_CALL, groups_of
from groupmq.sync.queue.walks import StateWalk

if TYPE_CHECKING:
    from groupmq.sync.queue.methods import QueueMethods

GroupSort = Literal["held", "oldest", "deepest", "busiest", "name"]
SORTS = ("held", "oldest", "deepest", "busiest", "name")
GroupState = Literal["idle", "ready", "busy", "parked", "paused", "blocked", "breaker"]
GROUP_STATES = ("idle", "ready", "busy", "parked", "paused", "blocked", "breaker")
INDEXES: dict[str | None, Index] = {"blocked": "blocked", "breaker": "opened"}
"""States whose groups have an index, sorted by the time since which each group is in it."""
MOST_LISTED = 1_000
"""Groups of such an index that are looked at. Each of them is in trouble, so there are hardly ever more."""
MOST_GROUP_PAGES = 25
"""Calls that look through the groups: about 10,000 groups."""
MOST_RUN_PAGES = 6
"""Calls that look for running jobs: about 3,000 leases."""
FIRST = 200
"""How many groups of each kind are looked at if there are too many to look at all of them."""
MOST_DELAYED = 2_000
"""Delayed jobs that are looked at for one page of a group."""
_SEEN = re.compile(r"[0-9]{0,9}")
"""The number of running jobs that earlier pages of a group have shown."""
SPARE_READS = 10
"""Further calls for jobs with so much data that a call returns fewer of them."""


class Lanes(NamedTuple):
    """A page of groups before it is put together with those of other partitions."""

    lanes: list[tuple[tuple[Any, ...], Lane[Job]]]
    """Each with its key in the requested order."""
    total: int
    scanned: int
    matched: int
    complete: bool


def get_unique_groups(queue: QueueMethods, limit: int | None = None) -> list[str]:
    """Groups that have a live job: waiting, active or delayed."""
    if limit is not None:
        whole(limit, "limit", 0, 2**31)
    groups: dict[str, None] = {}
    cursor = "0"
    while limit is None or len(groups) < limit:
        cursor, page = queue._call(commands.list_groups(cursor))
        groups.update(dict.fromkeys(page))
        if cursor == "0":
            break
    return list(groups)[:limit]


def get_unique_groups_count(queue: QueueMethods) -> int:
    """How many groups have a live job."""
    _, _, _, _, _, groups, *_ = queue._call(commands.counts())
    return int(groups)


def get_group_job_count(queue: QueueMethods, group_id: str) -> int:
    """Waiting and active jobs of a group."""
    _, waiting, active, *_ = queue._call(commands.look_group(text(group_id, "group_id")))
    return int(waiting + active)


def get_group(queue: QueueMethods, group_id: str) -> GroupInfo:
    """One group: its counts and limits, what holds it and until when."""
    now, (look,) = queue._call(commands.look_groups([text(group_id, "group_id")]))
    runs, complete = _runs(queue, [group_id], look.running) if look.why == "running" else ([], True)
    return group_info(group_id, look, runs, now, complete=complete)


def _runs(queue: QueueMethods, groups: Sequence[str], expected: int) -> tuple[list[ListedRun], bool]:
    """The runs of these groups in the order in which they began, prefetched jobs last; and whether these are all."""
    found: dict[str, ListedRun] = {}
    cursor, complete = "0", expected == 0
    for _ in range(0 if complete else MOST_RUN_PAGES):
        page = queue._call(commands.list_runs(cursor, groups))
        found.update((run.id, run) for run in page.found)
        cursor = page.cursor
        complete = cursor == "0" or len(found) >= expected
        if complete:
            break
    return sorted(found.values(), key=lambda run: (run.prefetched, run.started, run.fence)), complete


def get_blocked_groups(queue: QueueMethods, limit: int = 100, offset: int = 0) -> list[GroupInfo]:
    """Groups that a failed job blocks (`on_failed="hold"`), the one that has been blocked longest first.

    Each names the job and the time since which it blocks. A blocked group need not have any other job.
    """
    return queue._listed("blocked", limit, offset)


def get_open_breakers(queue: QueueMethods, limit: int = 100, offset: int = 0) -> list[GroupInfo]:
    """Groups whose breaker is open (`breaker=Breaker(...)`), the one that has been open longest first.

    Each says since when the breaker is open, until when the group rests, and how many attempts have failed in a
    row. After the rest the breaker stays open until a job completes. Such a group need not have any job.
    """
    return queue._listed("opened", limit, offset)


def listed(queue: QueueMethods, index: Index, limit: int, offset: int = 0) -> list[GroupInfo]:
    """The groups of an index, the one that has been in it longest first."""
    whole(limit, "limit", 0, MOST_LISTED)
    whole(offset, "offset", 0, 2**31)
    return groups_of(queue._call, index, limit, offset)


def get_groups(
    queue: QueueMethods,
    *,
    sort: GroupSort = "held",
    match: str | None = None,
    state: GroupState | None = None,
    limit: int = 200,
    behind: int = 0,
) -> GroupPage[Job]:
    """Groups as lanes: the jobs that run, what holds the group, and the first `behind` jobs that wait.

    `state`: only groups in this state; "breaker": only groups whose breaker is open, whatever their state. With
    "blocked" and "breaker", groups that are paused or have no live job are listed too, and sort="held" begins with the
    group that has been blocked, or whose breaker has been open, longest.
    `sort`: held (longest held first), oldest (longest waiting head first), deepest (most waiting jobs), busiest
    (most running jobs), name. `match`: part of the group id, in upper or lower case. However many groups there
    are, at most some 10,000 are looked through; `complete` says whether these are all.
    """
    found = queue._lanes(sort, match, state, limit, behind)
    return GroupPage([lane for _, lane in found.lanes], found.total, found.scanned, found.matched, found.complete)


def lanes(queue: QueueMethods, sort: str, match: str | None, state: str | None, limit: int, behind: int) -> Lanes:
    """The first groups, each with the key that decides its position among them."""
    one_of(sort, "sort", *SORTS)
    whole(limit, "limit", 0, 1_000)
    whole(behind, "behind", 0, 100)
    if match is not None and not isinstance(match, str):
        raise ConfigurationError.expected("match", "a part of group ids, or None", match)
    if state is not None:
        one_of(state, "state", *GROUP_STATES)
    wanted = (match or "").casefold()
    index = INDEXES.get(state)
    if index is not None:
        indexed = queue._call(commands.list_since(index, 0, MOST_LISTED))
        total, scanned, complete = indexed.total, len(indexed.found), indexed.total <= MOST_LISTED
        chosen = [group_id for group_id, _ in indexed.found if wanted in group_id.casefold()]
        matched = len(chosen)
    else:
        groups, total, complete = _scan_groups(queue, sizes=sort in ("deepest", "busiest"))
        matching = [group for group in groups.values() if wanted in group.id.casefold()]
        matching = [group for group in matching if state in (None, group.state)]
        chosen, scanned, matched = first_groups(matching, sort, limit), len(groups), len(matching)
    now, looks = _look(queue, chosen, behind)
    if index is not None:
        looks = {group_id: look for group_id, look in looks.items() if look.since_of(index)}
    infos: dict[str, GroupInfo] = {}
    running = [(group_id, look.running) for group_id, look in looks.items() if look.running]
    runs, all_runs = _runs(queue, [group_id for group_id, _ in running], sum(n for _, n in running))
    by_group: dict[str, list[ListedRun]] = {}
    for run in runs:
        by_group.setdefault(run.group_id, []).append(run)
    for group_id, look in looks.items():
        infos[group_id] = group_info(group_id, look, by_group.get(group_id, []), now, complete=all_runs)
    order = index if index is not None and sort == "held" else sort
    shown = sorted(infos.values(), key=lambda info: order_of(info, looks[info.id], order))[:limit]
    running_ids = {info.id: [run.id for run in by_group.get(info.id, []) if not run.prefetched] for info in shown}
    next_ids: dict[str, list[str]] = {}
    for info in shown:
        # Prefetched jobs start before all waiting ones.
        prefetched = [run.id for run in by_group.get(info.id, []) if run.prefetched]
        next_ids[info.id] = (prefetched + looks[info.id].next)[:behind]
    wanted_ids = [job_id for found in (running_ids, next_ids) for ids in found.values() for job_id in ids]
    jobs, all_jobs = _read(queue, wanted_ids)
    found_lanes = [
        (
            order_of(info, looks[info.id], order),
            Lane(
                info,
                info.held,
                [jobs[job_id] for job_id in running_ids[info.id] if job_id in jobs],
                [jobs[job_id] for job_id in next_ids[info.id] if job_id in jobs],
            ),
        )
        for info in shown
    ]
    return Lanes(found_lanes, total, scanned, matched, complete and all_runs and all_jobs)


def _scan_groups(queue: QueueMethods, *, sizes: bool) -> tuple[dict[str, ScannedGroup], int, bool]:
    """The groups, as many as are looked through; how many there are, and whether these are all of them."""
    groups: dict[str, ScannedGroup] = {}
    cursor = "0"
    for _ in range(MOST_GROUP_PAGES):
        page = queue._call(commands.scan_groups(cursor, sizes=sizes))
        groups.update((group.id, group) for group in page.found)
        cursor = page.cursor
        if cursor == "0":
            return groups, page.total, True
    front = queue._call(commands.scan_groups(first=FIRST, sizes=sizes))
    groups.update((group.id, group) for group in front.found)
    return groups, front.total, False


def _look(queue: QueueMethods, groups: Sequence[str], behind: int) -> tuple[int, dict[str, GroupLook]]:
    found: dict[str, GroupLook] = {}
    now = 0
    for at in range(0, len(groups), LOOKS_PER_CALL):
        page = groups[at : at + LOOKS_PER_CALL]
        now, looks = queue._call(commands.look_groups(page, behind))
        found.update(zip(page, looks, strict=True))
    return now, found


def _read(queue: QueueMethods, ids: Sequence[str]) -> tuple[dict[str, Job], bool]:
    """The jobs, as far as a bounded number of calls reads them; and whether these are all."""
    found: dict[str, Job] = {}
    at = 0
    for _ in range(-(-len(ids) // CHUNK) + SPARE_READS):
        if at >= len(ids):
            break
        views = queue._call(commands.get(ids[at : at + CHUNK]))
        for job_id, view in zip(ids[at:], views, strict=False):
            if view is not None:
                found[job_id] = job_from(queue._make_job, job_id, view)
        at += len(views)
    return found, at >= len(ids)


def get_group_jobs(queue: QueueMethods, group_id: str, limit: int = 50, cursor: str | None = None) -> JobPage[Job]:
    """The jobs of a group: running ones, then waiting ones in the order in which they will start, then delayed.

    Delayed jobs are not stored by group: where there are thousands of them, a page may come out short and still have a
    cursor.
    """
    whole(limit, "limit", 1, 10_000)
    _, (look,) = queue._call(commands.look_groups([text(group_id, "group_id")]))
    kind, inner = unpacked(cursor, "group jobs", str, str) if cursor is not None else ("active", "")
    if kind not in ("active", "waiting", "delayed") or (kind == "active" and not _SEEN.fullmatch(inner)):
        raise refused(cursor)
    found: list[Job] = []
    scanned, following = 0, None
    readers = {"active": _active_of_group, "waiting": _waiting_of_group, "delayed": _delayed_of_group}
    for state, read in readers.items():
        if state == kind and len(found) < limit:
            room = limit - len(found)
            jobs, following, looked_at = read(queue, group_id, look, room, inner or None)
            found, scanned, inner = found + jobs, scanned + looked_at, ""
            if following is not None:
                following = packed("group jobs", state, following)
                break
            kind = {"active": "waiting", "waiting": "delayed"}.get(state, "")
    if following is None and kind and len(found) == limit:
        following = packed("group jobs", kind, "")
    return JobPage(found, following, scanned, look.running + look.waiting + look.delayed)


def _active_of_group(
    queue: QueueMethods, group_id: str, look: GroupLook, room: int, cursor: str | None
) -> tuple[list[Job], str | None, int]:
    if not look.running:
        return [], None, 0
    runs, _ = _runs(queue, [group_id], look.running)
    seen = int(cursor or 0)
    page = runs[seen : seen + room]
    jobs = queue.get_jobs_by_id([run.id for run in page])
    found = [job for job in jobs if job is not None and job.state == "active"]
    return found, str(seen + room) if len(runs) > seen + room else None, len(page)


def _waiting_of_group(
    queue: QueueMethods, group_id: str, look: GroupLook, room: int, cursor: str | None
) -> tuple[list[Job], str | None, int]:
    walk = StateWalk(queue._call, "waiting", group_id=group_id, cursor=cursor)
    found: list[Job] = []
    scanned = 0
    while len(found) < room and not walk.ended:
        entries = list(walk.next_page(room - len(found)))
        jobs = queue.get_jobs_by_id([job_id for job_id, _ in entries])
        scanned += len(entries)
        found += [job for job in jobs if job is not None and job.state == "waiting"]
    return found, walk.cursor(), scanned


def _delayed_of_group(
    queue: QueueMethods, group_id: str, look: GroupLook, room: int, cursor: str | None
) -> tuple[list[Job], str | None, int]:
    """Delayed jobs are not indexed by group: look at all of them, some for each page."""
    if not look.delayed:
        return [], None, 0
    walk = StateWalk(queue._call, "delayed", cursor=cursor)
    found: list[Job] = []
    scanned = 0
    while scanned < MOST_DELAYED and not walk.ended:
        entries = list(walk.next_page(CHUNK))
        jobs = queue.get_jobs_by_id([job_id for job_id, _ in entries])
        for at, (job, (_, position)) in enumerate(zip(jobs, entries, strict=True), start=1):
            scanned += 1
            if job is not None and job.group_id == group_id and job.state == "delayed":
                found.append(job)
            if len(found) == room:
                walk.stop_at(position, last=at == len(entries))
                return found, walk.cursor(), scanned
        if cursor is None and len(found) == look.delayed:
            return found, None, scanned
    return found, walk.cursor(), scanned
