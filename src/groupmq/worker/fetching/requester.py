"""A requester makes one numbered call to the server at a time, and collects the outcomes that its next call reports."""

from __future__ import annotations

import threading
from collections.abc import Callable

from groupmq.worker.fetching.demand import RequesterDemand
from groupmq.worker.fetching.portions import portion_of
from groupmq.worker.running.outcome import RunReport


class Requester:
    """At most one call under way. The server remembers the reply to the last one, so a lost call can be sent again."""

    __slots__ = (
        "_lock",
        "_on_report",
        "_on_slot",
        "demand",
        "name",
        "reports",
        "request",
        "row_ended",
        "row_started",
        "sent",
    )

    def __init__(
        self, name: str, demand: RequesterDemand, on_report: Callable[[], None], on_slot: Callable[[], None]
    ) -> None:
        self.name = name
        self.demand = demand
        # Bound directly, without a method in between: they are called for each row.
        self.row_started, self.row_ended = demand.row_started, demand.row_ended
        self._on_report = on_report
        self._on_slot = on_slot
        self._lock = threading.Lock()
        """Held to take reports out: by the loop, or by the heartbeat thread when the loop is blocked."""
        self.reports: list[RunReport] = []
        """Reports to be sent."""
        self.sent: list[RunReport] = []
        """Reports in the call under way."""
        self.request = 0
        """The number of the last call."""

    # From the executor

    def report(self, report: RunReport) -> None:
        self.reports.append(report)
        self.demand.hurry()
        self._on_report()

    def report_later(self, report: RunReport) -> None:
        self.reports.append(report)

    def slot_freed(self) -> None:
        if self.reports:  # the run that would have caused their call is over
            self.demand.hurry()
        self._on_slot()

    # From the fetcher

    def begin_call(self, *, kept: bool) -> None:
        """A call was decided. It sends as many reports as one call may (`portion_of`), the next one sends the rest."""
        with self._lock:
            self.sent = self.reports[: portion_of(self.reports, kept=kept)]
            # Emptied in place, here and in `take_unsent`: another thread may be about to append to this list.
            del self.reports[: len(self.sent)]
        if self.reports:
            self.demand.hurry()
        self.request += 1

    def end_call(self) -> list[RunReport]:
        """The call is over, with an answer or without one; returns the reports that it sent."""
        sent, self.sent = self.sent, []
        return sent

    # From the heartbeat thread

    def unanswered(self) -> list[RunReport]:
        """The reports that the server has not answered."""
        # The order matters: meanwhile the loop may move some from the first list to the second.
        return [*self.reports, *self.sent]

    def take_unsent(self) -> list[RunReport]:
        """Take over the reports that a blocked event loop has not sent."""
        with self._lock:
            taken = self.reports[:]
            del self.reports[: len(taken)]
        return taken
