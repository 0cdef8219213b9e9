"""The state machine with handlers of batches: workers take several jobs of a group that start at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from groupmq.protocol import commands
from tests.model import strategies as draws
from tests.model.machine import QueueMachine
from tests.model.pair import same
from tests.model.parts import Report, Request
from tests.model.work import LEASE, REQUESTER

SIZES = st.sampled_from((1, 2, 3))
WAITS = (0, 0, 300, None)
"""ms to wait for a full batch, by the number of the request; None = a worker that takes single jobs."""
KINDS = ("plain", "default", "steady", "event time", "arrival", "max group", "silent", "hold", "some hold", "breaker")


class BatchMachine(QueueMachine):
    """All rules, with similar jobs of few groups."""

    kinds: Sequence[draws.Kind] = [kind for kind in draws.KINDS if kind.name in KINDS]

    @initialize(
        setup=draws.setups(concurrency=(1, 1, 1, 2), max_attempts=(3, 2, 3, 2, 1)),
        kind=st.sampled_from(range(len(draws.KINDS))),
        items=st.lists(draws.alike(), min_size=4, max_size=8),
    )
    def begin(self, setup: draws.Setup, kind: int, items: list[draws.Item]) -> None:
        super().begin(setup, kind, items)

    @rule(
        items=st.lists(draws.alike(), min_size=2, max_size=5),
        where=st.integers(-1, 2),
        requester=REQUESTER,
        take=st.integers(1, 3),
        lease_ms=LEASE,
        size=SIZES,
    )
    def jobs_come_and_are_taken(
        self, items: list[draws.Item], where: int, requester: tuple[str, str], take: int, lease_ms: int, size: int
    ) -> None:
        if self.model.paused:
            self.pause_queue(0, 0)
        self.add([replace(item, group=where) for item in items])
        self.advance(requester, [], take, lease_ms, size)

    @precondition(lambda self: any(len(batch) > 1 for batch in self.running()))
    @rule(
        requester=REQUESTER,
        which=st.integers(0, 7),
        failed=st.integers(0, 3),
        kind=st.sampled_from(("retry", "fail", "snooze", "complete", "release")),
        take=st.integers(0, 2),
        lease_ms=LEASE,
        size=SIZES,
    )
    def a_batch_ends(
        self, requester: tuple[str, str], which: int, failed: int, kind: str, take: int, lease_ms: int, size: int
    ) -> None:
        """As a worker reports it: some jobs complete, one ends in some other way, the rest are given back."""
        batches = [batch for batch in self.running() if len(batch) > 1]
        batch, leases = batches[which % len(batches)], [job.id for job in self.model.leased()]
        at = failed % len(batch)
        kinds = ["complete"] * at + [kind] + ["release"] * (len(batch) - at - 1)
        ends = zip(batch, kinds, strict=True)
        wishes = [draws.Wish(leases.index(job_id), how, None, 500, "own") for job_id, how in ends]
        self.advance(requester, wishes, take, lease_ms, size)

    @precondition(lambda self: self.model.in_state("active"))
    @rule(worker=st.sampled_from(sorted({worker for worker, _ in draws.REQUESTERS})), wrong=st.integers(0, 7))
    def a_supervisor_takes_back_what_a_dead_worker_held(self, worker: str, wrong: int) -> None:
        """The supervisor names all leases, possibly one with an older fence. Only leases of that worker end."""
        held = [(job.id, job.lease.fence - (at == wrong)) for at, job in enumerate(self.model.leased()) if job.lease]
        answer = self.call(commands.take_back(worker, held, self.model.policy, self.now))
        same(answer, self.model.take_back_of(worker, held, self.now))

    def running(self) -> list[list[str]]:
        """The jobs of the last answers' batches that still run, in order."""
        leases = {job.id: job.lease.fence for job in self.model.leased() if job.lease}
        found = []
        for requester, batches in sorted(self.model.batches.items()):
            fences = dict(self.model.requesters[requester].leases) if requester in self.model.requesters else {}
            for batch in batches:
                mine = [job_id for job_id in batch if job_id in leases and leases[job_id] == fences.get(job_id)]
                found.append(sorted(mine, key=lambda job_id: leases[job_id]))
        return found

    def ask(
        self,
        requester: tuple[str, str],
        reports: tuple[Report, ...],
        take: int,
        lease_ms: int,
        row: int = 1,
        fill: int = 0,
    ) -> None:
        """Report first, which also handles everything due, and take in a second call: from a group that the same call
        has changed, only the head is taken, and it is not promised what counts as a change."""
        super().ask(requester, reports, 0, lease_ms)
        self.look()
        super().ask(requester, (), take, lease_ms, row)

    def carry_out(self, request: Request) -> None:
        """Ask for batches with every request. The size does not matter when a request is sent again."""
        wait = WAITS[request.number % len(WAITS)]
        size = request.row + 1 if wait is not None else 1
        super().carry_out(replace(request, row=size, fill=0, together=wait))
