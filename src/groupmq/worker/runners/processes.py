"""`def` handlers in child processes, as their worker sees them."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import SpawnContext
from typing import Any

from groupmq.client.job import Job
from groupmq.core.errors import RAISED, ConfigurationError, GroupMQError
from groupmq.worker.runners.child import error_of, serve

Forward = Callable[[str, Any], None]


class WorkerProcessDied(GroupMQError):
    """The process that ran the handler ended without a result: it was killed, ran out of memory or crashed."""


WorkerProcessDied.__module__ = "groupmq.worker.runners"  # jobs are stored with this path


class ProcessRunner:
    """Runs `def` handlers in child processes, one job at a time in each. Cancelling a run kills its process."""

    def __init__(self, handler: Callable[[Job], Any], size: int, name: str) -> None:
        try:
            self._handler = pickle.dumps(handler)
        except Exception as error:
            raise ConfigurationError(
                f"handler: executor='process' needs a handler that can be imported by name ({error})"
            ) from error
        self._context = multiprocessing.get_context("spawn")
        self._idle: list[HandlerProcess] = []
        self._prepared: list[HandlerProcess] = []
        """Children that wait for the next calls."""
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._closed = False

    async def prepare(self) -> None:
        """Have a child ready for the next call. Starting one takes up to a second, during which no handler has begun.

        An error of the start is not raised here: the call that gets this child fails.
        """
        child = self._any_child()
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, child.start)
        except asyncio.CancelledError:
            child.kill()
            raise
        except (WorkerProcessDied, RuntimeError):  # RuntimeError: closed meanwhile
            pass
        if self._closed:
            child.kill()
        else:
            self._prepared.append(child)

    def unprepare(self) -> None:
        """The call for which a child was prepared is not made."""
        if self._prepared:
            self._idle.append(self._prepared.pop())

    def _any_child(self) -> HandlerProcess:
        return self._idle.pop() if self._idle else HandlerProcess(self._context, self._handler)

    async def __call__(self, job: Job) -> Any:
        child = self._prepared.pop() if self._prepared else self._any_child()
        try:
            loop = asyncio.get_running_loop()
            forward = _forwarder(loop, job)
            kind, value = await loop.run_in_executor(self._threads, child.ask, job._portable(), forward)
        except BaseException:
            # Cancelled, or the child is gone: one that still runs must end now.
            child.kill()
            raise
        if self._closed:
            child.kill()
        else:
            self._idle.append(child)
        if kind == "returned":
            return value
        text, trace, delay, kind_of_error = value
        error = error_of(kind, text, delay)
        error.add_note(trace)
        error.__dict__[RAISED] = kind_of_error
        raise error

    def close(self) -> None:
        self._closed = True
        for child in (*self._idle, *self._prepared):
            child.kill()
        self._idle.clear()
        self._prepared.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)


class HandlerProcess:
    """One child process that runs handlers on request."""

    def __init__(self, context: SpawnContext, handler: bytes) -> None:
        self._pipe, theirs = context.Pipe()
        self._theirs: Pipe | None = theirs
        self._process = context.Process(target=serve, args=(theirs, handler), daemon=True)
        self._lock = threading.Lock()
        self._killed = False

    def start(self) -> None:
        """Start the child, unless it runs, and wait until it can be asked. Called in a thread, since both block."""
        with self._dying():
            self._start()

    def ask(self, job: Job, forward: Forward) -> Any:
        """Have the child run a job. Called in a thread, since it blocks.

        Progress and log lines of the handler go to `forward`.
        """
        with self._dying():
            self._start()
            self._pipe.send(job)
            while True:
                answer = self._pipe.recv()
                if answer[0] not in ("progress", "line"):
                    return answer
                forward(*answer)

    def _start(self) -> None:
        with self._lock:
            if self._killed:
                raise EOFError
            theirs, self._theirs = self._theirs, None
            if theirs is not None:
                self._process.start()
                theirs.close()
        if theirs is not None:
            self._pipe.recv()  # READY

    @contextlib.contextmanager
    def _dying(self) -> Iterator[None]:
        """Clean up, and raise WorkerProcessDied, if the child ends meanwhile."""
        try:
            yield
        except (EOFError, OSError) as error:
            # Closed here, in the thread that reads from it; joined so that no zombie process stays.
            self._pipe.close()
            if self._process.pid is not None:
                self._process.join(1.0)
            raise WorkerProcessDied("the process that ran the handler ended without a result") from error

    def kill(self) -> None:
        with self._lock:
            self._killed = True
            if self._process.pid is not None:
                self._process.kill()


def _forwarder(loop: asyncio.AbstractEventLoop, job: Job) -> Forward:
    """Pass progress and log lines of a child on to the parent's job. Called in the thread that reads the pipe."""

    def forward(kind: str, value: Any) -> None:
        with contextlib.suppress(Exception):
            # If the lease is lost, the heartbeat learns of it, and the child is killed.
            job._report_through(loop, {kind: value})

    return forward
