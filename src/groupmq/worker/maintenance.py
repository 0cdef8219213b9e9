"""Which duties a worker has beside its jobs, and how often it runs them."""

from __future__ import annotations

from groupmq.client.queue.caller import Caller
from groupmq.core.worker_options import WorkerOptions
from groupmq.worker.duties import AgeRetention, PresenceCleanup, Recovery, Scheduler
from groupmq.worker.duties.runner import DutyRunner
from groupmq.worker.live import LiveSettings
from groupmq.worker.reachability import Reachability
from groupmq.worker.telemetry import Telemetry


class Maintenance:
    """Repeating jobs, retention by age, dead workers, and the longest time until expired leases are noticed."""

    def __init__(
        self,
        options: WorkerOptions,
        live: LiveSettings,
        call: Caller,
        reachability: Reachability,
        telemetry: Telemetry,
    ) -> None:
        self.scheduler = Scheduler(call)
        recovery = Recovery(call, lambda: live.now().policy, telemetry.stalled, telemetry.expired)
        cleanup = AgeRetention(call, lambda: live.queue), PresenceCleanup(call)
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
