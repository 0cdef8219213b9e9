"""Several nodes behind one URL or client, Sentinel or a cluster: reads their description. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from redis.asyncio.connection import parse_url

from groupmq.client.connection.address import Node
from groupmq.client.connection.url_mistakes import require_one_database
from groupmq.core.errors import ConfigurationError

TopologyKind = Literal["sentinel", "cluster"]
ASKING_TIMEOUT = 1.0
"""Seconds that a sentinel or node may take to connect, and to answer, before the next one is asked."""
_PORTS = {"sentinel": 26379, "cluster": 6379}
# Options of a user's own client that describe the server; timeouts, retries, decoding and parsers stay ours.
DESCRIBES_SERVER = re.compile(r"host|port|path|db|username|password|credential_provider|client_name|protocol|ssl(_.+)?")


@dataclass(frozen=True)
class Topology:
    """Nodes that know where a server is, and how to reach them and the server."""

    kind: TopologyKind
    nodes: tuple[Node, ...]
    """The nodes that know where the server is: the sentinels, or some nodes of the cluster."""
    service: str
    """The name that the sentinels have for it; empty for a cluster."""
    where: str
    """The address for people to read, without secrets."""
    tls: bool
    options: dict[str, Any] = field(repr=False)
    """Options of connections to the server, without host and port."""
    asking: dict[str, Any] = field(repr=False)
    """Options of connections to `nodes`."""
    asking_tls: bool = False

    @property
    def identity(self) -> object:
        """Equal for two descriptions of the same servers that are reached in the same way."""
        options = (sorted(given.items(), key=lambda item: item[0]) for given in (self.options, self.asking))
        return repr((self.kind, self.nodes, self.service, self.tls, self.asking_tls, *options))


def is_topology(scheme: str) -> bool:
    return "+" in scheme


def parsed(url: str) -> Topology:
    """Read a URL of several nodes. Raises ValueError.

    `redis+sentinel://[user:password@]host[:port],.../service[/db]?...` or `redis+cluster://...host[:port],...[/db]?...`
    """
    parts = urlsplit(url)
    known = re.fullmatch(r"(redis|rediss|valkey|valkeys)\+(sentinel|cluster)", parts.scheme)
    if known is None:
        raise ValueError(url)
    kind: TopologyKind = "cluster" if known[2] == "cluster" else "sentinel"
    tls = known[1] in ("rediss", "valkeys")
    user, at, hosts = parts.netloc.rpartition("@")
    nodes = tuple(_node(host, _PORTS[kind]) for host in hosts.split(","))
    path = parts.path.strip("/")
    service, _, database = ("", "", path) if kind == "cluster" else path.partition("/")
    if (kind == "sentinel" and not service) or not re.fullmatch(r"\d*", database):
        raise ValueError(url)
    query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    mine = _OF_SENTINELS if kind == "sentinel" else ()
    rest = urlencode([(name, value) for name, value in query if name not in mine])
    scheme = "rediss" if tls else "redis"
    plain = f"{scheme}://{user}{at}{_spelled(*nodes[0])}/{database}{'?' if rest else ''}{rest}"
    options = _without_address(dict(parse_url(plain)))
    require_one_database(database, url)
    if not database and "db" in options:
        path = "/".join(filter(None, (service, str(options["db"]))))
    if kind == "cluster":
        asking = _without_database(_server_options(options.items()))
    else:
        asking = {name.removeprefix("sentinel_"): value for name, value in query if name in mine}
        asking |= {name: value for name, value in options.items() if name.startswith("ssl_")}
    where = _shown(kind, nodes, path, tls=tls)
    return Topology(kind, nodes, unquote(service), where, tls, options, asking, tls)


def _shown(kind: TopologyKind, nodes: Iterable[Node], path: str, *, tls: bool) -> str:
    hosts = ",".join(_spelled(*node) for node in nodes)
    return f"{'rediss' if tls else 'redis'}+{kind}://{hosts}{'/' if path else ''}{path}"


_OF_SENTINELS = ("sentinel_username", "sentinel_password")


def described(client: Any) -> Topology | None:
    """The topology that a client of the user's stands for; None if it is one of a single server."""
    if hasattr(client, "nodes_manager"):
        return _cluster_of(client)
    pool: Any = getattr(client, "connection_pool", None)
    return _service_of(pool) if hasattr(pool, "service_name") else None


def _service_of(pool: Any) -> Topology:
    """The topology of a client of Sentinel.master_for()."""
    if not getattr(pool, "is_master", True):
        raise ConfigurationError("redis: this client reads from replicas; give a client from Sentinel.master_for()")
    asked = [sentinel.connection_pool for sentinel in pool.sentinel_manager.sentinels]
    if not asked:
        raise ConfigurationError("redis: the Sentinel of this client has no sentinels")
    nodes = tuple((str(one.connection_kwargs["host"]), int(one.connection_kwargs["port"])) for one in asked)
    options, tls = _server_options(pool.connection_kwargs.items()), _has_tls(pool)
    where = _shown("sentinel", nodes, f"{pool.service_name}/{options.get('db', 0)}", tls=tls)
    asking = _server_options(asked[0].connection_kwargs.items())
    return Topology("sentinel", nodes, str(pool.service_name), where, tls, options, asking, _has_tls(asked[0]))


def _cluster_of(client: Any) -> Topology:
    """The topology of a RedisCluster client."""
    known = client.nodes_manager
    nodes = tuple(dict.fromkeys((str(node.host), int(node.port)) for node in known.startup_nodes.values()))
    given = client.get_connection_kwargs()
    options = _server_options(given.items())
    tls = bool(given.get("ssl")) or "SSL" in getattr(given.get("connection_class"), "__name__", "")
    where = _shown("cluster", nodes, "", tls=tls)
    return Topology("cluster", nodes, "", where, tls, options, _without_database(options), tls)


def _has_tls(pool: Any) -> bool:
    return "SSL" in pool.connection_class.__name__


def _server_options(options: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    described = {name: value for name, value in options if value is not None and DESCRIBES_SERVER.fullmatch(name)}
    described.pop("ssl", None)
    return _without_address(described)


def _without_database(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "db"}


def _without_address(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _ADDRESS}


_ADDRESS = ("host", "port", "connection_class")


def _node(text: str, port: int) -> Node:
    """`host`, `host:port` or `[address]:port`. Raises ValueError."""
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.path or parts.query or parts.fragment:
        raise ValueError(text)
    return parts.hostname, parts.port or port


def _spelled(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
