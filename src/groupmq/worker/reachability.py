"""Whether a worker can reach its server: one record, shared by fetcher, heartbeat, duties and health checks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from groupmq.client.outage import OutageLog
from groupmq.worker.outage import RENEW, TAKE
from groupmq.worker.telemetry import Telemetry


class Reachability:
    """Counts and logs failed calls, wakes paused parts when the server is back, and gives up after `patience` seconds.

    `on_give_up` is called once, when the patience is over. `answered` and `failed` may be called from any thread, the
    others from the event loop. `part` as in OutageLog.
    """

    def __init__(
        self,
        outage: OutageLog,
        telemetry: Telemetry,
        patience: float | None,
        on_give_up: Callable[[], None],
        part: str = "",
    ) -> None:
        self._outage = outage
        self._part = part
        self._telemetry = telemetry
        self._patience = patience
        self._on_give_up = on_give_up
        self._unreached_since: float | None = None
        self._last_reached = self._last_renewed = time.monotonic()
        self.gave_up: BaseException | None = None
        """The error of the call after which the worker gave up."""

    def of_partition(self, part: str, on_give_up: Callable[[], None]) -> Reachability:
        """That of a partition on the same server: an outage is logged once for all of them."""
        return Reachability(self._outage, self._telemetry, self._patience, on_give_up, part)

    @property
    def last_answer(self) -> float:
        """When the server last answered the fetcher or the heartbeat."""
        return max(self._last_reached, self._last_renewed)

    def on_return(self, wake: Callable[[], None], loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Call `wake` when the server is back: in `loop`, or in the thread that notices it."""
        if loop is None:
            self._outage.on_return(wake)
        else:
            self._outage.on_return(lambda: None if loop.is_closed() else _soon(loop, wake))

    def reached(self, began: float, task: str = TAKE) -> None:
        """The server has answered a call of the fetcher that was sent at `began`."""
        self._last_reached = time.monotonic()
        self._unreached_since = None
        self._outage.answered(task, began, self._part)

    def unreached(self, error: BaseException, task: str = TAKE) -> None:
        """A call of the fetcher failed. Patience counts from the first failure, not from the last answer."""
        now = time.monotonic()
        if self._unreached_since is None or self._last_renewed > self._unreached_since:
            self._unreached_since = now
        if self._patience is not None and self.gave_up is None and now - self._unreached_since >= self._patience:
            self.gave_up = error
            self._on_give_up()
        self.trouble(error, task)

    def trouble(self, error: BaseException, task: str) -> None:
        """A call failed and is going to be made again."""
        self._outage.failed(task, error, self._part)
        self._telemetry.call_failed(error)

    # From any thread

    def answered(self, task: str, began: float) -> None:
        """A call that was to do `task` and was sent at `began` has been answered."""
        if task == RENEW:
            self._last_renewed = time.monotonic()
        self._outage.answered(task, began, self._part)

    def failed(self, task: str, error: BaseException) -> None:
        """Like `trouble`, without the "error" event and `on_error`, which belong to the event loop."""
        self._outage.failed(task, error, self._part)


def _soon(loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(wake)
