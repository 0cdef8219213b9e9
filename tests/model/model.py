"""What the queue promises, as plain Python over one dict of jobs: no index, no cache, nothing that could drift.

Every question (which group may start, what is due next) is answered by looking at all jobs. Replies and keyspace of
the real scripts must equal this after every step. The instant of a call is its argument `now`.

By concern, each on top of the one before: `ledger` (what is known), `gates` (when jobs may start, and which first),
`arriving`, `ending`, `working` (one call of a worker), and here what operators do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from groupmq.protocol.commands import DONE, FRESH, LEFT, UNSETTLED
from tests.model.ending import CANCELLED
from tests.model.parts import Conf, Finished, Job
from tests.model.working import Working


class Model(Working):
    # Prefetched jobs

    def recall(self, ids: Iterable[str], now: int) -> tuple[list[str], list[str]]:
        """The prefetched ones that are not settled, and those that run. One whose lease is over is back at once."""
        found = [self.jobs[job_id] for job_id in ids if job_id in self.jobs]
        unsettled = [job.id for job in found if self._unsettled(job, now)]
        self.settle()
        return unsettled, [job.id for job in found if job.lease and not job.lease.ahead]

    def _unsettled(self, job: Job, now: int) -> bool:
        """Nobody knows whether a prefetched job has begun: its worker is asked. When its lease is over, it has not."""
        if not (job.lease and job.lease.ahead):
            return False
        if job.lease.deadline > now:
            job.lease = replace(job.lease, recalled=True)
            self.send_mail([job.lease.worker])
            return True
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
        self.settle()
        return answer

    def _remove(self, job: Job) -> None:
        self.settle_block(job)
        self.uniques.pop(job.id, None)
        del self.jobs[job.id]
        self.tell("removed", job.id, job.group)

    def cancel(self, ids: Sequence[str], now: int) -> list[tuple[str, str]]:
        """What waits goes. What runs is marked, and its worker hears of it; until that reports, the run goes on."""
        found, before = [], dict(self.jobs)
        for job_id in ids:
            job = self.jobs.get(job_id)
            unsettled = job is not None and self._unsettled(job, now)
            found.append((job_id, "prefetched" if unsettled else str(before[job_id].state) if job_id in before else ""))
            if job is None or unsettled:
                continue
            if job.lease:
                job.lease = replace(job.lease, cancelled=True)
                self.send_mail([job.lease.worker])
            elif job.state in ("waiting", "delayed"):
                self._remove(job)
        self.settle()
        return found

    def cancel_group(self, group: str, limit: int, now: int) -> tuple[list[tuple[str, str]], int]:
        """The first of its waiting jobs; how many of those are left."""
        waiting = [job.id for job in self.waiting(group)]
        return self.cancel(waiting[:limit], now), len(waiting[limit:])

    def retry(self, job_id: str) -> tuple[str, int]:
        job = self.jobs.get(job_id)
        if job is None or job.state != "failed":
            return job.state if job else "", LEFT
        self._run_again(job)
        self.settle()
        return "failed", DONE

    def retry_all(self, ids: Sequence[str], stamps: Sequence[int]) -> list[int]:
        """Those that have failed as the stamps say, and not once more since."""
        answer = []
        for job_id, stamp in zip(ids, stamps, strict=True):
            job = self.jobs.get(job_id)
            meant = job is not None and job.state == "failed" and job.stamp == stamp
            answer.append(DONE if meant else LEFT)
            if job is not None and meant:
                self._run_again(job)
        self.settle()
        return answer

    def _run_again(self, job: Job) -> None:
        """From its place, as if it had never run; how its last run ended stays known."""
        s = job.stored or FRESH
        if s.fence:
            stalled = "stalled" if s.reason.startswith("stalled:") else "failed"
            outcome = "failed" if s.error else CANCELLED if s.reason == CANCELLED else stalled
            self.keep_run(job, s, outcome, s.finished)
        self.settle_block(job)
        if job.id in self.uniques:
            self.uniques[job.id] = replace(self.uniques[job.id], ends=0)
        job.state, job.stored, job.stamp = "waiting", None, 0
        self.tell("added", job.id, job.group)

    def skip(self, ids: Sequence[str], now: int) -> list[tuple[str, int]]:
        """The jobs stay failed and block nothing any more."""
        answer: list[tuple[str, int]] = []
        for job_id in ids:
            job = self.jobs.get(job_id)
            answer.append((job.state if job else "", DONE if job and job.blocks else LEFT))
            if job is not None and job.blocks:
                self.settle_block(job)
                self._released.append(job)
        self.retain(now)
        self.settle()
        return answer

    def skip_group(self, group: str, limit: int, now: int) -> tuple[list[tuple[str, int]], int]:
        answer = self.skip([job.id for job in self.blockers(group)[:limit]], now)
        return answer, len(self.blockers(group))

    def fail(self, job_id: str, reason: str, now: int) -> tuple[tuple[str, int], str]:
        """Also the group, if the job blocks it and other jobs of it are with workers: somebody has to ask for them."""
        job = self.jobs.get(job_id)
        if job is None or job.state in ("completed", "failed"):
            return (job.state if job else "", LEFT), ""
        if self._unsettled(job, now):
            return ("active", UNSETTLED), ""
        found: str = job.state
        self._fail(job, self.stop_run(job, now) if job.lease else job.stored or FRESH, reason, "", now)
        self.retain(now)
        self.settle()
        return (found, DONE), job.group if job.group in self.blocked and self.running(job.group) else ""

    def reschedule(self, job_id: str, delay: int, now: int, *, only_delayed: bool) -> tuple[str, int]:
        """A new time to start; a ttl that has not ended moves with it. The job keeps its place once it has run."""
        job = self.jobs.get(job_id)
        if job is None:
            return "", LEFT
        if self._unsettled(job, now):
            return "active", UNSETTLED
        found, held = job.state, job.hold > 0
        if found not in ("waiting", "delayed") or (only_delayed and found == "waiting" and not held):
            self.settle()
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
        self.settle()
        return found, DONE

    def update(self, job_id: str, data: bytes, now: int) -> tuple[str, int]:
        job = self.jobs.get(job_id)
        if job is None:
            return "", LEFT
        if self._unsettled(job, now):
            return "active", UNSETTLED
        job.record = job.record._replace(data=data)
        self.settle()
        return job.state, DONE

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
        """Forget what finished at least `age` ago, on the clock that stamped it, and blocks no group."""
        latest = max(now * 1000, self.stamp) - age * 1000
        old = [job for job in self.finished(kind) if job.stamp <= latest and not job.blocks][:limit]
        for job in old:
            del self.jobs[job.id]
        return len(old)
