"""Calls, answers, hints and reports in any order: a worker never asks for too much, and never forgets to ask."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from groupmq.worker.fetching.demand import TOO_SOON, NextCall, RequesterDemand
from tests.unit.worker.fetching.demands import NOTHING, SLEEP, demand


class AnyOrder(RuleBasedStateMachine):
    """A worker, its server and its operators, in any order of events."""

    def __init__(self) -> None:
        super().__init__()
        self.demand = demand(6)
        self.running = 0
        self.reports = [0, 0]
        self.under_way: dict[int, NextCall] = {}
        self.now = 0.0

    def free(self) -> int:
        return 6 - self.running

    def unstarted(self) -> int:
        return 0

    @rule(requester=st.integers(0, 1))
    def pump(self, requester: int) -> None:
        self.now += 0.01
        state, waiting = self.demand.requesters[requester], self.reports[requester]
        before = self.demand.phase
        wanted = self.demand.next_call(state, self, waiting, self.now)
        assert wanted != TOO_SOON
        if isinstance(wanted, NextCall):
            assert requester not in self.under_way
            assert wanted.take or waiting, "a call must take or report"
            assert before == "taking" or not wanted.take
            self.demand.sent(self.now, large=wanted.large)
            self.under_way[requester], self.reports[requester] = wanted, 0
        elif requester not in self.under_way:
            assert not waiting, "an outcome must not wait while its requester is free"
            assert before != "taking" or not self.demand.wants or self.free() <= self.demand.asked

    @rule(requester=st.integers(0, 1), share=st.floats(0, 1), wait_ms=st.sampled_from([NOTHING, 0, 100]))
    def answers(self, requester: int, share: float, wait_ms: int) -> None:
        if requester not in self.under_way:
            return
        brought = int(self.under_way.pop(requester).take * share)
        self.running += brought
        state = self.demand.requesters[requester]
        asked = self.demand.ended(state).asked
        after = self.demand.answered(state, asked, brought, wait_ms, 0, self.free(), reports_wait=any(self.reports))
        assert not (after.dry and any(self.reports))
        if asked and not self.demand.wants:
            assert after.sleep is not None, "a worker that does not ask must have a timer"
            assert 0 < after.sleep <= SLEEP

    @rule(requester=st.integers(0, 1))
    def a_run_ends(self, requester: int) -> None:
        if self.running:
            self.running -= 1
            self.reports[requester] += 1
            self.demand.requesters[requester].hurry()

    @rule()
    def hint(self) -> None:
        self.demand.hint()
        assert self.demand.wants

    @rule()
    def stop_taking(self) -> None:
        self.demand.stop_taking()

    @invariant()
    def slots_are_never_promised_twice(self) -> None:
        assert self.running + self.demand.asked <= 6
        assert self.demand.busy == bool(self.under_way)
        assert self.demand.unsent == 0


TestAnyOrder = AnyOrder.TestCase


@given(st.integers(1, 300), st.booleans())
def test_requesters_share_all_slots(concurrency: int, exclusive: bool) -> None:
    made = demand(concurrency, exclusive=exclusive)
    assert made._share * len(made.requesters) >= concurrency
    assert all(isinstance(requester, RequesterDemand) for requester in made.requesters)
