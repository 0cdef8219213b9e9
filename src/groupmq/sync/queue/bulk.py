# Generated from src/groupmq/client/queue/bulk.py by `make sync`; do not edit.
"""Operations on many jobs at once, and maintenance: clean, purge, obliterate, repair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from groupmq.core.checks import one_of, whole
from groupmq.core.durations import Duration, millis
from groupmq.core.filters import STATES
from groupmq.core.views import RepairReport
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK
from groupmq.sync import registry
from groupmq.sync.queue.settling import recall, remove_all
from groupmq.sync.queue.walks import WaitingWalk

if TYPE_CHECKING:
    from groupmq.sync.queue.methods import QueueMethods

OnProgress = Callable[[int], object]
"""Called after each bounded step with how many are done so far."""
LATER = ("blockers", "blocking", "blocked", "breakers", "breaking", "opened", "unique", "uniques")
"""Structures to repair after the jobs and before the states of groups."""
REPAIRED = 50
"""Groups whose counts are compared in one call."""


def report_damage(report: RepairReport, page: commands.Mended) -> None:
    for kind, name in page.damage:
        report.mended.setdefault(kind, []).append(name)


def _pages(items: Iterable[str], size: int) -> Iterator[list[str]]:
    found = list(items)
    return (found[at : at + size] for at in range(0, len(found), size))


class Tally:
    """Counts what is done; `progress` is called with the count after each bounded step."""

    def __init__(self, progress: OnProgress | None) -> None:
        self.done = 0
        self._progress = progress

    def add(self, n: int) -> None:
        self.done += n
        if self._progress is not None:
            self._progress(self.done)


def clean(
    queue: QueueMethods,
    state: str,
    *,
    grace: Duration = 0,
    limit: int = 1000,
    progress: OnProgress | None = None,
) -> int:
    """Remove jobs of a state that are older than `grace`, and return how many.

    The age counts from the end of a finished job, and from the creation of any other. `progress` is called after
    each bounded step with the number of jobs removed so far; an error that it raises ends the work there.
    """
    one_of(state, "state", "completed", "failed", "waiting", "delayed")
    age_ms = millis(grace, "grace")
    left = whole(limit, "limit", 0, 2**31)
    tally = Tally(progress)
    while tally.done < left:
        size = min(CHUNK, left - tally.done)
        if state in ("completed", "failed"):
            n = queue._call(commands.clean(state, age_ms, size))
            tally.add(n)
            if n < size:
                break
        else:
            return _clean_live(queue, state, age_ms, left, tally)
    return tally.done


def _clean_live(queue: QueueMethods, state: str, age_ms: int, limit: int, tally: Tally) -> int:
    """Remove old waiting or delayed jobs. They are not indexed by age, so all of them are read, page by page."""
    now = queue._call(commands.stats()).now
    walk = WaitingWalk(queue._call)
    removed = kept = 0
    while removed < limit:
        ids = walk.next_page() if state == "waiting" else queue._list_ids(state, CHUNK, kept)
        jobs = queue.get_jobs_by_id(ids)
        old = [job.id for job in jobs if job is not None and job._created_ms <= now - age_ms]
        gone = remove_all(queue._call, old[: limit - removed], [state], tally.add)
        removed, kept = removed + gone, kept + len(ids) - gone
        if not ids:
            break
    return removed


def purge(
    queue: QueueMethods,
    states: Sequence[str] = ("waiting", "delayed"),
    *,
    progress: OnProgress | None = None,
) -> int:
    """Remove all jobs in these states, in bounded steps, and return how many. `progress`: as in `clean`."""
    for state in states:
        one_of(state, "states", *STATES)
    tally = Tally(progress)
    for state in states:
        if state == "active":
            # Only the jobs that run now. When one is removed, the next job of its group starts. That one was
            # waiting, so it stays.
            _, running = recall(queue._call)
            remove_all(queue._call, running, [state], tally.add)
            continue
        while True:
            # Prefetched jobs have not begun: they come back and are removed with the waiting ones.
            any_back = recall(queue._call)[0] if state == "waiting" else False
            gone = _purge(queue, state, tally)
            if not gone and not any_back:
                break
    return tally.done


def _purge(queue: QueueMethods, state: str, tally: Tally) -> int:
    """Remove jobs of a state: all waiting ones in one walk, those of another state until none is left."""
    walk, removed = WaitingWalk(queue._call), 0
    while True:
        ids = walk.next_full_page() if state == "waiting" else queue._list_ids(state, CHUNK)
        gone = remove_all(queue._call, ids, [state], tally.add)
        removed += gone
        if gone == 0 and (state != "waiting" or not ids):  # none left, or only ids that repair() removes
            return removed


def obliterate(queue: QueueMethods) -> None:
    """Delete the queue and everything in it, running jobs too."""
    queue._call(commands.switch(paused=True))
    while queue._call(commands.obliterate()) > 0:
        pass
    registry.strike_own(queue._connection)


def repair(queue: QueueMethods, *, progress: OnProgress | None = None) -> RepairReport:
    """Look for damage and repair it, in bounded steps, while the queue works. Normally there is none.

    `progress` is called after each step with the number of entries checked so far.
    """
    report, tally = RepairReport(), Tally(progress)
    indexes = (
        "leases",
        "active",
        "delayed",
        "completed",
        "failed",
        "expiring",
        "state",
        "results",
        "bodies",
        "progress",
        "logs",
        "interrupts",
        "stops",
        "stopping",
    )
    for structure in (*indexes, "jobs"):
        looked_at = _repair(queue, report, tally, structure)
        report.jobs = looked_at if structure == "jobs" else 0
    groups = {"": None} | dict.fromkeys(queue.get_unique_groups())
    _repair(queue, report, tally, "keys", found=groups)
    for group_id in groups:
        _repair(queue, report, tally, "group", group_id)
    _repair_delayed_counts(queue, report, list(groups))
    for structure in (*LATER, "repeats", "ticks", "ready", "parked", "groups"):
        report.groups = _repair(queue, report, tally, structure)
    return report


def _repair_delayed_counts(queue: QueueMethods, report: RepairReport, groups: list[str]) -> None:
    """Repair the number of delayed jobs of each group. Delayed jobs come and go while they are counted, so a number is
    corrected only if two counts agree and the group has not changed in between."""
    counts = _count_delayed(queue)
    suspects: dict[str, str] = {}
    for page in _pages(dict.fromkeys([*groups, *counts]), REPAIRED):
        answer = queue._call(commands.repair_delayed_counts({group: counts[group] for group in page}))
        suspects.update(zip(answer.groups[::2], answer.groups[1::2], strict=True))
    if not suspects:
        return
    again = _count_delayed(queue)
    steady = [group for group in suspects if again[group] == counts[group]]
    for page in _pages(steady, REPAIRED):
        answer = queue._call(commands.repair_delayed_counts({group: counts[group] for group in page}, suspects))
        report_damage(report, answer)


def _count_delayed(queue: QueueMethods) -> Counter[str]:
    """Delayed jobs by group, counted a page at a time."""
    group_of: dict[str, str] = {}  # a page may show a job that an earlier one has shown
    cursor = "0"
    while True:
        page = queue._call(commands.repair("delayed groups", cursor))
        group_of.update(zip(page.groups[::2], page.groups[1::2], strict=True))
        cursor = page.cursor
        if cursor == "0":
            return Counter(group_of.values())


def _repair(
    queue: QueueMethods,
    report: RepairReport,
    tally: Tally,
    structure: str,
    group_id: str | None = None,
    found: dict[str, None] | None = None,
) -> int:
    looked_at, cursor = 0, "0"
    while True:
        page = queue._call(commands.repair(structure, cursor, group_id))
        looked_at += page.looked_at
        tally.add(page.looked_at)
        report_damage(report, page)
        if found is not None:
            found.update(dict.fromkeys(page.groups))
        cursor = page.cursor
        if cursor == "0":
            return looked_at
