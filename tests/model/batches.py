"""Batches: jobs of one group, or without a group, that start at once for one call of a handler."""

from __future__ import annotations

from tests.model.parts import UNGROUPED, Job, Request, Taken
from tests.model.working import Working


class Batches(Working):
    def _take(self, request: Request, now: int, batches: list[set[str]]) -> tuple[list[Taken], set[int]]:
        if request.take:  # a call that asks for nothing leaves these groups to the worker that knows of them
            self.awaited.clear()
        if request.together is None or self.options.exclusive:  # a turn counts its jobs one by one
            return super()._take(request, now, batches)
        return self._take_batches(request, request.together, now, batches)

    def _take_batches(
        self, request: Request, wait: int, now: int, batches: list[set[str]]
    ) -> tuple[list[Taken], set[int]]:
        """Take batches. Returns the jobs, and times at which to ask again; appends the ids of each batch to `batches`.

        In contrast to rows, batches are promised: every job that may be in a batch is in it.
        """
        if self.paused:
            return [], set()
        taken: list[Taken] = []
        told: set[int] = set()
        served: set[str] = set()
        while len(batches) < request.take:
            head = self._head_of_batch(request, wait, now, served, told, len(taken))
            if head is None:
                break
            # If this call has already taken a single job without a group, the next ones are single, too.
            size = 1 if any(known.group_id == head.record.group_id for *_, known in taken) else request.row
            several, batch = self._batch_of(head, size, now)
            if several and head.group == UNGROUPED:
                # A call takes one batch of jobs without a group, and the worker should ask again at once.
                served.add(UNGROUPED)
                told.add(now)
            taken += [self._start(job, request, now) for job in batch]
            batches.append({job.id for job in batch})
        if taken:
            self.awaited.clear()
        # A worker that takes a batch while another group waits for a full one wakes another worker for that group.
        short = len(batches) < request.take and not (told and taken) and not self._passed_over(now)
        if short:
            self._ask_for_reserves(request.worker, now)
        if self._has_rows:
            self._note_rest(request.worker, now, found_nothing=short, taken=bool(taken))
        return taken, told

    def _head_of_batch(
        self, request: Request, wait: int, now: int, served: set[str], told: set[int], position: int
    ) -> Job | None:
        """The next head that may start. Groups that wait for a full batch are skipped, and their times are added."""
        for head in self.runnable(now):
            if head.group in served or (request.chosen is not None and head.id not in request.chosen[position:]):
                continue
            full = self._is_full_at(head, request.row, wait, now)
            if full <= now:
                return head
            told.add(full)
            self.awaited.add(head.group)
        return None

    def _is_full_at(self, head: Job, size: int, wait: int, now: int) -> int:
        """When the batch of this head may start. A job that cannot share a batch does not wait for others."""
        since = head.record.created_ms if head.record.order_given else head.record.order_ms
        alone = not self._fits(head.group) or not self._may_share(head)
        if wait == 0 or alone or len(self.waiting(head.group)) >= size:
            return now
        return min(since, now) + wait

    def _batch_of(self, head: Job, size: int, now: int) -> tuple[bool, list[Job]]:
        """Whether several jobs were considered, and the jobs that start."""
        jobs = self.waiting(head.group)
        assert jobs[0] is head
        if size == 1 or not self._fits(head.group):
            return False, [head]
        jobs = [job for job in jobs[:size] if job.record.priority == head.record.priority]
        if head.group != UNGROUPED:
            jobs = [job for job in jobs if job is head or self.event_passes(job) <= now]
        batch = [head]
        for job in jobs[1:] if self._may_share(head) else ():
            if not self._may_share(job):
                break
            batch.append(job)
        return len(jobs) > 1, batch

    def _fits(self, group: str) -> bool:
        """Whether a group may have batches: not if other jobs of it could start beside the batch, if a rate counts its
        starts, if its breaker is open, or if one of its jobs is held."""
        alone = group == UNGROUPED or self.limit_of(group) == 1
        held = any(job.hold for job in self.waiting(group))
        return alone and not (self.rate_of(group) or self.opened(group) or held)

    def _may_share(self, job: Job) -> bool:
        """Whether a job may share a batch: not if it has run before or has one attempt, so that no job fails for good
        because of another one."""
        return job.stored is None and (job.record.max_attempts or self.policy.max_attempts) > 1
