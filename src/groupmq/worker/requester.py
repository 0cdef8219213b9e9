"""A requester makes one numbered call to the server at a time, and collects the outcomes that its next call reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from groupmq.worker.demand import RequesterDemand
from groupmq.worker.outcome import RunReport


class Reporter(Protocol):
    """A requester as the executor uses it. It reports the jobs that it took, so outcomes of a group stay in order."""

    leases_end: float
    """When the leases that its last answer brought end at the earliest, by this process's clock."""

    def report(self, report: RunReport) -> None:
        """Send this with the next call, as soon as one can be made."""

    def report_later(self, report: RunReport) -> None:
        """Send this with the next call, which another report of this requester will ask for."""

    def slot_freed(self) -> None:
        """A run has ended, or does not begin, without anything to report: its slot may be filled."""

    def row_ended(self) -> None:
        """All jobs of a row that this requester has taken have ended or gone back."""


class Requester:
    """At most one call under way. The server remembers the reply to the last one, so a lost call can be sent again."""

    __slots__ = (
        "_on_report",
        "_on_slot",
        "demand",
        "leases_end",
        "name",
        "reports",
        "request",
        "sent",
        "task",
        "urgent",
    )

    def __init__(
        self, name: str, demand: RequesterDemand, on_report: Callable[[], None], on_slot: Callable[[], None]
    ) -> None:
        self.name = name
        self.demand = demand
        self._on_report = on_report
        self._on_slot = on_slot
        self.reports: list[RunReport] = []
        """Reports to be sent."""
        self.urgent = False
        """One of them cannot wait for the end of its row."""
        self.sent: list[RunReport] = []
        """Reports in the call under way."""
        self.leases_end = 0.0
        self.request = 0
        self.task: asyncio.Task[None] | None = None

    def report(self, report: RunReport) -> None:
        self.reports.append(report)
        self.urgent = True
        self._on_report()

    def report_later(self, report: RunReport) -> None:
        self.reports.append(report)

    def slot_freed(self) -> None:
        self.urgent = self.urgent or bool(self.reports)  # the run that would have caused their call is over
        self._on_slot()

    def row_started(self) -> None:
        self.demand.in_hand += 1

    def row_ended(self) -> None:
        self.demand.in_hand -= 1
