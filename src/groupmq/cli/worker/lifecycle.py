"""The workers of this process: started, watched, and ended step by step."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import Any, TypeVar

from groupmq import ConnectionLost, GroupMQError, ServerRefused, Worker
from groupmq.cli.exits import DONE, code_of
from groupmq.cli.output import logs
from groupmq.cli.output.tables import number
from groupmq.cli.worker.health import ProcessReport
from groupmq.cli.worker.loading import make_workers
from groupmq.cli.worker.plan import WorkerPlan
from groupmq.cli.worker.signals import SignalSteps
from groupmq.cli.worker.worker_set import WorkerSet

T = TypeVar("T")
_logger = logging.getLogger("groupmq.cli")
_TICK = 1.0
_NEW_OBJECTS = 5000
"""New objects after which the garbage collector runs."""
_LINGER = 5.0
"""Seconds a process may take to end once its work is over; threads that handlers left behind could keep it alive."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end, with uvloop where it is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


def calm_collector() -> None:
    """Have the garbage collector pass over all that is loaded by now, and look at new objects less often.

    Each job makes a few objects that die with it. By default the collector runs for every seventy jobs, and at times
    walks through every imported module, which took a sixth of the time of a worker with short handlers.
    """
    gc.collect()
    gc.freeze()
    first, *others = gc.get_threshold()
    if 0 < first < _NEW_OBJECTS:  # 0 = switched off
        gc.set_threshold(_NEW_OBJECTS, *others)


class WorkerLifecycle:
    """A worker's life in this process. `publish` gets a report at each step, and once a second."""

    def __init__(
        self, plan: WorkerPlan, process: int, publish: Callable[[ProcessReport], None], link: socket.socket | None
    ) -> None:
        self._plan = plan
        self._publish = publish
        self._link = link
        self.report = ProcessReport(process, os.getpid())
        self.workers: WorkerSet | None = None
        self._trouble_at = 0.0
        self._task: asyncio.Task[Any] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._stages: SignalSteps | None = None

    async def run(self, started: Callable[[WorkerSet], None] = lambda workers: None) -> int:
        """Work until stopped; returns the exit code."""
        self._task = asyncio.current_task()
        self._stages = SignalSteps(self._drain, self._give_back)
        self._stages.install()
        if self._link is not None:
            self._link.setblocking(False)
            asyncio.get_running_loop().add_reader(self._link, self._link_moved)
        pulse = asyncio.create_task(self._pulse())
        code = DONE
        try:
            await self._work(started)
        except asyncio.CancelledError:
            _logger.info("stopped while starting; there were no jobs to drain")
        except GroupMQError as error:
            logs.last_words(str(error), self._plan.log_format)
            logging.disable(logging.WARNING)  # no warning that the module's own workers never started
            code = code_of(error)
        finally:
            pulse.cancel()
            if self._link is not None:
                asyncio.get_running_loop().remove_reader(self._link)
            _leave(code)
        return code

    async def _work(self, started: Callable[[WorkerSet], None]) -> None:
        self.workers = workers = await make_workers(self._plan, self._waiting)
        if workers is None:
            _logger.info("queue %s does not exist yet; nothing to do", ", ".join(self._plan.queues))
            return
        try:
            calm_collector()
            for worker in workers:
                worker.on("error", self._trouble)
            started(workers)
            # Before the first job: a supervisor must know what to give back if this process dies.
            self.report.bequests = [bequest for worker in workers if (bequest := worker.bequest())]
            self._report_state()
            await workers.start()
            self._report_state("running")
            for line in workers.described():
                _logger.info("%s", line)
            await workers.run(burst=self._plan.burst)
        finally:
            await workers.close_queues()
        for worker in workers:
            metrics = worker.get_worker_metrics()
            _logger.info("worker %s ended; it ran %s", worker.name, number(metrics.runs_ended, "job"))

    # Ending

    def _drain(self) -> None:
        workers = self.workers
        if workers is None or self.report.state in ("starting", "waiting"):
            if self._task is not None:
                self._task.cancel()
            return
        running = workers.running()
        _logger.info(
            "stopping: %s %s %g s to end; signal again to give %s back now",
            number(running, "running job"),
            "has" if running == 1 else "have",
            self._plan.drain_timeout,
            "it" if running == 1 else "them",
        )
        self._report_state("draining")
        self._close(workers, self._plan.drain_timeout)

    def _give_back(self) -> None:
        workers = self.workers
        if workers is not None:
            running = number(workers.running(), "running job")
            _logger.info("giving back %s; signal again to exit at once", running)
            self._close(workers, 0)

    def _close(self, workers: WorkerSet, timeout: float) -> None:
        task = asyncio.get_running_loop().create_task(workers.close(timeout))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _link_moved(self) -> None:
        """The supervisor writes nothing to this pipe. Its end can only mean that the supervisor has gone."""
        assert self._link is not None  # noqa: S101
        with contextlib.suppress(BlockingIOError, OSError):
            if self._link.recv(4096):
                return
        asyncio.get_running_loop().remove_reader(self._link)
        if self._stages is not None and self._stages.received == 0:
            _logger.warning("the supervisor is gone; draining")
            self._stages.next()

    # Reporting

    async def _pulse(self) -> None:
        while True:
            self._report_state()
            await asyncio.sleep(_TICK)

    def _waiting(self, reachable: bool) -> None:
        self.report.ready = reachable
        self._report_state("waiting")

    def _trouble(self, error: BaseException) -> None:
        if isinstance(error, ConnectionLost | ServerRefused):
            self._trouble_at = time.monotonic()

    def _report_state(self, state: str | None = None) -> None:
        report, workers = self.report, self.workers
        report.loop_seen = time.monotonic()
        report.state = state or report.state
        if workers is not None:
            health = [worker.health() for worker in workers]
            report.patience = 3 * max(worker.heartbeat for worker in workers) + 1
            # Answered since the last error: a lost server makes the worker unready at once, not after a time limit.
            seen = max(one.server_seen for one in health)
            report.ready = all(one.ready for one in health) and time.monotonic() - seen >= self._trouble_at
            report.workers = [_described(worker) for worker in workers]
        self._publish(report)


def _described(worker: Worker) -> dict[str, Any]:
    counters = asdict(worker.get_worker_metrics())
    del counters["name"]
    counters["limited"] = counters["rate_limited"]  # its old name, until the next release
    return {"queue": worker.queue.name, "concurrency": worker.concurrency, "counters": counters}


def _leave(code: int) -> None:
    """End soon, whatever threads are left over."""
    timer = threading.Timer(_LINGER, os._exit, (code,))
    timer.daemon = True
    timer.start()
