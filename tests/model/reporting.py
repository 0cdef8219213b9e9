"""Rules: reports of workers while jobs run, and their replies: heartbeats, progress and logs, cancelled runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from tests.model import strategies as draws
from tests.model.pair import same
from tests.model.parts import Lease, Progress, Report, State
from tests.model.repeating import Repeating
from tests.model.work import LEASE, OWN, REQUESTER

LIVE: tuple[State, ...] = ("waiting", "delayed", "active")


class Reporting(Repeating):
    @rule(
        requester=REQUESTER,
        info=st.sampled_from((None, '{"a": 1}')),
        lease_ms=LEASE,
        held=st.lists(st.tuples(st.integers(0, 7), st.sampled_from(("own", "own", "old", "next"))), max_size=4),
        leaves=st.sampled_from((False, False, False, True)),
    )
    def beat(
        self, requester: tuple[str, str], info: str | None, lease_ms: int, held: list[tuple[int, str]], leaves: bool
    ) -> None:
        worker = None
        if self.model.options.exclusive:
            worker, lease_ms = requester[0], draws.LEASES[0]  # the turn is renewed with the leases of its worker
        leases = [self.lease(which, fence, worker) for which, fence in held]
        self.take_mail(requester[0])
        refuses = self.received.get(requester[0], 0) if leases and lease_ms == draws.LEASES[0] else None
        # With one lease to renew, the worker also reports as unseen the last answer, or a call that never arrived.
        last = self.model.requesters.get(requester[1])
        unseen = (
            (requester[1], last.number + int(held[0][0] == 7))
            if last and refuses is not None and len(held) == 1
            else None
        )
        keep = self.model.policy.keep if unseen else None
        beat = commands.beat(requester[0], info, lease_ms, leases, self.now, refuses=refuses, unseen=unseen, keep=keep)
        answer = self.call(beat)
        same(answer.taken_back, unseen is not None and self.model.take_back_unseen(*unseen, self.now))
        lost, wanted, *asked = self.model.beat(requester[0], info, lease_ms, leases, self.now, refuses)
        same(answer.void, 0 if refuses is None else self.model.stamp)
        same((answer.lost, answer.tick_ms, answer.wanted), (lost, self.model.until_tick(self.now), wanted))
        same([sorted(answer.cancelled), sorted(answer.ended), sorted(answer.recalled)], asked)
        if leaves:
            self.leave(requester, self.received.get(requester[0], 0) if info is None else None)

    @precondition(lambda self: self.model.turn and not self.model.paused)
    @rule(item=draws.items(), ms=st.sampled_from((0, 0, 1, -1)))
    def work_comes_and_the_heartbeat_of_the_holder_is_late(self, item: draws.Item, ms: int) -> None:
        turn = self.model.turn
        assert turn is not None
        self.go_to(max(self.now, turn.deadline + ms))
        self.add([replace(item, when=(0, None), dedupe=None)])
        requester = next(requester for requester in draws.REQUESTERS if requester[0] == turn.worker)
        self.beat(
            requester, None, draws.LEASES[0], [(n, "own") for n in range(len(self.model.in_state("active")))], False
        )

    def take_mail(self, worker: str) -> None:
        """Receive the mail that a worker's heartbeat waits for."""
        if worker in self.model.mail:
            self.calls += 1
            self.client.zpopmin(self.connection.session.keys.mail(worker))
            self.model.mail.discard(worker)

    # Handlers

    @precondition(lambda self: self.kind.extras and self.model.in_state("active"))
    @rule(words=st.lists(draws.words(), min_size=1, max_size=3), many=st.sampled_from((0, 0, 101)))
    def handlers_say_something(self, words: list[draws.Word], many: int) -> None:
        said = [Progress(*self.lease(word.which, word.fence), word.progress, word.line) for word in words]
        for one in said + [replace(said[0], progress=None, line=str(n)) for n in range(many)]:
            if one.progress is not None:
                self.report_progress(one, commands.report_progress(one.id, one.fence, one.progress, self.now))
            if one.line is not None:
                self.append_log(one, commands.append_log(one.id, one.fence, one.line, self.now))

    def report_progress(self, said: Progress, call: Call[bool]) -> None:
        same(self.call(call), self.model.report_progress(said, self.now))

    def append_log(self, said: Progress, call: Call[bool]) -> None:
        same(self.call(call), self.model.append_log(said, self.now))

    # Cancelling

    @precondition(lambda self: self.kind.extras and self.model.live_groups())
    @rule(
        what=st.sampled_from(("runs", "jobs", "group")),
        which=st.integers(0, 12),
        detail=st.integers(0, 4),
        beats=st.booleans(),
        info=st.sampled_from((None, "{}")),
    )
    def somebody_cancels(self, what: str, which: int, detail: int, beats: bool, info: str | None) -> None:
        """`beats`: the heartbeats of all workers come before anything else happens."""
        if what == "group":
            self.cancel_group(which, detail)
        else:
            states: tuple[State, ...] = ("active",) if what == "runs" else LIVE
            self.cancel([self.pick(which, *states), self.pick(detail, *states)])
        for requester in draws.REQUESTERS[1:] if beats else ():
            self.beat(requester, info, draws.LEASES[0], [], leaves=False)

    @precondition(lambda self: self.cancelled_runs())
    @rule(requester=REQUESTER, wishes=st.lists(OWN, max_size=1), take=st.integers(0, 2), lease_ms=LEASE)
    def a_cancelled_run_ends(
        self, requester: tuple[str, str], wishes: list[draws.Wish], take: int, lease_ms: int
    ) -> None:
        """Its worker reports an outcome, or its lease expires."""
        at, lease = self.cancelled_runs()[0]
        if not wishes:
            self.go_to(max(self.now, lease.deadline))
        self.advance(requester, [replace(wish, which=at) for wish in wishes], take, lease_ms)

    def cancelled_runs(self) -> list[tuple[int, Lease]]:
        """The leases of cancelled runs, each with its index among all leases."""
        leases = [job.lease for job in self.model.jobs.values() if job.lease]
        return [(at, lease) for at, lease in enumerate(leases) if lease.cancelled]

    def cancel(self, ids: list[str]) -> None:
        same(self.call(commands.cancel(ids, self.now)), (self.model.cancel(ids, self.now), 0))

    def cancel_group(self, which: int, detail: int) -> None:
        group, limit = self.groups[which % len(self.groups)], 1 + detail
        answer = self.call(commands.cancel_group(group, limit, self.now))
        found, left = self.model.cancel_group(group, limit, self.now)
        same((sorted(answer.found), answer.left), (sorted(found), left))

    @precondition(lambda self: self.model.stopping)
    @rule(
        requester=REQUESTER,
        which=st.integers(0, 3),
        how=st.sampled_from(("ended", "complete", "fail", "lease")),
        take=st.integers(0, 2),
        times=st.sampled_from((1, 2)),
    )
    def a_stopping_run_ends(self, requester: tuple[str, str], which: int, how: str, take: int, times: int) -> None:
        """Its worker reports the end, possibly twice, or an outcome that comes too late, or its lease expires."""
        fence, stop = sorted(self.model.stopping.items())[which % len(self.model.stopping)]
        if how == "lease":
            self.go_to(max(self.now, stop.deadline))
            self.advance(requester, [], take, draws.LEASES[0])
        else:
            kind: Any = how
            self.ask(requester, (Report(kind, stop.job_id, fence),) * times, take, draws.LEASES[0])

    def pick(self, which: int, *states: State) -> str:
        """The id of a job, in one of these states if there is one; 0 = an id that does not exist."""
        jobs = [job.id for state in states for job in self.model.in_state(state)] or list(self.model.jobs)
        return sorted(jobs)[which % len(jobs)] if which and jobs else "never added"
