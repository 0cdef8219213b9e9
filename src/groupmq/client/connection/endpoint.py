"""Endpoints: a server and how to reach it, by URL or by a client of the user's."""

from __future__ import annotations

import copy
import inspect
import os
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakValueDictionary

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from groupmq.client.connection import topology
from groupmq.client.connection.address import Address, Node, Route
from groupmq.client.connection.blocking_locating import (
    BlockingLocatingConnection,
    BlockingLocatingSSLConnection,
    BlockingLocator,
)
from groupmq.client.connection.cluster import NodeRoute, SlotMap, SlotRoute, slot_of
from groupmq.client.connection.locating import LocatingConnection, LocatingSSLConnection, Locator
from groupmq.client.connection.patience import PATIENCE
from groupmq.client.connection.sentinel import SentinelRoute
from groupmq.client.connection.topology import ASKING_TIMEOUT, DESCRIBES_SERVER, Topology
from groupmq.client.connection.url_mistakes import (
    SCHEMES,
    no_address,
    require_database,
    require_files,
    require_known_options,
    wrong_option,
)
from groupmq.core.errors import ConfigurationError
from groupmq.core.wording import number

DEFAULT_URL = "redis://127.0.0.1:6379"
CALL_TIMEOUT = 10.0
"""Seconds after which a read ends, unless the URL or the caller says otherwise."""

_CONNECT_TIMEOUT = 5.0
FAILOVER_PATIENCE = 15.0
"""Seconds for which a producer's call is tried again with Sentinel or a cluster, where a failover may take longer."""

_addresses: WeakValueDictionary[object, Address] = WeakValueDictionary()
_routes: WeakValueDictionary[object, Route] = WeakValueDictionary()
_slot_maps: WeakValueDictionary[object, SlotMap] = WeakValueDictionary()


def resolve_url(url: str | None) -> str:
    """The URL to use, in a form redis-py reads: `valkey` spelled `redis`, an embedded server started."""
    chosen = os.environ.get("GROUPMQ_URL") or os.environ.get("REDIS_URL") or DEFAULT_URL if url is None else url
    scheme, found, rest = chosen.partition("://")
    if not found:
        raise no_address(chosen)
    if scheme == "embedded":
        from groupmq import embedded

        return embedded.ensure(chosen)
    if topology.is_topology(scheme):
        return chosen
    scheme = {"valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme)
    if scheme not in ("redis", "rediss", "unix"):
        raise no_address(chosen)
    return f"{scheme}://{rest}"


def masked(url: str) -> str:
    """The URL for people to read: never with a password."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return f"unix://{parts.path}"
    database = dict(parse_qsl(parts.query)).get("db", "")
    path = f"/{database}" if database.isdecimal() and parts.path in ("", "/") else parts.path
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{path}"


class Endpoint:
    """A server and how to reach it: from a URL, or from a client the user made (which we never close)."""

    @classmethod
    def of(cls, source: object) -> Endpoint:
        """The endpoint of a URL or a client; an endpoint is returned as it is."""
        return source if isinstance(source, Endpoint) else cls(source)

    def __init__(self, source: object) -> None:
        self.own = False
        """Whether connections of our own are used, though the user gave a client."""
        self.call_timeout: float | None = None
        self.patience = PATIENCE
        """Seconds for which a call is tried again while the server is away, by default."""
        self.client: Any = None
        self.url: str | None = None
        """The URL by which another process can reach it, passwords included; None if the user gave a client."""
        self._url: str | None = None
        self._topology: Topology | None = None
        self.locator: Locator | None = None
        """How connections find their server, if that is not always the same."""
        self.blocking_locator: BlockingLocator | None = None
        """The same for connections that block."""
        self.slots: SlotMap | None = None
        """The slots of the cluster; None for a single server or Sentinel."""
        self.slot = 0
        """The slot of the queue, in a cluster."""
        if source is None or isinstance(source, str):
            self._read(resolve_url(source))
        elif (found := topology.described(source)) is not None:
            self._topology = found
        elif hasattr(source, "execute_command") and hasattr(source, "connection_pool"):
            self.client = source
            self.where = _where(source)
        else:
            raise ConfigurationError.expected("redis", f"a URL ({SCHEMES}) or a redis client", source)
        self.address = self._find_address()

    def _read(self, url: str) -> None:
        self.url = url
        try:
            if topology.is_topology(url.partition("://")[0]):
                self._topology = topology.parsed(url)
                pool = redis.ConnectionPool(
                    connection_class=redis.SSLConnection if self._topology.tls else redis.Connection,
                    **self._topology.options,
                )
            else:
                self._url, self.where = url, masked(url)
                require_database(url)
                pool = redis.ConnectionPool.from_url(url)
        except ValueError as error:
            raise wrong_option(error, url) or no_address(url) from None
        require_known_options(pool)
        require_files(pool)

    def _find_address(self) -> Address:
        found = self._topology
        if found is None:
            return _addresses.setdefault(self.identity, Address())
        self.where, self.patience = found.where, FAILOVER_PATIENCE
        if found.kind == "cluster":
            self.slots = _slot_maps.setdefault(found.identity, SlotMap(found.nodes))
            return self._lead_by(_route(self.identity, SlotRoute(self.slots, self.slot)))
        return self._lead_by(_route(self.identity, SentinelRoute(found.nodes, found.service)))

    def _lead_by(self, route: Route) -> Route:
        if self._topology is not None:
            limits = {"socket_timeout": ASKING_TIMEOUT, "socket_connect_timeout": ASKING_TIMEOUT, "protocol": 2}
            asking, tls = self._topology.asking | limits, self._topology.asking_tls
            self.locator, self.blocking_locator = (
                Locator(route, asking, tls=tls),
                BlockingLocator(route, asking, tls=tls),
            )
        self.address = route
        return route

    def at(self, key: str) -> Endpoint:
        """The same server or cluster; in a cluster connections lead to the primary that owns the slot of a key."""
        if self.slots is None:
            return self
        other = copy.copy(self)
        other.slot = slot_of(key)
        other._lead_by(_route(other.identity, SlotRoute(self.slots, other.slot)))
        return other

    def at_node(self, node: Node) -> Endpoint:
        """One node of a cluster."""
        if self.slots is None:
            return self
        other = copy.copy(self)
        other._lead_by(NodeRoute(self.slots, node))
        return other

    @property
    def identity(self) -> object:
        """Equal for two endpoints that one connection can serve."""
        if self._topology is not None:
            return self._topology.identity if self.slots is None else (self._topology.identity, self.slot)
        return self._url if self._url is not None else id(self.client.connection_pool)

    def beside(self, call_timeout: float | None = None) -> Endpoint:
        """The same server, by connections of our own even if the user gave a client; reads end after `call_timeout`."""
        other = copy.copy(self)
        other.own, other.call_timeout = True, call_timeout
        return other

    def whereabouts(self) -> str:
        """Which of several servers was found last, without secrets; empty for a single server."""
        if self._topology is None or self.locator is None:
            return ""
        node = self.locator.route.node
        here = f"{node[0]}:{node[1]}" if node is not None else "not known now"
        if self.slots is None:
            asked = len(self._topology.nodes)
            return f"Sentinel: the primary of {self._topology.service!r} is {here} ({number(asked, 'sentinel')} known)"
        return f"cluster of {len(self.slots.primaries())} primaries: this is {here}, the owner of slot {self.slot}"

    def require(self, *, asynchronous: bool) -> None:
        """Refuse a client of the other kind; it would fail later, and less clearly."""
        if self.client is None or self.own:
            return
        if _is_asynchronous(self.client) != asynchronous:
            wanted = "redis.asyncio.Redis" if asynchronous else "redis.Redis"
            raise ConfigurationError.expected("redis", f"a URL or a {wanted} client", self.client)

    def asynchronous(self, timeout: float | None = None) -> Any:
        """A new asynchronous client of our own, with redis-py's blind resending off.

        Reads end after `timeout`, whatever the URL says; without it, after the timeout in the URL, or our default.
        """
        timeout = self.call_timeout if timeout is None else timeout
        ours = self._ours(timeout) | {"retry": AsyncRetry(NoBackoff(), 0)}
        if self._topology is not None:
            kind: Any = LocatingSSLConnection if self._topology.tls else LocatingConnection
            pool = redis.asyncio.ConnectionPool(connection_class=kind, **self._found(ours, timeout, self.locator))
            return redis.asyncio.Redis(connection_pool=pool)
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
        """A new blocking client of our own; `timeout` as in `asynchronous`."""
        timeout = self.call_timeout if timeout is None else timeout
        ours = self._ours(timeout) | {"retry": Retry(NoBackoff(), 0)}
        if self._topology is not None:
            kind: Any = BlockingLocatingSSLConnection if self._topology.tls else BlockingLocatingConnection
            pool = redis.ConnectionPool(connection_class=kind, **self._found(ours, timeout, self.blocking_locator))
            return redis.Redis(connection_pool=pool)
        if self._url is not None:
            client = redis.Redis.from_url(self._url, **ours)
            if timeout is not None:
                client.connection_pool.connection_kwargs["socket_timeout"] = timeout
            return client
        kind = _same_kind(self.client.connection_pool, redis)
        return redis.Redis(connection_pool=redis.ConnectionPool(connection_class=kind, **self._described(), **ours))

    def _ours(self, given: float | None) -> dict[str, Any]:
        """The options of every connection of ours, however the server was described."""
        timeout = CALL_TIMEOUT if given is None else given
        ours: dict[str, Any] = {"socket_timeout": timeout, "health_check_interval": 0}
        if not self.where.startswith("unix://"):
            ours |= {"socket_connect_timeout": min(timeout, _CONNECT_TIMEOUT), "socket_keepalive": True}
        return ours

    def _found(self, ours: dict[str, Any], timeout: float | None, locator: object) -> dict[str, Any]:
        """The options of connections that find their server."""
        options = {} if self._topology is None else self._topology.options
        given = {} if timeout is None else {"socket_timeout": timeout}
        return {**ours, **options, **given, "locator": locator}

    def _described(self) -> dict[str, Any]:
        kwargs = self.client.connection_pool.connection_kwargs
        return {name: value for name, value in kwargs.items() if value is not None and DESCRIBES_SERVER.fullmatch(name)}


def _route(identity: object, made: Route) -> Route:
    """The route that all connections of this process to one primary share; `made` if there is none yet."""
    return _routes.setdefault(identity, made)


def _is_asynchronous(client: Any) -> bool:
    return inspect.iscoroutinefunction(type(client).execute_command)


def _same_kind(pool: Any, library: Any) -> Any:
    """The class of connections like those of `pool` in the other half of the client library."""
    name = pool.connection_class.__name__
    return getattr(library, name if name in ("SSLConnection", "UnixDomainSocketConnection") else "Connection")


def _where(client: Any) -> str:
    kwargs = client.connection_pool.connection_kwargs
    if "path" in kwargs:
        return f"unix://{kwargs['path']}"
    return f"{kwargs.get('host', 'localhost')}:{kwargs.get('port', 6379)}"
