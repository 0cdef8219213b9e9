"""Which duties a worker has beside its jobs, and how often it runs them."""

from __future__ import annotations

from groupmq.client.duties.queue_duties import QueueDuties
from groupmq.core.worker_options import WorkerOptions
from groupmq.worker.duties.duty_runner import DutyRunner
from groupmq.worker.reachability import Reachability
from groupmq.worker.telemetry import Telemetry


class Maintenance:
    """The duties of one worker: repeating jobs, due jobs and expired leases, retention by age, dead workers."""

    def __init__(
        self,
        options: WorkerOptions,
        duties: QueueDuties,
        reachability: Reachability,
        telemetry: Telemetry,
    ) -> None:
        self.scheduler = duties.scheduler
        self._ticking = DutyRunner(duties.scheduler, options.stalled_interval, reachability, prompt=True)
        self._runners = [
            self._ticking,
            DutyRunner(duties.due_work, options.stalled_interval, reachability, telemetry.duty_done),
            *(DutyRunner(duty, options.cleanup_interval, reachability) for duty in duties.cleanup),
        ]
        self._started = False

    def start(self) -> None:
        self._started = True
        for runner in self._runners:
            runner.start()

    def tick_in(self, wait_ms: int) -> None:
        """A repeating job is due in `wait_ms`; without maintenance here, another process adds it."""
        if self._started:
            self._ticking.due_in(wait_ms)

    async def close(self) -> None:
        for runner in self._runners:
            await runner.close()
