"""The child process that runs `def` handlers, and how it describes their errors to the worker."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import signal
import traceback
from multiprocessing.connection import Connection as Pipe
from typing import Any

from groupmq.client.job import Job
from groupmq.core.errors import FailJob, GroupMQError, RateLimited, RetryJob, Snooze, class_path, message_of
from groupmq.runtime.tasks import awaited

READY = "ready"
"""What a child sends first: the handler is loaded, and can be called."""


class HandlerError(GroupMQError):
    """A handler raised in another process. The text names the error; a note holds the traceback."""


def serve(pipe: Pipe, pickled: bytes) -> None:
    """Run the handler for each job that comes, until the pipe is closed: the main function of a child process."""
    # Ctrl-C on a terminal reaches every process of its group; the worker decides what happens to running jobs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler = pickle.loads(pickled)  # noqa: S301 - our own parent's handler, never stored data
    pipe.send(READY)
    while True:
        try:
            job: Job = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        job._runs_in_child(lambda kind, value: pipe.send((kind, value)))
        try:
            value = handler(job)
            if inspect.isawaitable(value):
                value = asyncio.run(awaited(value))
            answer: tuple[str, Any] = ("returned", value)
        except BaseException as error:
            answer = _raised(error)
        try:
            pipe.send(answer)
        except Exception as error:
            # Fail the job, as for a value that cannot be stored: another run would not change the error.
            reason = f"return value: cannot be sent to the worker: {message_of(error)}"
            pipe.send(("fail", (reason, "", 0.0, class_path(error))))


def error_of(kind: str, text: str, delay: Any) -> Exception:
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
