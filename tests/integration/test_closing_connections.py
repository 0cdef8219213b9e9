"""Connections are closed even if their owner is cancelled while it closes them: nobody else could close them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from groupmq.client.connection import call_pool
from groupmq.client.connection.blocking_reads import StreamConnection, WakeConnection
from groupmq.client.connection.call_pool import CallPool
from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.finding import made_by
from tests.support.workers import one_kind

pytestmark = one_kind


async def cancelled_at_once(closing: Awaitable[None]) -> None:
    """Let it run until it waits for the first time, and cancel it there."""
    task = asyncio.ensure_future(closing)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


def all_closed(connections: list[Any]) -> bool:
    return bool(connections) and not any(connection.is_connected for connection in connections)


async def test_that_of_a_listener(url: str) -> None:
    stream = StreamConnection(Endpoint(url))
    await stream.read({"no-log": "0-0"}, wait=False)
    made = made_by(stream._client.connection_pool, in_use=True)
    await cancelled_at_once(stream.close())
    assert all_closed(made)


async def test_that_which_waits_for_work(url: str) -> None:
    wake = WakeConnection(Endpoint(url), ["marker"], 0.01)
    await wake.wait()
    made = made_by(wake._client.connection_pool, in_use=True)
    await cancelled_at_once(wake.close())
    assert all_closed(made)


async def test_those_of_calls(url: str) -> None:
    client = Endpoint(url).asynchronous()
    pool = CallPool(client.connection_pool)
    await asyncio.gather(*(pool.execute("PING") for _ in range(3)))
    made = [connection for connection, _ in pool._idle]
    assert len(made) == 3
    await cancelled_at_once(pool.close())
    assert all_closed(made)
    await client.aclose()


async def test_one_that_is_looked_at_before_a_call(url: str, monkeypatch: Any) -> None:
    looking = asyncio.Event()

    async def look(connection: Any) -> bool:
        looking.set()
        await asyncio.Event().wait()
        return True

    client = Endpoint(url).asynchronous()
    pool = CallPool(client.connection_pool)
    await pool.execute("PING")
    made = [connection for connection, _ in pool._idle]
    monkeypatch.setattr(call_pool, "_TRUSTED", 0.0)
    monkeypatch.setattr(call_pool, "_is_quiet", look)
    call = asyncio.ensure_future(pool.execute("PING"))
    await looking.wait()
    call.cancel()
    await asyncio.wait([call])
    assert all_closed(made)
    await pool.close()
    await client.aclose()
