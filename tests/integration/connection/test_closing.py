"""Connections are closed even if their owner is cancelled while it closes them. Otherwise they would stay open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from groupmq.client.connection.blocking_reads import StreamConnection, WakeConnection
from groupmq.client.connection.call_pool import CallPool
from groupmq.client.connection.endpoint import Endpoint
from tests.support.waiting import eventually
from tests.support.workers import one_kind

pytestmark = one_kind


async def cancelled_at_once(closing: Awaitable[None]) -> None:
    """Run a coroutine until it waits for the first time, and cancel it there."""
    task = asyncio.ensure_future(closing)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


def all_closed(connections: list[Any]) -> bool:
    return bool(connections) and not any(connection.is_connected for connection in connections)


async def test_a_listener_whose_closing_is_cancelled_closes_its_connection(url: str) -> None:
    stream = StreamConnection(Endpoint(url))
    await stream.read({"no-log": "0-0"}, wait=False)
    made = [exchange.connection for exchange in stream._calls._idle]
    await cancelled_at_once(stream.close())
    assert all_closed(made)


async def test_a_wait_for_work_whose_closing_is_cancelled_closes_its_connection(url: str) -> None:
    wake = WakeConnection(Endpoint(url), ["marker"], 0.01)
    await wake.wait()
    made = [exchange.connection for exchange in wake._calls._idle]
    await cancelled_at_once(wake.close())
    assert all_closed(made)


async def test_connections_for_calls_are_closed(url: str) -> None:
    client = Endpoint(url).asynchronous()
    pool = CallPool(client.connection_pool)
    await asyncio.gather(*(pool.execute("PING") for _ in range(3)))
    made = [exchange.connection for exchange in pool._idle]
    assert len(made) == 3
    await cancelled_at_once(pool.close())
    assert all_closed(made)
    await client.aclose()


async def test_the_connection_of_a_cancelled_call_is_closed(url: str) -> None:
    """Its reply has not arrived yet, and must not be taken for the reply to the next call."""
    client = Endpoint(url).asynchronous()
    pool = CallPool(client.connection_pool)
    await pool.execute("PING")
    made = [exchange.connection for exchange in pool._idle]
    call = asyncio.ensure_future(pool.execute("BLPOP", "no-list", 5))
    await eventually(lambda: pool._in_use, "the call is under way")
    call.cancel()
    await asyncio.wait([call])
    assert all_closed(made)
    assert await pool.execute("ECHO", "next") == b"next"
    await pool.close()
    await client.aclose()
