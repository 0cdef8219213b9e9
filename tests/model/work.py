"""Rules: jobs are added, workers take jobs and report outcomes, time passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import redis
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from groupmq.core import record
from groupmq.core.drafts import Draft
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from tests.model import strategies as draws
from tests.model.gates import NEVER
from tests.model.outcomes import outcome_of
from tests.model.pair import KEPT, Pair, same
from tests.model.parts import Report, Request
from tests.model.promises import Promises
from tests.support.keyspace.reading import grant_of

REQUESTER, LEASE = st.sampled_from(draws.REQUESTERS), st.sampled_from(draws.LEASES)
ROW = st.sampled_from((1, 1, 2, 3))
FILL = st.sampled_from((0, 0, 0, 2, 5))
OWN = draws.wishes("own")
MOSTLY_OWN = draws.wishes("own", "own", "own", "next", "old")
ANY = draws.wishes("own", "own", "next", "old", "unknown")
NOBODY = "never added", 1


class Work(Pair):
    confirming = 4
    """One request in this many comes from a worker that confirms when it begins a job."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client)
        self.requests = 0
        self.last: dict[str, Request] = {}
        self.fences: list[tuple[str, int]] = []
        self.epochs: dict[str, int] = {}
        self.received: dict[str, int] = {}
        """By worker: the fence of the last grant that it has received."""
        self.promises = Promises()

    # Adding

    @initialize(
        setup=draws.setups(),
        kind=st.sampled_from(range(len(draws.KINDS))),
        items=st.lists(draws.items(), min_size=3, max_size=8),
    )
    def begin(self, setup: draws.Setup, kind: int, items: list[draws.Item]) -> None:
        self.open(replace(setup, kind=self.kinds[kind % len(self.kinds)]))
        self.add(items)

    @rule(item=draws.items())
    def add_one(self, item: draws.Item) -> None:
        self.add([item])

    @rule(items=st.lists(draws.items(), min_size=2, max_size=4), whole=st.booleans())
    def add_many(self, items: list[draws.Item], whole: bool) -> None:
        self.add(items, whole=whole)

    def add(self, items: list[draws.Item], *, whole: bool = False) -> None:
        if not self.kind.extras:
            items = [replace(item, ttl=0, dedupe=None) for item in items]
        drafts = [self.adapted(item).draft(self.groups, self.now) for item in items]
        known = self.known_due()
        answer = self.call(commands.add(drafts, self.now, whole=whole))
        same(answer, self.model.add(drafts, self.now, whole=whole))
        granted = self.look_for_a_grant(drafts, known)
        self.look()
        # No worker sleeps longer than a lease, so the lease of a grant need not wake a worker.
        if self.now < self.known_due() < known and not granted:
            assert self.any_marker(), "something is due earlier than before, but no marker wakes sleeping workers"

    def look_for_a_grant(self, drafts: Sequence[Draft], known: int) -> bool:
        """Whether an add of one job has granted it to an idle worker. It has to if nothing speaks against it."""
        stored, was = grant_of(self.client.hget(self.connection.session.keys.meta, "offer") or b""), self.model.grant
        job = self.model.jobs.get(drafts[0].id)
        if stored is not None and stored != (was and (was.worker, was.job_id, was.fence)):
            assert job is not None
            assert len(drafts) == 1, "one of several jobs is granted"
            assert known > self.now, "a job is granted, though something is due before it"
            self.model.grant_job(job, stored[2], self.now)
            self.fences.append((job.id, stored[2]))
            self.promises.started(self.model, [job.id], self.now)
            return True
        if job is not None and job.record.created_ms == self.now and len(drafts) == 1 and known > self.now:
            small = len(drafts[0].data) <= record.LARGE
            assert not (small and self.model.must_grant(job, self.now)), f"{job.id} is not granted to the idle worker"
        return False

    def adapted(self, item: draws.Item) -> draws.Item:
        """The item adapted to this kind of queue. Options of single jobs follow from their ids."""
        number = crc32(item.id.encode())
        item = replace(item, data=self.adapted_data(item.data))
        if self.kind.unique and number % 2:
            item = replace(item, unique=self.kind.unique)
        says = self.kind.says and number % self.kind.says == 0
        return replace(item, holds=self.model.options.on_failed != "hold") if says else item

    def adapted_data(self, data: bytes) -> bytes:
        return draws.LARGE if self.kind.large and not data else data

    def known_due(self) -> int:
        """The stored time before which nothing is due, until which workers may sleep."""
        return int(self.stored.keyspace.meta["due"])

    def any_marker(self) -> bool:
        return self.stored.marker() or self.stored.marker(self.model.turn)

    # Working

    @precondition(lambda self: self.model.in_state("waiting"))
    @rule(requester=REQUESTER, take=st.integers(1, 4), lease_ms=LEASE, row=ROW, fill=FILL)
    def an_idle_worker_takes_the_marker_and_asks(
        self, requester: tuple[str, str], take: int, lease_ms: int, row: int = 1, fill: int = 0
    ) -> None:
        self.take_marker(requester[0])
        self.advance(requester, [], take, lease_ms, row, fill)

    def take_marker(self, worker: str) -> None:
        keys = self.connection.session.keys
        self.calls += 1
        if not self.client.zpopmin(keys.wake_of(worker)):
            self.client.zpopmin(keys.wake)

    @rule(
        requester=REQUESTER,
        wishes=st.lists(ANY, max_size=4),
        take=st.integers(0, 4),
        lease_ms=LEASE,
        row=ROW,
        fill=FILL,
    )
    def advance(
        self,
        requester: tuple[str, str],
        wishes: list[draws.Wish],
        take: int,
        lease_ms: int,
        row: int = 1,
        fill: int = 0,
    ) -> None:
        self.ask(requester, tuple(self.report(wish) for wish in wishes), take, lease_ms, row, fill)

    def ask(
        self,
        requester: tuple[str, str],
        reports: tuple[Report, ...],
        take: int,
        lease_ms: int,
        row: int = 1,
        fill: int = 0,
    ) -> None:
        self.requests += 1
        if self.model.options.exclusive:
            lease_ms = draws.LEASES[0]  # all leases of an exclusive queue have the same length
        epoch = self.epochs.get(requester[0], 0)
        turn_size = self.kind.turn_size
        request = Request(
            requester[0], requester[1], self.requests, reports, take, lease_ms, turn_size, epoch, row=row, fill=fill
        )
        offers = (None, True, False, True)[self.requests % 4]
        request = replace(request, offers=offers, received=self.received.get(requester[0], 0))
        request = replace(request, confirms=self.requests % self.confirming == 0)
        self.last[requester[1]] = request
        self.carry_out(request)

    @precondition(lambda self: self.model.in_state("active"))
    @rule(
        requester=REQUESTER,
        wishes=st.lists(MOSTLY_OWN, min_size=1, max_size=4),
        take=st.integers(0, 4),
        lease_ms=LEASE,
        row=ROW,
    )
    def runs_end(
        self, requester: tuple[str, str], wishes: list[draws.Wish], take: int, lease_ms: int, row: int = 1
    ) -> None:
        self.advance(requester, wishes, take, lease_ms, row)

    @precondition(lambda self: self.model.in_state("active"))
    @rule(
        requester=REQUESTER,
        result=st.sampled_from((None, b"", b"result")),
        take=st.integers(1, 4),
        lease_ms=LEASE,
        row=ROW,
    )
    def every_run_completes(
        self, requester: tuple[str, str], result: bytes | None, take: int, lease_ms: int, row: int = 1
    ) -> None:
        wishes = [
            draws.Wish(which, "complete", result, 0, "own") for which in range(len(self.model.in_state("active")))
        ]
        self.advance(requester, wishes, take, lease_ms, row)

    @precondition(lambda self: self.model.in_state("active"))
    @rule(requester=REQUESTER, late=st.lists(OWN, max_size=2), take=st.integers(0, 4), lease_ms=LEASE)
    def a_lease_ends_and_somebody_asks(
        self, requester: tuple[str, str], late: list[draws.Wish], take: int, lease_ms: int
    ) -> None:
        """A late report is accepted as long as the job has not been taken back."""
        self.go_to(max(self.now, min(job.lease.deadline for job in self.model.jobs.values() if job.lease)))
        self.advance(requester, late, take, lease_ms)

    @precondition(lambda self: self.last)
    @rule(which=st.integers(0, 2), older=st.sampled_from((0, 0, 1)))
    def a_request_is_sent_again(self, which: int, older: int) -> None:
        """The last request of a requester, or an earlier one that was given up, is sent again: nothing changes."""
        requester = sorted(self.last)[which % len(self.last)]
        request = replace(self.last[requester], number=self.last[requester].number - older)
        before = self.stored.state()
        self.carry_out(request)
        self.look()
        same(self.stored.state(), before)

    @rule(fault=st.sampled_from(("at once", "at once", "later", "overtaken")))
    def a_fault_meets_the_next_call_whose_answer_is_kept(self, fault: str) -> None:
        self.fault = fault

    @precondition(lambda self: self.unanswered and self.times[1] - self.times[0] < KEPT)
    @rule()
    def a_call_is_sent_again(self) -> None:
        """Whatever happened meanwhile, it gets the same answer and changes nothing."""
        assert self.unanswered is not None
        sending, answer = self.unanswered
        self.unanswered = None
        self.calls += 1
        self.changes_nothing(sending.send_again, answer)

    def carry_out(self, request: Request) -> None:
        known = self.known_due()
        answer = self.call(self.sent(request))
        jobs = [(job.id, job.fence, job.stored, record.unpack(job.record)) for job in answer.jobs]
        request = replace(request, rows=tuple(answer.rows), got=len(jobs))
        fallen_back = self.fallen_back()
        if fallen_back or self.model.options.fairness == "round-robin":
            # Held groups in `ready` use up entries of the page that the call reads: fewer or other groups may be
            # served, each in its own order, and the marker wakes a worker for the rest.
            request = replace(request, chosen=tuple(job.id for job in answer.jobs))
        expected = self.model.advance(request, self.now)
        same((answer.accepted, jobs), (expected.statuses, expected.jobs))
        same((answer.stalled, answer.expired), (expected.stalled, expected.expired))
        now = self.now if expected.taken_at is None else expected.taken_at
        same((answer.now, answer.tick_ms, answer.epoch), (now, expected.tick_ms, expected.epoch))
        same((answer.wanted, answer.again), (expected.wanted, expected.again))
        same(tuple(answer.rows), expected.rows)
        # The stored time may belong to something that has ended since: then the call at that time corrects it.
        unknown = known <= self.now
        waits = (expected.wait_ms, expected.exact_ms)
        if not fallen_back:
            right = waits if unknown else tuple(at_most(wait, known, self.now) for wait in waits)
            assert answer.wait_ms in right, f"the wait is {answer.wait_ms}, expected one of {right}"
        self.look()
        if fallen_back:
            self.model.adopt_hints(self.stored.keyspace)
        if expected.sooner and not unknown and self.now + expected.wait_ms < known:
            assert self.any_marker(), "a new wait ends before everything else, but no marker wakes sleeping workers"
        self.epochs[request.worker] = answer.epoch
        news = [lease for lease in ((job.id, job.fence) for job in answer.jobs) if lease not in self.fences]
        self.fences += news
        if any(job.lease and job.lease.reserved for job in (self.model.jobs[job_id] for job_id, _ in news)):
            assert self.any_marker(), "jobs are reserved, but no marker wakes an idle worker"
        same(self.fences, sorted(self.fences, key=lambda lease: lease[1]))
        self.promises.started(self.model, [job_id for job_id, _ in news], self.now)

    def sent(self, request: Request) -> Call[commands.Advanced]:
        exclusive = self.model.options.exclusive
        return commands.advance(
            worker=request.worker,
            requester=request.requester,
            request=request.number,
            outcomes=[outcome_of(report) for report in request.reports],
            take=request.take,
            lease_ms=request.lease_ms,
            policy=self.model.policy,
            row=request.row,
            fill=request.fill,
            batch_wait_ms=request.together,
            confirms=request.confirms,
            offers=request.offers,
            received=request.received,
            turn_size=request.turn_size if exclusive else None,
            epoch=request.epoch if exclusive else None,
            now=self.now,
        )

    def report(self, wish: draws.Wish) -> Report:
        job_id, fence = self.lease(wish.which, wish.fence)
        kind: Any = "retry" if wish.kind == "yield" else wish.kind
        reason, stack = ("why \u00fc", "at\nline 1") if kind in ("retry", "fail", "abandon") else ("", "")
        result = wish.result if kind == "complete" else None
        delay = wish.delay if kind in ("retry", "snooze") or (kind == "limited" and self.kind.steady) else 0
        error = "shop.errors.Declined" if reason and wish.which % 2 else ""
        yields = wish.kind == "yield" or (kind == "snooze" and wish.which % 3 == 0)
        begun = kind == "release" and wish.which % 2 == 0
        return Report(kind, job_id, fence, result, delay, yields, reason, stack, error, begun)

    def lease(self, which: int, fence: str, worker: str | None = None) -> tuple[str, int]:
        """The id and fence of a running job of this worker, or a wrong fence of the given kind."""
        leases = [(job.id, job.lease) for job in self.model.jobs.values() if job.lease]
        held = [(job_id, lease.fence) for job_id, lease in leases if worker in (None, lease.worker)]
        others = [(job_id, lease.fence) for job_id, lease in leases if worker not in (None, lease.worker)]
        known = [lease for lease in self.fences if lease not in others]
        if fence == "old" and known:
            return known[which % len(known)]
        if not held or fence == "unknown":
            return NOBODY
        job_id, own = held[which % len(held)]
        return job_id, own + 1 if fence == "next" else own

    # Time

    @rule(ms=draws.moves(), until_due=st.booleans())
    def time_passes(self, ms: int, until_due: bool) -> None:
        times = self.model.instants(self.now) if until_due else set()
        if self.kind.steady:
            ms = max(0, ms)
        self.go_to(min(times) + max(-1, min(ms, 1)) if times else self.now + ms)

    @precondition(lambda self: not self.kind.steady)
    @rule(ms=st.sampled_from((1, 30, 600)))
    def the_clock_steps_back(self, ms: int) -> None:
        over = [job.hold for job in self.model.startable_heads() if 0 < job.hold <= self.now]
        self.go_to(min(over) - 1 if over else self.now - ms)

    @precondition(lambda self: self.model.next_due(self.now))
    @rule(requester=REQUESTER, take=st.integers(1, 4), lease_ms=LEASE)
    def something_is_due_and_somebody_asks(self, requester: tuple[str, str], take: int, lease_ms: int) -> None:
        self.go_to(self.model.next_due(self.now) or self.now)
        self.advance(requester, [], take, lease_ms)

    @rule(expire=st.booleans(), promote=st.booleans(), unpark=st.booleans(), every=st.booleans())
    def due(self, expire: bool, promote: bool, unpark: bool, every: bool) -> None:
        expire, promote, unpark = expire or every, promote or every, unpark or every
        parked = self.stored.keyspace.parked.values()
        exact = expire and promote and unpark and not self.fallen_back()
        call = commands.due(self.model.policy, promote=promote, unpark=unpark, expire=expire, now=self.now)
        answer = self.call(call)
        promoted, *ended, wait_ms, more = self.model.due(self.now, promote=promote, unpark=unpark, expire=expire)
        woken = sum(time <= self.now for time in parked) if unpark else 0
        same(answer[:4], (promoted, woken, *ended))
        same(answer.more_expired, more)
        if exact:
            same(answer.wait_ms, wait_ms)
        self.look()
        still_parked = self.stored.keyspace.parked.items()
        overdue = [group for group, time in still_parked if time <= self.now]
        assert not unpark or not overdue, f"{overdue} should be ready by now"


def at_most(wait_ms: int, known: int, now: int) -> int:
    """The wait (-1 = without end), shortened so that it ends at the known time at the latest."""
    known_ms = known - now if known < NEVER else -1
    return min((ms for ms in (wait_ms, known_ms) if ms >= 0), default=-1)
