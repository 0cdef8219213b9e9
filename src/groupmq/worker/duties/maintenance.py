"""Which duties a worker has beside its jobs, and how often it runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from groupmq.client.duties.due_work import DueWork
from groupmq.client.duties.presence import PresenceCleanup
from groupmq.client.duties.retention import AgeRetention
from groupmq.client.duties.scheduler import Scheduler
from groupmq.client.queue.caller import Caller
from groupmq.core.views import DutyReport
from groupmq.core.worker_options import WorkerOptions
from groupmq.worker.duties.duty_runner import DutyRunner
from groupmq.worker.live_settings import LiveSettings
from groupmq.worker.reachability import Reachability
from groupmq.worker.telemetry import Telemetry


class Maintenance:
    """The duties of one worker: repeating jobs, due jobs and expired leases, retention by age, dead workers."""

    def __init__(
        self,
        options: WorkerOptions,
        live: LiveSettings,
        call: Caller,
        reachability: Reachability,
        telemetry: Telemetry,
    ) -> None:
        self.scheduler = Scheduler(call)
        due_work = DueWork(call, lambda: live.now().policy)
        cleanup = AgeRetention(call, lambda: live.queue), PresenceCleanup(call)
        self._ticking = DutyRunner(self.scheduler, options.stalled_interval, reachability, prompt=True)
        self._runners = [
            self._ticking,
            DutyRunner(due_work, options.stalled_interval, reachability, telemetry.duty_done),
            *(DutyRunner(duty, options.cleanup_interval, reachability) for duty in cleanup),
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


class AcrossPartitions:
    """The duty to clean up data that concerns several partitions of a queue."""

    task = PresenceCleanup.task

    def __init__(self, clean: Callable[[], Awaitable[int]]) -> None:
        self._clean = clean

    async def run_once(self) -> DutyReport:
        return DutyReport(await self._clean())
