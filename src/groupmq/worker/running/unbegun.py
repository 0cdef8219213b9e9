"""Runs that have a slot and whose handler has not been called yet.

The event loop begins them. The heartbeat thread takes them back if an operator asks for a job, or if the loop is
blocked. Both remove a run from the set first, which is atomic and succeeds once, so every run goes to exactly one of
the two, without a lock.
"""

from __future__ import annotations

from groupmq.worker.running.runs import AnyRun


class Unbegun(set[AnyRun]):
    """Runs that may still be taken back."""

    def claim(self, run: AnyRun) -> bool:
        """Take a run out of the set, to begin it or give it back. False: it began, or the other thread was faster."""
        try:
            self.remove(run)
        except KeyError:
            return False
        return True

    def claim_all(self) -> list[AnyRun]:
        return [run for run in tuple(self) if self.claim(run)]
