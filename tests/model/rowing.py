"""The state machine with rows: jobs of few groups, most of which may be prefetched behind each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from groupmq.protocol import commands
from tests.model import strategies as draws
from tests.model.machine import QueueMachine
from tests.model.pair import same
from tests.model.parts import Job, Report, Request
from tests.model.work import LEASE, MOSTLY_OWN, OWN, REQUESTER

ROW = st.sampled_from((1, 2, 3))
FILL = st.sampled_from((2, 3, 5))
FEW = st.lists(draws.alike(), min_size=2, max_size=5)
ACTS = ("removes", "fails", "cancels", "updates", "moves", "promotes", "recalls", "recalls a page")
WITH_ROWS = ("plain", "default", "steady", "arrival", "max group", "silent", "hold", "some hold", "breaker")


class RowMachine(QueueMachine):
    """All rules, and many steps with jobs that workers hold and may not have begun."""

    confirming = 2
    kinds: Sequence[draws.Kind] = [kind for kind in draws.KINDS if kind.name in WITH_ROWS]

    @initialize(
        setup=draws.setups(concurrency=(1,), max_attempts=(3, 2, 3, 2, 1), max_stalled=(-1, 1, -1, 1, 0)),
        kind=st.sampled_from(range(len(draws.KINDS))),
        items=st.lists(draws.alike(), min_size=4, max_size=8),
    )
    def begin(self, setup: draws.Setup, kind: int, items: list[draws.Item]) -> None:
        super().begin(setup, kind, items)

    @rule(items=FEW, where=st.integers(0, 2), requester=REQUESTER, take=st.integers(1, 3), lease_ms=LEASE, row=ROW)
    def short_jobs_come_and_are_taken(
        self, items: list[draws.Item], where: int, requester: tuple[str, str], take: int, lease_ms: int, row: int
    ) -> None:
        self.bring(items, where)
        self.advance(requester, [], take, lease_ms, row)

    @rule(
        items=FEW,
        where=st.integers(-1, 2),
        requester=REQUESTER,
        take=st.integers(0, 2),
        lease_ms=LEASE,
        row=ROW,
        fill=FILL,
        other=REQUESTER,
        beats=st.booleans(),
        again=st.booleans(),
    )
    def jobs_of_several_groups_are_reserved_and_another_worker_asks(
        self,
        items: list[draws.Item],
        where: int,
        requester: tuple[str, str],
        take: int,
        lease_ms: int,
        row: int,
        fill: int,
        other: tuple[str, str],
        beats: bool,
        again: bool,
    ) -> None:
        """The jobs are added to one group after the other, from the group `where` on, or all without a group (-1).
        `again`: the answer was lost. In a paused queue no job is taken before the pause has ended."""
        self.add([replace(item, group=where if where < 0 else where + n) for n, item in enumerate(items)])
        if self.model.paused:
            self.advance(requester, [], take, lease_ms, row, fill)
            self.pause_queue(0, 0)
        if beats:
            self.beat(requester, "{}", draws.LEASES[0], [], leaves=False)
        self.take_marker(requester[0])
        self.advance(requester, [], take, lease_ms, row, fill)
        if again:
            self.look()
            self.a_request_is_sent_again(sorted(self.last).index(requester[1]), 0)
        self.advance(other, [], 1, lease_ms)
        if beats:
            self.look()
            self.beat(requester, None, draws.LEASES[0], [], leaves=False)

    def bring(self, items: list[draws.Item], where: int) -> None:
        """Add jobs to a group without a running job, if there is one, and end a pause of the queue."""
        if self.model.paused:
            self.pause_queue(0, 0)
        idle = [n for n, group in enumerate(self.groups) if not self.model.in_state("active", group)] or [0]
        self.add([replace(item, group=idle[where % len(idle)]) for item in items])

    @precondition(lambda self: self.unbegun())
    @rule(
        requester=REQUESTER,
        wishes=st.lists(MOSTLY_OWN, min_size=1, max_size=3),
        take=st.integers(0, 2),
        lease_ms=LEASE,
        row=ROW,
    )
    def jobs_of_rows_end(
        self, requester: tuple[str, str], wishes: list[draws.Wish], take: int, lease_ms: int, row: int
    ) -> None:
        self.advance(requester, [self.aimed(wish) for wish in wishes], take, lease_ms, row)

    @precondition(lambda self: self.unbegun())
    @rule(requester=REQUESTER, which=st.integers(0, 7), ends=st.lists(OWN, max_size=1), lease_ms=LEASE)
    def one_begins(self, requester: tuple[str, str], which: int, ends: list[draws.Wish], lease_ms: int) -> None:
        """A job begins that its worker holds, and possibly ends in the same call."""
        begins = draws.Wish(which, "begin", None, 0, "own")
        self.advance(
            requester,
            [self.aimed(wish) for wish in (begins, *(replace(end, which=which) for end in ends))],
            0,
            lease_ms,
        )

    @precondition(lambda self: self.unbegun())
    @rule(
        requester=REQUESTER,
        which=st.integers(0, 7),
        last=OWN,
        twice=st.booleans(),
        take=st.integers(0, 2),
        lease_ms=LEASE,
        row=ROW,
    )
    def a_row_ends(
        self, requester: tuple[str, str], which: int, last: draws.Wish, twice: bool, take: int, lease_ms: int, row: int
    ) -> None:
        """As a worker reports it: some jobs complete, one ends in some other way, the rest are given back. The first
        may be reported twice."""
        group = self.unbegun()[which % len(self.unbegun())].group
        leases = self.model.leased()
        row_of = sorted((job for job in leases if job.group == group), key=fence_of)
        done = last.which % len(row_of)
        kinds = ["complete"] * done + [last.kind] + ["release"] * (len(row_of) - done - 1)
        wishes = [replace(last, which=leases.index(job), kind=kind) for job, kind in zip(row_of, kinds, strict=True)]
        self.advance(requester, wishes + wishes[:twice], take, lease_ms, row)

    @precondition(lambda self: self.unbegun())
    @rule(requester=REQUESTER, late=st.lists(OWN, max_size=2), take=st.integers(0, 2), lease_ms=LEASE, row=ROW)
    def a_row_expires(
        self, requester: tuple[str, str], late: list[draws.Wish], take: int, lease_ms: int, row: int
    ) -> None:
        self.go_to(max(self.now, min(job.lease.deadline for job in self.unbegun() if job.lease)))
        self.advance(requester, [self.aimed(wish) for wish in late], take, lease_ms, row)

    @rule(
        items=FEW,
        where=st.integers(0, 2),
        requester=REQUESTER,
        row=ROW,
        which=st.integers(0, 5),
        how=st.sampled_from(("nothing", "removed", "failed", "completed")),
    )
    def an_answer_is_lost(
        self, items: list[draws.Item], where: int, requester: tuple[str, str], row: int, which: int, how: str
    ) -> None:
        """Something may happen to one of its jobs before the request is sent again."""
        self.bring(items, where)
        self.advance(requester, [], 2, draws.LEASES[0], row)
        taken = self.model.requesters[requester[1]].leases
        if taken and how != "nothing":
            job_id, _ = taken[which % len(taken)]
            if how == "removed":
                self.remove_all([job_id], None)
            elif how == "failed":
                self.fail_by_hand(job_id)
            else:
                at = [job.id for job in self.model.leased()].index(job_id)
                other = next(other for other in draws.REQUESTERS if other != requester)
                self.advance(other, [draws.Wish(at, "complete", None, 0, "own")], 0, draws.LEASES[0])
        self.look()
        self.a_request_is_sent_again(sorted(self.last).index(requester[1]), 0)

    @precondition(lambda self: self.unbegun())
    @rule(
        which=st.integers(0, 7),
        what=st.sampled_from(
            ("removes", "fails", "cancels", "updates", "moves", "promotes", "recalls", "recalls a page")
        ),
        late=st.sampled_from((False, False, True)),
        answers=st.sampled_from(("", "begin", "release")),
        requester=REQUESTER,
    )
    def an_operator_acts_on_one_of_a_row(
        self, which: int, what: str, late: bool, answers: str, requester: tuple[str, str]
    ) -> None:
        """Possibly when its lease is over. Its worker may answer, and the operator then tries again."""
        job = self.unbegun()[which % len(self.unbegun())]
        if late and job.lease:
            self.go_to(max(self.now, job.lease.deadline))
        self.act_on(job, what)
        if answers and job in self.unbegun():
            row = sorted((other for other in self.unbegun() if other.group == job.group), key=fence_of)
            reported = row[row.index(job) :] if answers == "release" else row[: row.index(job) + 1]
            kind: Any = answers
            self.look()
            self.ask(requester, tuple(Report(kind, one.id, fence_of(one)) for one in reported), 0, draws.LEASES[0])
            self.look()
            self.act_on(job, what)

    def act_on(self, job: Job, what: str) -> None:
        if what == "removes":
            self.remove_all([job.id], None)
        elif what == "fails":
            self.fail_by_hand(job.id)
        elif what == "updates":
            same(self.call(commands.update(job.id, b"new", self.now)), self.model.update(job.id, b"new", self.now))
        elif what == "moves":
            self.reschedule(job.id, 500, only_delayed=False)
        elif what == "promotes":
            self.reschedule(job.id, 0, only_delayed=True)
        elif what == "recalls":
            answer = self.call(commands.recall([job.id], self.now))
            same((answer.unsettled, answer.running), self.model.recall([job.id], self.now))
        elif what == "recalls a page":
            answer = self.call(commands.recall_page("0", job.group, self.now))
            held = [one.id for one in self.model.in_state("active", job.group)]
            unsettled, running = self.model.recall(held, self.now)
            same((answer.cursor, sorted(answer.unsettled)), ("0", sorted(unsettled)))
            same(sorted(answer.running), sorted(running))
        elif self.kind.extras:
            self.cancel([job.id])

    def carry_out(self, request: Request) -> None:
        """Ask for rows with every request. Their length does not matter when a request is resent."""
        super().carry_out(replace(request, row=request.row + 1))

    # Looking

    def unbegun(self) -> list[Job]:
        """The jobs that workers hold and that are not known to have begun."""
        return [job for job in self.model.leased() if job.lease and not job.lease.begun]

    def aimed(self, wish: draws.Wish) -> draws.Wish:
        """The same wish, for a job that is not known to have begun."""
        unbegun = self.unbegun()
        return replace(wish, which=self.model.leased().index(unbegun[wish.which % len(unbegun)])) if unbegun else wish


def fence_of(job: Job) -> int:
    return job.lease.fence if job.lease else 0
