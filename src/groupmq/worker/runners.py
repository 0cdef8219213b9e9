"""Where `def` handlers run: in threads, or in processes, which can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import multiprocessing
import pickle
import signal
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import SpawnContext
from queue import SimpleQueue
from typing import Any, Protocol

from groupmq.client.job import Job
from groupmq.core.checks import Logger, takes, with_signature
from groupmq.core.errors import (
    RAISED,
    ConfigurationError,
    FailJob,
    GroupMQError,
    RateLimited,
    RetryJob,
    Snooze,
    class_path,
    message_of,
)
from groupmq.core.worker_options import WorkerOptions

_MOMENT = 0.5
Forward = Callable[[str, Any], None]


class WorkerProcessDied(GroupMQError):
    """The process that ran the handler ended without a result: it was killed, ran out of memory or crashed."""


class HandlerError(GroupMQError):
    """A handler raised in another process. The text names the error; a note holds the traceback."""


def invoker(
    handler: Callable[[Any], Any], options: WorkerOptions
) -> tuple[Callable[[Any], Awaitable[Any]], ThreadRunner | ProcessRunner | None]:
    """How to call the handler so that it can be awaited, and its runner, unless it runs in the event loop."""
    called = handler if inspect.isroutine(handler) else getattr(handler, "__call__", handler)  # noqa: B004
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called):
        if options.executor == "process":
            raise ConfigurationError("executor: 'process' needs a plain `def` handler, not `async def`")
        return handler, None
    runner: ThreadRunner | ProcessRunner
    if options.executor == "process":
        runner = ProcessRunner(handler, options.concurrency, options.name)
    else:
        runner = ThreadRunner(handler, options.name, options.logger)
    return runner, runner


class Preparing(Protocol):
    """A runner that gets ready before a handler is called."""

    async def prepare(self) -> None: ...
    def unprepare(self) -> None:
        """The call is not made."""


def preparing_of(runner: ThreadRunner | ProcessRunner | None) -> Preparing | None:
    return runner if isinstance(runner, ProcessRunner) else None


def checked_handler(handler: object) -> None:
    """Refuse a handler that cannot be called with one job: every job would fail after all its attempts."""
    if not callable(handler):
        raise ConfigurationError.expected("handler", "a callable that takes a job", handler)
    if not takes(handler, 1):
        expected = "a callable that takes the job as its only positional argument"
        raise ConfigurationError(f"handler: expected {expected}, got {with_signature(handler)}")


class ThreadRunner:
    """Runs `def` handlers in threads. A thread cannot be killed: one that outlives its run is left to end alone."""

    def __init__(self, handler: Callable[[Any], Any], name: str, logger: Logger) -> None:
        self._handler = handler
        self._name = name
        self._logger = logger
        self._idle: list[HandlerThread] = []

    async def __call__(self, given: Job | list[Job]) -> Any:
        thread = self._idle.pop() if self._idle else HandlerThread(self._handler, self._name)
        jobs = given if isinstance(given, list) else [given]
        for job in jobs:
            job._loop = asyncio.get_running_loop()
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
                text = "the handler of job %s raised after its run had been stopped; the error is ignored: %s: %s"
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
            kind, value = await loop.run_in_executor(self._threads, child.ask, _portable(job), forward)
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
        error = _error_of(kind, text, delay)
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


READY = "ready"


class HandlerProcess:
    """One child process that runs handlers on request."""

    def __init__(self, context: SpawnContext, handler: bytes) -> None:
        self._pipe, theirs = context.Pipe()
        self._theirs: Pipe | None = theirs
        self._process = context.Process(target=_serve, args=(theirs, handler), daemon=True)
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
            raise WorkerProcessDied("the process that ran the handler ended without an answer") from error

    def kill(self) -> None:
        with self._lock:
            self._killed = True
            if self._process.pid is not None:
                self._process.kill()


def _portable(job: Job) -> Job:
    """The job without its queue: connections cannot be sent to another process."""
    copy = Job.__new__(Job)
    copy._copy_from(job)
    copy.duplicate = job.duplicate
    job.data  # decoded here: the serializer is not sent along  # noqa: B018
    copy._data = job.data
    copy._queue = None  # type: ignore[assignment]
    copy._serializer = None  # type: ignore[assignment]
    copy._result = None
    return copy


def _forwarder(loop: asyncio.AbstractEventLoop, job: Job) -> Forward:
    """Pass progress and log lines of a child on to the parent's job. Called in the thread that reads the pipe."""

    def forward(kind: str, value: Any) -> None:
        what = job._queue._report_run(job, **{kind: value})
        future = asyncio.run_coroutine_threadsafe(_awaited(what), loop)
        with contextlib.suppress(Exception):
            # If the lease is lost, the heartbeat learns of it, and the child is killed.
            future.result(30.0)

    return forward


async def _awaited(what: Awaitable[None]) -> None:
    await what


async def _outcome(what: Awaitable[Any]) -> Any:
    return await what


def _serve(pipe: Pipe, pickled: bytes) -> None:
    # Ctrl-C on a terminal reaches every process of its group; the worker decides what happens to running jobs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler = pickle.loads(pickled)  # noqa: S301 - our own parent's handler, never stored data
    pipe.send(READY)
    while True:
        try:
            job: Job = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        job._send_to_parent = lambda _, kind, value: pipe.send((kind, value))
        try:
            value = handler(job)
            if inspect.isawaitable(value):
                value = asyncio.run(_outcome(value))
            answer: tuple[str, Any] = ("returned", value)
        except BaseException as error:
            answer = _raised(error)
        try:
            pipe.send(answer)
        except Exception as error:
            # Fail the job, as for a value that cannot be stored: another run would not change the error.
            reason = f"return value: cannot be sent to the worker: {message_of(error)}"
            pipe.send(("fail", (reason, "", 0.0, class_path(error))))


def _error_of(kind: str, text: str, delay: Any) -> Exception:
    """The error that a child has described."""
    if kind == "retry":
        return RetryJob(text, delay=delay)
    if kind == "snooze":
        return Snooze(delay, text)
    if kind == "rate_limited":
        return RateLimited(text, retry_after=delay)
    return FailJob(text) if kind == "fail" else HandlerError(text)


def _raised(error: BaseException) -> tuple[str, Any]:
    """Describe what a handler raised: its class need not be importable or picklable in the worker's process."""
    trace, kind = traceback.format_exc(), class_path(error)
    if isinstance(error, RetryJob):
        return "retry", (message_of(error), trace, error.delay, kind)
    if isinstance(error, Snooze):
        return "snooze", (message_of(error), trace, error.delay, kind)
    if isinstance(error, RateLimited):
        return "rate_limited", (message_of(error), trace, error.retry_after, kind)
    if isinstance(error, FailJob):
        return "fail", (message_of(error), trace, 0.0, kind)
    return "raised", (f"{type(error).__name__}: {message_of(error)}".removesuffix(": "), trace, 0.0, kind)
