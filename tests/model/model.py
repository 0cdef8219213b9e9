"""What the queue promises, as plain Python over one dict of jobs: no index, no cache, nothing that could drift.

Every question (which group may start, what is due next) is answered by looking at all jobs. Replies and keyspace of
the real scripts must equal this after every step. The instant of a call is its argument `now`.

By concern, each on top of the one before: `ledger` (what is known), `gates` (when jobs may start, and which first),
`arriving`, `ending`, `working` (one call of a worker), and here what operators do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from groupmq.commands import FRESH
from tests.model.parts import Conf, Finished, Job
from tests.model.working import Working


class Model(Working):
    def remove(self, ids: Sequence[str], states: Sequence[str] | None) -> list[bool]:
        answer = []
        for job_id in ids:
            job = self.jobs.get(job_id)
            goes = job is not None and (states is None or job.state in states)
            answer.append(goes)
            if job is not None and goes:
                self._remove(job)
        self.settle()
        return answer

    def _remove(self, job: Job) -> None:
        del self.jobs[job.id]
        self.tell("removed", job.id, job.group)

    def cancel(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """What waits goes. What runs is marked, and its worker hears of it; until that reports, the run goes on."""
        found = [(job_id, str(self.jobs[job_id].state) if job_id in self.jobs else "") for job_id in ids]
        for job_id in ids:
            job = self.jobs.get(job_id)
            if job is not None and job.lease:
                job.lease = replace(job.lease, cancelled=True)
                self.send_mail([job.lease.worker])
            elif job is not None and job.state in ("waiting", "delayed"):
                self._remove(job)
        self.settle()
        return found

    def cancel_group(self, group: str, limit: int) -> tuple[list[tuple[str, str]], int]:
        """The running jobs of a group, and the first of its waiting ones; how many of those are left."""
        waiting = [job.id for job in self.waiting(group)]
        running = [job.id for job in self.in_state("active", group)]
        return self.cancel([*running, *waiting[:limit]]), len(waiting[limit:])

    def retry(self, job_id: str) -> tuple[str, bool]:
        job = self.jobs.get(job_id)
        if job is None or job.state != "failed":
            return job.state if job else "", False
        job.state, job.stored, job.stamp = "waiting", None, 0
        self.tell("added", job.id, job.group)
        self.settle()
        return "failed", True

    def fail(self, job_id: str, reason: str, now: int) -> tuple[str, bool]:
        job = self.jobs.get(job_id)
        if job is None or job.state in ("completed", "failed"):
            return job.state if job else "", False
        found = job.state
        self._fail(job, self._end_untold(job) if job.lease else job.stored or FRESH, reason, "", now)
        self.retain(now)
        self.settle()
        return found, True

    def reschedule(self, job_id: str, delay: int, now: int, *, only_delayed: bool) -> tuple[str, bool]:
        """A new time to start; a ttl that has not ended moves with it. The job keeps its place once it has run."""
        job = self.jobs.get(job_id)
        if job is None:
            return "", False
        found, held = job.state, job.hold > 0
        if found not in ("waiting", "delayed") or (only_delayed and found == "waiting" and not held):
            return found, False
        if held:
            job.hold = now + delay if delay else 0
        elif found == "delayed" or delay:
            if not job.record.order_given and job.stored is None:
                job.record = job.record._replace(order_ms=now + delay)
            if job.expires:
                job.expires += now + delay - (job.due or now)
            job.state, job.due = ("delayed", now + delay) if delay else ("waiting", 0)
        self.settle()
        return found, True

    def update(self, job_id: str, data: bytes) -> str:
        job = self.jobs.get(job_id)
        if job is None:
            return ""
        job.record = job.record._replace(data=data)
        return job.state

    def switch_queue(self, paused: bool) -> bool:
        before, self.paused = self.paused, paused
        self._tell_switch("", before, paused)
        return before != paused

    def switch_group(self, group: str, now: int, **change: Any) -> bool:
        """A setting that is not given stays, one that says nothing goes."""
        before = self.conf.get(group, Conf())
        after = Conf(**{**vars(before), **{name: value for name, value in change.items() if value is not None}})
        self._tell_switch(group, before.paused, after.paused)
        self.conf.pop(group, None)
        if after != Conf():
            self.conf[group] = after
        rate, last = self.rate_of(group), self.group_starts.get(group)
        if rate and last is not None:
            self.group_starts[group] = replace(last, until=now + rate[1])
        return before != after

    def _tell_switch(self, group: str, was: bool, is_now: bool) -> None:
        if was != is_now:
            self.tell("paused" if is_now else "resumed", "", group)

    def clean(self, kind: Finished, age: int, limit: int, now: int) -> int:
        """Forget what finished at least `age` ago, on the clock that stamped it."""
        latest = max(now * 1000, self.stamp) - age * 1000
        old = [job for job in self.finished(kind) if job.stamp <= latest][:limit]
        for job in old:
            del self.jobs[job.id]
        return len(old)
