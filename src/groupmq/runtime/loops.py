"""Objects that belong to one event loop, or to one process, and must not be used in another."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_process = object()
_left_behind: list[object] = []
"""Objects inherited over fork. They are kept, since their finalizers would close the parent's sockets."""


def this_process() -> object:
    """The same object as long as this process lives, and another one in a forked child."""
    return _process


def leave_behind(what: object) -> None:
    """Keep an object of the parent process untouched: closing it here would close it in the parent as well."""
    _left_behind.append(what)


def soon(call: Callable[[], None]) -> None:
    """Schedule `call` for the next iteration of the running event loop."""
    asyncio.get_running_loop().call_soon(call)


def _after_fork() -> None:
    global _process
    _process = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class PerLoop(Generic[T]):
    """One object for each event loop, made at its first use in that loop."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._process = _process
        self._made: dict[asyncio.AbstractEventLoop, T] = {}
        self._last: tuple[asyncio.AbstractEventLoop, T] | None = None

    def here(self) -> T:
        """The object of the running loop. Raises RuntimeError if no loop runs."""
        loop = asyncio.get_running_loop()
        last = self._last
        if last is not None and last[0] is loop:  # a loop cannot continue in a forked child
            return last[1]
        if self._process is not _process:
            leave_behind((self._made, self._last))
            self._process, self._made = _process, {}
        found = self._made.get(loop)
        if found is None:
            for other in [other for other in self._made if other.is_closed()]:
                self._made.pop(other, None)
            found = self._made[loop] = self._make()
        self._last = loop, found
        return found

    def made_here(self) -> T | None:
        """Like `known`; None if no loop runs."""
        try:
            return self.known()
        except RuntimeError:
            return None

    def known(self) -> T | None:
        """The object of the running loop; None if it has not been made."""
        return self._made.get(asyncio.get_running_loop()) if self._process is _process else None


class PerProcess(Generic[T]):
    """One object per process, shared by its threads. A forked child makes its own and leaves the parent's alone."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: dict[object, T] = {}

    def here(self) -> T:
        found = self._made.get(_process)
        if found is None:
            # If two threads make one at the same time, both get the one that was stored first.
            found = self._made.setdefault(_process, self._make())
        return found

    def known(self) -> T | None:
        return self._made.get(_process)

    made_here = known
