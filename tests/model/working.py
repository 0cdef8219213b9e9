"""Calls of workers: one that reports outcomes, handles due work and takes jobs; and the turns of an exclusive queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from groupmq.protocol.commands import FRESH, Expired, Stalled
from tests.model.ending import Ending
from tests.model.gates import NEVER
from tests.model.parts import UNGROUPED, Answer, Job, LastReply, Lease, Progress, Report, Request, Taken, Turn
from tests.support.keyspace import Keyspace

MOST_LINES = 100
"""Lines that the log of a job keeps."""
PAUSE, OLD, IDLE = 100, 1000, 5000
"""Milliseconds: PAUSE without new reserves after some were asked back; OLD after which a reserve counts as used up;
IDLE for which a worker that found nothing counts as idle."""


class Working(Ending):
    def advance(self, request: Request, now: int) -> Answer:
        last = self.requesters.get(request.requester)
        if last is not None and request.number <= last.number:
            held = self._still_held(last.leases)
            rows = self._rows_of(held, self.batches.get(request.requester, []))
            lease = self.jobs[held[-1][0]].lease if held else None
            answer = Answer(
                0,
                last.statuses,
                last.stalled,
                last.expired,
                held,
                self.until_tick(now),
                self.epoch_of(request.worker),
                rows,
            )
            return replace(answer, taken_at=None if lease is None else lease.started, again=True)
        before, throttled, asked = self.schedule(now), self.throttled, self._is_asked_for(now)
        statuses = self.report_all(request.reports, request.worker, now)
        reported = zip(statuses, request.reports, strict=True)
        delayed = [report for accepted, report in reported if accepted and report.delay]
        new = {now + report.delay for report in delayed if self.jobs[report.id].state != "failed"}
        stalled = self.take_back(now)
        expired = self.fail_unstarted(now)
        self.promote(now)
        batches: list[set[str]] = []
        granted = self.granted_again(request, now)
        jobs, told = self._take(request, now, batches) if granted is None else ([granted], {now})
        if request.offers is False:
            self.take_back_grant(request.worker, request.received)
            self.withdraw_offer(request.worker)
        self.retain(now)
        self.tidy()
        leases = [(job[0], job[1]) for job in jobs]
        self.requesters[request.requester] = LastReply(request.number, statuses, leases, stalled, expired)
        self.batches[request.requester] = batches
        # A hold counts only while its job is the head, and only if nothing else makes the group wait longer.
        new &= self.schedule(now)
        new |= {self.opens(job) for job in self.startable_heads()} - before
        new |= {self.throttled} - {throttled}
        new = {time for time in new if time > now}
        after = new | told | self.schedule(now)
        exact_ms, wait_ms = (0, 0) if self.overdue_to_join(now) else (wait(after, now), wait(before | after, now))
        rows = self._rows_of(jobs, batches)
        tick_ms, epoch = self.until_tick(now), self.epoch_of(request.worker)
        answer = Answer(wait_ms, statuses, stalled, expired, jobs, tick_ms, epoch, rows)
        wanted = self.stamp if asked else 0
        answer = replace(answer, exact_ms=exact_ms, sooner=now + wait_ms in new, wanted=wanted)
        if granted is None:
            return answer
        lease = self.jobs[granted[0]].lease
        return replace(answer, again=True, taken_at=lease.started if lease else None)

    def due(
        self, now: int, *, promote: bool, unpark: bool, expire: bool
    ) -> tuple[int, list[Stalled], list[Expired], int, int]:
        """Handle due work. Returns the number of jobs promoted, leases taken back, jobs past their ttl, the wait if all
        duties were requested, and 1 if more may have expired."""
        before = self.schedule(now)
        stalled = self.take_back(now) if expire else []
        expired = self.fail_unstarted(now) if expire else []
        promoted = self.promote(now) if promote else 0
        self.retain(now)
        more_expired = unpark and self.sweep(now)
        self.tidy()
        wait_ms = 0 if self.overdue_to_join(now) else wait(before | self.schedule(now), now)
        return promoted, stalled, expired, wait_ms, int(more_expired)

    def beat(
        self,
        worker: str,
        info: str | None,
        lease_ms: int,
        held: Sequence[tuple[str, int]],
        now: int,
        refuses: int | None = None,
    ) -> tuple[list[str], int, list[int], list[int], list[int]]:
        """Renew leases, which also says that these jobs have begun, unless they were prefetched.

        Returns the jobs whose lease this worker has lost, the fence up to which it must give back its reserve, and the
        fences of its cancelled runs, of its runs whose job an operator has ended, and of its recalled jobs."""
        if refuses is not None:
            self.take_back_grant(worker, refuses)
            self.withdraw_offer(worker)
        lost = []
        for job_id, fence in held:
            job = self.holder(job_id, fence)
            if job is None or job.lease is None:
                lost.append(job_id)
            else:
                if not job.lease.ahead:
                    self.begin(job)
                job.lease = replace(job.lease, deadline=now + lease_ms)
        if self.turn is not None and self.turn.worker == worker:
            self.turn = replace(self.turn, deadline=now + lease_ms)
        if info is not None:
            self.workers[worker] = f"{now} {info}"
        leases = [job.lease for job in self.jobs.values() if job.lease and job.lease.worker == worker]
        return (
            lost,
            self.stamp if self._is_asked_for(now) else 0,
            sorted(lease.fence for lease in leases if lease.cancelled),
            sorted(fence for fence, stop in self.stopping.items() if stop.worker == worker),
            sorted(lease.fence for lease in leases if lease.recalled),
        )

    def take_back_unseen(self, requester: str, request: int, now: int) -> bool:
        """The event loop of a worker has not seen the answer to this request: jobs that have not begun are released, as
        if the worker gave them back. Returns whether the request was carried out."""
        last = self.requesters.get(requester)
        if last is None or last.number < request:
            return False
        held = [(job_id, fence, self.holder(job_id, fence)) for job_id, fence in last.leases]
        unbegun = [(i, fence, job.lease) for i, fence, job in held if job and job.lease and not job.lease.begun]
        for job_id, fence, lease in unbegun:
            self._report(Report("release", job_id, fence), 0, lease.worker, now)
        self.retain(now)
        self.tidy()
        return True

    def report_progress(self, said: Progress, now: int) -> bool:
        """Store the progress of a running handler. It stays with the job until the job is deleted."""
        job = self.holder(said.id, said.fence)
        if job is None or said.progress is None:
            return False
        self.had_progress = True
        job.progress = said.progress
        self.publish("progress", job.id, job.group, said.progress)
        return True

    def append_log(self, said: Progress, now: int) -> bool:
        """Append a line of a running handler to the log of its job."""
        job = self.holder(said.id, said.fence)
        if job is None or said.line is None:
            return False
        self.had_progress = True
        job.log = [*job.log, [now, said.line]][-MOST_LINES:]
        return True

    def leave(self, worker: str, requester: str, received: int | None = None) -> None:
        self.take_back_grant(worker, received)
        self.withdraw_offer(worker)
        self.workers.pop(worker, None)
        self.mail.discard(worker)
        self.holders.pop(worker, None)
        if self.idle and self.idle[1] == worker:
            self.idle = None
        self.requesters.pop(requester, None)

    def _still_held(self, leases: list[tuple[str, int]]) -> list[Taken]:
        held = [(self.holder(job_id, fence), fence) for job_id, fence in leases]
        return [(job.id, fence, job.stored or FRESH, job.record) for job, fence in held if job]

    # Taking

    def _take(self, request: Request, now: int, batches: list[set[str]]) -> tuple[list[Taken], set[int]]:
        """Take jobs. Returns them, and times at which to ask again; `batches`: see `tests.model.batches`."""
        if self.paused:
            return [], set()
        wanted, told = self._turn_allows(request, now)
        free, next_start = self.free_starts(now)
        row = 1 if self.policy.max_stalled == 0 or not self._has_rows else request.row
        most = min(max(wanted * row, request.fill), free)
        taken: list[Taken] = []
        heads = 0
        while heads < wanted and len(taken) < most:
            job = self._next(request, now, len(taken))
            if job is None:
                break
            taken.append(self._start(job, request, now))
            assert not request.rows or heads < len(request.rows), f"{job.id} may start, but is not taken"
            for _ in range(1, request.rows[heads] if request.rows else 1):
                assert len(taken) < most, "more start than the rate of the queue allows"
                others = min(wanted - heads - 1, len(self.runnable(now)))
                assert len(taken) + others < most, "a job is prefetched while the head of another group has to wait"
                taken.append(self._follow(job, request, now))
            heads += 1
        short = heads < wanted and free >= wanted * row and not self._passed_over(now)
        self._reserve(request, taken, heads, wanted, now)
        if short:
            self._ask_for_reserves(request.worker, now)
        if self._has_rows:
            self._note_rest(request.worker, now, found_nothing=short, taken=bool(taken))
        told = told | self.offer_slot(request, now, found_nothing=short, taken=bool(taken))
        if wanted:
            self.told = most < wanted * row and len(taken) == most
        if wanted and self.told:
            self.throttled = next_start
            told = told | {next_start}
        self._take_turn(request, heads, now)
        return taken, told

    def _follow(self, head: Job, request: Request, now: int) -> Taken:
        """Take the next job of a group with its head, to run after it. The scripts may do this, but need not."""
        waiting = self.waiting(head.group)
        assert waiting, "a job that does not wait is in a row"
        job = waiting[0]
        assert self._has_rows, "this queue must not have rows"
        assert self.limit_of(head.group) == 1, "jobs that may run at once wait for each other"
        assert not self.rate_of(head.group), "the rate limit of the group does not count these starts"
        assert not self.opened(head.group), "the probe is not alone"
        assert max(self.opens(job), job.hold) <= now, "a job starts too early"
        assert job.record.priority == head.record.priority, "a less urgent job is taken before other groups"
        assert (head.stored, job.stored) == (None, None), "a job that has run before is not alone"
        assert not job.expires, "a job with a ttl has to start when it is taken"
        least = min(one.record.max_attempts or self.policy.max_attempts for one in (head, job))
        assert least > 1, "a job with one attempt may run twice, or is not reported at once"
        assert self.policy.max_stalled != 0, "a job that may not stall may run twice"
        assert 1 < max(request.rows) <= request.row, "more jobs than were asked for"
        return self._start(job, request, now, ahead=True)

    # Reserves

    def _reserve(self, request: Request, taken: list[Taken], rows: int, wanted: int, now: int) -> None:
        """Take further heads, in order, to be started when a slot is free. The scripts may do this, but need not."""
        while len(taken) < request.got:
            assert rows >= wanted, "a job is reserved, though it could start now"
            assert len(taken) < request.fill, "more jobs are reserved than were asked for"
            job = self._next(request, now, len(taken))
            assert job is not None, "a job is reserved that may not start"
            assert self._idle_worker(now) in (None, request.worker), "a job is reserved that another worker could start"
            self._may_be_reserved(job, now)
            taken.append(self._start(job, request, now, ahead=True, reserved=True))
            for _ in range(1, request.rows[rows] if request.rows else 1):
                assert len(taken) < request.fill, "more jobs are reserved than were asked for"
                taken.append(self._follow(job, request, now))
            rows += 1
            self.holders[request.worker], self.held = now, True

    def _may_be_reserved(self, job: Job, now: int) -> None:
        assert self._has_rows, "this queue must not have reserves"
        assert self.options.rate_limit is None, "the rate limit of the queue counts a start too early"
        assert not self._is_asked_for(now), "a job is reserved just after reserves were asked back"
        assert not self.overdue_to_join(now), "jobs are due that have not joined their groups"
        assert job.group == UNGROUPED or self.limit_of(job.group) == 1, "others of its group may start before it"
        assert not self.rate_of(job.group), "the rate limit of the group does not count this start"
        assert not self.opened(job.group), "the probe waits for a slot"
        assert job.group == UNGROUPED or self.options.ordering is None or self.options.ordering.kind == "arrival"
        assert job.stored is None, "a job that has run before is not alone"
        assert not job.expires, "a job with a ttl has to start when it is taken"
        assert (job.record.max_attempts or self.policy.max_attempts) > 1, "a job with one attempt may run twice"
        assert self.policy.max_stalled != 0, "a job that may not stall may run twice"

    def _is_asked_for(self, now: int) -> bool:
        return self.asked is not None and abs(now - self.asked) < PAUSE

    def _idle_worker(self, now: int) -> str | None:
        """The worker that is known to have found nothing to start."""
        return self.idle[1] if self.idle and now < self.idle[0] <= now + IDLE else None

    def _note_rest(self, worker: str, now: int, *, found_nothing: bool, taken: bool) -> None:
        mine = self.idle is not None and self.idle[1] == worker
        if found_nothing:
            stands = mine and self.idle and now + IDLE / 2 <= self.idle[0] <= now + IDLE
            self.idle = self.idle if stands else (now + IDLE, worker)
        elif taken and mine:
            self.idle = None

    def adopt_hints(self, keyspace: Keyspace) -> None:
        """Copy the stored hints: while held groups are in `ready`, it is open whether a worker found nothing."""
        self.holders = {worker: int(at) for worker, at in keyspace.holders.items()}
        self.held, self.mail = keyspace.meta.get("held") == "1", set(keyspace.mails)
        self.asked = int(keyspace.meta["asked"]) if "asked" in keyspace.meta else None
        till, _, worker = keyspace.meta.get("idle", "").partition(" ")
        self.idle = (int(till), worker) if till else None

    def _passed_over(self, now: int) -> bool:
        """Whether some heads cannot start only because due jobs have not joined their groups."""
        ready = [job for job in self.startable_heads() if self.opens(job) <= now]
        return len(ready) > len(self.runnable(now))

    def _ask_for_reserves(self, worker: str, now: int) -> None:
        """A worker found nothing to start: all other holders of reserves get mail, and old entries are deleted."""
        if not self.held:
            return
        fresh = {holder for holder, at in self.holders.items() if abs(now - at) < OLD}
        asked = fresh - {worker}
        self.send_mail(asked)
        if asked:
            self.asked = now
        self.holders = {holder: at for holder, at in self.holders.items() if holder in fresh - asked}
        self.held = bool(self.holders)

    @property
    def _has_rows(self) -> bool:
        """Whether jobs may be prefetched: not with round-robin or priority ageing, and not in an exclusive queue."""
        options = self.options
        return options.fairness != "round-robin" and not options.exclusive and options.priority_ageing_ms is None

    def _rows_of(self, jobs: list[Taken], batches: list[set[str]]) -> tuple[int, ...]:
        if batches:
            sizes = [sum(job_id in batch for job_id, *_ in jobs) for batch in batches]
            return tuple(size for size in sizes if size) if max(sizes) > 1 else ()
        rows: list[int] = []
        before = None
        for job_id, *_, known in jobs:
            lease = self.jobs[job_id].lease
            if lease and lease.ahead and not lease.reserved and known.group_id == before:
                rows[-1] += 1
            else:
                rows.append(1)
            before = known.group_id
        return tuple(rows) if len(rows) < len(jobs) else ()

    def _next(self, request: Request, now: int, position: int) -> Job | None:
        """The job to start next. If the model leaves a choice, the chosen job, if it is one of the allowed ones."""
        heads = self.runnable(now)
        if request.chosen is None:
            return heads[0] if heads else None
        if self.options.fairness == "round-robin":
            heads = [job for job in heads if self.urgency(job) == self.urgency(heads[0])]
        wished = request.chosen[position : position + 1]
        return next((job for job in heads if job.id in wished), None)

    def _start(self, job: Job, request: Request, now: int, *, ahead: bool = False, reserved: bool = False) -> Taken:
        assert job.expires == 0 or job.expires > now, "a job starts after its ttl"
        self.note_start(job, now)
        if job.stored is None:
            since = job.record.created_ms if job.record.order_given else job.record.order_ms
            self.waits.append(max(0, now - since))
        job.state, job.hold, job.snoozed, job.expires = "active", 0, False, 0
        self.rests.pop(job.group, None)  # it is over, even if the clock steps back
        fence, deadline = self.next_stamp(now), now + request.lease_ms
        begun = not ahead and not request.confirms
        job.lease = Lease(fence, deadline, now, request.worker, begun=begun, ahead=ahead, reserved=reserved)
        if not ahead:
            self.publish("active", job.id, job.group, (job.stored or FRESH).attempts + 1, request.worker)
        return job.id, job.lease.fence, job.stored or FRESH, job.record

    # Turns

    def epoch_of(self, worker: str) -> int:
        return self.turn.epoch if self.turn and self.turn.worker == worker else 0

    def _turn_allows(self, request: Request, now: int) -> tuple[int, set[int]]:
        """How many jobs the worker may take, and when it should ask again because another worker has the turn.

        A turn continues while its worker has jobs, or takes new ones in the call that ends the last ones, until it is
        full. A new turn begins when no worker has a job, and only for a worker that believes it has none.
        """
        if not self.options.exclusive:
            return request.take, set()
        turn, live = self.turn, bool(self.leased() or self.stopping)
        if turn and not live and (turn.worker != request.worker or turn.taken >= request.turn_size):
            self.turn = turn = None
        if turn is None:
            return 0 if live or request.epoch else min(request.take, request.turn_size), set()
        if turn.worker == request.worker:
            return max(0, min(request.take, request.turn_size - turn.taken)), set()
        return 0, {max(now, turn.deadline)}

    def _take_turn(self, request: Request, taken: int, now: int) -> None:
        if self.options.exclusive and taken:
            if self.turn is None:
                self.turns_begun += 1
                self.turn = Turn(request.worker, self.turns_begun, 0, 0)
            self.turn = replace(self.turn, deadline=now + request.lease_ms, taken=self.turn.taken + taken)


def wait(times: set[int], now: int) -> int:
    times = {time for time in times if time < NEVER}
    return min(times) - now if times else -1
