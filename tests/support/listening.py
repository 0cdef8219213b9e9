"""Subscriptions in tests: the events of a loop over `queue.events()`, and the connections that read logs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from groupmq import Event, Queue
from tests.support.waiting import eventually


def readers(client: Any) -> list[dict[str, str]]:
    """Connections that wait for new entries of a log, from the server's list of clients."""
    return [one for one in client.client_list() if one["cmd"] == "xread" and "b" in one["flags"]]


def end_connections(client: Any, found: list[dict[str, str]]) -> None:
    """Identified by their address: two nodes of a cluster may give the same id."""
    for one in found:
        client.client_kill_filter(addr=one["addr"])


def workers_asleep(client: Any) -> int:
    """Workers that wait for work, from the server's list of clients. Each also has a connection that waits for mail."""
    waiting = [one for one in client.client_list() if one["cmd"] == "bzpopmin" and "b" in one["flags"]]
    return len(waiting) // 2


async def hears(client: Any, n: int = 1) -> None:
    """Wait until a connection reads the log: from then on no event is missed."""
    await eventually(lambda: len(readers(client)) == n, f"{n} connections read the log")


async def nobody_hears(queue: Queue, client: Any) -> None:
    """Wait until no connection reads the log. A reader checks after each event whether a subscriber is left."""

    async def gone() -> bool:
        await queue.pause_group("nobody")
        await queue.resume_group("nobody")
        return not any(one["cmd"] == "xread" for one in client.client_list())

    await eventually(gone, "no connection reads the log any more")


class Heard(list[Event]):
    """The events that a subscriber received, in order."""

    def kinds(self, job_id: str | None = None) -> list[str]:
        return [event.kind for event in self if job_id is None or event.job_id == job_id]

    def of(self, kind: str) -> list[Event]:
        return [event for event in self if event.kind == kind]

    def ids(self, kind: str) -> list[str | None]:
        return [event.job_id for event in self.of(kind)]

    async def has(self, kind: str, n: int = 1, timeout: float = 10) -> Event:
        """Wait until there are `n` events of a kind, and return the last of them."""
        await eventually(lambda: len(self.of(kind)) >= n, f"{n} events of kind {kind}", timeout)
        return self.of(kind)[-1]


@contextlib.asynccontextmanager
async def listening(queue: Queue, client: Any = None, since: str | None = None) -> AsyncIterator[Heard]:
    """Collect the events of a loop over `queue.events()`. With a `client`, wait until the loop is subscribed."""
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
