"""Connections to the server: URLs, clients, timeouts. The only module that imports redis."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import re
import time
from collections.abc import Generator, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from groupmq.commands import Call
from groupmq.dialogue import Dialogue, Steps
from groupmq.errors import ConfigurationError
from groupmq.faults import understood
from groupmq.options import QueueOptions
from groupmq.tasks import heedful

T = TypeVar("T")
DEFAULT_URL = "redis://127.0.0.1:6379"
PATIENCE = 3.0
"""Seconds a producer's call rides over a server that restarts or fails over before it raises."""

_CALL_TIMEOUT = 10.0
_CONNECT_TIMEOUT = 5.0
_BLOCK_MARGIN = 2.0
_MOST_CALLS = 50
"""Calls of one queue object under way at a time; redis-py 8 allows a pool 100 connections."""
_SCHEMES = "redis://, rediss://, valkey://, valkeys://, unix:// or embedded://"
# What of a user's own client describes the server; timeouts, retries, decoding and parsers stay ours.
_DESCRIBES_SERVER = re.compile(
    r"host|port|path|db|username|password|credential_provider|client_name|protocol|ssl(_.+)?"
)


def resolve_url(url: str | None) -> str:
    """The URL to use, in a form redis-py reads: `valkey` spelled `redis`, an embedded server started."""
    chosen = os.environ.get("GROUPMQ_URL") or os.environ.get("REDIS_URL") or DEFAULT_URL if url is None else url
    scheme, found, rest = chosen.partition("://")
    if not found:
        raise _no_address(chosen)
    if scheme in ("redis+cluster", "redis+sentinel"):
        raise ConfigurationError(f"redis: {scheme}:// is not supported by this release yet")
    if scheme == "embedded":
        from groupmq import embedded

        return embedded.ensure(chosen)
    scheme = {"valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme)
    if scheme not in ("redis", "rediss", "unix"):
        raise _no_address(chosen)
    return f"{scheme}://{rest}"


def _no_address(url: str) -> ConfigurationError:
    """What is wrong with a URL, in words that hold no password however it is spelled."""
    scheme, found, rest = url.rpartition("://")
    shown = f"{scheme}{found}{rest.rpartition('@')[2]}"
    return ConfigurationError.expected("redis", f"a URL ({_SCHEMES}; odd characters percent-encoded)", shown)


def masked(url: str) -> str:
    """The URL for people to read: never with a password."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return f"unix://{parts.path}"
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


class Endpoint:
    """A server and how to reach it: from a URL, or from a client the user made (which we never close)."""

    def __init__(self, source: object) -> None:
        self.client: Any = None
        self._url: str | None = None
        if source is None or isinstance(source, str):
            self._url = resolve_url(source)
            try:
                self.where = masked(self._url)
                redis.ConnectionPool.from_url(self._url)
            except ValueError:
                raise _no_address(self._url) from None
        elif hasattr(source, "execute_command") and hasattr(source, "connection_pool"):
            self.client = source
            self.where = _where(source)
        else:
            raise ConfigurationError.expected("redis", f"a URL ({_SCHEMES}) or a redis client", source)

    @property
    def identity(self) -> object:
        """The same for two endpoints that one connection can serve."""
        return self._url if self._url is not None else id(self.client.connection_pool)

    def require(self, *, asynchronous: bool) -> None:
        """Refuse a client of the other kind; it would fail later, and less clearly."""
        if self.client is None:
            return
        if _is_asynchronous(self.client) != asynchronous:
            wanted = "redis.asyncio.Redis" if asynchronous else "redis.Redis"
            raise ConfigurationError.expected("redis", f"a URL or a {wanted} client", self.client)

    def asynchronous(self, timeout: float | None = None) -> Any:
        """A new asynchronous client of our own, with redis-py's blind resending off.

        Without a `timeout` reads end after the one in the URL, or ours; a given one stands, whatever the URL says.
        """
        ours = self._ours(timeout) | {"retry": AsyncRetry(NoBackoff(), 0)}
        if self._url is not None:
            client = redis.asyncio.Redis.from_url(self._url, **ours)
            if timeout is not None:
                client.connection_pool.connection_kwargs["socket_timeout"] = timeout
            return client
        pool = self.client.connection_pool
        if _is_asynchronous(self.client):
            own = type(pool)(connection_class=pool.connection_class, **self._described(), **ours)
            return type(self.client)(connection_pool=own)
        kind = _same_kind(pool, redis.asyncio)
        own = redis.asyncio.ConnectionPool(connection_class=kind, **self._described(), **ours)
        return redis.asyncio.Redis(connection_pool=own)

    def blocking(self, timeout: float | None = None) -> redis.Redis:
        """A new blocking client of our own; `timeout` as above."""
        ours = self._ours(timeout) | {"retry": Retry(NoBackoff(), 0)}
        if self._url is not None:
            client = redis.Redis.from_url(self._url, **ours)
            if timeout is not None:
                client.connection_pool.connection_kwargs["socket_timeout"] = timeout
            return client
        kind = _same_kind(self.client.connection_pool, redis)
        return redis.Redis(connection_pool=redis.ConnectionPool(connection_class=kind, **self._described(), **ours))

    def _ours(self, given: float | None) -> dict[str, Any]:
        """What every connection of ours gets, whoever described the server."""
        timeout = _CALL_TIMEOUT if given is None else given
        ours: dict[str, Any] = {"socket_timeout": timeout, "health_check_interval": 0}
        if not self.where.startswith("unix://"):
            ours |= {"socket_connect_timeout": min(timeout, _CONNECT_TIMEOUT), "socket_keepalive": True}
        return ours

    def _described(self) -> dict[str, Any]:
        kwargs = self.client.connection_pool.connection_kwargs
        return {
            name: value for name, value in kwargs.items() if value is not None and _DESCRIBES_SERVER.fullmatch(name)
        }


def _is_asynchronous(client: Any) -> bool:
    return inspect.iscoroutinefunction(type(client).execute_command)


def _same_kind(pool: Any, library: Any) -> Any:
    """The class for such connections in the other half of the client library."""
    name = pool.connection_class.__name__
    return getattr(library, name if name in ("SSLConnection", "UnixDomainSocketConnection") else "Connection")


def _where(client: Any) -> str:
    kwargs = client.connection_pool.connection_kwargs
    if "path" in kwargs:
        return f"unix://{kwargs['path']}"
    return f"{kwargs.get('host', 'localhost')}:{kwargs.get('port', 6379)}"


class Connection:
    """The asynchronous connection of one queue object."""

    def __init__(self, endpoint: Endpoint, options: QueueOptions, *, beside: BlockingConnection | None = None) -> None:
        """`beside`: the connection of a blocking queue, for which this one listens."""
        if beside is None:
            endpoint.require(asynchronous=True)
        self.endpoint = endpoint
        self.dialogue = Dialogue(options, endpoint.where) if beside is None else beside.dialogue
        self._own = beside is not None or endpoint.client is None
        self._client = endpoint.asynchronous() if self._own else endpoint.client
        # A thousand calls at once wait for each other here; in the client library's pool they would fail.
        self._slots = asyncio.Semaphore(_MOST_CALLS)

    async def call(self, call: Call[T], patience: float = PATIENCE) -> T:
        return await self.drive(self.dialogue.ask(call, patience))

    async def carry(self, steps: Generator[Call[Any], Any, T]) -> T:
        """Carry out an operation: make each call it yields, and send back the answer."""
        try:
            call = next(steps)
            while True:
                try:
                    answer = await self.call(call)
                except Exception as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def drive(self, steps: Steps[T]) -> T:
        """Carry out a dialogue. A cancelled call drops its connection: a late reply must not reach the next one."""
        try:
            step = next(steps)
            while True:
                try:
                    reply: Any = None
                    if isinstance(step, float):
                        await asyncio.sleep(step)
                    else:
                        async with self._slots:
                            reply = await heedful(self._client.execute_command(*step, NEVER_DECODE=True))
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(reply)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def command(self, *parts: Any) -> Any:
        """A plain command, as it is."""
        return await heedful(self._client.execute_command(*parts, NEVER_DECODE=True))

    async def close(self) -> None:
        self.dialogue.closed = True
        if self._own:
            await self._client.aclose()
            await self._client.connection_pool.disconnect()  # which it leaves open if the pool was handed to it


class WakeConnection:
    """The one connection of a worker that blocks. It pops only a hint, so losing a reply loses nothing."""

    def __init__(self, endpoint: Endpoint, keys: Sequence[str], timeout: float) -> None:
        """`keys`: the marker of all workers, then that of this one, if it has one of its own."""
        self._endpoint = endpoint
        self._keys = keys
        self._popped = keys[0]
        self._timeout = timeout
        # redis-py 8 would give up after 5 s by itself; ours must outlast the block.
        self._client = endpoint.asynchronous(timeout + _BLOCK_MARGIN)

    async def wait(self) -> bool:
        """Block until the marker is there (True) or `timeout` passed (False).

        A read that never returns (a half-open connection) is ended by the watchdog, and the connection replaced.
        """
        try:
            async with asyncio.timeout(self._timeout + 2 * _BLOCK_MARGIN):
                reply = await heedful(
                    self._client.execute_command("BZPOPMIN", *self._keys, self._timeout, NEVER_DECODE=True)
                )
        except Exception as error:
            await self.drop()
            raise understood(error, self._endpoint.where) from error
        if reply is not None:
            self._popped = reply[0].decode()
        return reply is not None

    async def pass_on(self) -> None:
        """Put the marker back for somebody else, if it was meant for all."""
        if self._popped != self._keys[0]:
            return
        try:
            await self._client.execute_command("ZADD", self._keys[0], 0, "0", NEVER_DECODE=True)
        except Exception as error:
            await self.drop()
            raise understood(error, self._endpoint.where) from error

    async def drop(self) -> None:
        with contextlib.suppress(Exception):
            await self._client.connection_pool.disconnect(inuse_connections=True)

    async def close(self) -> None:
        await self.drop()
        with contextlib.suppress(Exception):
            await self._client.aclose()


class StreamConnection:
    """The connection that reads the logs of events, whatever number of queues they are of."""

    def __init__(self, endpoint: Endpoint, block: float = 5.0) -> None:
        self._endpoint = endpoint
        self._block_ms = int(block * 1000)
        self._timeout = block + 2 * _BLOCK_MARGIN
        self._client = endpoint.asynchronous(block + _BLOCK_MARGIN)
        # Replies as they come: the library's own reading of streams differs between its releases and protocols.
        self._client.response_callbacks.clear()
        self._id: int | None = None
        self._nudges: set[asyncio.Task[None]] = set()

    async def read(self, positions: dict[str, str], *, wait: bool = True) -> dict[str, list[Any]]:
        """New entries by key, after each key's position; empty if none came for a while, or if `unblock` was called."""
        block = ("BLOCK", self._block_ms) if wait else ()
        try:
            async with asyncio.timeout(self._timeout):
                if self._id is None:
                    self._id = int(await self._command("CLIENT", "ID"))
                reply = await self._command(
                    "XREAD", "COUNT", 500, *block, "STREAMS", *positions.keys(), *positions.values()
                )
        except Exception as error:
            await self._drop()
            raise understood(error, self._endpoint.where) from error
        pairs = reply.items() if isinstance(reply, dict) else reply or ()
        return {key.decode(): entries for key, entries in pairs}

    async def _command(self, *parts: Any) -> Any:
        return await heedful(self._client.execute_command(*parts, NEVER_DECODE=True))

    def unblock(self, via: Connection) -> None:
        """Let the read under way return, since there is another log to read; `via` reaches the same server."""
        task = asyncio.get_running_loop().create_task(self._unblock(via))
        self._nudges.add(task)
        task.add_done_callback(self._nudges.discard)

    async def _unblock(self, via: Connection) -> None:
        # Without the permission, or in a bad moment, the read ends by itself after a while.
        with contextlib.suppress(Exception):
            if self._id is not None:
                await via.command("CLIENT", "UNBLOCK", self._id)

    async def _drop(self) -> None:
        self._id = None
        with contextlib.suppress(Exception):
            await self._client.connection_pool.disconnect(inuse_connections=True)

    async def close(self) -> None:
        for task in tuple(self._nudges):
            task.cancel()
        await self._drop()
        with contextlib.suppress(Exception):
            await self._client.aclose()


class BlockingConnection:
    """The blocking connection of the sync client and of the heartbeat thread. Safe in threads and after a fork."""

    def __init__(
        self, endpoint: Endpoint, options: QueueOptions, *, own: bool = False, timeout: float | None = None
    ) -> None:
        self.dialogue = Dialogue(options, endpoint.where)
        self._own = own or endpoint.client is None
        if not self._own:
            endpoint.require(asynchronous=False)
        self._client: Any = endpoint.blocking(timeout) if self._own else endpoint.client
        patience = self._client.connection_pool.connection_kwargs.get("socket_timeout") or _CALL_TIMEOUT
        self._longest_block = patience / 2

    def call(self, call: Call[T], patience: float = PATIENCE) -> T:
        return self.drive(self.dialogue.ask(call, patience))

    def wait_for_mail(self, worker: str, timeout: float) -> bool:
        """Block until there is mail for a worker (True), or for some time, at most `timeout` (False)."""
        key = self.dialogue.keys.mail(worker)
        try:
            block = min(timeout, self._longest_block)
            return self._client.execute_command("BZPOPMIN", key, block, NEVER_DECODE=True) is not None
        except Exception as error:
            raise understood(error, self.dialogue.where) from error

    def interrupt(self) -> None:
        """End a blocking read of another thread."""
        with contextlib.suppress(Exception):
            self._client.connection_pool.disconnect(inuse_connections=True)

    def drive(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    reply: Any = None
                    if isinstance(step, float):
                        time.sleep(step)
                    else:
                        reply = self._client.execute_command(*step, NEVER_DECODE=True)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(reply)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def close(self) -> None:
        self.dialogue.closed = True
        if self._own:
            self._client.close()
