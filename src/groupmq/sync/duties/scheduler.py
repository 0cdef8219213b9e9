# Generated from src/groupmq/client/duties/scheduler.py by `make sync`; do not edit.
"""The scheduler: adds the occurrences of repeating jobs."""

from __future__ import annotations

from typing import Any

from groupmq.client.answers.repeats import Definition, tick_of
from groupmq.core.views import DutyReport
from groupmq.protocol import commands
from groupmq.sync.duties.duty import seconds_until
from groupmq.sync.queue.caller import Caller

TICKS_PER_CALL = 25


class Scheduler:
    """Adds a job for each tick of a repeating job that is due. For each tick exactly one scheduler adds a job."""

    task = "add repeating jobs"

    def __init__(self, call: Caller, last_run: int | None = None) -> None:
        self._call = call
        self.last_run = last_run
        """The server's time of the last run. Ticks after it may be late, but are never missed."""

    def run_once(self) -> DutyReport:
        added, watched = 0, self.last_run is not None
        while True:
            due = self._call(commands.repeats_due())
            ticks: list[list[Any]] = []
            errors: list[str] = []
            for rid, raw in due.found.items():
                try:
                    ticks.append(tick_of(rid, Definition.read(raw), due.now, watched=watched))
                except Exception as error:
                    # A definition that cannot be read here (its zone is not known) must not stop the others.
                    errors.append(f"repeat {rid}: {type(error).__name__}: {error}")
            if not ticks:
                self.last_run = due.now
                return DutyReport(added, seconds_until(due.wait_ms), added=added, errors=tuple(errors))
            for at in range(0, len(ticks), TICKS_PER_CALL):
                ticked = self._call(commands.tick(ticks[at : at + TICKS_PER_CALL]))
                added += ticked.added
            watched = True
