"""Endpoints: a server and how to reach it, by URL or by a client of the user's. The only module that imports redis."""

from __future__ import annotations

import copy
import inspect
import os
import re
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from groupmq.client.connection.faults import is_moved, require_known_options
from groupmq.core.errors import ConfigurationError

DEFAULT_URL = "redis://127.0.0.1:6379"
CALL_TIMEOUT = 10.0
"""Seconds after which a read ends, unless the URL or the caller says otherwise."""

_CONNECT_TIMEOUT = 5.0
_SCHEMES = "redis://, rediss://, valkey://, valkeys://, unix:// or embedded://"
# What of a user's own client describes the server; timeouts, retries, decoding and parsers stay ours.
_DESCRIBES_SERVER = re.compile(
    r"host|port|path|db|username|password|credential_provider|client_name|protocol|ssl(_.+)?"
)


class Address:
    """What all connections of this process to one address share: how often the primary has moved away from it.

    After a failover behind one address the old connections still lead to the old primary, which lives on as a replica
    and refuses writes for ever. So the first connection that is refused makes all others connect anew.
    """

    def __init__(self) -> None:
        self.moves = 0

    def observe(self, error: BaseException) -> None:
        if is_moved(error):
            self.moves += 1


_addresses: WeakValueDictionary[object, Address] = WeakValueDictionary()


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

    @classmethod
    def of(cls, source: object) -> Endpoint:
        """The endpoint of a URL or a client; an endpoint is its own."""
        return source if isinstance(source, Endpoint) else cls(source)

    def __init__(self, source: object) -> None:
        self.own = False
        """Whether connections of our own are used, though the user gave a client."""
        self.call_timeout: float | None = None
        self.client: Any = None
        self._url: str | None = None
        if source is None or isinstance(source, str):
            self._url = resolve_url(source)
            try:
                self.where = masked(self._url)
                pool = redis.ConnectionPool.from_url(self._url)
            except ValueError:
                raise _no_address(self._url) from None
            require_known_options(pool)
        elif hasattr(source, "execute_command") and hasattr(source, "connection_pool"):
            if hasattr(source.connection_pool, "service_name"):
                raise ConfigurationError(
                    "redis: Sentinel is not supported by this release yet, so a client of Sentinel.master_for() cannot "
                    "be used; give the URL of the primary, or of an address that always leads to the primary"
                )
            self.client = source
            self.where = _where(source)
        else:
            raise ConfigurationError.expected("redis", f"a URL ({_SCHEMES}) or a redis client", source)
        self.address = _addresses.setdefault(self.identity, Address())

    @property
    def identity(self) -> object:
        """The same for two endpoints that one connection can serve."""
        return self._url if self._url is not None else id(self.client.connection_pool)

    def beside(self, call_timeout: float | None = None) -> Endpoint:
        """The same server, by connections of our own even if the user gave a client; reads end after `call_timeout`."""
        other = copy.copy(self)
        other.own, other.call_timeout = True, call_timeout
        return other

    def require(self, *, asynchronous: bool) -> None:
        """Refuse a client of the other kind; it would fail later, and less clearly."""
        if self.client is None or self.own:
            return
        if _is_asynchronous(self.client) != asynchronous:
            wanted = "redis.asyncio.Redis" if asynchronous else "redis.Redis"
            raise ConfigurationError.expected("redis", f"a URL or a {wanted} client", self.client)

    def asynchronous(self, timeout: float | None = None) -> Any:
        """A new asynchronous client of our own, with redis-py's blind resending off.

        Without a `timeout` reads end after the one in the URL, or ours; a given one stands, whatever the URL says.
        """
        timeout = self.call_timeout if timeout is None else timeout
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
        timeout = self.call_timeout if timeout is None else timeout
        ours = self._ours(timeout) | {"retry": Retry(NoBackoff(), 0)}
        if self._url is not None:
            client = redis.Redis.from_url(self._url, **ours)
            if timeout is not None:
                client.connection_pool.connection_kwargs["socket_timeout"] = timeout
            return client
        kind = _same_kind(self.client.connection_pool, redis)
        return redis.Redis(connection_pool=redis.ConnectionPool(connection_class=kind, **self._described(), **ours))

    def _ours(self, given: float | None) -> dict[str, Any]:
        """What every connection of ours gets, however the server was described."""
        timeout = CALL_TIMEOUT if given is None else given
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
