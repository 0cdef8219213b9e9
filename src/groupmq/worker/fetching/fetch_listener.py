"""The listener of the fetcher: it receives jobs and answers, and says how many slots are free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from groupmq.protocol.commands import Expired, Stalled, Taken
from groupmq.worker.fetching.demand import FreeSlots
from groupmq.worker.fetching.requester import Requester
from groupmq.worker.running.outcome import RunReport


class FetchListener(FreeSlots, Protocol):
    """Receives the jobs and answers that the fetcher gets: the dispatcher."""

    def take_on(
        self,
        taken: list[Taken],
        rows: Sequence[int],
        now: int,
        requester: Requester,
        leases_end: float,
        starts: int,
    ) -> None:
        """Run these jobs. The first `starts` rows start now, the others are a reserve.

        `now` by the server's clock; `leases_end`, when their leases end at the earliest, by this process's clock.
        """

    def give_back(self, taken: list[Taken], now: int, requester: Requester) -> None:
        """Do not run these jobs: the server may have taken them back already."""

    def use_reserve(self, asked: int, wanted: int) -> None:
        """Fill free slots, except `asked` of them, from the reserve; give back jobs that another worker wants."""

    def accepted(self, reports: Sequence[RunReport], now: int) -> None: ...
    def refused(self, report: RunReport) -> None: ...
    def ended_by_time(self, stalled: Sequence[Stalled], expired: Sequence[Expired]) -> None:
        """The call has taken back these leases, of any worker, and failed these jobs past their ttl."""

    def dry(self) -> None:
        """An answer has said that nothing is ready."""

    def became_idle(self) -> None:
        """There is nothing to report, and no call is under way."""

    @property
    def shares_slots(self) -> bool:
        """Whether other workers use the same slots."""

    def may_start(self, asked: int) -> int:
        """How many of `asked` jobs of an overdue call may start: other workers may have taken the slots since."""

    def call_overdue(self) -> None:
        """A call has failed or takes long: slots that it asked for may be used by other workers."""

    def vacant(self) -> int:
        """Free slots of this worker, even if the workers with which it shares them leave it none."""

    def call_ended(self) -> None:
        """A call is over: slots that it asked for and did not fill are free."""
