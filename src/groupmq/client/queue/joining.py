"""Joins the single adds, and the single reads, of one iteration of the event loop into one call to the server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from groupmq.protocol.commands import chunked

I = TypeVar("I")  # noqa: E741 - item and outcome
O = TypeVar("O")  # noqa: E741


class Joiner(Generic[I, O]):
    """Collects the items of one iteration of the event loop and sends them together. No timer is involved.

    `send` returns one outcome per item: a result, or an exception for an item that was refused.
    """

    def __init__(
        self, send: Callable[[Sequence[I]], Awaitable[Sequence[O | Exception]]], size: Callable[[I], int]
    ) -> None:
        self._send = send
        self._size = size
        self._waiting: list[tuple[I, asyncio.Future[O]]] = []
        """The items of this tick. The coroutine that added the first one sends them when the tick is over."""
        self._flights: set[asyncio.Future[None]] = set()

    async def add(self, item: I) -> O:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[O] = loop.create_future()
        self._waiting.append((item, future))
        if len(self._waiting) > 1:
            return await future
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            future.cancel()  # cancelled before it left: only the others are sent
            self._flush()
            raise
        if len(self._waiting) > 1:
            self._flush()
            return await future
        self._waiting = []
        return await self._send_alone(item, loop.create_future())

    async def _send_alone(self, item: I, flight: asyncio.Future[None]) -> O:
        """Send one item without a new task, which would cost it two more iterations of the event loop."""
        self._flights.add(flight)
        try:
            (outcome,) = await self._send([item])
        finally:
            self._flights.discard(flight)
            flight.set_result(None)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        # An item that was cancelled before it left is not sent.
        waiting = [(item, future) for item, future in waiting if not future.done()]
        for joined in chunked(waiting, lambda one: self._size(one[0])):
            flight = asyncio.ensure_future(self._fly(joined))
            self._flights.add(flight)
            flight.add_done_callback(self._flights.discard)

    async def _fly(self, joined: Sequence[tuple[I, asyncio.Future[O]]]) -> None:
        try:
            outcomes = await self._send([item for item, _ in joined])
        except BaseException as error:
            for _, future in joined:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), outcome in zip(joined, outcomes, strict=True):
            if future.done():
                continue
            # A refused item does not harm the others of its call.
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    async def drain(self) -> None:
        """Wait until all items were sent and answered."""
        while self._waiting or self._flights:
            if self._flights:
                await asyncio.wait(tuple(self._flights))
            else:
                await asyncio.sleep(0)
