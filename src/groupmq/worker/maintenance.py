"""Which duties a worker has beside its jobs, and how often it runs them."""

from __future__ import annotations

from groupmq.client.job import Job
from groupmq.client.operations import Operations, one
from groupmq.core.options import WorkerOptions
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy
from groupmq.worker.duties import AgeRetention, PresenceCleanup, Recovery, Scheduler
from groupmq.worker.duties.duty import CarryOut
from groupmq.worker.duties.runner import DutyRunner
from groupmq.worker.reachability import Reachability
from groupmq.worker.telemetry import Telemetry


class Maintenance:
    """Repeating jobs, retention by age, dead workers, and the longest time until expired leases are noticed."""

    def __init__(
        self,
        options: WorkerOptions,
        policy: Policy,
        operations: Operations[Job],
        carry_out: CarryOut,
        reachability: Reachability,
        telemetry: Telemetry,
    ) -> None:
        self.scheduler = Scheduler(operations, carry_out)
        recovery = Recovery(lambda: one(commands.due(policy)), carry_out, telemetry.stalled)
        cleanup = AgeRetention(operations, carry_out), PresenceCleanup(operations, carry_out)
        self._ticking = DutyRunner(self.scheduler, options.stalled_interval, reachability, prompt=True)
        self._runners = [
            self._ticking,
            DutyRunner(recovery, options.stalled_interval, reachability),
            *(DutyRunner(duty, options.cleanup_interval, reachability) for duty in cleanup),
        ]
        self._started = False

    def start(self) -> None:
        self._started = True
        for runner in self._runners:
            runner.start()

    def tick_in(self, wait_ms: int) -> None:
        """A repeating job is due in `wait_ms`; without maintenance, another process adds it."""
        if self._started:
            self._ticking.due_in(wait_ms)

    async def close(self) -> None:
        for runner in self._runners:
            await runner.close()
