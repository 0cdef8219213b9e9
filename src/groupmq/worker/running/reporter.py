"""The interface of what an executor reports to: the requester that took the job (`fetching/requester.py`)."""

from __future__ import annotations

from typing import Protocol

from groupmq.worker.running.outcome import RunReport


class Reporter(Protocol):
    """A requester as the executor uses it. It reports the jobs that it took, so outcomes of a group stay in order."""

    def report(self, report: RunReport) -> None:
        """Send this with the next call, as soon as one can be made."""

    def report_later(self, report: RunReport) -> None:
        """Send this with the next call, which another report of this requester will ask for."""

    def slot_freed(self) -> None:
        """A run has ended, or does not begin, without anything to report: its slot may be filled."""

    def row_ended(self) -> None:
        """All jobs of a row that this requester has taken have ended or gone back."""
