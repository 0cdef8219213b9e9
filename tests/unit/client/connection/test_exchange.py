"""Commands and replies on a connection taken over from redis-py, with everything that the other side may send."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Connection

from groupmq.client.connection.exchange import ConnectionClosed, Exchange
from tests.support.waiting import eventually


class Peer:
    """The other end of a connection, played by the test."""

    def __init__(self, connection: Connection, end: socket.socket) -> None:
        self.connection = connection
        self.end = end

    def says(self, raw: bytes) -> None:
        self.end.sendall(raw)


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    ours, theirs = socket.socketpair()
    connection = Connection()
    connection._reader, connection._writer = await asyncio.open_connection(sock=ours)
    yield Peer(connection, theirs)
    theirs.close()
    await connection.disconnect()


async def answered(exchange: Exchange, peer: Peer, raw: bytes, count: int = 1) -> list[Any]:
    run = asyncio.ensure_future(exchange.run(b"*1\r\n$4\r\nPING\r\n", count, 5))
    await asyncio.sleep(0)
    peer.says(raw)
    return await run


async def test_replies_come_in_pieces_and_an_error_is_a_reply(peer: Peer) -> None:
    exchange = Exchange(peer.connection)
    run = asyncio.ensure_future(exchange.run(b"*1\r\n$4\r\nPING\r\n", 2, 5))
    for piece in (b"$5\r\nhe", b"llo\r", b"\n-ERR no", b"\r\n"):
        await asyncio.sleep(0)
        peer.says(piece)
    reply, error = await run
    assert reply == b"hello"
    assert str(error) == "no"
    assert exchange.is_open
    assert await answered(exchange, peer, b":1\r\n") == [1]


async def test_messages_that_the_server_pushes_are_no_replies(peer: Peer) -> None:
    exchange = Exchange(peer.connection)
    pushed = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
    assert await answered(exchange, peer, pushed + b":7\r\n" + pushed) == [7]
    assert exchange.is_open


async def test_a_reply_to_nothing_ends_the_connection(peer: Peer) -> None:
    exchange = Exchange(peer.connection)
    peer.says(b":1\r\n")
    await eventually(lambda: not exchange.is_open, "the connection is not used again")


async def test_a_reply_too_many_ends_the_connection_and_the_run(peer: Peer) -> None:
    exchange = Exchange(peer.connection)
    with pytest.raises(ConnectionClosed, match="nothing asked for"):
        await answered(exchange, peer, b":1\r\n:2\r\n")
    assert not exchange.is_open


async def test_a_reply_behind_the_last_one_of_a_run_ends_the_connection(peer: Peer) -> None:
    exchange = Exchange(peer.connection)
    run = asyncio.ensure_future(exchange.run(b"*1\r\n$4\r\nPING\r\n", 1, 5))
    await asyncio.sleep(0)
    exchange.data_received(b":1\r\n")
    exchange.data_received(b":2\r\n")
    assert await run == [1]
    assert not exchange.is_open


async def test_what_has_arrived_and_was_not_seen_yet_makes_it_not_quiet(peer: Peer) -> None:
    exchange = Exchange(peer.connection)
    assert exchange.is_quiet()
    peer.says(b":1\r\n")
    assert exchange.is_open
    assert not exchange.is_quiet()


async def test_a_connection_that_ended_before_it_was_taken_over_is_not_used(peer: Peer) -> None:
    peer.end.close()
    assert peer.connection._reader is not None
    await eventually(peer.connection._reader.at_eof, "the end of the connection was read")
    exchange = Exchange(peer.connection)
    assert not exchange.is_open
    with pytest.raises(ConnectionClosed):
        await exchange.run(b"*1\r\n$4\r\nPING\r\n", 1, 5)


async def test_a_run_ends_with_its_connection(peer: Peer) -> None:
    exchange = Exchange(peer.connection)
    run = asyncio.ensure_future(exchange.run(b"*1\r\n$4\r\nPING\r\n", 1, 30))
    await asyncio.sleep(0)
    peer.end.close()
    with pytest.raises(ConnectionClosed):
        await run
    assert not exchange.is_open


async def test_a_reply_that_is_late_closes_the_connection(peer: Peer) -> None:
    exchange = Exchange(peer.connection)
    with pytest.raises(TimeoutError):
        await exchange.run(b"*1\r\n$4\r\nPING\r\n", 1, 0.01)
    assert not exchange.is_open


async def test_bytes_that_are_not_of_the_protocol_close_the_connection(peer: Peer) -> None:
    exchange = Exchange(peer.connection)
    with pytest.raises(Exception, match="Protocol error"):
        await answered(exchange, peer, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert not exchange.is_open
