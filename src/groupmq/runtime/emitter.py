"""Listeners, sync or async. An error in a listener is logged and affects nothing else."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from groupmq.core.checks import Logger
from groupmq.core.errors import ConfigurationError, message_of

Listener = Callable[..., Any]


class Emitter:
    """Named events with any number of listeners, sync or async."""

    def __init__(self, events: tuple[str, ...], logger: Logger, who: str = "") -> None:
        """`who`: the name of the emitter, for the log."""
        self._listeners: dict[str, list[Listener]] = {name: [] for name in events}
        self._logger = logger
        self._prefix = f"{who}: " if who else ""
        self._tasks: set[asyncio.Task[None]] = set()

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener` for each `event`; returns it, so that `off` can name a lambda."""
        if not callable(listener):
            raise ConfigurationError.expected("listener", "a callable", listener)
        self._of(event).append(listener)
        return listener

    def off(self, event: str, listener: Listener) -> bool:
        """Stop calling `listener`; True if it was listening."""
        listeners = self._of(event)
        if listener in listeners:
            listeners.remove(listener)
            return True
        return False

    def remove_all(self, event: str | None = None) -> None:
        for name in [event] if event is not None else list(self._listeners):
            self._of(name).clear()

    def listeners(self, event: str) -> Sequence[Listener]:
        """The listeners of an event; if there are none, nothing need be emitted."""
        return self._of(event)

    @property
    def any(self) -> bool:
        """Whether there is a listener."""
        return any(self._listeners.values())

    def emit(self, event: str, *args: Any) -> None:
        for listener in tuple(self._listeners[event]):
            try:
                outcome = listener(*args)
                if inspect.isawaitable(outcome):
                    self.watch(event, outcome)
            except BaseException as error:
                complain(self._logger, event, error, self._prefix)

    async def emit_and_wait(self, event: str, *args: Any) -> None:
        """Like `emit`, but return only when the asynchronous listeners have ended."""
        before = set(self._tasks)
        self.emit(event, *args)
        if new := self._tasks - before:
            await asyncio.wait(new)

    async def wait_for_listeners(self, timeout: float, leave_out: Collection[asyncio.Task[Any] | None] = ()) -> None:
        """Wait until asynchronous listeners have ended; those that take longer than `timeout` are cancelled."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while tasks := self._tasks.difference(leave_out):
            left = end - loop.time()
            if left <= 0:
                self._logger.error(
                    "%s%d listeners did not end within %.1f s and are cancelled", self._prefix, len(tasks), timeout
                )
                for task in tasks:
                    task.cancel()
                return
            await asyncio.wait(tasks, timeout=left)

    def watch(self, event: str, outcome: Awaitable[Any]) -> None:
        """Let an asynchronous listener finish, and log an error that it raises."""
        task = asyncio.ensure_future(self._finish(event, outcome))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, event: str, outcome: Awaitable[Any]) -> None:
        try:
            await outcome
        except BaseException as error:
            complain(self._logger, event, error, self._prefix)

    def _of(self, event: str) -> list[Listener]:
        try:
            return self._listeners[event]
        except KeyError:
            known = ", ".join(sorted(self._listeners))
            raise ConfigurationError.expected("event", f"one of {known}", event) from None


def complain(logger: Logger, event: str, error: BaseException, prefix: str = "") -> None:
    """Log an error that a listener raised."""
    text = "%sa listener of %r raised %s: %s; nothing else is affected"
    logger.error(text, prefix, event, type(error).__name__, message_of(error))


def call_listener(logger: Logger, event: str, listener: Listener, *args: Any) -> None:
    """Call one synchronous listener, and log an error that it raises."""
    try:
        listener(*args)
    except Exception as error:
        complain(logger, event, error)
