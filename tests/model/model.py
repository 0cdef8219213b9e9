"""What the queue promises, as plain Python over one dict of jobs: no index, no cache, nothing that could drift.

Every question (which group may start, what is due next) is answered by looking at all jobs. Replies and keyspace of
the real scripts must equal this after every step. The instant of a call is its argument `now`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from groupmq.commands import FRESH, Policy, Stalled, StoredState
from groupmq.drafts import Draft
from groupmq.record import Record
from tests.model.parts import UNGROUPED, Answer, Conf, Finished, Job, Lease, Report, Request, State, Taken


@dataclass
class Model:
    limit: int
    policy: Policy
    jobs: dict[str, Job] = field(default_factory=dict)
    paused: bool = False
    conf: dict[str, Conf] = field(default_factory=dict)
    arrivals: int = 0
    stamp: int = 0
    order: int = 0
    counters: Counter[str] = field(default_factory=Counter)
    failures: list[list[Any]] = field(default_factory=list)
    lanes: dict[str, tuple[int, list[int], list[tuple[str, int]]]] = field(default_factory=dict)
    workers: dict[str, str] = field(default_factory=dict)
    _ended: dict[str, list[Job]] = field(default_factory=lambda: {"completed": [], "failed": []})

    # Looking

    def in_state(self, state: State, group: str | None = None) -> list[Job]:
        return [j for j in self.jobs.values() if j.state == state and group in (None, j.group)]

    def waiting(self, group: str) -> list[Job]:
        """In start order."""
        return sorted(self.in_state("waiting", group), key=lambda job: job.place)

    def finished(self, kind: Finished) -> list[Job]:
        """The oldest first."""
        return sorted((j for j in self.in_state(kind) if j.stamp), key=lambda job: job.stamp)

    def live_groups(self) -> set[str]:
        return {j.group for j in self.jobs.values() if j.state in ("waiting", "delayed", "active")}

    def limit_of(self, group: str) -> float:
        if group == UNGROUPED:
            return float("inf")
        return self.conf.get(group, Conf()).limit or self.limit

    def startable_heads(self) -> list[Job]:
        """The first job of each group that is neither paused nor full, held or not."""
        return [
            self.waiting(group)[0]
            for group in {j.group for j in self.in_state("waiting")}
            if not self.conf.get(group, Conf()).paused and len(self.in_state("active", group)) < self.limit_of(group)
        ]

    def runnable(self, now: int) -> list[Job]:
        """The heads that may start now, across groups most urgent first, then by arrival."""
        heads = [job for job in self.startable_heads() if job.hold <= now]
        return sorted(heads, key=lambda job: (job.record.priority, job.record.arrival))

    def schedule(self, now: int) -> set[int]:
        """Every future instant at which something becomes due."""
        times = {job.due for job in self.in_state("delayed")}
        times |= {job.lease.deadline for job in self.jobs.values() if job.lease}
        times |= {job.hold for job in self.startable_heads()}
        return {time for time in times if time > now}

    # Adding

    def add(self, drafts: Sequence[Draft], now: int) -> tuple[int, int, list[int]]:
        self.order = max(self.order, now)
        duplicates = []
        for position, draft in enumerate(drafts):
            if draft.id in self.jobs:
                duplicates.append(position)
                continue
            due = now + draft.delay_ms if draft.delay_ms else draft.run_at_ms
            later = due > now
            order = draft.order_ms if draft.order_ms is not None else due if later else self.order
            self.arrivals += 1
            job = Job(
                draft.id,
                Record(
                    draft.priority,
                    order,
                    self.arrivals,
                    now,
                    draft.max_attempts,
                    draft.order_ms is not None,
                    draft.group_id,
                    draft.options or {},
                    draft.data,
                ),
            )
            self.jobs[draft.id] = job
            if later:
                job.state, job.due = "delayed", due
        return now, self.order, duplicates

    # Working

    def advance(self, request: Request, now: int) -> Answer:
        last = self.lanes.get(request.lane)
        if last is not None and request.number <= last[0]:
            return Answer(0, last[1], [], self._still_held(last[2]))
        before = self.schedule(now)
        statuses = self._report_all(request.reports, now)
        reported = zip(statuses, request.reports, strict=True)
        back_offs = {now + report.delay for accepted, report in reported if accepted and report.delay}
        stalled = self._expire(now)
        self._promote(now)
        jobs = self._take(request, now)
        self._retain(self.policy.keep, now)
        self.lanes[request.lane] = request.number, statuses, [(job[0], job[1]) for job in jobs]
        wait_ms = wait(before | back_offs | self.schedule(now), now)
        return Answer(wait_ms, statuses, stalled, jobs, sooner=now + wait_ms in back_offs)

    def due(self, now: int, *, promote: bool, expire: bool) -> tuple[int, list[Stalled], int]:
        """Jobs promoted, leases taken back, and the wait when all duties were asked for."""
        before = self.schedule(now)
        stalled = self._expire(now) if expire else []
        promoted = self._promote(now) if promote else 0
        self._retain(self.policy.keep, now)
        return promoted, stalled, wait(before | self.schedule(now), now)

    def beat(
        self, worker: str, info: str | None, lease_ms: int, held: Sequence[tuple[str, int]], now: int
    ) -> list[str]:
        lost = []
        for job_id, token in held:
            job = self._holder(job_id, token)
            if job is None or job.lease is None:
                lost.append(job_id)
            else:
                job.lease = Lease(token, now + lease_ms, job.lease.started, job.lease.worker)
        if info is not None:
            self.workers[worker] = f"{now} {info}"
        return lost

    def leave(self, worker: str, lane: str) -> None:
        self.workers.pop(worker, None)
        self.lanes.pop(lane, None)

    def _holder(self, job_id: str, token: int) -> Job | None:
        job = self.jobs.get(job_id)
        return job if job and job.lease and job.lease.token == token else None

    def _still_held(self, leases: list[tuple[str, int]]) -> list[Taken]:
        held = [(self._holder(job_id, token), token) for job_id, token in leases]
        return [(job.id, token, job.stored or FRESH, job.record) for job, token in held if job]

    def _take(self, request: Request, now: int) -> list[Taken]:
        taken: list[Taken] = []
        while len(taken) < request.take and not self.paused:
            heads = self.runnable(now)
            if request.chosen is not None:
                heads = [job for job in heads if job.id in request.chosen[len(taken) : len(taken) + 1]]
            if not heads:
                break
            job = heads[0]
            job.state, job.hold = "active", 0
            job.lease = Lease(self._next_stamp(now), now + request.lease_ms, now, request.worker)
            taken.append((job.id, job.lease.token, job.stored or FRESH, job.record))
        return taken

    def _report_all(self, reports: Sequence[Report], now: int) -> list[int]:
        """Completions count first; of two reports of one run, one is accepted."""
        first = sorted(range(len(reports)), key=lambda i: reports[i].kind != "complete")
        accepted = {i: self._report(reports[i], now) for i in first}
        return [int(accepted[i]) for i in range(len(reports))]

    def _report(self, report: Report, now: int) -> bool:
        job = self._holder(report.id, report.token)
        if job is None:
            return False
        if report.kind == "release":
            job.state, job.lease = "waiting", None
            return True
        stored = self._end_run(job)
        if report.kind == "complete":
            job.state, job.stored, job.result = "completed", stored._replace(finished=now), report.result
            self.counters["processed"] += 1
            self._ended["completed"].append(job)
        elif report.kind == "fail":
            self._fail(job, stored, report.reason, report.stack, now)
        else:
            job.stored = stored._replace(reason=report.reason, stack=report.stack)
            self.counters["retried"] += 1
            self._log(job, now, final=False)
            later = now + report.delay if report.delay else 0
            if later and (report.yields or job.group == UNGROUPED):
                job.state, job.due = "delayed", later
            else:
                job.state, job.hold = "waiting", later
        return True

    @staticmethod
    def _end_run(job: Job) -> StoredState:
        """What is known of a job whose run has just ended: one attempt more."""
        assert job.lease is not None
        before, lease, job.lease = job.stored or FRESH, job.lease, None
        return StoredState(before.attempts + 1, before.stalls, lease.started, 0, lease.worker, "", "")

    def _fail(self, job: Job, stored: StoredState, reason: str, stack: str, now: int) -> None:
        job.state, job.hold, job.due = "failed", 0, 0
        job.stored = stored._replace(finished=now, reason=reason, stack=stack)
        self.counters["failed"] += 1
        self._log(job, now, final=True)
        self._ended["failed"].append(job)

    def _log(self, job: Job, now: int, *, final: bool) -> None:
        s = job.stored or FRESH
        self.failures.insert(0, [job.id, s.attempts, s.reason, s.stack, now, final, s.worker])

    # Time

    def _expire(self, now: int) -> list[Stalled]:
        expired = [(job.lease.deadline, job.id.encode(), job) for job in self.jobs.values() if job.lease]
        stalled = []
        for _, _, job in sorted(e for e in expired if e[0] <= now):
            worker = job.lease.worker if job.lease else ""
            stored = self._end_run(job)
            stored = stored._replace(stalls=stored.stalls + 1)
            self.counters["stalled"] += 1
            reason = f"stalled: the lease of worker {worker} expired"
            most = self.policy.max_stalled
            if stored.attempts >= (job.record.max_attempts or self.policy.max_attempts):
                self._fail(job, stored, reason + " during the last attempt", "", now)
            elif 0 <= most < stored.stalls:
                self._fail(job, stored, f"{reason}, more than {most} times", "", now)
            else:
                job.state, job.stored = "waiting", stored._replace(reason=reason)
                self._log(job, now, final=False)
            stalled.append(Stalled(job.id, job.record.group_id, job.state == "failed"))
        return stalled

    def _promote(self, now: int) -> int:
        due = [job for job in self.in_state("delayed") if job.due <= now]
        for job in due:
            job.state, job.due = "waiting", 0
        return len(due)

    def _next_stamp(self, now: int) -> int:
        self.stamp = max(self.stamp + 1, now * 1000)
        return self.stamp

    def _retain(self, keep: dict[str, int], now: int) -> None:
        """What just ended joins the kept ones, and the oldest beyond the bound are forgotten."""
        kinds: tuple[Finished, ...] = ("completed", "failed")
        for kind in kinds:
            new = self._ended[kind]
            every = [*self.finished(kind), *new]
            over = max(0, len(every) - keep[kind]) if new and keep[kind] >= 0 else 0
            for job in every[:over]:
                del self.jobs[job.id]
            for job in every[over:]:
                job.stamp = job.stamp or self._next_stamp(now)
            new.clear()

    # Operators

    def remove(self, ids: Sequence[str], states: Sequence[str] | None) -> list[bool]:
        answer = []
        for job_id in ids:
            job = self.jobs.get(job_id)
            goes = job is not None and (states is None or job.state in states)
            answer.append(goes)
            if goes:
                del self.jobs[job_id]
        return answer

    def retry(self, job_id: str) -> tuple[str, bool]:
        job = self.jobs.get(job_id)
        if job is None or job.state != "failed":
            return job.state if job else "", False
        job.state, job.stored, job.stamp = "waiting", None, 0
        return "failed", True

    def fail(self, job_id: str, reason: str, now: int) -> tuple[str, bool]:
        job = self.jobs.get(job_id)
        if job is None or job.state in ("completed", "failed"):
            return job.state if job else "", False
        found = job.state
        self._fail(job, self._end_run(job) if job.lease else job.stored or FRESH, reason, "", now)
        self._retain(self.policy.keep, now)
        return found, True

    def reschedule(self, job_id: str, delay: int, now: int, *, only_delayed: bool) -> tuple[str, bool]:
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
            job.state, job.due = ("delayed", now + delay) if delay else ("waiting", 0)
        return found, True

    def update(self, job_id: str, data: bytes) -> str:
        job = self.jobs.get(job_id)
        if job is None:
            return ""
        job.record = job.record._replace(data=data)
        return job.state

    def switch_queue(self, paused: bool) -> bool:
        before, self.paused = self.paused, paused
        return before != paused

    def switch_group(self, group: str, paused: bool | None, limit: int | None) -> bool:
        before = self.conf.get(group, Conf())
        after = Conf(before.paused if paused is None else paused, before.limit if limit is None else limit)
        self.conf.pop(group, None)
        if after != Conf():
            self.conf[group] = after
        return before != after

    def clean(self, kind: Finished, age: int, limit: int, now: int) -> int:
        """Forget what finished at least `age` ago, on the clock that stamped it."""
        latest = max(now * 1000, self.stamp) - age * 1000
        old = [job for job in self.finished(kind) if job.stamp <= latest][:limit]
        for job in old:
            del self.jobs[job.id]
        return len(old)


def wait(times: set[int], now: int) -> int:
    return min(times) - now if times else -1
