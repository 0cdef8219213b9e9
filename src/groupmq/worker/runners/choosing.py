"""Where a handler runs: in the event loop, in a thread or in another process."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from groupmq.core.checks import takes, with_signature
from groupmq.core.errors import ConfigurationError
from groupmq.core.worker_options import WorkerOptions
from groupmq.worker.runners.processes import ProcessRunner
from groupmq.worker.runners.threads import ThreadRunner


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
