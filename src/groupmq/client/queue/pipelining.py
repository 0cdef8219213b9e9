"""Calls that must take effect in their order, without a pause between them.

While the server carries out one call, the next one is encoded and sent, so neither side waits for the other. Each call
names the one before it, and the server refuses it until that one has taken effect (`lua/lib/kept_replies.lua`).
Otherwise the calls could change places: the first may be refused because the function library was just flushed, and the
second may find it loaded again by another client.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Generic, TypeVar

from groupmq.protocol.requesters import Request, Requesters

I = TypeVar("I")  # noqa: E741 - item and outcome
O = TypeVar("O")  # noqa: E741

_UNDER_WAY = 3
"""Calls that are sent before the first of them is answered. With two, the server waits while an answer is read."""


class Flight(Generic[O]):
    """A call under way."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.task: asyncio.Future[O]

    async def succeeded(self) -> None:
        # If the waiting call is cancelled, this one still goes on.
        await asyncio.shield(self.task)


async def pipelined(
    items: Iterable[I],
    requesters: Requesters,
    make: Callable[[I, Request, Flight[O] | None], Coroutine[Any, Any, O]],
) -> list[O]:
    """Make one call for each item, and return their outcomes. `make` gets the item, the request, and the call before.

    If a call raises, no call after it takes effect, and this raises the same error.
    """
    outcomes: list[O] = []
    flights: deque[Flight[O]] = deque()
    last: Flight[O] | None = None
    try:
        for item in items:
            if len(flights) == _UNDER_WAY:
                outcomes.append(await flights[0].task)
                flights.popleft()
            flight = Flight[O](requesters.take())
            flight.task = asyncio.ensure_future(make(item, flight.request, last))
            flights.append(flight)
            last = flight
            await asyncio.sleep(0)  # it is sent before the next one is encoded
        while flights:
            outcomes.append(await flights[0].task)
            flights.popleft()
    finally:
        for flight in flights:
            flight.task.cancel()
        await asyncio.gather(*(flight.task for flight in flights), return_exceptions=True)
    return outcomes
