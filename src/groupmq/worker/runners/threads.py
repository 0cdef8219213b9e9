"""`def` handlers in threads."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any

from groupmq.client.job import Job
from groupmq.core.checks import Logger
from groupmq.core.errors import message_of

_MOMENT = 0.5
"""Seconds that a handler which looks at `job.cancelled` has to end."""


class ThreadRunner:
    """Runs `def` handlers in threads. A thread cannot be killed: one that outlives its run is left running."""

    def __init__(self, handler: Callable[[Any], Any], name: str, logger: Logger) -> None:
        self._handler = handler
        self._name = name
        self._logger = logger
        self._idle: list[HandlerThread] = []

    async def __call__(self, given: Job | list[Job]) -> Any:
        thread = self._idle.pop() if self._idle else HandlerThread(self._handler, self._name)
        jobs = given if isinstance(given, list) else [given]
        for job in jobs:
            job._runs_in_thread(asyncio.get_running_loop())
        future = thread.ask(given)
        try:
            value = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            # Raised by the worker, or by the handler. A handler that checks `job.cancelled` gets a moment to end. Any
            # other may run for ever and is not waited for, unless the next job of its group must wait for it.
            waits = any(job._waits_for_end for job in jobs)
            if not future.done() and (waits or any(job._looks for job in jobs)):
                end = asyncio.wrap_future(future)
                end.add_done_callback(_retrieve)
                await asyncio.wait([end], timeout=None if waits else _MOMENT)
            thread.dismiss()
            future.add_done_callback(partial(self._ended_late, [job.id for job in jobs]))
            raise
        except BaseException:
            self._idle.append(thread)
            raise
        self._idle.append(thread)
        # A `def` or lambda that calls an `async def` returns a coroutine, which runs in the loop like any other.
        return await value if inspect.isawaitable(value) else value

    def _ended_late(self, job_ids: list[str], returned: Future[Any]) -> None:
        """A handler has ended after its run: its result or error goes nowhere."""
        error = returned.exception()
        if error is None:
            if inspect.iscoroutine(value := returned.result()):
                value.close()  # Python warns about a coroutine that is never awaited
        elif not isinstance(error, asyncio.CancelledError):
            with contextlib.suppress(Exception):  # a logger that raises
                text = "the handler of job %s raised %s: %s after its run had been stopped; the error is ignored"
                names = ", ".join(map(repr, job_ids))
                self._logger.debug(text, names, type(error).__name__, message_of(error))

    def close(self) -> None:
        for thread in self._idle:
            thread.dismiss()
        self._idle.clear()


def _retrieve(end: asyncio.Future[Any]) -> None:
    """Retrieve the error of a handler that was stopped: otherwise asyncio logs it, with its stack."""
    if not end.cancelled():
        end.exception()


class HandlerThread(threading.Thread):
    """One thread that runs handlers on request. A daemon: a handler that hangs must not keep the process alive."""

    def __init__(self, handler: Callable[[Any], Any], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._handler = handler
        self._tasks: SimpleQueue[tuple[Job | list[Job], Future[Any], Context] | None] = SimpleQueue()
        self.start()

    def ask(self, given: Job | list[Job]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # it can no longer be cancelled: the thread will set its result
        # In the context of the caller: the handler sees the context variables that middleware has set.
        self._tasks.put((given, future, copy_context()))
        return future

    def dismiss(self) -> None:
        """End the thread after its current job."""
        self._tasks.put(None)

    def run(self) -> None:
        while (task := self._tasks.get()) is not None:
            given, future, context = task
            try:
                if any(job._stopped for job in (given if isinstance(given, list) else (given,))):
                    # On a busy machine a thread may begin long after it was asked: the job may have been removed since.
                    raise asyncio.CancelledError
                future.set_result(context.run(self._handler, given))
            except StopIteration as error:
                # A future cannot carry StopIteration.
                future.set_exception(RuntimeError(f"handler raised StopIteration: {message_of(error)}"))
            except BaseException as error:
                future.set_exception(error)
            del task, given, future, context
