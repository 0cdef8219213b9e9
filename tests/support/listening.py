"""Listening in tests: what a loop over `queue.events()` has heard, and who reads logs on a server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from groupmq import Event, Queue
from tests.support.waiting import eventually


def readers(client: Any) -> list[dict[str, str]]:
    """Connections that wait for new entries of a log, by what the server says."""
    return [one for one in connected(client) if one["cmd"] == "xread" and "b" in one["flags"]]


def connected(client: Any) -> list[dict[str, str]]:
    """All connections of a server, or of all primaries of a cluster."""
    if not hasattr(client, "get_primaries"):
        return list(client.client_list())
    return [one for node in client.get_primaries() for one in client.get_redis_connection(node).client_list()]


async def hears(client: Any, n: int = 1) -> None:
    """Wait until somebody listens: from then on nothing is missed."""
    await eventually(lambda: len(readers(client)) == n, f"{n} connections read the log")


async def nobody_hears(queue: Queue, client: Any) -> None:
    """Wait until the connection is gone. Whoever reads looks after each event whether anybody wants it still."""

    async def gone() -> bool:
        await queue.pause_group("nobody")
        await queue.resume_group("nobody")
        return not any(one["cmd"] == "xread" for one in connected(client))

    await eventually(gone, "nobody reads the log any more")


class Heard(list[Event]):
    """Events, as they came."""

    def kinds(self, job_id: str | None = None) -> list[str]:
        return [event.kind for event in self if job_id is None or event.job_id == job_id]

    def of(self, kind: str) -> list[Event]:
        return [event for event in self if event.kind == kind]

    def ids(self, kind: str) -> list[str | None]:
        return [event.job_id for event in self.of(kind)]

    async def has(self, kind: str, n: int = 1, timeout: float = 10) -> Event:
        """Wait until there are `n` events of a kind; the last of them."""
        await eventually(lambda: len(self.of(kind)) >= n, f"{n} events of kind {kind}", timeout)
        return self.of(kind)[-1]


@contextlib.asynccontextmanager
async def listening(queue: Queue, client: Any = None, since: str | None = None) -> AsyncIterator[Heard]:
    """Collects what a loop over the events of a queue sees. With a `client`, begins when the loop listens."""
    heard = Heard()

    async def listen() -> None:
        async for event in queue.events(since):
            heard.append(event)

    task = asyncio.create_task(listen())
    try:
        if client is not None:
            await hears(client)
        yield heard
        assert not task.done(), f"the loop over the events ended: {task}"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def take(queue: Queue, n: int, since: str | None = None) -> Heard:
    """The next `n` events."""
    heard = Heard()
    events = queue.events(since)
    async with asyncio.timeout(10), contextlib.aclosing(events):
        async for event in events:
            heard.append(event)
            if len(heard) == n:
                break
    return heard
