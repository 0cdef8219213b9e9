"""Many jobs at once, and what keeps a queue in shape: clean, purge, repair, what time brings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from groupmq.client.operations.settling import Settling
from groupmq.client.operations.steps import STATES, J, Steps, one
from groupmq.client.operations.walking import WaitingWalk
from groupmq.core.checks import one_of, whole
from groupmq.core.durations import millis
from groupmq.core.views import RepairReport
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK

Progress = Callable[[int], object]
"""Called after each bounded step with how many are done so far."""
LATER = ("blockers", "blocking", "blocked", "breakers", "breaking", "unique", "uniques")
"""Structures to be repaired once each job is in its place, and before the states of groups are."""
REPAIRED = 50
"""Groups whose counts are compared in one call."""


def report_damage(report: RepairReport, page: commands.Mended) -> None:
    for kind, name in page.damage:
        report.mended.setdefault(kind, []).append(name)


def _pages(items: Iterable[str], size: int) -> Iterator[list[str]]:
    found = list(items)
    return (found[at : at + size] for at in range(0, len(found), size))


class Tally:
    """How many are done so far, told to `progress` after each bounded step."""

    def __init__(self, progress: Progress | None) -> None:
        self.done = 0
        self._progress = progress

    def add(self, n: int) -> None:
        self.done += n
        if self._progress is not None:
            self._progress(self.done)


class Tending(Settling[J]):
    def clean(self, state: str, grace: Any, limit: int, progress: Progress | None = None) -> Steps[int]:
        one_of(state, "state", "completed", "failed", "waiting", "delayed")
        age_ms = millis(grace, "grace")
        left = whole(limit, "limit", 0, 2**31)
        tally = Tally(progress)
        while tally.done < left:
            size = min(CHUNK, left - tally.done)
            if state in ("completed", "failed"):
                n = yield commands.clean(state, age_ms, size)
                tally.add(n)
                if n < size:
                    break
            else:
                return (yield from self._clean_live(state, age_ms, left, tally))
        return tally.done

    def _clean_live(self, state: str, age_ms: int, limit: int, tally: Tally) -> Steps[int]:
        """Waiting or delayed jobs are not indexed by age: go through them all, a page at a time."""
        now = (yield commands.stats()).now
        walk = WaitingWalk()
        removed = kept = 0
        while removed < limit:
            ids = yield from walk.next_page() if state == "waiting" else self.list_ids(state, CHUNK, kept)
            jobs = yield from self.get_jobs_by_id(ids)
            old = [job.id for job in jobs if job is not None and job._created_ms <= now - age_ms]
            gone = yield from self.remove_all(old[: limit - removed], [state], tally.add)
            removed, kept = removed + gone, kept + len(ids) - gone
            if not ids:
                break
        return removed

    def purge(self, states: Sequence[str], progress: Progress | None = None) -> Steps[int]:
        for state in states:
            one_of(state, "states", *STATES)
        tally = Tally(progress)
        for state in states:
            if state == "active":
                # Those that run now, once: the next of a group starts when one is gone, and was waiting until then.
                _, running = yield from self.recall()
                yield from self.remove_all(running, [state], tally.add)
                continue
            while True:
                # What workers have prefetched has not begun: it comes back and goes with all that waits.
                any_back = (yield from self.recall())[0] if state == "waiting" else False
                gone = yield from self._purge(state, tally)
                if not gone and not any_back:
                    break
        return tally.done

    def _purge(self, state: str, tally: Tally) -> Steps[int]:
        """One walk over what waits, or until nothing is left of another state."""
        walk, removed = WaitingWalk(), 0
        while True:
            ids = yield from walk.next_full_page() if state == "waiting" else self.list_ids(state, CHUNK)
            gone = yield from self.remove_all(ids, [state], tally.add)
            removed += gone
            if gone == 0 and (state != "waiting" or not ids):  # none left, or only ghosts: repair's business
                return removed

    def obliterate(self) -> Steps[None]:
        yield commands.switch(paused=True)
        while (yield commands.obliterate()) > 0:
            pass

    def repair(self, progress: Progress | None = None) -> Steps[RepairReport]:
        """Go through every structure, page by page."""
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
            "progress",
            "logs",
            "interrupts",
            "stops",
            "stopping",
        )
        for structure in (*indexes, "jobs"):
            looked_at = yield from self._repair(report, tally, structure)
            report.jobs = looked_at if structure == "jobs" else 0
        groups = {"": None} | dict.fromkeys((yield from self.get_unique_groups(None)))
        yield from self._repair(report, tally, "keys", found=groups)
        for group_id in groups:
            yield from self._repair(report, tally, "group", group_id)
        yield from self._repair_delayed_counts(report, list(groups))
        for structure in (*LATER, "repeats", "ticks", "ready", "parked", "groups"):
            report.groups = yield from self._repair(report, tally, structure)
        return report

    def _repair_delayed_counts(self, report: RepairReport, groups: list[str]) -> Steps[None]:
        """How many delayed jobs each group has. Delayed jobs come and go while they are counted, so a count that is
        wrong must come out the same twice, and the group must not have changed in between."""
        counts = yield from self._count_delayed()
        suspects: dict[str, str] = {}
        for page in _pages(dict.fromkeys([*groups, *counts]), REPAIRED):
            answer: commands.Mended = yield commands.repair_delayed_counts({group: counts[group] for group in page})
            suspects.update(zip(answer.groups[::2], answer.groups[1::2], strict=True))
        if not suspects:
            return
        again = yield from self._count_delayed()
        steady = [group for group in suspects if again[group] == counts[group]]
        for page in _pages(steady, REPAIRED):
            answer = yield commands.repair_delayed_counts({group: counts[group] for group in page}, suspects)
            report_damage(report, answer)

    def _count_delayed(self) -> Steps[Counter[str]]:
        """Delayed jobs by group, counted a page at a time."""
        group_of: dict[str, str] = {}  # a page may show a job that an earlier one has shown
        cursor = "0"
        while True:
            page: commands.Mended = yield commands.repair("delayed groups", cursor)
            group_of.update(zip(page.groups[::2], page.groups[1::2], strict=True))
            cursor = page.cursor
            if cursor == "0":
                return Counter(group_of.values())

    def _repair(
        self,
        report: RepairReport,
        tally: Tally,
        structure: str,
        group_id: str | None = None,
        found: dict[str, None] | None = None,
    ) -> Steps[int]:
        looked_at, cursor = 0, "0"
        while True:
            page = yield from one(commands.repair(structure, cursor, group_id))
            looked_at += page.looked_at
            tally.add(page.looked_at)
            report_damage(report, page)
            if found is not None:
                found.update(dict.fromkeys(page.groups))
            cursor = page.cursor
            if cursor == "0":
                return looked_at

    def run_due(self, *, promote: bool = True, unpark: bool = True, expire: bool = True) -> Steps[commands.Due]:
        """Everything that is due now, however much it is: bounded calls until nothing is left."""
        promoted = woken = 0
        stalled: list[commands.Stalled] = []
        while True:
            due = yield commands.due(self.policy, promote=promote, unpark=unpark, expire=expire)
            promoted, woken = promoted + due.promoted, woken + due.woken
            stalled += due.stalled
            if due.wait_ms != 0 or not (due.promoted or due.woken or due.stalled or due.overdue):
                return commands.Due(promoted, woken, stalled, due.wait_ms)

    def clean_up(self) -> Steps[int]:
        """Retention by age. A process that keeps nothing leaves what others keep."""
        removed = 0
        for kind, kept in (("completed", self.options.keep_completed), ("failed", self.options.keep_failed)):
            if kept.age_ms is not None and kept.kept != 0:
                while (n := (yield commands.clean(kind, kept.age_ms, CHUNK))) > 0:
                    removed += n
        return removed
