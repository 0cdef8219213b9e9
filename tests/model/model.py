"""The promises of a queue as plain Python over one dict of jobs: no index and no cache that could drift.

Every question (which group may start, what is due next) is answered by looking at all jobs. The replies and the keys of
the real scripts must equal those of the model after every step. The instant of a call is its argument `now`.

Each of these classes extends the previous one: `ledger` (the state), `gates` (when jobs may start, and in which order),
`arriving`, `ending`, `working` (one call of a worker), `batches`, and here the actions of operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from groupmq.protocol.commands import DONE, FRESH, LEFT, UNSETTLED
from tests.model.batches import Batches
from tests.model.ending import CANCELLED
from tests.model.parts import Conf, Finished, Job


class Model(Batches):
    # Jobs that may not have begun

    def recall(self, ids: Iterable[str], now: int) -> tuple[list[str], list[str]]:
        """Ask for jobs that may not have begun. Returns those that are still open, and those that run. A prefetched job
        whose lease is over is given back at once."""
        found = [self.jobs[job_id] for job_id in ids if job_id in self.jobs]
        unsettled = [job.id for job in found if self._unsettled(job, now)]
        self.tidy()
        return unsettled, [job.id for job in found if job.lease and job.id not in unsettled]

    def _unsettled(self, job: Job, now: int) -> bool:
        """Whether only its worker knows if a job has begun, so that the worker has to be asked. Once its lease is over,
        it does not begin any more: a prefetched job has not run then, any other job may have."""
        if not job.lease or job.lease.begun:
            return False
        if job.lease.deadline > now:
            job.lease = replace(job.lease, recalled=True)
            self.send_mail([job.lease.worker])
            return True
        if job.lease.ahead:
            job.state, job.lease = "waiting", None
        return False

    # Jobs

    def remove(self, ids: Sequence[str], states: Sequence[str] | None, now: int) -> list[int]:
        answer = []
        for job_id in ids:
            job = self.jobs.get(job_id)
            settles = states is None or {"waiting", "active"} & set(states)
            if job is not None and settles and self._unsettled(job, now):
                answer.append(UNSETTLED)
            elif job is not None and (states is None or job.state in states):
                answer.append(DONE)
                if job.lease:
                    self.stop_run(job, now)
                self._remove(job)
            else:
                answer.append(LEFT)
        self.tidy()
        return answer

    def _remove(self, job: Job) -> None:
        self.resolve(job)
        self.uniques.pop(job.id, None)
        del self.jobs[job.id]
        self.publish("removed", job.id, job.group)

    def cancel(self, ids: Sequence[str], now: int) -> list[tuple[str, str]]:
        """Remove waiting jobs. Running ones are marked and their workers notified; they run until these report."""
        found, before = [], dict(self.jobs)
        for job_id in ids:
            job = self.jobs.get(job_id)
            unsettled = job is not None and self._unsettled(job, now)
            found.append((job_id, "unsettled" if unsettled else str(before[job_id].state) if job_id in before else ""))
            if job is None or unsettled:
                continue
            if job.lease:
                job.lease = replace(job.lease, cancelled=True, recalled=False)  # one request at a time to its worker
                self.send_mail([job.lease.worker])
            elif job.state in ("waiting", "delayed"):
                self._remove(job)
        self.tidy()
        return found

    def cancel_group(self, group: str, limit: int, now: int) -> tuple[list[tuple[str, str]], int]:
        """Cancel the first waiting jobs of a group. Also returns how many are left."""
        waiting = [job.id for job in self.waiting(group)]
        return self.cancel(waiting[:limit], now), len(waiting[limit:])

    def retry(self, job_id: str) -> tuple[str, int]:
        job = self.jobs.get(job_id)
        if job is None or job.state != "failed":
            return job.state if job else "", LEFT
        self._run_again(job)
        self.tidy()
        return "failed", DONE

    def retry_all(self, ids: Sequence[str], stamps: Sequence[int]) -> list[int]:
        """Redrive jobs whose failure has the given stamp, and not those that have failed again since."""
        answer = []
        for job_id, stamp in zip(ids, stamps, strict=True):
            job = self.jobs.get(job_id)
            meant = job is not None and job.state == "failed" and job.stamp == stamp
            answer.append(DONE if meant else LEFT)
            if job is not None and meant:
                self._run_again(job)
        self.tidy()
        return answer

    def _run_again(self, job: Job) -> None:
        """Redrive a job with its original sort key, as if it had never run. Its last run stays in the history."""
        s = job.stored or FRESH
        if s.fence:
            stalled = "stalled" if s.reason.startswith("stalled:") else "failed"
            outcome = "failed" if s.error else CANCELLED if s.reason == CANCELLED else stalled
            self.keep_run(job, s, outcome, s.finished)
        self.resolve(job)
        if job.id in self.uniques:
            self.uniques[job.id] = replace(self.uniques[job.id], ends=0)
        job.state, job.stored, job.stamp = "waiting", None, 0
        self.publish("added", job.id, job.group)

    def skip(self, ids: Sequence[str], now: int) -> list[tuple[str, int]]:
        """Skip jobs: they stay failed and no longer block their groups."""
        answer: list[tuple[str, int]] = []
        for job_id in ids:
            job = self.jobs.get(job_id)
            answer.append((job.state if job else "", DONE if job and job.blocks else LEFT))
            if job is not None and job.blocks:
                self.resolve(job)
                self._released.append(job)
        self.retain(now)
        self.tidy()
        return answer

    def skip_group(self, group: str, limit: int, now: int) -> tuple[list[tuple[str, int]], int]:
        answer = self.skip([job.id for job in self.blockers(group)[:limit]], now)
        return answer, len(self.blockers(group))

    def fail(self, job_id: str, reason: str, now: int) -> tuple[tuple[str, int], str]:
        """Fail a job. Also returns its group if the job blocks it and workers hold other jobs of it, which the client
        then recalls."""
        job = self.jobs.get(job_id)
        if job is None or job.state in ("completed", "failed"):
            return (job.state if job else "", LEFT), ""
        if self._unsettled(job, now):
            return ("active", UNSETTLED), ""
        found: str = job.state
        self._fail(job, self.stop_run(job, now) if job.lease else job.stored or FRESH, reason, "", now)
        self.retain(now)
        self.tidy()
        return (found, DONE), job.group if job.group in self.blocked and self.running(job.group) else ""

    def reschedule(self, job_id: str, delay: int, now: int, *, only_delayed: bool) -> tuple[str, int]:
        """Change the time at which a job may start. A ttl that has not ended moves with it. A job that has run keeps
        its sort key."""
        job = self.jobs.get(job_id)
        if job is None:
            return "", LEFT
        if self._unsettled(job, now):
            return "active", UNSETTLED
        found, held = job.state, job.hold > 0
        if found not in ("waiting", "delayed") or (only_delayed and found == "waiting" and not held):
            self.tidy()
            return found, LEFT
        if held:
            job.hold = now + delay if delay else 0
            job.snoozed = job.snoozed and delay > 0
        elif found == "delayed" or delay:
            if not job.record.order_given and job.stored is None:
                job.record = job.record._replace(order_ms=now + delay)
            if job.expires:
                job.expires += now + delay - (job.due or now)
            job.state, job.due = ("delayed", now + delay) if delay else ("waiting", 0)
        self.tidy()
        return found, DONE

    def update(self, job_id: str, data: bytes, now: int) -> tuple[str, int]:
        job = self.jobs.get(job_id)
        if job is None:
            return "", LEFT
        if self._unsettled(job, now):
            return "active", UNSETTLED
        job.record = job.record._replace(data=data)
        self.tidy()
        return job.state, DONE

    def switch_queue(self, paused: bool) -> bool:
        before, self.paused = self.paused, paused
        self._publish_switch("", before, paused)
        return before != paused

    def switch_group(self, group: str, now: int, **change: Any) -> bool:
        """Change settings of a group. A setting that is not given stays; an empty value removes it."""
        before = self.conf.get(group, Conf())
        after = Conf(**{**vars(before), **{name: value for name, value in change.items() if value is not None}})
        self._publish_switch(group, before.paused, after.paused)
        self.conf.pop(group, None)
        if after != Conf():
            self.conf[group] = after
        rate, last = self.rate_of(group), self.group_starts.get(group)
        if rate and last is not None:
            self.group_starts[group] = replace(last, until=now + rate[1])
        return before != after

    def _publish_switch(self, group: str, was: bool, is_now: bool) -> None:
        if was != is_now:
            self.publish("paused" if is_now else "resumed", "", group)

    def clean(self, kind: Finished, age: int, limit: int, now: int) -> int:
        """Delete jobs that finished at least `age` ago, by the clock of their stamps, and do not block a group."""
        latest = max(now * 1000, self.stamp) - age * 1000
        old = [job for job in self.finished(kind) if job.stamp <= latest and not job.blocks][:limit]
        for job in old:
            self.drop(job, now)
        return len(old)
