"""The deadline of a closing worker: how long it waits for what still runs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable


class Deadline:
    """One deadline, which can be made earlier but never later. `changed` is set whenever a run may have ended."""

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed
        self._end = math.inf

    def hurry(self, timeout: float) -> None:
        """Give running jobs this long to end, unless the deadline is earlier already."""
        self._end = min(self._end, asyncio.get_running_loop().time() + timeout)
        self._changed.set()

    def left(self, grace: float = 0.0) -> float:
        """Seconds until the deadline plus `grace`."""
        return max(0.0, self._end + grace - asyncio.get_running_loop().time())

    async def wait_for(self, done: Callable[[], bool], grace: float = 0.0) -> bool:
        """Wait until `done`; False if the deadline plus `grace` comes first."""
        while not done():
            left = self.left(grace)
            if left <= 0:
                return False
            self._changed.clear()
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                return done()
        return True
