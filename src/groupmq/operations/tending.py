"""Many jobs at once, and what keeps a queue in shape: clean, purge, repair, what time brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupmq import commands
from groupmq.checks import one_of, whole
from groupmq.commands import CHUNK
from groupmq.durations import millis
from groupmq.operations.looking import Looking
from groupmq.operations.steps import STATES, J, Steps, one
from groupmq.operations.walking import WaitingWalk
from groupmq.views import RepairReport


class Tending(Looking[J]):
    def clean(self, state: str, grace: Any, limit: int) -> Steps[int]:
        one_of(state, "state", "completed", "failed", "waiting", "delayed")
        age_ms = millis(grace, "grace")
        left = whole(limit, "limit", 0, 2**31)
        removed = 0
        while removed < left:
            size = min(CHUNK, left - removed)
            if state in ("completed", "failed"):
                n = yield commands.clean(state, age_ms, size)
                removed += n
                if n < size:
                    break
            else:
                return (yield from self._clean_live(state, age_ms, left))
        return removed

    def _clean_live(self, state: str, age_ms: int, limit: int) -> Steps[int]:
        """Waiting or delayed jobs are not indexed by age: go through them all, a page at a time."""
        now = (yield commands.stats()).now
        walk = WaitingWalk()
        removed = kept = 0
        while removed < limit:
            ids = yield from walk.next_page() if state == "waiting" else self.list_ids(state, CHUNK, kept)
            jobs = yield from self.get_jobs_by_id(ids)
            old = [job.id for job in jobs if job is not None and job._created_ms <= now - age_ms]
            gone = yield from self._remove_all(old[: limit - removed], [state])
            removed, kept = removed + gone, kept + len(ids) - gone
            if not ids:
                break
        return removed

    def _remove_all(self, ids: list[str], states: list[str]) -> Steps[int]:
        removed = 0
        for at in range(0, len(ids), CHUNK):
            removed += sum((yield commands.remove(ids[at : at + CHUNK], states)))
        return removed

    def purge(self, states: Sequence[str]) -> Steps[int]:
        for state in states:
            one_of(state, "states", *STATES)
        removed = 0
        for state in states:
            while True:
                ids = yield from self.list_ids(state, CHUNK)
                gone = yield from self._remove_all(ids, [state])
                removed += gone
                if gone == 0:  # none left, or only ghosts that are repair's business
                    break
        return removed

    def obliterate(self) -> Steps[None]:
        yield commands.switch(paused=True)
        while (yield commands.obliterate()) > 0:
            pass

    def repair(self) -> Steps[RepairReport]:
        """Go through every structure, page by page."""
        report = RepairReport()
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
            "cancels",
        )
        for structure in (*indexes, "jobs"):
            looked_at = yield from self._repair(report, structure)
            report.jobs = looked_at if structure == "jobs" else 0
        groups = {"": None} | dict.fromkeys((yield from self.get_unique_groups(None)))
        yield from self._repair(report, "keys", found=groups)
        for group_id in groups:
            yield from self._repair(report, "group", group_id)
        for structure in ("repeats", "ticks", "ready", "parked", "groups"):
            report.groups = yield from self._repair(report, structure)
        return report

    def _repair(
        self,
        report: RepairReport,
        structure: str,
        group_id: str | None = None,
        found: dict[str, None] | None = None,
    ) -> Steps[int]:
        looked_at, cursor = 0, "0"
        while True:
            page = yield from one(commands.repair(structure, cursor, group_id))
            looked_at += page.looked_at
            for kind, name in page.damage:
                report.mended.setdefault(kind, []).append(name)
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
            if due.wait_ms != 0 or not (due.promoted or due.woken or due.stalled):
                return commands.Due(promoted, woken, stalled, due.wait_ms)

    def clean_up(self) -> Steps[int]:
        """Retention by age."""
        removed = 0
        for kind, kept in (("completed", self.options.keep_completed), ("failed", self.options.keep_failed)):
            if kept.age_ms is not None:
                while (n := (yield commands.clean(kind, kept.age_ms, CHUNK))) > 0:
                    removed += n
        return removed
