"""One event loop in a thread of its own, which receives events for the blocking callers of this process."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from groupmq.core.errors import GroupMQError
from groupmq.runtime.loops import leave_behind
from groupmq.runtime.tasks import end_tasks

T = TypeVar("T")


class Stopped(GroupMQError):
    """The process is ending, and all listening ends with it."""


class Portal:
    """Runs coroutines for threads that wait for them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held while an object is made that this portal must have only once. A forked process makes a new portal, whose
        lock is free."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="groupmq-listening", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and wait for its result. A caller that stops waiting (Ctrl-C) cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Stopped("this process is ending, and receives no more events") from None
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the loop, without waiting for it."""
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """End all tasks and the thread, at the end of the process."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        self._thread.join(5)

    async def _end(self) -> None:
        await end_tasks([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])
        self._loop.call_soon(self._loop.stop)


_lock = threading.Lock()
_portal: Portal | None = None


def portal() -> Portal:
    """The portal of this process, made when it is first needed."""
    global _portal
    with _lock:
        if _portal is None:
            _portal = Portal()
            atexit.register(_portal.close)
        return _portal


def _after_fork() -> None:
    # The child process does not have the thread, and another thread may have held the lock.
    global _lock, _portal
    if _portal is not None:
        atexit.unregister(_portal.close)
        leave_behind(_portal)
    _lock, _portal = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
