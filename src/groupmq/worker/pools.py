"""Where `def` handlers run: threads, or processes that can really be ended."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import pickle
import signal
import threading
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import SpawnContext
from queue import SimpleQueue
from typing import Any

from groupmq.errors import ConfigurationError, FailJob, GroupMQError, RateLimited, RetryJob, said
from groupmq.job import Job

_MOMENT = 0.5
Told = Callable[[str, Any], None]


class WorkerProcessDied(GroupMQError):
    """The process that ran the handler ended without an answer: killed, out of memory, crashed."""


class HandlerError(GroupMQError):
    """A handler raised in another process: its text says what, the traceback of there is its note."""


class ThreadRunner:
    """Runs `def` handlers in threads. A thread cannot be ended: one that outlives its run is left behind."""

    def __init__(self, handler: Callable[[Job], Any], size: int, name: str) -> None:
        self._handler = handler
        self._name = name
        self._idle: list[Hand] = []

    async def __call__(self, job: Job) -> Any:
        hand = self._idle.pop() if self._idle else Hand(self._handler, self._name)
        job._home = asyncio.get_running_loop()
        future = hand.ask(job)
        try:
            value = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            # Ours, or one that the handler raised. A handler that looks at `job.cancelled` gets a moment to end; any
            # other may still be at it for ever, so nobody waits for it.
            if job._looks and not future.done():
                await asyncio.wait([asyncio.wrap_future(future)], timeout=_MOMENT)
            hand.dismiss()
            raise
        except BaseException:
            self._idle.append(hand)
            raise
        self._idle.append(hand)
        return value

    def close(self) -> None:
        for hand in self._idle:
            hand.dismiss()
        self._idle.clear()


class Hand(threading.Thread):
    """One thread that runs jobs as it is asked to. A daemon: a handler that hangs must not keep the process alive."""

    def __init__(self, handler: Callable[[Job], Any], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._handler = handler
        self._tasks: SimpleQueue[tuple[Job, Future[Any], Context] | None] = SimpleQueue()
        self.start()

    def ask(self, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # from now on it cannot be cancelled: the thread will answer
        # In the context of whoever asks: a handler sees the context variables that middleware has set.
        self._tasks.put((job, future, copy_context()))
        return future

    def dismiss(self) -> None:
        """Let it end after what it does now."""
        self._tasks.put(None)

    def run(self) -> None:
        while (task := self._tasks.get()) is not None:
            job, future, context = task
            try:
                future.set_result(context.run(self._handler, job))
            except StopIteration as error:
                # A future cannot carry StopIteration.
                future.set_exception(RuntimeError(f"handler raised StopIteration: {said(error)}"))
            except BaseException as error:
                future.set_exception(error)
            del task, job, future, context


class ProcessRunner:
    """Runs `def` handlers in child processes, one job at a time each; a run that is cancelled ends its process."""

    def __init__(self, handler: Callable[[Job], Any], size: int, name: str) -> None:
        try:
            self._handler = pickle.dumps(handler)
        except Exception as error:
            raise ConfigurationError(
                f"handler: executor='process' needs a handler that can be imported by name ({error})"
            ) from error
        self._context = multiprocessing.get_context("spawn")
        self._idle: list[Child] = []
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._closed = False

    async def __call__(self, job: Job) -> Any:
        child = self._idle.pop() if self._idle else Child(self._context, self._handler)
        try:
            loop = asyncio.get_running_loop()
            told = _teller(loop, job)
            kind, value = await loop.run_in_executor(self._threads, child.ask, _portable(job), told)
        except BaseException:
            # Cancelled, or the child is gone: whatever it still does must end now.
            child.kill()
            raise
        if self._closed:
            child.kill()
        else:
            self._idle.append(child)
        if kind == "returned":
            return value
        text, trace, delay = value
        error = _again(kind, text, delay)
        error.add_note(trace)
        raise error

    def close(self) -> None:
        self._closed = True
        for child in self._idle:
            child.kill()
        self._idle.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)


class Child:
    """One process that runs jobs as it is asked to."""

    def __init__(self, context: SpawnContext, handler: bytes) -> None:
        self._pipe, theirs = context.Pipe()
        self._theirs: Pipe | None = theirs
        self._process = context.Process(target=_serve, args=(theirs, handler), daemon=True)
        self._lock = threading.Lock()
        self._killed = False

    def ask(self, job: Job, told: Told) -> Any:
        """Have the child run a job; called in a thread, since starting a process and waiting for it both block.

        What its handler says meanwhile goes to `told`.
        """
        try:
            with self._lock:
                if self._killed:
                    raise EOFError
                if self._theirs is not None:
                    self._process.start()
                    self._theirs.close()
                    self._theirs = None
            self._pipe.send(job)
            while True:
                answer = self._pipe.recv()
                if answer[0] not in ("progress", "line"):
                    return answer
                told(*answer)
        except (EOFError, OSError) as error:
            # Closed by the thread that reads, never under its feet; joined so that no zombie stays.
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
    """The job without its queue: connections do not travel to another process."""
    copy = Job.__new__(Job)
    copy.copy_from(job)
    copy.duplicate = job.duplicate
    job.data  # decode here, so that the serializer need not travel  # noqa: B018
    copy._data = job.data
    copy._queue = None  # type: ignore[assignment]
    copy._serializer = None  # type: ignore[assignment]
    copy._result = None
    return copy


def _teller(loop: asyncio.AbstractEventLoop, job: Job) -> Told:
    """Say in the parent what a handler says in the child; called in the thread that reads the pipe."""

    def told(kind: str, value: Any) -> None:
        what = job._queue.say(job, **{kind: value})
        future = asyncio.run_coroutine_threadsafe(_awaited(what), loop)
        with contextlib.suppress(Exception):
            # A lease that is lost is told by the heartbeat, and ends the child.
            future.result(30.0)

    return told


async def _awaited(what: Awaitable[None]) -> None:
    await what


def _serve(pipe: Pipe, pickled: bytes) -> None:
    # Ctrl-C on a terminal reaches the whole group; the worker alone decides what becomes of what runs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler = pickle.loads(pickled)  # noqa: S301 - our own parent's handler, never stored data
    while True:
        try:
            job: Job = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        job._tell = lambda _, kind, value: pipe.send((kind, value))
        try:
            answer: tuple[str, Any] = ("returned", handler(job))
        except BaseException as error:
            answer = _raised(error)
        try:
            pipe.send(answer)
        except Exception as error:
            # Like any value that cannot be stored: running it again would not change that.
            pipe.send(("fail", (f"return value: cannot be sent to the worker: {said(error)}", "", 0.0)))


def _again(kind: str, text: str, delay: Any) -> Exception:
    """What the child has put into words."""
    if kind == "retry":
        return RetryJob(text, delay=delay)
    if kind == "limited":
        return RateLimited(text, retry_after=delay)
    return FailJob(text) if kind == "fail" else HandlerError(text)


def _raised(error: BaseException) -> tuple[str, Any]:
    """What a handler raised, as words: a class of the user's need not exist in, or travel to, the worker's process."""
    trace = traceback.format_exc()
    if isinstance(error, RetryJob):
        return "retry", (said(error), trace, error.delay)
    if isinstance(error, RateLimited):
        return "limited", (said(error), trace, error.retry_after)
    if isinstance(error, FailJob):
        return "fail", (said(error), trace, 0.0)
    return "raised", (f"{type(error).__name__}: {said(error)}".removesuffix(": "), trace, 0.0)
