"""The state machine in which more delayed jobs are due than one call can promote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.model import strategies as draws
from tests.model.machine import QueueMachine
from tests.model.work import FILL, LEASE, REQUESTER, ROW

DELAY = 50


class BacklogMachine(QueueMachine):
    """All rules, and often several jobs of few groups that become due together."""

    joins = 2
    kinds: Sequence[draws.Kind] = [kind for kind in draws.KINDS if "rate" not in kind.name]

    @rule(
        items=st.lists(draws.items(), min_size=3, max_size=6),
        early=st.lists(st.integers(0, 20), min_size=6, max_size=6),
        requester=REQUESTER,
        take=st.integers(1, 3),
        lease_ms=LEASE,
        row=ROW,
        fill=FILL,
    )
    def many_become_due_and_somebody_asks(
        self,
        items: list[draws.Item],
        early: list[int],
        requester: tuple[str, str],
        take: int,
        lease_ms: int,
        row: int,
        fill: int,
    ) -> None:
        self.add([replace(item, when=(DELAY - n, None)) for item, n in zip(items, early, strict=False)])
        self.go_to(self.now + DELAY)
        self.advance(requester, [], take, lease_ms, row, fill)

    @precondition(lambda self: self.model.overdue_to_join(self.now))
    @rule(requester=REQUESTER, take=st.integers(1, 4), lease_ms=LEASE, row=ROW, fill=FILL)
    def somebody_asks_again(self, requester: tuple[str, str], take: int, lease_ms: int, row: int, fill: int) -> None:
        self.advance(requester, [], take, lease_ms, row, fill)
