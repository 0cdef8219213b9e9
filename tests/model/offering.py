"""The state machine with idle workers: they offer a slot, an add grants them a job, and they may not receive it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.model import strategies as draws
from tests.model.machine import QueueMachine
from tests.model.work import LEASE, REQUESTER

WITH_OFFERS = ("plain", "default", "steady", "max group", "silent", "hold", "breaker")
PAUSES = st.sampled_from((0, 60, 150, 150, 1000, 30_000))
"""Milliseconds between the grant and the next call: less and more than a grant is left to its worker, and leases."""


class OfferMachine(QueueMachine):
    """All rules, and many jobs that are granted to a worker which may be gone."""

    kinds: Sequence[draws.Kind] = [kind for kind in draws.KINDS if kind.name in WITH_OFFERS]

    @rule(
        item=draws.alike(),
        where=st.integers(-1, 2),
        idle=REQUESTER,
        pause=PAUSES,
        caller=REQUESTER,
        take=st.integers(0, 2),
        lease_ms=LEASE,
    )
    def a_job_is_granted_and_somebody_calls(
        self,
        item: draws.Item,
        where: int,
        idle: tuple[str, str],
        pause: int,
        caller: tuple[str, str],
        take: int,
        lease_ms: int,
    ) -> None:
        if self.model.paused:
            self.pause_queue(0, 0)
        self.requests += self.requests % 2  # the next request offers a slot
        self.advance(idle, [], 4, lease_ms)
        self.add([replace(item, group=where)])
        self.look()
        self.go_to(self.now + pause)
        self.advance(caller, [], take, lease_ms)
