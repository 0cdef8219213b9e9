"""Rules: an operator resolves jobs that block their groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from groupmq.protocol import commands
from tests.model import strategies as draws
from tests.model.pair import same
from tests.model.reporting import Reporting
from tests.model.work import LEASE, REQUESTER

ACTS = ("skip", "skip some", "skip group", "retry", "remove", "clean", "take")


class Deciding(Reporting):
    @precondition(lambda self: self.model.blocked)
    @rule(
        what=st.sampled_from(ACTS),
        which=st.integers(0, 7),
        other=st.integers(0, 12),
        requester=REQUESTER,
        take=st.integers(0, 2),
        lease_ms=LEASE,
    )
    def somebody_decides_about_a_blocked_group(
        self, what: str, which: int, other: int, requester: tuple[str, str], take: int, lease_ms: int
    ) -> None:
        """A worker may ask for jobs right after that."""
        blockers = [job.id for group in sorted(self.model.blocked) for job in self.model.blockers(group)]
        job_id = blockers[which % len(blockers)]
        if what == "skip":
            self.skip([job_id])
        elif what == "skip some":
            self.skip([job_id, self.pick(other), blockers[other % len(blockers)]])
        elif what == "skip group":
            self.skip_group(self.model.jobs[job_id].group, 1 + other % 3)
        elif what == "retry":
            same(self.call(commands.retry(job_id, self.now)), self.model.retry(job_id))
        elif what == "remove":
            same(self.call(commands.remove([job_id], None, self.now)), self.model.remove([job_id], None, self.now))
        elif what == "clean":
            answer = self.call(commands.clean("failed", 0, 2, self.now))
            same(answer, self.model.clean("failed", 0, 2, self.now))
        self.look()
        self.advance(requester, [], take, lease_ms)

    def skip(self, ids: list[str]) -> None:
        answer = self.call(commands.skip(ids, self.model.policy.keep, self.now))
        same((answer.changes, answer.left), (self.model.skip(ids, self.now), 0))

    def skip_group(self, group: str, limit: int) -> None:
        answer: Any = self.call(commands.skip_group(group, limit, self.model.policy.keep, self.now))
        same(answer, self.model.skip_group(group, limit, self.now))

    @precondition(lambda self: self.model.uniques)
    @rule(
        item=draws.items(),
        which=st.integers(0, 9),
        ms=st.sampled_from((None, -1, 0)),
        again=st.booleans(),
        removes=st.sampled_from((False, False, True)),
    )
    def an_id_that_may_be_taken_is_used_again(
        self, item: draws.Item, which: int, ms: int | None, again: bool, removes: bool
    ) -> None:
        """Now, just before the id is free, or when it is. `again`: twice in one call."""
        gone = {job_id: taken for job_id, taken in self.model.uniques.items() if job_id not in self.model.jobs}
        job_id, taken = sorted((gone or self.model.uniques).items())[which % len(gone or self.model.uniques)]
        if ms is not None:
            self.go_to(max(self.now, taken.ends + ms))
        if removes:
            same(self.call(commands.remove([job_id], None, self.now)), self.model.remove([job_id], None, self.now))
            self.look()
        self.add([replace(item, id=job_id)] * (1 + again))

    @precondition(lambda self: self.model.breakers)
    @rule(
        which=st.integers(0, 3),
        ms=st.sampled_from((-1, 0, 0, 0)),
        requester=REQUESTER,
        take=st.integers(0, 3),
        lease_ms=LEASE,
        row=st.sampled_from((1, 3)),
        fill=st.sampled_from((0, 5)),
        end=st.sampled_from(("", "complete", "retry", "fail", "snooze", "release")),
    )
    def a_group_that_rests_is_tried(
        self, which: int, ms: int, requester: tuple[str, str], take: int, lease_ms: int, row: int, fill: int, end: str
    ) -> None:
        """Exactly when its breaker allows it, or a millisecond before. The job that was taken may end at once."""
        group = sorted(self.model.breakers)[which % len(self.model.breakers)]
        self.go_to(max(self.now, self.model.opened(group) + ms))
        self.advance(requester, [], take, lease_ms, row, fill)
        runs = [at for at, job in enumerate(self.model.leased()) if job.group == group]
        if end and runs:
            self.advance(requester, [draws.Wish(runs[0], end, None, 0, "own")], take, lease_ms)

    @precondition(lambda self: self.model.in_state("active"))
    @rule(
        requester=REQUESTER,
        which=st.integers(0, 7),
        kind=st.sampled_from(("fail", "snooze")),
        take=st.integers(0, 3),
        lease_ms=LEASE,
    )
    def a_run_fails_for_good_or_snoozes(
        self, requester: tuple[str, str], which: int, kind: str, take: int, lease_ms: int
    ) -> None:
        self.advance(requester, [draws.Wish(which, kind, None, 500, "own")], take, lease_ms)
