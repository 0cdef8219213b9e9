"""Jobs that an add grants to an idle worker: the offer of a slot, and the job until its worker has received it."""

from __future__ import annotations

from dataclasses import replace

from groupmq.protocol.commands import FRESH
from tests.model.arriving import Arriving
from tests.model.parts import UNGROUPED, Conf, Grant, Job, Lease, Offer, Request, Taken

GRACE = 100
"""Milliseconds for which a grant is left to its worker, which may not wait for it yet."""


class Granting(Arriving):
    # A worker offers a slot

    def offer_slot(self, request: Request, now: int, *, found_nothing: bool, taken: bool) -> set[int]:
        """A worker has asked for jobs. If another worker has not received its grant for GRACE ms, the job is taken back
        instead of making an offer. Returns times at which to ask again."""
        mine = self.offer is not None and self.offer.worker == request.worker
        if found_nothing and self.grant is not None and self.grant.worker != request.worker:
            till = self.grant.fence // 1000 + GRACE
            if till > now:
                return {till}
            return {now} if self.take_back_grant(self.grant.worker) else set()
        if found_nothing and request.offers and self.may_offer and self.grant is None:
            self.offer = Offer(request.worker, request.lease_ms)
        elif not found_nothing and taken and mine:
            self.offer = None
        return set()

    def withdraw_offer(self, worker: str) -> None:
        if self.offer is not None and self.offer.worker == worker:
            self.offer = None

    @property
    def may_offer(self) -> bool:
        """Whether a worker of this queue may offer a slot: not if starts are counted, or if workers take turns."""
        options = self.options
        return (
            options.fairness != "round-robin"
            and not options.exclusive
            and options.priority_ageing_ms is None
            and options.rate_limit is None
        )

    # An add grants a job

    def must_grant(self, job: Job, now: int) -> bool:
        """Whether the scripts have to grant a job that was just added alone. Nothing makes its group wait."""
        group = job.group
        held = any(other.hold for other in self.in_state("waiting", group))
        return (
            self.may_grant(job, now)
            and not held
            and group not in self.rests
            and group not in self.windows
            and not self.opened(group)
        )

    def may_grant(self, job: Job, now: int) -> bool:
        """Whether they are allowed to: this is the job that any worker would start next."""
        ordering = self.options.ordering
        return (
            self.offer is not None
            and self.grant is None
            and not self.paused
            and self.runnable(now) == [job]
            and (job.group == UNGROUPED or self.limit_of(job.group) == 1)
            and not self.rate_of(job.group)
            and not job.expires
            and not (job.group != UNGROUPED and self.conf.get(job.group, Conf()).paused)
            and (job.group == UNGROUPED or ordering is None)
        )

    def grant_job(self, job: Job, fence: int, now: int) -> None:
        """An add has granted this job."""
        assert self.may_grant(job, now), f"{job.id} is granted, but must not start now"
        assert self.offer is not None
        worker, lease_ms = self.offer
        self.note_start(job, now)
        since = job.record.created_ms if job.record.order_given else job.record.order_ms
        self.waits.append(max(0, now - since))
        assert fence == self.next_stamp(now), "the fence is not the next one"
        job.state, job.hold = "active", 0
        job.lease = Lease(fence, now + lease_ms, now, worker, begun=False)
        self.publish("active", job.id, job.group, 1, worker)
        self.offer, self.grant = None, Grant(worker, job.id, fence)
        self.tidy()

    # Its worker receives it, or does not

    def receive_grant(self) -> None:
        assert self.grant is not None
        self.grant = replace(self.grant, read=True)

    def granted_again(self, request: Request, now: int) -> Taken | None:
        """A worker calls that may not have received its grant: the answer has the job once more."""
        grant = self.grant
        if grant is None or grant.worker != request.worker:
            return None
        if request.received >= grant.fence:
            self.grant = None
            return None
        job = self.granted_job(grant)
        if not request.take or job is None or job.lease is None:
            return None
        self.grant = None
        job.lease = replace(job.lease, deadline=now + request.lease_ms)
        return job.id, job.lease.fence, job.stored or FRESH, job.record

    def take_back_grant(self, worker: str, received: int | None = None) -> bool:
        """Release the job that was granted to a worker, if it is sure that the worker has not begun it."""
        grant = self.grant
        if grant is None or grant.worker != worker or (received is not None and received >= grant.fence):
            return False
        if received is None and grant.read:
            return False
        self.grant = None
        job = self.granted_job(grant)
        if job is not None:
            job.state, job.lease = "waiting", None
            self.tidy()
        return job is not None

    def granted_job(self, grant: Grant) -> Job | None:
        """The granted job, if its lease still stands."""
        job = self.jobs.get(grant.job_id)
        return job if job is not None and job.lease is not None and job.lease.fence == grant.fence else None

    def is_unread(self, job: Job) -> bool:
        """Whether a job was granted that no worker has received yet."""
        grant = self.grant
        return grant is not None and job.lease is not None and grant.fence == job.lease.fence and not grant.read

    def tidy(self) -> None:
        super().tidy()
        if self.grant is not None and self.granted_job(self.grant) is None:
            self.grant = None
