"""Rules of the state machine: an idle worker offers a slot, an add grants a job to it, and the job may not arrive."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from groupmq.protocol import commands
from tests.model import strategies as draws
from tests.model.granting import GRACE
from tests.model.pair import same
from tests.model.work import LEASE, REQUESTER, Work


class Grants(Work):
    def offer(self, requester: tuple[str, str], lease_ms: int) -> None:
        """A worker asks for jobs, and offers a slot if there is none."""
        self.requests += -self.requests % 2
        self.advance(requester, [], 2, lease_ms)
        self.look()

    @rule(requester=REQUESTER, item=draws.items(), lease_ms=LEASE, reads=st.booleans(), again=st.booleans())
    def an_idle_worker_offers_a_slot_and_a_job_comes(
        self, requester: tuple[str, str], item: draws.Item, lease_ms: int, reads: bool, again: bool
    ) -> None:
        """The worker may receive the job, may call before it has received it, perhaps woken by the marker of another
        job, or may leave."""
        self.offer(requester, lease_ms)
        self.add([at_once(item)])
        if reads:
            self.a_worker_pops_its_grant(received=not again)
        if again:
            if item.order_ms is None:
                self.add(
                    [replace(item, id=f"job-{crc32(item.id.encode()) % 20}", group=item.group + 1, when=(0, None))]
                )
                self.take_marker(requester[0])
            self.look()
            self.advance(requester, [], 1, lease_ms)
        elif item.priority:
            self.leave(requester, self.received.get(requester[0], 0))

    def leave(self, requester: tuple[str, str], received: int | None) -> None:
        same(self.call(commands.leave([requester[0]], [requester[1]], received, self.now)), 1)
        self.model.leave(*requester, received)
        self.last.pop(requester[1], None)

    @rule(received=st.booleans())
    def a_worker_pops_its_grant(self, received: bool) -> None:
        """The server hands the job out. Unless it is `received`, the reply is lost or late."""
        grant = self.model.grant
        if grant is not None and not grant.read:
            self.calls += 1
            assert self.client.zpopmin(self.connection.session.keys.grants(grant.worker)), "the job is not there"
            self.model.receive_grant()
            if received:
                self.received[grant.worker] = grant.fence

    @precondition(lambda self: self.model.next_due(self.now))
    @rule(requester=REQUESTER, item=draws.items(), lease_ms=LEASE)
    def a_job_comes_to_an_idle_worker_when_another_one_is_due(
        self, requester: tuple[str, str], item: draws.Item, lease_ms: int
    ) -> None:
        self.offer(requester, lease_ms)
        self.go_to(max(self.now, self.model.next_due(self.now) or 0))
        self.add([at_once(item)])

    @precondition(lambda self: self.model.grant)
    @rule(requester=REQUESTER, handed_out=st.booleans(), lease_ms=LEASE)
    def another_worker_asks_while_a_grant_has_not_arrived(
        self, requester: tuple[str, str], handed_out: bool, lease_ms: int
    ) -> None:
        """The reply with the job is lost, or its worker does not wait for it."""
        if handed_out:
            self.a_worker_pops_its_grant(received=False)
        self.go_to(self.now + GRACE)
        self.advance(requester, [], 1, lease_ms)


def at_once(item: draws.Item) -> draws.Item:
    return replace(item, when=(0, None), ttl=0, dedupe=None)
