"""How runs and jobs end: reports of workers, expired leases, and retention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from groupmq.protocol.commands import FRESH, Expired, Stalled, StoredState
from tests.model.granting import Granting
from tests.model.parts import STORED, UNGROUPED, Conf, Finished, Job, Report, Stop

CANCELLED = "cancelled"
UNUSED = {"release": "released", "limited": "rate_limited", "snooze": "snoozed"}
"""Reports of runs that use no attempt, and their outcomes in the history."""
MOST_RUNS = 20
ASKED = 100
"""Milliseconds for which a job that was given back because an operator asked for it is not taken again."""
TRIM, TRIM_LARGE = 60, 8
"""How many kept jobs one call deletes beyond as many as it has ended; fewer in a queue with large jobs."""
ROOM = 524_288
"""Bytes available in an entry of the log for results that are also stored with their jobs."""


class Ending(Granting):
    # Reports

    def report_all(self, reports: Sequence[Report], worker: str, now: int) -> list[int]:
        """Apply completions before other reports. Of two reports of one run, only one is accepted."""
        first = sorted(range(len(reports)), key=lambda i: reports[i].kind != "complete")
        completions = sum(report.kind == "complete" for report in reports)
        self._completed_before: str | None = None
        accepted = {i: self._report(reports[i], completions, worker, now) for i in first}
        return [int(accepted[i]) for i in range(len(reports))]

    def holder(self, job_id: str, fence: int) -> Job | None:
        job = self.jobs.get(job_id)
        return job if job and job.lease and job.lease.fence == fence else None

    def _report(self, report: Report, completions: int, worker: str, now: int) -> bool:
        job = self.holder(report.id, report.fence)
        if report.kind == "ended":
            self.stopping.pop(report.fence, None)
            return True
        if job is None or job.lease is None:
            if report.kind != "begin":
                self.counters["lease_lost"] += 1
                self.stopping.pop(report.fence, None)
            return False
        ahead = job.lease.ahead
        if report.kind == "begin":
            self.begin(job)
            return True
        if report.kind not in ("complete", "release") or report.begun:
            self._announce_begin(job)
        if report.kind in ("complete", "fail", "retry", "abandon"):
            together = ahead and report.kind == "complete"
            together = together and (job.lease.reserved or self._completed_before == job.group)
            self.runs.append(0 if together else max(0, now - job.lease.started))
        if report.kind in ("fail", "retry", "abandon") and not job.lease.cancelled:
            self.attempt_failed(job.group, now)
        later = now + report.delay if report.delay else 0
        if report.kind == "abandon":
            cancelled = job.lease.cancelled
            stored = self.stop_run(job, now)
            self._fail(job, stored, report.reason, report.stack, now, report.error, cancelled=cancelled)
            return True
        cancelled = job.lease.cancelled
        if cancelled and report.kind not in ("complete", "fail"):
            self._fail(job, self._end_run(job), CANCELLED, "", now, cancelled=True)
            return True
        if report.kind in UNUSED:
            asked = job.lease.recalled
            stored = self._end_run(job)._replace(reason=report.reason, error=report.error)
            if report.kind != "release" or report.begun:
                self.keep_run(job, stored, UNUSED[report.kind], now)
            job.state = "waiting"
            if report.kind == "release":
                if asked and not report.begun and not (self.paused or self.conf.get(job.group, Conf()).paused):
                    self._rest_with_group(job, now + ASKED)
            elif report.kind == "limited":
                self._come_back_later(job, later)
            elif later and (report.yields or job.group == UNGROUPED):
                job.state, job.due = "delayed", later
            elif later:
                job.hold, job.snoozed = later, True
            return True
        stored = self._end_run(job)
        if report.kind == "complete":
            job.state, job.stored, job.result = "completed", stored._replace(finished=now), report.result
            self.counters["completed"] += 1
            self.breakers.pop(job.group, None)
            self._completed_before = job.group
            self._ended["completed"].append(job)
            self._id_ended(job.id, now)
            result = self._as_published(report.result, completions)
            self.publish("completed", job.id, job.group, stored.attempts, result, worker if ahead else None)
        elif report.kind == "fail":
            self._fail(job, stored, report.reason, report.stack, now, report.error, cancelled=cancelled)
        else:
            job.stored = stored._replace(reason=report.reason, stack=report.stack, error=report.error)
            self.keep_run(job, job.stored, "retried", now)
            self.counters["retried"] += 1
            self._log(job, now, final=False)
            self.publish("retrying", job.id, job.group, stored.attempts, report.delay, report.reason)
            if later and (report.yields or job.group == UNGROUPED):
                job.state, job.due = "delayed", later
            else:
                job.state, job.hold = "waiting", later
        return True

    def begin(self, job: Job) -> None:
        """The worker reports that the handler was called."""
        self._announce_begin(job)
        if job.lease and not job.lease.begun:
            job.lease = replace(job.lease, begun=True, ahead=False, reserved=False, recalled=False)

    def _announce_begin(self, job: Job) -> None:
        if job.lease and job.lease.ahead:
            self.publish("begun", job.id, job.group, 1, job.lease.worker)

    def _come_back_later(self, job: Job, later: int) -> None:
        """The handler was rate-limited: the whole group rests. A job without a group is delayed instead."""
        self.counters["rate_limited"] += 1
        if later:
            self._rest_with_group(job, later)

    def _rest_with_group(self, job: Job, until: int) -> None:
        if job.group == UNGROUPED:
            job.state, job.due = "delayed", until
        else:
            self.rest(job.group, until)

    def _as_published(self, result: bytes | None, completions: int) -> bytes | str | None:
        """A result as it is in the event. Results that are also stored with their jobs share ROOM bytes of the entry;
        all other results are always in it."""
        keep = self.policy.keep["completed"]
        told = [row[-2] for row in self.entries[-1].rows.get("completed", ())]
        used = sum(len(other) for other in told if isinstance(other, bytes))
        stays = keep < 0 or keep >= completions
        return STORED if result is not None and stays and used + len(result) > ROOM else result

    @staticmethod
    def _end_run(job: Job) -> StoredState:
        """End the run. Returns the new state of the job, with one more attempt."""
        assert job.lease is not None
        before, lease, job.lease = job.stored or FRESH, job.lease, None
        return StoredState(before.attempts + 1, before.stalls, lease.started, 0, lease.worker, "", "", lease.fence)

    def stop_run(self, job: Job, now: int) -> StoredState:
        """The same for a job that ends before its handler does: the run keeps its slot until its lease is over."""
        lease = job.lease
        assert lease is not None
        self.send_mail([lease.worker])
        if lease.deadline > now:
            self.stopping[lease.fence] = Stop(job.id, job.group, lease.worker, lease.deadline)
        return self._end_run(job)

    @staticmethod
    def keep_run(job: Job, s: StoredState, outcome: str, ended: int) -> None:
        """Add a run to the history, unless it is already there. Only the newest runs are kept."""
        if not job.history or job.history[-1][-1] != s.fence:
            run = [s.attempts, outcome, s.error, s.reason, s.stack, s.worker, s.started, ended, s.fence]
            job.history = [*job.history, run][-MOST_RUNS:]

    def _fail(
        self,
        job: Job,
        stored: StoredState,
        reason: str,
        stack: str,
        now: int,
        error: str = "",
        *,
        cancelled: bool = False,
    ) -> None:
        """Fail a job for good. It blocks its group if its or the queue's option says so, unless it was cancelled."""
        job.state, job.hold, job.snoozed, job.due, job.expires = "failed", 0, False, 0, 0
        job.stored = stored._replace(finished=now, reason=reason, stack=stack, error=error)
        self.counters["failed"] += 1
        self._log(job, now, final=True)
        self.publish("failed", job.id, job.group, stored.attempts, reason, stack)
        self._ended["failed"].append(job)
        self._id_ended(job.id, now)
        own = job.record.options.get("f")
        holds = self.options.on_failed == "hold" if own is None else own
        if holds and not cancelled and job.group != UNGROUPED:
            job.blocks = now
            if job.group not in self.blocked:
                self.blocked[job.group] = now
                self.publish("blocked", job.id, job.group)

    def _id_ended(self, job_id: str, now: int) -> None:
        """Start the time for which the id of an ended job stays taken."""
        if job_id in self.uniques:
            taken = self.uniques[job_id]
            self.uniques[job_id] = replace(taken, ends=now + taken.ms)

    def drop(self, job: Job, now: int) -> None:
        """Delete an ended job. The entry of a failed job's id is kept as long as the job, even if its time is over."""
        if job.state == "failed" and job.id in self.uniques and 0 < self.uniques[job.id].ends <= now:
            del self.uniques[job.id]
        del self.jobs[job.id]

    def resolve(self, job: Job) -> None:
        """Resolve a job that blocks its group. The group continues when no other failed job blocks it."""
        if job.blocks:
            job.blocks = 0
            if not self.blockers(job.group):
                del self.blocked[job.group]
                self.publish("unblocked", job.id, job.group)

    def _log(self, job: Job, now: int, *, final: bool) -> None:
        s = job.stored or FRESH
        self.failures.insert(0, [job.id, s.attempts, s.reason, s.stack, now, final, s.worker, s.error, job.group])

    # Time

    def take_back(self, now: int) -> list[Stalled]:
        """Take back expired leases."""
        expired = [(job.lease.deadline, job.id.encode(), job) for job in self.jobs.values() if job.lease]
        stalled = self._stall([job for deadline, _, job in sorted(expired) if deadline <= now], now)
        self.stopping = {fence: stop for fence, stop in self.stopping.items() if stop.deadline > now}
        return stalled

    def take_back_of(self, worker: str, held: Sequence[tuple[str, int]], now: int) -> list[Stalled]:
        """Take back the leases of a worker that is known to be dead. Slots of its stopping runs are freed, too."""
        self.take_back_grant(worker)
        jobs = [self.holder(job_id, fence) for job_id, fence in held]
        stalled = self._stall([job for job in jobs if job and job.lease and job.lease.worker == worker], now)
        self.stopping = {fence: stop for fence, stop in self.stopping.items() if stop.worker != worker}
        self.retain(now)
        self.tidy()
        return stalled

    def _stall(self, jobs: list[Job], now: int) -> list[Stalled]:
        """A stall uses an attempt, unless the job is not known to have started. The job keeps its sort key."""
        stalled = []
        for job in jobs:
            cancelled = job.lease is not None and job.lease.cancelled
            if job.lease is not None and (job.lease.ahead or self.is_unread(job)):
                job.state, job.lease = "waiting", None
                continue
            stored = self._end_run(job)
            stored = stored._replace(stalls=stored.stalls + 1)
            self.counters["stalled"] += 1
            if not cancelled:
                self.attempt_failed(job.group, now)
            reason = f"stalled: the lease of worker {stored.worker} expired"
            last = CANCELLED if cancelled else self._last_chance(job, stored, reason)
            self.publish("stalled", job.id, job.group, stored.attempts, last is not None)
            if last is not None:
                self._fail(job, stored, last, "", now, cancelled=cancelled)
            else:
                job.state, job.stored = "waiting", stored._replace(reason=reason)
                self.keep_run(job, job.stored, "stalled", now)
                self._log(job, now, final=False)
            blocks = job.blocks > 0
            stalled.append(Stalled(job.id, job.record.group_id, last is not None, blocks, cancelled))
        return stalled

    def _last_chance(self, job: Job, stored: StoredState, reason: str) -> str | None:
        """The reason why the job does not run again; None if it does."""
        most = self.policy.max_stalled
        if stored.attempts >= (job.record.max_attempts or self.policy.max_attempts):
            return reason + " during the last attempt"
        return f"{reason}, more than {most} times" if 0 <= most < stored.stalls else None

    def fail_unstarted(self, now: int) -> list[Expired]:
        """Fail jobs that have not started when their ttl ends."""
        expired = []
        over = [(job.expires, job.id.encode(), job) for job in self.jobs.values() if 0 < job.expires <= now]
        for _, _, job in sorted(over):
            self._fail(job, job.stored or FRESH, "expired: not started within its ttl", "", now)
            expired.append(Expired(job.id, job.record.group_id, job.blocks > 0))
        return expired

    def promote(self, now: int) -> int:
        """Promote as many due jobs as one call may. Their order does not matter, since all of them wait afterwards."""
        due = sorted((job.due, job.id.encode()) for job in self.overdue_to_join(now))
        joining = [self.jobs[job_id.decode()] for _, job_id in due[: int(min(self.joins, len(due)))]]
        for job in joining:
            self.join(job, now)
        return len(joining)

    # Keeping

    def retain(self, now: int) -> None:
        """Add the jobs that just ended to those kept, and delete the oldest beyond the bound, a limited number of them.

        A process that keeps nothing deletes only the jobs that it ended itself. A job that blocks its group is neither
        deleted nor counted.
        """
        kinds: tuple[Finished, ...] = ("completed", "failed")
        for kind in kinds:
            new, keep = self._ended[kind], self.policy.keep[kind]
            released = self._released if kind == "failed" else []
            kept = [job for job in (self.finished(kind) if keep else released) if not job.blocks]
            mine = [job for job in new if not job.blocks]
            over = max(0, len(kept) + len(mine) - keep) if (new or released) and keep >= 0 else 0
            most = len(mine) + len(released) + (TRIM_LARGE if self.has_large else TRIM) if keep else over
            deleted = kept[: min(over, most)] + mine[: max(0, over - len(kept))]
            if kind == "failed" and keep > 0:
                self.dropped += len(deleted)
            for job in deleted:
                self.drop(job, now)
            for job in new:
                if self.jobs.get(job.id) is job:
                    job.stamp = self.next_stamp(now)
            new.clear()
        self._released.clear()
