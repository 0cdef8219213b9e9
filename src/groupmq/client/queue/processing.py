"""`queue.process`: workers that belong to a queue. They start as soon as they can, and are closed with it."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from groupmq.core.checks import Logger
from groupmq.core.errors import ConfigurationError

if TYPE_CHECKING:
    from groupmq.worker.worker import Handler, Worker


class OwnWorkers:
    """The workers of one queue object. One that never starts is logged.

    The log line is a warning if `process` was called with a handler, since that is a mistake. A decorated handler may
    be run by `groupmq worker` instead, while this process imports its module to add jobs.
    """

    def __init__(self, owner: object, queue: str, logger: Logger) -> None:
        self._queue = queue
        self._logger = logger
        self._all: list[Worker] = []
        self._unstarted: list[Worker] = []
        self._awaited: set[Worker] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        # The names only: the workers themselves would keep the queue alive.
        self._names: list[str] = []
        self._declared: set[str] = set()
        self._end = weakref.finalize(owner, _log_unstarted, queue, self._names, self._declared, logger)

    @property
    def made(self) -> tuple[Worker, ...]:
        return tuple(self._all)

    def add(self, worker: Worker) -> None:
        """Close this worker with the queue."""
        self._all.append(worker)

    def start_soon(self, worker: Worker, *, declared: bool = False) -> None:
        """Start a worker in the background: now if an event loop runs, else with the queue.

        `declared`: its handler was decorated.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._unstarted.append(worker)
            self._names.append(worker.name)
            if declared:
                self._declared.add(worker.name)
            return
        task = loop.create_task(self._start(worker))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, worker: Worker) -> None:
        from groupmq.worker.worker import start_in_background

        if worker in self._awaited:
            return
        try:
            await start_in_background(worker, lambda: worker not in self._awaited)
        except Exception as error:
            self._logger.error(
                "worker %s of queue %s could not be started and takes no jobs: %s", worker.name, self._queue, error
            )

    async def start(self, worker: Worker) -> Worker:
        """Start a worker for a caller who awaits it: a failure is raised."""
        self._awaited.add(worker)
        self._forget(worker)
        return await worker.start()

    async def start_all(self) -> None:
        """Start the workers that have had no event loop so far."""
        while self._unstarted:
            await self.start(self._unstarted[0])

    async def run(self) -> None:
        """Run all of them until they are closed."""
        for worker in tuple(self._unstarted):
            self._forget(worker)
        await asyncio.gather(*(worker.run() for worker in self._all))

    def _forget(self, worker: Worker) -> None:
        if worker in self._unstarted:
            self._unstarted.remove(worker)
            self._names.remove(worker.name)

    async def close(self) -> None:
        self._end()
        for worker in self._all:
            await worker.close()
        for task in tuple(self._tasks):
            task.cancel()


def _log_unstarted(queue: str, names: list[str], declared: set[str], logger: Logger) -> None:
    """Log the workers that never started, when a queue object is closed or collected, or the program ends."""
    for name in names:
        if name in declared:
            logger.debug(
                "worker %s of queue %s was not started here: its handler is only decorated in this process", name, queue
            )
            continue
        logger.warning(
            "worker %s of queue %s was never started and has taken no job: process() was called without an event loop. "
            "Await process(), or enter `async with queue`, or await queue.work()",
            name,
            queue,
        )
    names.clear()


class Processing:
    """A worker of a queue. It starts as soon as an event loop runs; awaited, it is returned when it has started.

    Without a handler it is a decorator that makes one worker for each handler.
    """

    def __init__(self, workers: OwnWorkers, make: Callable[[Handler], Worker], handler: Handler | None) -> None:
        self._workers = workers
        self._make = make
        self._handler = handler
        self._worker = None if handler is None else make(handler)
        if self._worker is not None:
            workers.start_soon(self._worker)

    def __await__(self) -> Generator[Any, None, Worker]:
        if self._worker is None:
            raise ConfigurationError("handler: process() needs one, unless it is used as a decorator")
        return self._workers.start(self._worker).__await__()

    def __call__(self, handler: Any) -> Any:
        if self._handler is not None:
            # `@queue.process` without brackets: the name refers to this object, so calling it must call the handler.
            return self._handler(handler)
        self._workers.start_soon(self._make(handler), declared=True)
        return handler
