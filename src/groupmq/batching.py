"""Concurrent adds of one event-loop tick travel as one script call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from groupmq.commands import chunked
from groupmq.drafts import Draft
from groupmq.job import Job

Send = Callable[[Sequence[Draft]], Awaitable[Sequence[Job | Exception]]]


class AddBatcher:
    """Collects the drafts of a tick. Nothing waits for a timer: a lone add leaves in the same tick as well."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: list[tuple[Draft, asyncio.Future[Job]]] = []
        self._flights: set[asyncio.Task[None]] = set()

    async def add(self, draft: Draft) -> Job:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Job] = loop.create_future()
        self._waiting.append((draft, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._flush)
        return await future

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        # An add that was cancelled before it left is not sent.
        waiting = [(draft, future) for draft, future in waiting if not future.done()]
        for batch in chunked(waiting, lambda add: len(add[0].body)):
            flight = asyncio.ensure_future(self._fly(batch))
            self._flights.add(flight)
            flight.add_done_callback(self._flights.discard)

    async def _fly(self, batch: Sequence[tuple[Draft, asyncio.Future[Job]]]) -> None:
        try:
            jobs = await self._send([draft for draft, _ in batch])
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), job in zip(batch, jobs, strict=True):
            if future.done():
                continue
            # One refused add never harms its neighbours.
            if isinstance(job, Exception):
                future.set_exception(job)
            else:
                future.set_result(job)

    async def drain(self) -> None:
        """Wait until everything that was added has left."""
        while self._waiting or self._flights:
            if self._flights:
                await asyncio.wait(self._flights)
            else:
                await asyncio.sleep(0)
