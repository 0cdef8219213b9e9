"""SIGTERM and SIGINT: the first drains, the second gives running jobs back, the third ends the process at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from types import FrameType

_logger = logging.getLogger("groupmq.cli")


class SignalSteps:
    """Calls one step per signal, in the event loop; beyond the last step the process exits.

    Uses handlers of the interpreter, not of the loop: the third signal must work even if the loop hangs.
    """

    def __init__(self, *steps: Callable[[], None], at_exit: Callable[[], None] = lambda: None) -> None:
        self._steps = steps
        self._at_exit = at_exit
        self._loop = asyncio.get_running_loop()
        self.received = 0

    def install(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received >= len(self._steps):
            self._at_exit()
            os._exit(128 + number)
        self.next()

    def next(self) -> None:
        """Take the next step, as if a signal had come."""
        if self.received < len(self._steps) and not self._loop.is_closed():
            step = self._steps[self.received]
            self.received += 1
            self._loop.call_soon_threadsafe(step)
