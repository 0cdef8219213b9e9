"""When jobs may start, and in which order: back-offs, rests, windows, rates, fairness."""

from __future__ import annotations

from tests.model.ledger import Ledger
from tests.model.parts import UNGROUPED, Conf, Failing, Job, Starts, Window

NEVER = 2**53
"""An order beyond this is not a time; a job that waited until then would wait for ever."""
SWEPT = 100
"""The most expired entries of one kind that a call deletes."""


class Gates(Ledger):
    # May it start?

    def startable_heads(self) -> list[Job]:
        """The head of each group that is neither paused, blocked nor busy, even if the group is parked."""
        return [
            self.waiting(group)[0]
            for group in {j.group for j in self.in_state("waiting")}
            if not self.is_stopped(group) and self.running(group) < self.slots_of(group)
        ]

    def slots_of(self, group: str) -> float:
        """How many jobs of a group may run: only one, the probe, while its breaker is open."""
        return min(1, self.limit_of(group)) if self.opened(group) else self.limit_of(group)

    def is_stopped(self, group: str) -> bool:
        return self.conf.get(group, Conf()).paused or group in self.blocked

    def opens(self, head: Job) -> int:
        """The first instant at which the head of a group may start. Jobs without a group may always start."""
        if head.group == UNGROUPED:
            return 0
        times = [head.hold, self.rests.get(head.group, 0), self.event_passes(head), self.rate_allows(head.group)]
        times.append(self.opened(head.group))
        if head.group in self.windows:
            times.append(self.windows[head.group].till)
        return max(times)

    def event_passes(self, head: Job) -> int:
        ordering = self.options.ordering
        if ordering is None or ordering.kind != "event_time":
            return 0
        return min(head.record.order_ms + ordering.window_ms, NEVER)

    def rate_allows(self, group: str) -> int:
        """When the group's rate limit allows the next start: one window and 1 ms after the n-th last start."""
        rate, last = self.rate_of(group), self.group_starts.get(group)
        if not rate or last is None or len(last.times) < rate[0]:
            return 0
        return last.times[rate[0] - 1] + rate[1] + 1

    def runnable(self, now: int) -> list[Job]:
        """The heads that may start now, in the order in which they start."""
        heads = [job for job in self.startable_heads() if self.opens(job) <= now]
        if self.overdue_to_join(now):
            # The group of a due job is known only when it joins, so all groups with delayed jobs wait.
            heads = [job for job in heads if job.group == UNGROUPED or not self.in_state("delayed", job.group)]
        return sorted(heads, key=self.urgency)

    def overdue_to_join(self, now: int) -> list[Job]:
        """Delayed jobs that are due and have not joined their groups yet."""
        return [job for job in self.in_state("delayed") if job.due <= now]

    def urgency(self, job: Job) -> tuple[int, ...]:
        """The order across groups: by priority, then by arrival; with ageing also by waiting time; or round-robin."""
        r, ageing = job.record, self.options.priority_ageing_ms
        if ageing is not None:
            since = r.created_ms if r.order_given else r.order_ms
            return since + r.priority * ageing, r.arrival
        if self.options.fairness == "round-robin":
            return r.priority, *self.order_in_line(job)
        return r.priority, r.arrival

    def order_in_line(self, job: Job) -> tuple[int, int]:
        """Groups with a ticket come first, then groups that became ready in this call, in any order, then groups that
        this call has served, in that order. A job without a group has its arrival as its ticket."""
        if job.group == UNGROUPED:
            return 0, job.record.arrival
        if job.group in self.served:
            return 2, len(self.served) - self.served[::-1].index(job.group)
        return (0, self.line[job.group]) if job.group in self.line else (1, 0)

    def schedule(self, now: int) -> set[int]:
        """Every future instant at which something becomes due."""
        times = {job.due for job in self.in_state("delayed")}
        times |= {job.lease.deadline for job in self.jobs.values() if job.lease}
        times |= {self.opens(job) for job in self.startable_heads()}
        times |= {job.expires for job in self.jobs.values()}
        times |= {stop.deadline for stop in self.stopping.values()}
        return {time for time in times if time > now}

    def next_due(self, now: int) -> int | None:
        return min((time for time in self.schedule(now) if time < NEVER), default=None)

    def instants(self, now: int) -> set[int]:
        """The schedule, and every other future instant at which an answer changes."""
        times = self.schedule(now) | {self.throttled} | {s.ends for s in self.stand_ins.values()}
        times |= {self.rate_allows(group) for group in self.group_starts} | {w.till for w in self.windows.values()}
        times |= {taken.ends for taken in self.uniques.values()}
        times |= {failing.forgotten for failing in self.breakers.values()}
        times |= {repeat.fields["next"] for repeat in self.repeats.values()}
        return {time for time in times if now < time < NEVER}

    # What changes it

    def join(self, job: Job, now: int) -> None:
        """A job joins its group. With an arrival window, the first waiting job opens it and each further one extends
        it, up to `max_wait`."""
        ordering = self.options.ordering
        if ordering is not None and ordering.kind == "arrival" and job.group != UNGROUPED:
            window = self.windows.get(job.group)
            if not self.in_state("waiting", job.group):
                self.windows[job.group] = Window(now, now + ordering.window_ms)
            elif window is not None and window.till > now:
                till = min(window.since + ordering.max_wait_ms, now + ordering.window_ms)
                self.windows[job.group] = Window(window.since, till)
        job.state, job.due = "waiting", 0

    def rest(self, group: str, until: int) -> None:
        self.rests[group] = max(self.rests.get(group, 0), until)

    def attempt_failed(self, group: str, now: int) -> None:
        """Count a failed attempt. After enough of them in a row the breaker opens and the group rests."""
        if self.options.breaker is not None and group != UNGROUPED:
            most, cooldown = self.options.breaker.packed()
            failures = (self.breakers[group].failures if group in self.breakers else 0) + 1
            opened = now + cooldown if failures >= most else self.opened(group)
            since = self.opened_since().get(group, now if opened else 0)
            self.breakers[group] = Failing(failures, opened, now + 10 * cooldown, since)

    def note_start(self, job: Job, now: int) -> None:
        """Count a start for the rate limit of the queue, and for that of the group if it has one."""
        limit, rate = self.options.rate_limit, self.rate_of(job.group)
        if limit is not None:
            self.starts = [now, *self.starts][: limit.count]
        if rate:
            before = self.group_starts.get(job.group, Starts((), 0)).times
            self.group_starts[job.group] = Starts((now, *before)[: rate[0]], now + rate[1])
        self.served.append(job.group)

    def free_starts(self, now: int) -> tuple[float, int]:
        """How many jobs the queue's rate limit lets start now, and when it allows the next start after those."""
        if self.options.rate_limit is None:
            return float("inf"), 0
        count, per = self.options.rate_limit.packed()
        young = [start for start in self.starts if now - start <= per]
        return count - len(young), min(young, default=now) + per + 1

    def sweep(self, now: int) -> bool:
        """Delete expired entries. Returns whether there were as many of one kind as a call deletes at most."""
        before = len(self.group_starts), len(self.breakers), len(self.uniques), len(self.stand_ins)
        self.group_starts = {group: s for group, s in self.group_starts.items() if s.until >= now}
        self.breakers = {group: failing for group, failing in self.breakers.items() if failing.forgotten > now}
        over = {job_id for job_id, taken in self.uniques.items() if 0 < taken.ends <= now}
        # A failed job may run again; its id then stays taken for as long once more.
        over -= {job.id for job in self.finished("failed")}
        self.uniques = {job_id: taken for job_id, taken in self.uniques.items() if job_id not in over}
        self.stand_ins = {key: s for key, s in self.stand_ins.items() if s.ends > now}
        after = len(self.group_starts), len(self.breakers), len(self.uniques), len(self.stand_ins)
        return any(was - left >= SWEPT for was, left in zip(before, after, strict=True))
